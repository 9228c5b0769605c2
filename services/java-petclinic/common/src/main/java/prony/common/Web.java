package prony.common;

import org.apache.catalina.core.StandardContext;
import org.springframework.boot.tomcat.TomcatContextCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.converter.HttpMessageConverters;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import tools.jackson.databind.json.JsonMapper;

/** What customers, visits and vets set alike in Spring MVC and Tomcat. */
@Configuration(proxyBeanMethods = false)
class Web implements WebMvcConfigurer {

    private static final int SECOND_GRACE_MILLIS = 100;

    private final JsonMapper mapper;

    Web(JsonMapper mapper) {
        this.mapper = mapper;
    }

    @Override
    public void configureMessageConverters(HttpMessageConverters.ServerBuilder builder) {
        builder.withJsonConverter(new SizedJson(mapper));
    }

    /** Tomcat would wait two seconds more, after Spring's own grace; zero would be for ever. */
    @Bean
    static TomcatContextCustomizer shortSecondGrace() {
        return context -> ((StandardContext) context).setUnloadDelay(SECOND_GRACE_MILLIS);
    }
}
