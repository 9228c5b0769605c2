package prony;

import org.springframework.boot.jdbc.init.DataSourceScriptDatabaseInitializer;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** Makes schema and data anew, by the very scripts that made them at start. */
@RestController
class Reset {

    private final DataSourceScriptDatabaseInitializer scripts;

    Reset(DataSourceScriptDatabaseInitializer scripts) {
        this.scripts = scripts;
    }

    @PostMapping("/reset")
    @ResponseStatus(HttpStatus.NO_CONTENT)
    void reset() {
        scripts.initializeDatabase();
    }
}
