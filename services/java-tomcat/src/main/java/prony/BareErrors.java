package prony;

import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.catalina.valves.ErrorReportValve;

/** Takes the place of Tomcat's page about an error; the contract wants the status alone. */
public final class BareErrors extends ErrorReportValve {

    // Tomcat asks after every request, and chunks the empty answer to an error without a length.
    @Override
    protected void report(Request request, Response response, Throwable throwable) {
        if (response.isError() && !response.isCommitted()) {
            response.setContentLength(0);
        }
    }
}
