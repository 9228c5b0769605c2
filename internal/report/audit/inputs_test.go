package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// checkInput checks the values of a file, and what is reported as unread. want has a line "name
// quantity value" for each value; refused has words of the error.
func checkInput(t *testing.T, name, text string, want, unread []string, refused string) {
	t.Helper()
	d, err := Read(name, text, nil)
	if refused != "" || err != nil {
		if err == nil || refused == "" || !strings.Contains(err.Error(), refused) {
			t.Errorf("%q: error %v, want %q", text, err, refused)
		}
		return
	}
	var got, bad []string
	for _, table := range d.Tables {
		for _, r := range table.Rows {
			for q, v := range r.Values {
				got = append(got, fmt.Sprintf("%s %s %g", r.Name, q, v.V))
			}
		}
	}
	for _, u := range d.unread() {
		bad = append(bad, fmt.Sprintf("%d: %s", u.Line, u.Reason))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || !slices.Equal(bad, unread) {
		t.Errorf("%q\nhas   %q\nwant  %q\nlacks %q\nwant  %q", text, got, want, bad, unread)
	}
}

const unreadCell = "the cell has no number, or a number without a unit: "

// TestInputs checks tables that a person or a spreadsheet bent.
func TestInputs(t *testing.T) {
	check := func(name, text string, want, unread []string, refused string) {
		t.Helper()
		checkInput(t, name, text, want, unread, refused)
	}
	// A quote that is not closed hides all further rows, also in the last column.
	check("a.csv", "name,rps,p99\na,100,5ms\nb,1,\"6ms\nc,3,7ms\nd,4,8ms\n",
		[]string{"a rate 100", "a p99 5e+06"},
		[]string{"3: a quote is not closed and hides the text after it, 2 lines"}, "")
	check("a.csv", "name,rps,p99\na,100,5ms\nb,1,\"6ms\nc,3\n",
		[]string{"a rate 100", "a p99 5e+06"},
		[]string{"3: a quote is not closed and hides the text after it, 1 line"}, "")
	check("a.csv", "name,rps,note\na,100,\"fast,\nbut loud\"\n",
		[]string{"a fast,\nbut loud rate 100"}, nil, "")
	// Files of other tools are named, also if they look like a table or like Markdown.
	check("a.txt", "Requests  [total, rate, throughput]  10, 5.00, 5.00\nDuration  [total, "+
		"attack, wait]  2s, 2s, 1ms\n", nil, nil, "a text report of vegeta")
	check("a.txt", "Fortio 1.6 running\nAggregated Function Time : count 9\n# target 50% 1\n", nil,
		nil, "results of Fortio")
	// What a number counts is in its head or its cell, or is unknown.
	check("a.csv", "name,rps,errors,error rate,users\na,100,2%,0.02,5-6\nb,90,0,0,7\n",
		[]string{"a rate 100", "a error share 0.02", "b rate 90", "b error share 0",
			"b users 7"}, []string{"2: " + unreadCell + `error rate "0.02", users "5-6"`}, "")
	check("a.csv", "name,throughput (req/min)\na,6000\n", []string{"a rate 100"}, nil, "")
	// Of two columns of one name, it is unknown which one counts.
	check("a.csv", "name,rps,p99 (ms),p99 (ms)\na,100,5,6\n", []string{"a rate 100"},
		[]string{`1: 2 columns have the head "p99 (ms)", so none of them is read`}, "")
	check("a.md", "| name | RPS | RPS |\n|--|--|--|\n| a | 1 | 2 |\n", nil, nil,
		`2 columns have the head "RPS", so none of them is read`)
	// A comma is a decimal mark in all cells if it is one in any.
	check("a.csv", "name;rps;p99 (ms)\na;1500;1,234\nb;1400;0,5\n",
		[]string{"a rate 1500", "a p99 1.234e+06", "b rate 1400", "b p99 500000"}, nil, "")
	check("a.csv", "name;rps;p99 (ms)\na;1500;1.234\nb;1400;0,5\n",
		[]string{"a rate 1500", "b rate 1400", "b p99 500000"},
		[]string{`2: the cell has a point, but numbers of other cells have a decimal comma: ` +
			`p99 (ms) "1.234"`}, "")
	check("a.csv", "name;rps;p99 (ms)\na;1500;1,234\nb;1400;2,500\n",
		[]string{"a rate 1500", "b rate 1400"},
		[]string{`2: the comma of the cell may be a decimal mark or separate thousands: p99 (ms) ` +
			`"1,234"`, `3: the comma of the cell may be a decimal mark or separate thousands: ` +
			`p99 (ms) "2,500"`}, "")
	check("a.csv", "name,rps\na,\"1,234\"\n", []string{"a rate 1234"}, nil, "")
	check("a.csv", "name;rps\na;1.234,5\nb;2.345,6\n",
		[]string{"a rate 1234.5", "b rate 2345.6"}, nil, "")
}

// TestInputValues checks values that cannot be read.
func TestInputValues(t *testing.T) {
	check := func(name, text string, want, unread []string, refused string) {
		t.Helper()
		checkInput(t, name, text, want, unread, refused)
	}
	// Values that no measurement has.
	check("a.csv", "name,rps,p99 (ms)\na,100,-5\nb,100,1e999\nc,100,inf\nd,100,NaN\n",
		[]string{"a rate 100", "b rate 100", "c rate 100", "d rate 100"},
		[]string{"2: " + unreadCell + `p99 (ms) "-5"`, "3: " + unreadCell + `p99 (ms) "1e999"`,
			"4: " + unreadCell + `p99 (ms) "inf"`}, "")
	// Not only of measured quantities.
	check("a.csv", "name,rps,errors,connections\na,100,some,many\n", []string{"a rate 100"},
		[]string{"2: " + unreadCell + `errors "some", connections "many"`}, "")
	check("a.json", `[{"name": "a", "rps": 5, "p99_ms": "slow", "errors": -1}]`,
		[]string{"a rate 5"}, []string{
			`1: the value has no number, or a number without a unit: p99_ms "slow"`,
			`1: the value has no number, or a number without a unit: errors "-1"`}, "")
	check("a.json", "[{\"name\": \"a\", \"rps\": 5,\n\"rps\": 6, \"mean\": \"3ms\"}]",
		[]string{"a mean 3e+06"}, []string{`1: the key "rps" occurs 2 times in one object`,
			`2: the key "rps" occurs 2 times in one object`}, "")
	check("a.json", "[{\"name\": \"a\", \"rps\": 5}]\n[{\"name\": \"b\", \"rps\": 6}]", nil, nil,
		"line 2: there is more text after the end of the JSON value")
	check("a.json", "[{\"name\": \"a\", \"rps\": 5},\n{\"name\": \"b\", \"rps\":", nil, nil,
		"line 2: the text ends before the JSON value does")
	check("a.json", `{"metrics": {"rps": 5, "errors_timeout": "x"}, "name": "a"}`,
		[]string{"a rate 5"},
		[]string{`1: the value is not a count, so errors are unknown: errors_timeout "x"`}, "")
	check("a.md", "# Speed\n```json\n[{\"name\": \"a\", \"rps\": 5},\n```\n"+
		"| who | RPS |\n|--|--|\n| b | 7 |\n", []string{"b rate 7"}, []string{
		"2: the JSON of this block cannot be read: line 3: the text ends before the JSON value " +
			"does"}, "")
	// A tool's output names its own place.
	check("a.txt", "  1 threads and 2 connections\n  Thread Stats\n"+
		"  Latency 1,24ms 5us 3ms 79.00%\n"+
		"  201 requests in 2.00s, 23.92KB read\nRequests/sec: 100.42\n", nil, nil,
		"audit a.txt as its text of wrk: line 3, column 1: cannot read")
	check("a.md", "# Speed\n```\nRunning 2s test\n  1 threads and 2 connections\n"+
		"  Thread Stats\n"+
		"  Latency 1,24ms 5us 3ms 79.00%\n  201 requests in 2.00s, 23.92KB read\n"+
		"Requests/sec: 100.42\n```\n| who | RPS |\n|--|--|\n| b | 7 |\n", []string{"b rate 7"},
		[]string{"3: its text of wrk cannot be read; in this block, line 4, column 1: cannot " +
			"read \"  Latency 1,24ms 5us 3ms 79.00%\": the line does not have the numbers that " +
			"the tool prints there, with decimal points"}, "")
	check("a.xml", "<?xml version=\"1.0\"?>\n<testResults/>", nil, nil,
		"audit a.xml: the file is XML")
}

// TestFallingPercentilesOfATool checks that a tool's times that contradict each other are found,
// although its reader leaves them out.
func TestFallingPercentilesOfATool(t *testing.T) {
	d, err := Read("a.json", `{"latencies": {"50th": 9000000, "90th": 2000000}, "requests": 10,
		"duration": 1000000000, "status_codes": {"200": 10}}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := Audit(d)
	if r.Count(Contradiction) != 1 || r.Findings[0].Rule != "order" ||
		!strings.Contains(r.Findings[0].Cases[0].Arithmetic, "2000000 ns after 9000000 ns") {
		t.Errorf("it finds %+v", r.Findings)
	}
}
