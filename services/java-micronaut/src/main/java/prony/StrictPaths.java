package prony;

import io.micronaut.http.HttpResponse;
import io.micronaut.http.annotation.RequestFilter;
import io.micronaut.http.annotation.ServerFilter;
import io.micronaut.http.filter.FilterPatternStyle;

/** Micronaut's route /hello would take /hello/ as well, which the contract does not name. */
@ServerFilter(patterns = "/.+/", patternStyle = FilterPatternStyle.REGEX)
class StrictPaths {

    @RequestFilter
    HttpResponse<?> notFound() {
        return HttpResponse.notFound();
    }
}
