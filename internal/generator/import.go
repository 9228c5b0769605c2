package generator

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/record"
)

// format is an output format that is recognized by its content.
type format struct {
	tool    string
	subject string
	is      func(*content) bool
	read    func(text string) (*tally, error)
}

// content is a file's content in the form that formats check.
type content struct {
	text  string
	first string                     // its first line
	keys  map[string]json.RawMessage // of a JSON object
}

func has(texts ...string) func(*content) bool {
	return func(c *content) bool {
		lacks := func(t string) bool { return !strings.Contains(c.text, t) }
		return !slices.ContainsFunc(texts, lacks)
	}
}

func key(name string) func(*content) bool {
	return func(c *content) bool { return c.keys[name] != nil }
}

func starts(s string) func(*content) bool {
	return func(c *content) bool { return strings.HasPrefix(c.first, s) }
}

var (
	h2Log      = lazyregexp.New(`^\d{12,}\t-?\d+\t\d+`)
	wrk2Signs  = lazyregexp.New(`HdrHistogram - |Thread calibration: |Req/Sec\s+-nan\s+-nan`)
	jmeterSign = lazyregexp.New(`summary [=+]\s+\d+ in `)
)

// formats are tried in this order, more specific ones first.
var formats = []format{
	{"oha", "its JSON", key("statusCodeDistribution"), importOha},
	{"k6", "its JSON summary", key("metrics"), importK6},
	{"vegeta", "its JSON report", key("latencies"), importVegeta},
	{"hey", "its CSV", starts("response-time,DNS+dialup"), importHeyRows},
	{"oha", "its CSV", starts("request-start,DNS"), importOhaRows},
	{"jmeter", "its log (JTL) as CSV", func(c *content) bool {
		return strings.Contains(c.first, "timeStamp") && strings.Contains(c.first, "elapsed")
	}, importJTL},
	{"h2load", "its log", func(c *content) bool { return h2Log.MatchString(c.first) }, importH2Log},
	{"wrk2", "its text", func(c *content) bool {
		return has("Thread Stats", "requests in ")(c) && wrk2Signs.MatchString(c.text)
	}, importWrk2},
	{"wrk", "its text", has("Thread Stats", "requests in "), importWrk},
	{"oha", "its text", has("Summary:", "Success rate:"), importOhaText},
	{"hey", "its text", has("Summary:", "Requests/sec:"), importHey},
	{"h2load", "its text", has("finished in ", "status codes: "), importH2load},
	{"k6", "its text", has("http_req_duration", "http_reqs"), importK6Text},
	{"jmeter", "the text of its summariser",
		func(c *content) bool { return jmeterSign.MatchString(c.text) }, importJMeter},
}

// Formats lists the formats that Import reads, as "wrk: its text".
func Formats() (out []string) {
	for _, f := range formats {
		out = append(out, f.tool+": "+f.subject)
	}
	return out
}

// Import parses the saved output of a load generator and recognizes its format by the content. name
// is the file's name, for errors. The notes list missing and wrong information in the output.
// Unknown numbers are 0, an unknown model is empty; 2xx and 3xx responses count as good.
func Import(name, text string) (*record.Load, []string, error) {
	c := &content{text: strings.TrimPrefix(strings.TrimSpace(text), "\ufeff")}
	c.first, _, _ = strings.Cut(c.text, "\n")
	if strings.HasPrefix(c.first, "<?xml") || strings.HasPrefix(c.first, "<testResults") {
		return nil, nil, fmt.Errorf("import %s: the file is XML; configure JMeter to save CSV, "+
			"with -Jjmeter.save.saveservice.output_format=csv", name)
	}
	if strings.HasPrefix(c.first, "{") {
		if err := json.Unmarshal([]byte(c.text), &c.keys); err != nil {
			return nil, nil, fmt.Errorf("import %s: the file begins like JSON but is not valid "+
				"JSON: %w", name, err)
		}
	}
	for _, f := range formats {
		if !f.is(c) {
			continue
		}
		t, err := f.read(c.text)
		if err != nil {
			return nil, nil, fmt.Errorf("import %s as %s of %s: %w", name, f.subject, f.tool, err)
		}
		return t.finish(name, f.tool)
	}
	return nil, nil, fmt.Errorf("import %s: the format was not recognized as one of %s", name,
		strings.Join(Formats(), "; "))
}

// finish returns the load of a file, and a note about its model.
func (t *tally) finish(name, tool string) (*record.Load, []string, error) {
	if t.good+t.errors.Total() == 0 {
		return nil, nil, fmt.Errorf("import %s: %s received no responses", name, tool)
	}
	t.ordered()
	l := t.imported()
	l.Name, l.Driver = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), tool
	first := "the load model is unknown: in a closed load, a stall would hide the requests that " +
		"it delayed (coordinated omission)"
	switch t.model {
	case record.Closed:
		first = "closed load: a connection sends its next request after the last response, so a " +
			"stall hides the requests that it delayed (coordinated omission)"
	case record.Open:
		first = "open load: requests are due on a schedule"
		if l.ResponseTime.Count == 0 {
			first += ", but times count from when a request is sent, without the wait before that"
		}
	}
	return l, append([]string{first}, t.notes...), nil
}

// ordered removes impossible times: it reduces values that rounding put slightly above the largest
// value to it, and drops distributions whose times don't ascend.
func (t *tally) ordered() {
	for _, d := range []*record.Dist{&t.response, &t.service, &t.firstByte, &t.errored,
		&t.connect} {
		last := int64(0)
		for _, ns := range []*int64{&d.MinNs, &d.P50Ns, &d.P90Ns, &d.P99Ns, &d.P999Ns} {
			if d.MaxNs > 0 && *ns > d.MaxNs && float64(*ns) < rounding*float64(d.MaxNs) {
				*ns = d.MaxNs
			}
			if *ns > 0 && (*ns < last || d.MaxNs > 0 && *ns > d.MaxNs) {
				t.note("a higher percentile has a lower time (%d ns after %d ns), so the times "+
					"are left out", *ns, last)
				*d = record.Dist{}
				break
			}
			last = max(last, *ns)
		}
		switch most := float64(d.MaxNs); {
		case most == 0 || d.MeanNs <= most:
		case d.MeanNs < rounding*most:
			d.MeanNs = most
		default:
			t.note("the mean is larger than the maximum, so the mean is left out")
			d.MeanNs = 0
		}
	}
}

// rounding is the largest ratio by which rounding to two decimals can be off: 1.005 is printed as
// 1.01.
const rounding = 1.006

// vegetaSaid is the output of "vegeta report -type json". Times are nanoseconds.
type vegetaSaid struct {
	Latencies *struct {
		Mean, Max, Min float64
		P50            float64 `json:"50th"`
		P90            float64 `json:"90th"`
		P99            float64 `json:"99th"`
	}
	BytesIn     struct{ Total float64 } `json:"bytes_in"`
	BytesOut    struct{ Total float64 } `json:"bytes_out"`
	Duration    float64
	Wait        float64
	Requests    float64
	Rate        float64
	StatusCodes map[string]float64 `json:"status_codes"`
	Errors      []string
}

// importVegeta parses a report of vegeta (github.com/tsenart/vegeta), which has no driver.
func importVegeta(text string) (*tally, error) {
	s := &vegetaSaid{}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, fmt.Errorf("its JSON: %w", err)
	}
	if s.Latencies == nil {
		return nil, fmt.Errorf("the JSON of vegeta has no latencies")
	}
	rounded := func(f float64) int64 { return int64(max(min(f, countMax), 0)) }
	ns := func(f float64) int64 { return scaled(f, 1) }
	t := &tally{model: record.Open, ratePerS: s.Rate, durationNs: ns(s.Duration + s.Wait),
		bytesIn: rounded(s.BytesIn.Total), bytesOut: rounded(s.BytesOut.Total)}
	var none int64
	for code, n := range s.StatusCodes {
		status, err := strconv.Atoi(code)
		if err != nil || status == 0 {
			none += rounded(n)
			continue
		}
		t.answered(status, 0, rounded(n))
	}
	// vegeta lists each error text once, without a count; the first one becomes the reason of all
	// failures.
	if none > 0 {
		why := "no answer"
		for _, e := range s.Errors {
			if !strings.HasPrefix(e, "4") && !strings.HasPrefix(e, "5") {
				why = e
				break
			}
		}
		blame(&t.errors, why, none)
		t.note("%d requests received no response; all count as the kind of error of the first "+
			"message", none)
	}
	t.service = record.Dist{Count: rounded(s.Requests), MinNs: ns(s.Latencies.Min),
		MeanNs: float64(ns(s.Latencies.Mean)), MaxNs: ns(s.Latencies.Max),
		P50Ns: ns(s.Latencies.P50), P90Ns: ns(s.Latencies.P90), P99Ns: ns(s.Latencies.P99)}
	t.note("vegeta counts times from sending, so delays of its pacer are in no time; with " +
		"-max-workers it was a closed load")
	t.note("the rate is the achieved rate; the vegeta report does not contain the requested rate")
	t.note("the percentiles are from a t-digest of all requests, including failed ones")
	return t, nil
}
