package generator

import "strings"

// known are formats that Import recognizes and does not read, each with what to do instead. Some
// look like a format that it reads.
var known = []struct {
	is   func(*content) bool
	text string
}{
	{starts(`^(<\?xml|<testResults)`), "the file is XML; configure JMeter to save CSV, with " +
		"-Jjmeter.save.saveservice.output_format=csv"},
	{starts(`(?i)^<(!doctype html|html)`), "the file is an HTML page; import the tool's text, " +
		"CSV or JSON instead"},
	{keys("latency", "timestamp", "code"), "the file has results of vegeta attack; import the " +
		"output of \"vegeta report -type json\""},
	{starts(`^\d{19},\d+,\d+,\d+,\d+,`), "the file has results of vegeta encode as CSV; " +
		"import the output of \"vegeta report -type json\""},
	{starts(`^(Requests\s+\[total|Bucket\s+#\s+%\s+Histogram|Value\(ms\)\s+Percentile)`), "the " +
		"file is a text report of vegeta; import the output of \"vegeta report -type json\""},
	{starts(`^"?Label"?[,;\t]"?# Samples`), "the file is a summary of JMeter; import its log (-l)"},
	{within(keys("Total"), `"sampleCount"`), "the file has statistics of a JMeter dashboard; " +
		"import the log that it was made from (-l)"},
	{has("Concurrency Level:", "Time per request:"), "the file is the text of ab, which cannot " +
		"be imported; measure with wrk, hey, oha or prony load"},
	{starts(`^Percentage served,Time in ms|^starttime\tseconds\tctime`), "the file is a table " +
		"of ab, which cannot be imported; measure with wrk, hey, oha or prony load"},
	{starts(`^(RUN|ASSERTION)\t`), "the file is a simulation log of Gatling, which cannot be " +
		"imported"},
	{keys("contents", "stats", "type"), ofOther("Gatling")},
	{keys("numberOfRequests", "meanResponseTime"), ofOther("Gatling")},
	{starts(`^var stats = \{`), ofOther("Gatling")},
	{has("---- Global Information -"), ofOther("Gatling")},
	{starts(`^"?(Type|Method)"?,"?Name"?,"?(Request Count|# requests|Error)"?,`), "the file has " +
		"statistics of Locust, which cannot be imported; prony audit reads tables of results"},
	{starts(`^"?Timestamp"?,"?User Count"?,`), ofOther("Locust")},
	{has(" # reqs ", " # fails "), ofOther("Locust")},
	{within(starts(`^\[`), `"num_requests"`), ofOther("Locust")},
	{has("Reqs/sec", "HTTP codes:"), "the file is the text of bombardier, which cannot be " +
		"imported"},
	{keys("spec", "result"), "the file is JSON of bombardier, which cannot be imported"},
	{keys("requests", "latency", "throughput"), "the file is JSON of autocannon, which cannot be " +
		"imported"},
	{has("│ Req/Sec"), "the file is the text of autocannon, which cannot be imported"},
	{keys("statusCodeDistribution", "latencyDistribution"), ofOther("ghz")},
	{has("Summary:", "  Count:", "Requests/sec:"), ofOther("ghz")},
	{keys("transactions", "availability"), ofOther("siege")},
	{has("Transaction rate:", "Availability:"), ofOther("siege")},
	{keys("aggregate", "intermediate"), ofOther("Artillery")},
	{has("http.response_time:", "vusers.created"), ofOther("Artillery")},
	{keys("DurationHistogram"), ofOther("Fortio")},
	{has("Fortio ", "Aggregated Function Time"), ofOther("Fortio")},
	{has("Benchmarking ", "connection(s).", "RPS"), ofOther("plow")},
	{has("Completed requests:", "Total errors:"), ofOther("loadtest")},
	{has("Time taken for tests ", "Successful requests "), ofOther("drill")},
	{keys("success_perc", "fail_perc"), ofOther("Ddosify")},
	{keys("tcp_connect", "server_processing"), ofOther("Cassowary")},
	{keys("ScenarioStats"), ofOther("NBomber")},
	{starts(`^label,avg_ct,avg_lt`), ofOther("Taurus")},
	{within(keys("results"), `"benchmark_http_client.`), ofOther("Nighthawk")},
	{has("Nighthawk - A layer 7 protocol benchmarking tool"), ofOther("Nighthawk")},
	{within(keys("results"), `"exit_codes"`), ofOther("hyperfine")},
	{starts(`^command,mean,stddev,median,user,system,`), ofOther("hyperfine")},
	{starts(`^"Benchmark","Mode","Threads",`), ofOther("JMH")},
	{within(starts(`^\[`), `"jmhVersion"`), ofOther("JMH")},
	{starts(`^#\[(Histogram log format|StartTime)|^"StartTimestamp"`), "the file is a histogram " +
		"log, which has no counts of errors and cannot be imported"},
	{keys("load", "verdict"), "the file is the result of prony load; read it with prony audit or " +
		"prony compare"},
	{starts(`^offset_ns,length_ns,`), "the file has the intervals of prony load; save its result " +
		"with --output json, and read it with prony audit or prony compare"},
	{has("after a lead-in of ", " latency "), "the file is the text of prony load; save its " +
		"result with --output json, and read it with prony audit or prony compare"},
	{func(c *content) bool { return c.text == "" }, "the file is empty"},
}

// ofOther describes a file with results of a tool.
func ofOther(tool string) string {
	return "the file has results of " + tool + ", which cannot be imported"
}

// within requires a text in a file of a form.
func within(is func(*content) bool, text string) func(*content) bool {
	return func(c *content) bool { return is(c) && strings.Contains(c.text, text) }
}

// described returns the text of a known format; empty for others.
func described(c *content) string {
	for _, k := range known {
		if k.is(c) {
			return k.text
		}
	}
	return ""
}
