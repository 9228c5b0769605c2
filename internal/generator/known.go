package generator

// known are formats that Import recognizes and does not read, each with what to do instead.
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
	{starts(`^Requests\s+\[total`), "the file is the text report of vegeta; import the output " +
		"of \"vegeta report -type json\""},
	{has("Concurrency Level:", "Time per request:"), "the file is the text of ab, which cannot " +
		"be imported; measure with wrk, hey, oha or prony load"},
	{starts(`^Percentage served,Time in ms|^starttime\tseconds\tctime`), "the file is a table " +
		"of ab, which cannot be imported; measure with wrk, hey, oha or prony load"},
	{starts(`^(RUN|ASSERTION)\t`), "the file is a simulation log of Gatling, which cannot be " +
		"imported"},
	{keys("contents", "stats", "type"), "the file has statistics of Gatling, which cannot be " +
		"imported"},
	{starts(`^Type,Name,Request Count,`), "the file has statistics of Locust, which cannot be " +
		"imported; prony audit reads tables of results"},
	{has("Bombarding ", "Reqs/sec"), "the file is the text of bombardier, which cannot be " +
		"imported"},
	{keys("spec", "result"), "the file is JSON of bombardier, which cannot be imported"},
	{keys("requests", "latency", "throughput"), "the file is JSON of autocannon, which cannot be " +
		"imported"},
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

// described returns the text of a known format; empty for others.
func described(c *content) string {
	for _, k := range known {
		if k.is(c) {
			return k.text
		}
	}
	return ""
}
