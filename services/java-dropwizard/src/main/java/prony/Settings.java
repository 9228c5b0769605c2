package prony;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.dropwizard.core.Configuration;
import jakarta.validation.constraints.NotNull;
import jakarta.validation.constraints.Pattern;

/** What config.yml says beyond Dropwizard's own settings. */
public class Settings extends Configuration {

    @NotNull
    @Pattern(regexp = "platform|virtual")
    @JsonProperty
    private String mode = "platform";

    String mode() {
        return mode;
    }
}
