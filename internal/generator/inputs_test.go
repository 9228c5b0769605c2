package generator

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/record"
)

// input is a file as other people's tools and editors leave it, with its right numbers, or the
// words of the error that refuses it.
type input struct {
	name, text string
	good       int64
	errors     record.Errors
	window     time.Duration // 0: unknown
	p50, most  time.Duration // 0: unknown
	notes      []NoteKind    // that must be there
	refused    string
}

const jtlHead = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,bytes\n"

func jtlOf(lines ...string) string { return jtlHead + strings.Join(lines, "\n") + "\n" }

var jtlInputs = []input{
	{name: "an assertion failed", text: jtlOf("1700000000000,10,a,200,OK,t,true,5",
		"1700000001000,12,a,200,OK,t,false,5", "1700000002000,11,a,200,OK,t,true,5"),
		good: 2, errors: record.Errors{Body: 1}, window: 2011 * time.Millisecond,
		p50: 10 * time.Millisecond, most: 11 * time.Millisecond},
	{name: "an expected 404", text: jtlOf("1700000000000,10,a,404,Not Found,t,true,5"),
		good: 1, window: 10 * time.Millisecond, p50: 10 * time.Millisecond,
		most: 10 * time.Millisecond, notes: []NoteKind{NoteJMeterGoodStatus}},
	{name: "text for a code", text: jtlOf(
		"1700000000000,10,a,Non HTTP response code: java.net.ConnectException,"+
			"Non HTTP response message: Connection refused,t,false,5",
		"1700000000000,10,a,Non HTTP response code: java.net.SocketTimeoutException,"+
			"Non HTTP response message: Read timed out,t,false,5",
		"1700000000010,10,a,500,x,t,false,5", "1700000000020,10,a,,,t,true,5"),
		good: 1, errors: record.Errors{Connect: 1, Timeout: 1, Status: 1},
		window: 30 * time.Millisecond, p50: 10 * time.Millisecond, most: 10 * time.Millisecond},
	{name: "dates with slashes", text: "timeStamp,elapsed,responseCode,success\n" +
		"2026/11/27 10:00:00.000,10,200,true\n2026/11/27 10:00:10.000,12,200,true\n",
		good: 2, window: 10012 * time.Millisecond, p50: 10 * time.Millisecond,
		most: 12 * time.Millisecond},
	{name: "dates of ISO 8601 with a zone", text: "timeStamp,elapsed,responseCode,success\n" +
		"2026-11-27T23:59:59.500+02:00,10,200,true\n2026-11-28T00:00:09.500+02:00,12,200,true\n",
		good: 2, window: 10012 * time.Millisecond, p50: 10 * time.Millisecond,
		most: 12 * time.Millisecond},
	{name: "seconds since 1970", text: "timeStamp,elapsed,responseCode,success\n" +
		"1700000000,10,200,true\n1700000020,12,200,true\n", good: 2,
		window: 20012 * time.Millisecond, p50: 10 * time.Millisecond,
		most: 12 * time.Millisecond, notes: []NoteKind{NoteWholeSeconds}},
	{name: "a few seconds since 1970", text: "timeStamp,elapsed,responseCode,success\n" +
		"1700000000,10,200,true\n1700000001,12,200,true\n", good: 2, p50: 10 * time.Millisecond,
		most: 12 * time.Millisecond, notes: []NoteKind{NoteFewSeconds}},
	{name: "an exponent in a time", text: "timeStamp,elapsed,responseCode,success\n" +
		"1700000000,10,200,true\n1700000001.5e3,12,200,true\n",
		refused: `line 3, column "timeStamp": cannot read "1700000001.5e3"`},
	{name: "microseconds since 1970", text: "timeStamp,elapsed,responseCode,success\n" +
		"1700000000000000,10,200,true\n1700000000500000,12,200,true\n", good: 2,
		window: 512 * time.Millisecond, p50: 10 * time.Millisecond, most: 12 * time.Millisecond},
	{name: "a date whose month is unknown", text: "timeStamp,elapsed,responseCode,success\n" +
		"11/10/26 10:00:00,10,200,true\n",
		refused: `line 2, column "timeStamp": cannot read "11/10/26 10:00:00": it is not a time`},
	{name: "a time in 5138", text: "timeStamp,elapsed,responseCode,success\n" +
		"99999999999,10,200,true\n", refused: `cannot read "99999999999": it is not a time`},
	{name: "a date before 1970", text: "timeStamp,elapsed,responseCode,success\n" +
		"0001-01-01 00:00:00,10,200,true\n", refused: `: it is not a time`},
	{name: "two units of time", text: "timeStamp,elapsed,responseCode,success\n" +
		"1700000000000,10,200,true\n1700000001,12,200,true\n",
		refused: `line 3, column "timeStamp": cannot read "1700000001": the times above it`},
	{name: "semicolons", text: "timeStamp;elapsed;responseCode;success\n" +
		"1700000000000;10;200;true\n1700000001000;12;503;false\n", good: 1,
		errors: record.Errors{Status: 1}, window: 1012 * time.Millisecond,
		p50: 10 * time.Millisecond, most: 10 * time.Millisecond},
	{name: "tabs", text: "timeStamp\telapsed\tresponseCode\tsuccess\n" +
		"1700000000000\t10\t200\ttrue\n", good: 1, window: 10 * time.Millisecond,
		p50: 10 * time.Millisecond, most: 10 * time.Millisecond},
	{name: "bars", text: "timeStamp|elapsed|responseCode|success\n1700000000000|10|200|true\n",
		good: 1, window: 10 * time.Millisecond, p50: 10 * time.Millisecond,
		most: 10 * time.Millisecond},
	{name: "no success", text: "timeStamp,elapsed,responseCode\n1700000000000,10,200\n" +
		"1700000000000,10,404\n", good: 1, errors: record.Errors{Status: 1},
		window: 10 * time.Millisecond, p50: 10 * time.Millisecond, most: 10 * time.Millisecond,
		notes: []NoteKind{NoteJMeterNoSuccess}},
	{name: "no heads", text: "1700000000000,10,a,200,OK,t,true,5\n",
		refused: "no line of column heads"},
	{name: "no elapsed", text: "timeStamp,responseCode,elapsedTime\n1700000000000,200,1\n",
		refused: `no column "elapsed"; its columns are timeStamp, responseCode, elapsedTime`},
	{name: "two columns of one name", text: "timeStamp,elapsed,elapsed,responseCode\n" +
		"1700000000000,10,11,200\n", refused: `the column head "elapsed" occurs twice`},
	{name: "no number", text: jtlOf("1700000000000,10,a,200,OK,t,true,5",
		"1700000000000,12x,a,200,OK,t,true,5"),
		refused: `line 3, column "elapsed": cannot read "12x": it is not a whole number`},
	{name: "no number below empty lines",
		text:    "\n\n" + jtlOf("1700000000000,1x,a,200,OK,t,true,5"),
		refused: `line 4, column "elapsed": cannot read "1x"`},
	{name: "an open quote below an empty line",
		text: "\n" + jtlOf(`1700000000500,9,a,500,"broken,t,false,5`), refused: "line 3: a quote"},
	{name: "no time", text: jtlOf("1700000000000,,a,200,OK,t,true,5"),
		refused: `line 2, column "elapsed": cannot read "": it is not a whole number`},
	{name: "a negative time", text: jtlOf("1700000000000,-3,a,200,OK,t,true,5"),
		refused: `line 2, column "elapsed": cannot read "-3": a count cannot be negative`},
	{name: "thousands", text: "timeStamp;elapsed;responseCode;success\n" +
		"1700000000000;1,234;200;true\n", refused: `cannot read "1,234": it is not a whole number`},
	{name: "an endless time", text: jtlOf("1700000000000,1e999,a,200,OK,t,true,5"),
		refused: `line 2, column "elapsed": cannot read "1e999": it is not a whole number`},
	{name: "two hours", text: jtlOf("1700000000000,7200000,a,200,OK,t,true,5"),
		refused: `cannot read "7200000": the time is longer than an hour`},
	{name: "a time beyond int64", text: jtlOf("1700000000000,999999999999999,a,200,OK,t,true,5"),
		refused: `cannot read "999999999999999": the time is longer than an hour`},
	{name: "perhaps a success", text: jtlOf("1700000000000,3,a,200,OK,t,yes,5"),
		refused: `line 2, column "success": cannot read "yes": it is neither true nor false`},
	{name: "a sum of samples", text: "timeStamp,elapsed,responseCode,success,SampleCount\n" +
		"1700000000000,10,200,true,40\n", refused: "the line has the sum of several samples"},
	{name: "a shorter row", text: jtlOf("1700000000000,3,a,200",
		"1700000000000,3,a,200,OK,t,true,5"),
		refused: "line 2: the row has 4 cells, but the file has 8 column heads"},
	{name: "a shorter last row",
		text:    jtlOf("1700000000000,3,a,200,OK,t,true,5", "1700000000000,3"),
		refused: "line 3: the row has 2 cells, but the file has 8 column heads"},
	{name: "a longer row", text: jtlOf("1700000000000,3,a,200,O,K,t,true,5"),
		refused: "line 2: the row has 9 cells, but the file has 8 column heads"},
	{name: "a cut last row", text: jtlOf("1700000000000,3,a,200,OK,t,true,5") + "17000000000",
		good: 1, window: 3 * time.Millisecond, p50: 3 * time.Millisecond,
		most: 3 * time.Millisecond, notes: []NoteKind{NoteCutRow}},
	{name: "joined logs", text: jtlOf("1700000000000,3,a,200,OK,t,true,5") +
		jtlOf("1700000000005,3,a,200,OK,t,true,5"), good: 2, window: 8 * time.Millisecond,
		p50: 3 * time.Millisecond, most: 3 * time.Millisecond,
		notes: []NoteKind{NoteRepeatedHeads}},
	{name: "an open quote", text: jtlOf("1700000000000,10,a,200,OK,t,true,5",
		`1700000000500,9,a,500,"broken,t,false,5`, "1700000001001,10,a,200,OK,t,true,5"),
		refused: "line 3: a quote in the row that begins here is not closed"},
	{name: "a quote that closes a row later", text: jtlOf("1700000000000,10,a,200,OK,t,true,5",
		`1700000000500,9,a,500,"broken,t,false,5`, `1700000001001,10,a,200,",t,true,5`),
		refused: `line 3: the quoted cell of column "responseMessage" holds a further row`},
	{name: "a message of two lines", text: jtlOf(
		"1700000000000,10,a,500,\"he said \"\"no\"\",\nand left\",t,false,5"),
		errors: record.Errors{Status: 1}, window: 10 * time.Millisecond},
	{name: "transactions", text: jtlOf("1700000000000,10,GET /a,200,OK,t,true,5",
		"1700000000010,20,GET /b,200,OK,t,true,5", "1700000000000,30,Buy,200,\"Number of samples "+
			"in transaction : 2, number of failing samples : 0\",t,true,5",
		"1700000000000,30,Visit,200,\"Number of samples "+
			"in transaction : 2, number of failing samples : 0\",t,true,5"),
		good: 2, window: 30 * time.Millisecond, p50: 10 * time.Millisecond,
		most: 20 * time.Millisecond, notes: []NoteKind{NoteJMeterParents}},
	{name: "transactions alone", text: jtlOf("1700000000000,10,GET /a,200,OK,other,true,5",
		"1700000000000,30,Buy,200,\"Number of samples in transaction : 2, number of failing "+
			"samples : 0\",t,true,5"),
		refused: "2 of its samples have no line of their own"},
	{name: "a repeated first head", text: "timeStamp,elapsed,responseCode,success,timeStamp\n" +
		"1700000000000,3,200,true,5\n", refused: `the column head "timeStamp" occurs twice`},
	{name: "XML", text: "<?xml version=\"1.0\"?>\n<testResults/>", refused: "the file is XML"},
}

const heyHead = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read," +
	"status-code,offset\n"

var rowInputs = []input{
	{name: "hey", text: heyHead + "0.0009,0,0,0,0,0,200,0.0002\n0.0002,0,0,0,0,0,503,0.0011\n",
		good: 1, errors: record.Errors{Status: 1}, window: 1300 * time.Microsecond,
		p50: 900 * time.Microsecond, most: 900 * time.Microsecond},
	{name: "hey from a spreadsheet", text: strings.ReplaceAll(heyHead, ",", ";") +
		"0,0060;0;0;0;0;0;200;1,2000\n", good: 1, window: 1206 * time.Millisecond,
		p50: 6 * time.Millisecond, most: 6 * time.Millisecond},
	{name: "hey with commas and points", text: strings.ReplaceAll(heyHead, ",", ";") +
		"0,0060;0;0;0;0;0;200;1,2\n0.006;0;0;0;0;0;200;1,2\n",
		refused: `line 3, column "response-time": cannot read "0.006": it has a decimal point`},
	{name: "hey twice", text: heyHead + "0.01,0,0,0,0,0,200,0\n" + heyHead +
		"0.01,0,0,0,0,0,200,0\n", refused: "the outputs of several runs"},
	{name: "hey with quoted commas", text: heyHead + "\"0,0060\",0,0,0,0,0,200,0.1\n",
		refused: `line 2, column "response-time": cannot read "0,0060": it has a comma`},
	{name: "hey whose status is cut", text: heyHead + "0.0009,0,0,0,0,0,20,0.0002\n",
		refused: `line 2, column "status-code": cannot read "20": it is not an HTTP status`},
	{name: "hey with a unit", text: heyHead + "0.9ms,0,0,0,0,0,200,0.0002\n",
		refused: `cannot read "0.9ms": it is not a number`},
	{name: "oha", text: "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes," +
		"status\n7200.5,0,0,0,NaN,5,200\n",
		refused: `line 2, column "request-duration": cannot read "NaN": it is not a number`},
	{name: "oha without end", text: "request-start,DNS,DNS+dialup,Response-delay," +
		"request-duration,bytes,status\n0,0,0,0,+Inf,5,200\n", refused: `cannot read "+Inf"`},
	{name: "oha after two hours", text: "request-start,DNS,DNS+dialup,Response-delay," +
		"request-duration,bytes,status\n7200.5,0,0,0,0.5,5,200\n", good: 1,
		window: 7201 * time.Second, p50: 500 * time.Millisecond, most: 500 * time.Millisecond},
	{name: "h2load", text: "1700000000000000\t200\t400\n1700000000000500\t-1\t100\n", good: 1,
		errors: record.Errors{Read: 1}, window: 600 * time.Microsecond,
		p50: 400 * time.Microsecond, most: 400 * time.Microsecond},
	{name: "h2load without an end", text: "1700000000000000\t200\t400\n1700000000000500\t200\t1",
		good: 1, window: 400 * time.Microsecond, p50: 400 * time.Microsecond,
		most: 400 * time.Microsecond, notes: []NoteKind{NoteCutRow}},
	{name: "h2load with words", text: "1700000000000000\t200\t400\n1700000000000500\t200\tx\n",
		refused: `line 2, column 3: cannot read "x": it is not a number`},
	{name: "h2load with two values", text: "1700000000000000\t200\t400\n1700000000000500\t200\n",
		refused: "a line of the log has 3 values"},
}

const k6CSVHead = "metric_name,timestamp,metric_value,check,error,error_code,expected_response," +
	"group,method,name,proto,scenario,service,status,subproto,tls_version,url,extra_tags,metadata\n"

func k6Row(metric, at, value, reason, expected, status string) string {
	return metric + "," + at + "," + value + ",," + reason + ",," + expected + ",,GET,u,,d,," +
		status + ",,,u,,\n"
}

func k6Point1(metric, at, value, tags string) string {
	return `{"metric":"` + metric + `","type":"Point","data":{"time":"` + at + `","value":` +
		value + `,"tags":{` + tags + `}}}` + "\n"
}

var k6Inputs = []input{
	{name: "points", text: `{"type":"Metric","data":{"name":"http_req_duration","type":"trend"},` +
		`"metric":"http_req_duration"}` + "\n" +
		k6Point1("http_reqs", "2026-11-27T10:00:00.1Z", "1", "") +
		k6Point1("http_req_duration", "2026-11-27T10:00:00.1Z", "5.2",
			`"status":"200","expected_response":"true"`) +
		k6Point1("http_reqs", "2026-11-27T10:00:01.1+00:00", "1", "") +
		k6Point1("http_req_duration", "2026-11-27T10:00:01.1Z", "0.4",
			`"status":"0","expected_response":"false","error":"dial: connection refused"`) +
		k6Point1("http_reqs", "2026-11-27T10:00:01.2Z", "1", "") +
		k6Point1("http_req_duration", "2026-11-27T10:00:01.2Z", "7",
			`"status":"503","expected_response":"false"`) +
		k6Point1("dropped_iterations", "2026-11-27T10:00:01.3Z", "4", ""),
		good: 1, errors: record.Errors{Connect: 1, Status: 1},
		// From 5.2 ms before 0.1 s to 1.2 s.
		window: 1105200 * time.Microsecond, p50: 5200 * time.Microsecond,
		most: 5200 * time.Microsecond, notes: []NoteKind{NoteOpenDropped, NoteSpanOfRequests}},
	{name: "cut points", text: k6Point1("http_reqs", "2026-11-27T10:00:00.1Z", "1", "") +
		k6Point1("http_req_duration", "2026-11-27T10:00:00.1Z", "5",
			`"status":"200"`) + `{"metric":"http_reqs","type":"Po`, good: 1,
		window: 5 * time.Millisecond, p50: 5 * time.Millisecond, most: 5 * time.Millisecond,
		notes: []NoteKind{NoteCutRow}},
	{name: "points cut in a request", text: k6Point1("http_reqs", "2026-11-27T10:00:00.1Z", "1",
		"") + k6Point1("http_req_duration", "2026-11-27T10:00:00.1Z", "5", `"status":"200"`) +
		k6Point1("http_reqs", "2026-11-27T10:00:00.2Z", "1", "") + `{"metric":"http_req_d`, good: 1,
		window: 5 * time.Millisecond, p50: 5 * time.Millisecond, most: 5 * time.Millisecond,
		notes: []NoteKind{NoteCutRow}},
	{name: "points that lack two durations", text: k6Point1("http_reqs",
		"2026-11-27T10:00:00.1Z", "1", "") + k6Point1("http_reqs", "2026-11-27T10:00:00.2Z", "1",
		"") + `{"metric":"http_req_d`, refused: "2 requests in http_reqs, but 0 in "},
	{name: "statistics without a maximum", text: `{"metrics":{` +
		`"http_reqs":{"count":200,"rate":20},"http_req_failed":{"passes":20,"fails":180},` +
		`"http_req_duration":{"med":12.5},` +
		`"http_req_duration{expected_response:true}":{"med":12,"p(99.9)":80}}}`, good: 180,
		errors: record.Errors{Status: 20}, window: 10 * time.Second, p50: 12 * time.Millisecond},
	{name: "a line without a maximum", text: "  http_req_duration......: avg=13ms med=12.5ms\n" +
		"    { expected_response:true }...: avg=12ms med=12ms\n" +
		"  http_req_failed........: 10.00% 20 out of 200\n  http_reqs....: 200 20/s\n", good: 180,
		errors: record.Errors{Status: 20}, window: 10 * time.Second, p50: 12 * time.Millisecond},
	{name: "broken points", text: k6Point1("http_reqs", "2026-11-27T10:00:00.1Z", "1", "") +
		"{\"metric\n" + k6Point1("http_reqs", "2026-11-27T10:00:00.1Z", "1", ""),
		refused: "line 2 is not a JSON object of k6"},
	{name: "a negative point", text: k6Point1("http_req_duration", "2026-11-27T10:00:00.1Z", "-5",
		`"status":"200"`), refused: `line 1, column "value": cannot read "-5": it is negative`},
	{name: "points without tags", text: k6Point1("http_req_duration", "2026-11-27T10:00:00.1Z",
		"5", ""), refused: "neither the tag expected_response nor a status"},
	{name: "CSV in milliseconds", text: k6CSVHead +
		k6Row("http_reqs", "1700000000100", "1.000000", "", "true", "200") +
		k6Row("http_req_duration", "1700000000100", "5.250000", "", "true", "200") +
		k6Row("http_reqs", "1700000000200", "1.000000", "", "false", "0") +
		k6Row("http_req_duration", "1700000000200", "1000.0", "request timeout", "false", "0"),
		good: 1, errors: record.Errors{Timeout: 1}, window: time.Second,
		p50: 5250 * time.Microsecond, most: 5250 * time.Microsecond},
	{name: "CSV in seconds", text: k6CSVHead +
		k6Row("http_req_duration", "1700000000", "5", "", "true", "200") +
		k6Row("http_req_duration", "1700000000", "5", "", "true", "200"), good: 2,
		p50: 5 * time.Millisecond, most: 5 * time.Millisecond, notes: []NoteKind{NoteFewSeconds}},
	{name: "CSV with other counts", text: k6CSVHead +
		k6Row("http_reqs", "1700000000", "3", "", "true", "200") +
		k6Row("http_req_duration", "1700000000", "5", "", "true", "200"),
		refused: "3 requests in http_reqs, but 1 in http_req_duration"},
	{name: "the new summary", text: `{"config": {"duration": 10.0}, "results": {"metrics": [
		{"name": "http_reqs", "type": "counter", "values": {"count": 1000}},
		{"name": "http_req_failed", "type": "rate", "values": {"matches": 10, "total": 1000}},
		{"name": "http_req_duration", "values": {"avg": 5.5, "max": 40, "med": 5, "min": 1,
			"p(90)": 9, "p(95)": 12}}]}, "version": "1.0.0"}`,
		good: 990, errors: record.Errors{Status: 10}, window: 10 * time.Second,
		p50: 5 * time.Millisecond, most: 40 * time.Millisecond,
		notes: []NoteKind{NoteErrorStatus}},
	{name: "the new summary with a metric twice", text: `{"config": {}, "results": {"metrics": [
		{"name": "http_reqs", "values": {"count": 1000}},
		{"name": "http_reqs", "values": {"count": 10}}]}}`,
		refused: `line 3: the metric "http_reqs" occurs twice`},
	{name: "a summary without failures",
		text: `{"metrics": {"http_reqs": {"count": 5, "rate": 1}}}`,
		good: 5, window: 5 * time.Second, notes: []NoteKind{NoteK6NoFailed}},
	{name: "a summary with a text", text: `{"metrics": {"http_reqs": {"count": "5"}}}`,
		refused: `line 1, column "count": cannot read "5": it is not a number`},
	{name: "a summary with a negative time", text: `{"metrics": {"http_reqs": {"count": 5},` +
		"\n" + `"http_req_failed": {"passes": 0}, "http_req_duration": {"max": -3}}}`,
		refused: `line 2, column "max": cannot read "-3": it is negative`},
	{name: "a summary without an end", text: `{"metrics": {"http_reqs": {"count": 1e999}}}`,
		refused: `cannot read "1e999": the number is too large`},
	{name: "a summary with a key twice", text: "{\"metrics\": {\"http_reqs\": {\"count\": 5,\n" +
		`"count": 6}}}`, refused: `line 2: the key "count" occurs twice in one object`},
	{name: "a summary that is cut", text: "\n{\"metrics\": {\"http_reqs\":\n {\"count\": 5",
		refused: "line 3: the text ends before the JSON value does"},
	{name: "more failures than requests", text: `{"metrics": {"http_reqs": {"count": 5, "rate": 1},
		"http_req_failed": {"passes": 6}}}`, refused: `cannot read "6": only 5 requests were sent`},
	{name: "text with commas", text: "http_req_duration....: avg=5ms min=1ms med=5ms max=9ms\n" +
		"http_reqs....: 1000 99,5/s\n", refused: "line 2, column 1: cannot read \"http_reqs"},
	{name: "text whose failures are cut",
		text: "  http_req_duration....: avg=5ms med=5ms max=9ms\n" +
			"  http_req_failed....: 5.0\n  http_reqs....: 1000 100/s\n",
		refused: "line 2, column 1: cannot read"},
	{name: "text without iterations", text: "  http_req_duration....: avg=5ms med=5ms max=9ms\n" +
		"  http_req_failed....: 1.0% 10 out of 1000\n  http_reqs....: 1000 100/s\n", good: 990,
		errors: record.Errors{Status: 10}, window: 10 * time.Second, p50: 5 * time.Millisecond,
		most: 9 * time.Millisecond, notes: []NoteKind{NoteNoIterations}},
}

const wrkText = `Running 2s test @ http://127.0.0.1:8080/
  1 threads and 2 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.24ms  515.74us   3.72ms   79.00%
    Req/Sec       100      10   200      0.00%
  Latency Distribution
     50%    1.00ms
  201 requests in 2.00s, 23.92KB read
  Non-2xx or 3xx responses: 10
Requests/sec:    100.42
Transfer/sec:     11.95KB
`

const heyText = `
Summary:
  Total:	2.0000 secs
  Slowest:	0.0073 secs
  Fastest:	0.0001 secs
  Average:	0.0008 secs
  Requests/sec:	100.0000

Latency distribution:
  50% in 0.0007 secs

Status code distribution:
  [200]	190 responses
  [503]	10 responses
`

const vegetaText = `{"latencies":{"mean":483652,"50th":422661,"max":10381767,"min":177050},
"duration":1994898681,"wait":539678,"requests":400,"rate":200.5,
"status_codes":{"200":380,"503":20},"errors":["503 Service Unavailable"]}`

const h2Twice = "finished in 1.00s, 1.00 req/s, 1B/s\nrequests: 1 total, 1 started, 1 done, " +
	"1 succeeded, 0 failed, 0 errored, 0 timeout\nstatus codes: 1 2xx, 0 3xx, 0 4xx, 0 5xx\n"

const jmeterRun = "Creating summariser <summary>\nsummary =    933 in 00:00:02 =  433.6/s " +
	"Avg:     3 Min:     0 Max:    87 Err:    47 (5.04%)\n"

// k6Full has numbers of a scenario below those of the run.
const k6Full = `
  █ TOTAL RESULTS

    HTTP
    http_req_duration...: avg=5ms min=1ms med=5ms max=9ms p(90)=8ms p(95)=8ms
    http_req_failed.....: 1.00% 10 out of 1000
    http_reqs...........: 1000  100/s

    EXECUTION
    iterations..........: 1000  100/s

  █ SCENARIO: a

    HTTP
    http_req_duration...: avg=2ms min=1ms med=2ms max=3ms p(90)=3ms p(95)=3ms
    http_req_failed.....: 0.00% 0 out of 10
    http_reqs...........: 10    1/s
`

// change replaces a part of a text, which must be in it.
func change(text, from, to string) string {
	if !strings.Contains(text, from) {
		panic("no " + from)
	}
	return strings.Replace(text, from, to, 1)
}

var textInputs = []input{
	{name: "wrk", text: wrkText, good: 191, errors: record.Errors{Status: 10},
		window: 2 * time.Second, p50: time.Millisecond, most: 3720 * time.Microsecond},
	{name: "wrk with commas", text: change(wrkText, "1.24ms", "1,24ms"),
		refused: `line 4, column 1: cannot read "    Latency     1,24ms`},
	{name: "wrk with a comma in a percentile", text: change(wrkText, "1.00ms", "1,00ms"),
		refused: `line 7, column 1: cannot read "     50%    1,00ms"`},
	{name: "wrk without its end", text: wrkText[:strings.Index(wrkText, "  Non-2xx")],
		refused: "so its end is missing"},
	{name: "wrk with two points", text: change(wrkText, "2.00s", "2.0.0s"),
		refused: `line 8, column 19: cannot read "2.0.0s": it is not a time`},
	{name: "wrk with too many", text: change(wrkText, "201 req", "99999999999999999999 req"),
		refused: "the number is too large"},
	{name: "wrk below empty lines", text: "\n\n" + change(wrkText, "1.24ms", "1,24ms"),
		refused: "line 6, column 1"},
	{name: "wrk with percentiles that fall", text: change(wrkText, "50%    1.00ms",
		"50%    3.00ms\n     90%    2.00ms"), good: 191, errors: record.Errors{Status: 10},
		window: 2 * time.Second, notes: []NoteKind{NoteFallingPercentile}},
	{name: "hey", text: heyText, good: 190, errors: record.Errors{Status: 10},
		window: 2 * time.Second, p50: 700 * time.Microsecond, most: 7300 * time.Microsecond},
	{name: "hey with commas", text: change(heyText, "0.0073", "0,0073"),
		refused: "line 4, column 1: cannot read"},
	{name: "hey with an unknown unit", text: change(heyText, "0.0073 secs", "0.0073 days"),
		refused: "line 4, column 1: cannot read"},
	{name: "hey without errors", text: heyText[:strings.Index(heyText, "  [503]")], good: 190,
		window: 2 * time.Second, p50: 700 * time.Microsecond, most: 7300 * time.Microsecond,
		notes: []NoteKind{NoteFewerCounted}},
	{name: "hey cut in a count", text: change(heyText, "10 responses\n", "10 resp"),
		refused: "line 14, column 1: cannot read"},
	{name: "hey without responses", text: heyText[:strings.Index(heyText, "  [200]")],
		refused: "the tool received no responses"},
	{name: "vegeta", text: vegetaText, good: 380, errors: record.Errors{Status: 20},
		window: 1995438359, p50: 422661, most: 10381767},
	{name: "vegeta with a negative time", text: change(vegetaText, `"mean":483652`, `"mean":-1`),
		refused: `line 1, column "mean": cannot read "-1": it is negative`},
	{name: "vegeta without requests", text: change(vegetaText, `"requests":400,`, ""),
		refused: `has no "requests"`},
	{name: "vegeta with other counts", text: change(vegetaText, `"503":20`, `"503":10`), good: 380,
		errors: record.Errors{Status: 10}, window: 1995438359, p50: 422661, most: 10381767,
		notes: []NoteKind{NoteVegetaCounts}},
	{name: "vegeta without connections among statuses", text: strings.NewReplacer(`"503":20`,
		`"0":10,"404":3,"503":7`, `["503 `, `["404 Not Found","503 `, `able"]`, `able",`+
			`"dial tcp 127.0.0.1:1: connect: connection refused","EOF"]`).Replace(vegetaText),
		good: 380, errors: record.Errors{Status: 10, Connect: 10}, window: 1995438359, p50: 422661,
		most: 10381767, notes: []NoteKind{NoteVegetaOneKind}},
	{name: "vegeta with half a request", text: change(vegetaText, `"503":20`, `"503":2.5`),
		refused: `cannot read "2.5": it is not a whole number`},
	{name: "vegeta twice", text: vegetaText + vegetaText, refused: "there is more text after"},
	{name: "vegeta that is cut", text: vegetaText[:len(vegetaText)-40],
		refused: "line 3: the text ends before the JSON value does"},
	{name: "oha with a text", text: `{"summary": {"total": "2 s"}, "statusCodeDistribution": {}}`,
		refused: `column "total": cannot read "2 s": it is not a number`},
	{name: "oha with a negative count", text: `{"summary": {"total": 2}, ` +
		`"statusCodeDistribution": {"200": -5}}`,
		refused: `column "200": cannot read "-5": it is negative`},
	{name: "JMeter in German", text: "summary =    933 in 00:00:02 =  433,6/s Avg:     3 " +
		"Min:     0 Max:    87 Err:    47 (5,04%)\n", refused: "line 1, column 1: cannot read"},
	{name: "JMeter with too many errors", text: "summary =    9 in 00:00:02 =  4.5/s Avg:     3 " +
		"Min:     0 Max:    87 Err:    47 (5.04%)\n", refused: "the line counts only 9 samples"},
	{name: "h2load with commas", text: "finished in 1,51s, 14739.33 req/s, 1.71MB/s\n" +
		"status codes: 21004 2xx, 0 3xx, 0 4xx, 1105 5xx\n",
		refused: "line 1, column 1: cannot read"},
	{name: "h2load with timeouts", text: "finished in 5.00s, 199.00 req/s, 1.71MB/s\n" +
		"requests: 1000 total, 1000 started, 1000 done, 980 succeeded, 20 failed, 5 errored, " +
		"3 timeout\nstatus codes: 980 2xx, 0 3xx, 15 4xx, 0 5xx\n", good: 980,
		errors: record.Errors{Status: 15, Read: 2, Timeout: 3}, window: 5 * time.Second},
	{name: "wrk twice", text: wrkText + wrkText, refused: "line 19, column 3: cannot read " +
		"\"201\": the file has the outputs of several runs"},
	{name: "hey twice", text: heyText + heyText, refused: "the outputs of several runs"},
	{name: "h2load twice", text: h2Twice + h2Twice, refused: "the outputs of several runs"},
	{name: "k6 twice", text: k6Full + k6Full, refused: "the outputs of several runs"},
	{name: "JMeter twice", text: jmeterRun + jmeterRun, refused: "the outputs of several runs"},
	{name: "k6 with scenarios", text: k6Full, good: 990, errors: record.Errors{Status: 10},
		window: 10 * time.Second, p50: 5 * time.Millisecond, most: 9 * time.Millisecond},
	{name: "ab", text: "Concurrency Level:      8\nTime per request:       1.2 [ms] (mean)\n",
		refused: "the file is the text of ab"},
	{name: "vegeta's text", text: "Requests      [total, rate, throughput]  10, 5.0, 5.0\n",
		refused: `import the output of "vegeta report -type json"`},
	{name: "Gatling", text: "RUN\tsim\tid\t1700000000000\t \t3.9\n",
		refused: "a simulation log of Gatling"},
	{name: "a histogram log", text: "#[Histogram log format version 1.3]\n",
		refused: "a histogram log"},
	{name: "intervals of prony load", text: "offset_ns,length_ns,scheduled\n0,1,2\n",
		refused: "the file has the intervals of prony load"},
	{name: "text of prony load", text: "1 thread, 2 connections, for 1s after a lead-in of 0s\n\n" +
		"  latency       service\n", refused: "the file is the text of prony load"},
	{name: "a result of prony load", text: `{"load": {}, "verdict": {}}`,
		refused: "the result of prony load; read it with prony audit"},
}

// TestInputs checks the numbers of files that a person or a tool bent, or that they are refused
// with the place and the reason.
func TestInputs(t *testing.T) {
	for _, in := range slices.Concat(jtlInputs, rowInputs, k6Inputs, textInputs) {
		l, notes, err := Import("a.x", in.text)
		if in.refused != "" || err != nil {
			if in.refused == "" || err == nil || !strings.Contains(err.Error(), in.refused) ||
				!strings.HasPrefix(err.Error(), "import a.x") {
				t.Errorf("%s: %v, want an error with %q", in.name, err, in.refused)
			}
			continue
		}
		l.Errors.Example = ""
		d := l.ServiceTime
		got := []time.Duration{time.Duration(l.WindowNs), time.Duration(d.P50Ns),
			time.Duration(d.MaxNs)}
		for i, want := range []time.Duration{in.window, in.p50, in.most} {
			if (got[i] - want).Abs() > want/500 { // a histogram has three digits
				t.Errorf("%s: window, median and maximum are %v, want %v, %v, %v", in.name, got,
					in.window, in.p50, in.most)
				break
			}
		}
		if l.Done != in.good || l.Errors != in.errors {
			t.Errorf("%s: %d good, %+v; want %d, %+v", in.name, l.Done, l.Errors, in.good,
				in.errors)
		}
		for _, kind := range in.notes {
			if !slices.ContainsFunc(notes, func(n Note) bool { return n.Kind == kind }) {
				t.Errorf("%s: notes %q lack %q", in.name, Sentences(notes), noteTexts[kind])
			}
		}
	}
}

// TestNotes checks that every kind of note has a sentence, and its values fit.
func TestNotes(t *testing.T) {
	for kind := NoteModelUnknown; kind <= NoteWrk2Rate; kind++ {
		if noteTexts[kind] == "" {
			t.Errorf("kind %d has no sentence", kind)
		}
	}
	if len(noteTexts) != int(NoteWrk2Rate)+1 {
		t.Errorf("%d sentences for %d kinds", len(noteTexts), NoteWrk2Rate+1)
	}
	for _, in := range slices.Concat(jtlInputs, rowInputs, k6Inputs, textInputs) {
		_, notes, _ := Import("a.x", in.text)
		for _, s := range Sentences(notes) {
			if strings.Contains(s, "%!") {
				t.Errorf("%s: note %q", in.name, s)
			}
		}
	}
}

// TestForeignFormats checks that files of tools that are not imported are refused by the tool's
// name, also if they look like those of another one.
func TestForeignFormats(t *testing.T) {
	check := func(want string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			_, _, err := Import("a.x", text)
			foreign := (*Unrecognized)(nil)
			if !errors.As(err, &foreign) || !strings.Contains(foreign.Known, want) {
				t.Errorf("%q: %v, want %s", text, err, want)
			}
		}
	}
	check("ghz", `{"statusCodeDistribution": {"OK": 9}, "latencyDistribution": [], "count": 9}`,
		"\nSummary:\n  Count:\t9\n  Total:\t2.00 s\n  Requests/sec:\t4.50\n")
	check("siege", "{\t\"transactions\":\t\t10,\n\t\"availability\":\t\t100.00}",
		"Transactions:\t10 hits\nAvailability:\t100.00 %\nTransaction rate:\t5.00 trans/sec\n")
	check("Artillery", `{"aggregate": {"counters": {}}, "intermediate": []}`,
		"http.response_time:\n  min: 1\nvusers.created: 9\n")
	check("Fortio", `{"RunType": "HTTP", "DurationHistogram": {"Count": 9}}`,
		"Fortio 1.60.3 running\nAggregated Function Time : count 9 avg 0.01\n")
	check("autocannon", "Running 10s test @ http://a\n10 connections\n\n│ Stat │\n│ Req/Sec │\n")
	check("bombardier", "Statistics    Avg\n  Reqs/sec  9.00\n  HTTP codes:\n")
	check("Nighthawk", `{"options": {}, "results": [{"name": "global", "statistics": `+
		`[{"id": "benchmark_http_client.request_to_response"}]}]}`,
		"Nighthawk - A layer 7 protocol benchmarking tool.\n\nbenchmark_http_client.latency_2xx")
	check("Locust", "Timestamp,User Count,Type,Name,Requests/s\n1700000000,1,,Aggregated,9\n",
		"\"Type\",\"Name\",\"# requests\",\"# failures\"\n",
		"Method,Name,Error,Occurrences\nGET,/,x,1\n",
		" Type     Name    # reqs      # fails |    Avg\n", `[{"name": "/", "num_requests": 9}]`)
	check("Gatling", "---- Global Information ---------\n> request count  9 (OK=9 KO=0)\n",
		"var stats = {\n    type: \"GROUP\",\n",
		`{"name": "All Requests", "numberOfRequests": {}, "meanResponseTime": {}}`)
	check("summary of JMeter", "Label,# Samples,Average,Median\nTOTAL,9,1,1\n")
	check("JMeter dashboard", `{"Total": {"transaction": "Total", "sampleCount": 9}}`)
	check("vegeta", "Bucket           #     %       Histogram\n[0s, 1ms]  1  100.00%\n")
	check("plow", "Benchmarking http://a for 10s using 50 connection(s).\n\nSummary:\n  RPS  9\n")
	check("loadtest", "Completed requests:  9\nTotal errors:        0\n")
	check("hyperfine", `{"results": [{"command": "a", "mean": 0.1, "exit_codes": [0]}]}`,
		"command,mean,stddev,median,user,system,min,max\na,1,1,1,1,1,1,1\n")
	check("JMH", "\"Benchmark\",\"Mode\",\"Threads\",\"Samples\"\n",
		`[{"jmhVersion": "1.37", "benchmark": "a.B.c"}]`)
	check("Taurus", "label,avg_ct,avg_lt,avg_rt\n")
}
