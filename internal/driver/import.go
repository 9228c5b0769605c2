package driver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"prony/internal/pattern"
	"prony/internal/result"
)

// format is a kind of output that can be told by its content.
type format struct {
	tool string
	what string
	is   func(*content) bool
	read func(*content) (*tally, error)
}

// content is a file, as the formats look at it.
type content struct {
	data  []byte
	text  string
	first string              // its first line
	keys  map[string]struct{} // of a JSON object
}

func (c *content) has(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(t string) bool { return !strings.Contains(c.text, t) })
}

func (c *content) key(name string) bool {
	_, ok := c.keys[name]
	return ok
}

var (
	h2Log      = pattern.New(`^\d{12,}\t-?\d+\t\d+`)
	wrk2Signs  = pattern.New(`HdrHistogram - |Thread calibration: |Req/Sec\s+-nan\s+-nan`)
	jmeterSign = pattern.New(`summary [=+]\s+\d+ in `)
)

// formats are tried in this order; those that look closer come first.
var formats = []format{
	{"oha", "its JSON", func(c *content) bool { return c.key("statusCodeDistribution") },
		func(c *content) (*tally, error) { return importOha(c.data) }},
	{"k6", "its JSON summary", func(c *content) bool { return c.key("metrics") },
		func(c *content) (*tally, error) { return importK6(c.data) }},
	{"vegeta", "its JSON report", func(c *content) bool { return c.key("latencies") },
		func(c *content) (*tally, error) { return importVegeta(c.data) }},
	{"hey", "its CSV", starts("response-time,DNS+dialup"),
		func(c *content) (*tally, error) { return importHeyRows(c.text) }},
	{"oha", "its CSV", starts("request-start,DNS"),
		func(c *content) (*tally, error) { return importOhaRows(c.text) }},
	{"jmeter", "its log (JTL) as CSV", func(c *content) bool {
		return strings.Contains(c.first, "timeStamp") && strings.Contains(c.first, "elapsed")
	}, func(c *content) (*tally, error) { return importJTL(c.text) }},
	{"h2load", "its log", func(c *content) bool { return h2Log.MatchString(c.first) },
		func(c *content) (*tally, error) { return importH2Log(c.text) }},
	{"wrk2", "its text", func(c *content) bool {
		return c.has("Thread Stats", "requests in ") && wrk2Signs.MatchString(c.text)
	}, func(c *content) (*tally, error) { return importWrk("wrk2", c.text) }},
	{"wrk", "its text", func(c *content) bool { return c.has("Thread Stats", "requests in ") },
		func(c *content) (*tally, error) { return importWrk("wrk", c.text) }},
	{"oha", "its text", func(c *content) bool { return c.has("Summary:", "Success rate:") },
		func(c *content) (*tally, error) { return importOhaText(c.text) }},
	{"hey", "its text", func(c *content) bool { return c.has("Summary:", "Requests/sec:") },
		func(c *content) (*tally, error) { return importHey(c.text) }},
	{"h2load", "its text", func(c *content) bool { return c.has("finished in ", "status codes: ") },
		func(c *content) (*tally, error) { return importH2load(c.text) }},
	{"k6", "its text", func(c *content) bool { return c.has("http_req_duration", "http_reqs") },
		func(c *content) (*tally, error) { return importK6Text(c.text) }},
	{"jmeter", "the text of its summariser",
		func(c *content) bool { return jmeterSign.MatchString(c.text) },
		func(c *content) (*tally, error) { return importJMeter(c.text) }},
}

func starts(s string) func(*content) bool {
	return func(c *content) bool { return strings.HasPrefix(c.first, s) }
}

// Formats lists what Import reads, as "wrk: its text".
func Formats() (out []string) {
	for _, f := range formats {
		out = append(out, f.tool+": "+f.what)
	}
	return out
}

// Import reads the saved output of a load generator, whose format it tells by the content; name is
// the file's, for errors. The notes say what the output cannot tell, and what is wrong with what it
// tells. What is unknown is 0, an unknown model is empty; answers of 2xx and 3xx count as good.
func Import(name string, data []byte) (*result.Load, []string, error) {
	c := &content{data: bytes.TrimPrefix(bytes.TrimSpace(data), []byte("\xef\xbb\xbf"))}
	c.text = string(c.data)
	c.first, _, _ = strings.Cut(c.text, "\n")
	if strings.HasPrefix(c.first, "<?xml") || strings.HasPrefix(c.first, "<testResults") {
		return nil, nil, fmt.Errorf("import %s: it is XML; let JMeter save CSV, with "+
			"-Jjmeter.save.saveservice.output_format=csv", name)
	}
	if strings.HasPrefix(c.first, "{") {
		object := map[string]json.RawMessage{}
		if err := json.Unmarshal(c.data, &object); err != nil {
			return nil, nil, fmt.Errorf("import %s: it begins as JSON and is not: %w", name, err)
		}
		c.keys = map[string]struct{}{}
		for k := range object {
			c.keys[k] = struct{}{}
		}
	}
	for _, f := range formats {
		if !f.is(c) {
			continue
		}
		t, err := f.read(c)
		if err != nil {
			return nil, nil, fmt.Errorf("import %s as %s of %s: %w", name, f.what, f.tool, err)
		}
		return t.finish(name, f.tool)
	}
	return nil, nil, fmt.Errorf("import %s: it looks like none of %s", name,
		strings.Join(Formats(), "; "))
}

// finish makes the load of a file and says what its model means.
func (t *tally) finish(name, tool string) (*result.Load, []string, error) {
	if t.good+t.errors.Total() == 0 {
		return nil, nil, fmt.Errorf("import %s: %s had no answer to any request", name, tool)
	}
	t.ordered()
	l := t.imported()
	l.Name, l.Driver = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), tool
	first := "its model is unknown: were it closed, a stall would hide the requests that it kept " +
		"from being sent (coordinated omission)"
	switch t.model {
	case result.Closed:
		first = "closed: a connection sends when its last answer is back, so that a stall hides " +
			"the requests that it kept from being sent (coordinated omission)"
	case result.Open:
		first = "open: requests on a schedule"
		if l.ResponseTime.Count == 0 {
			first += ", and its clock starts when one is really sent: waiting before that is in " +
				"no time"
		}
	}
	return l, append([]string{first}, t.notes...), nil
}

// ordered keeps only times that can be: what a tool rounds may come out a little above its largest
// value and is brought down to it; times that do not ascend at all are left out.
func (t *tally) ordered() {
	for _, d := range []*result.Dist{&t.response, &t.service, &t.firstByte, &t.errored,
		&t.connect} {
		last := int64(0)
		for _, ns := range []*int64{&d.MinNs, &d.P50Ns, &d.P90Ns, &d.P99Ns, &d.P999Ns} {
			if d.MaxNs > 0 && *ns > d.MaxNs && float64(*ns) < rounding*float64(d.MaxNs) {
				*ns = d.MaxNs
			}
			if *ns > 0 && (*ns < last || d.MaxNs > 0 && *ns > d.MaxNs) {
				t.note("its times do not ascend (%d ns after %d ns): they are left out", *ns, last)
				*d = result.Dist{}
				break
			}
			last = max(last, *ns)
		}
		switch most := float64(d.MaxNs); {
		case most == 0 || d.MeanNs <= most:
		case d.MeanNs < rounding*most:
			d.MeanNs = most
		default:
			t.note("its mean is above its largest time: it is left out")
			d.MeanNs = 0
		}
	}
}

// rounding is by how much two digits after the point can be off: 1.005 is printed as 1.01.
const rounding = 1.006
