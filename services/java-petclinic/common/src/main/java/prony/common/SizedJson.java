package prony.common;

import java.io.IOException;
import java.util.Map;
import org.springframework.core.ResolvableType;
import org.springframework.http.HttpOutputMessage;
import org.springframework.http.converter.json.JacksonJsonHttpMessageConverter;
import tools.jackson.databind.json.JsonMapper;

/** Spring's JSON converter writes without a length, in chunks; the contract wants the length. */
class SizedJson extends JacksonJsonHttpMessageConverter {

    private final JsonMapper mapper;

    SizedJson(JsonMapper mapper) {
        super(mapper);
        this.mapper = mapper;
    }

    @Override
    protected void writeInternal(
            Object value, ResolvableType type, HttpOutputMessage output, Map<String, Object> hints)
            throws IOException {
        byte[] bytes = mapper.writeValueAsBytes(value);
        output.getHeaders().setContentLength(bytes.length);
        output.getBody().write(bytes);
    }
}
