package adhoc

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"prony.example/internal/suite"
)

// Options are how targets are measured. What is zero is the suites' default.
type Options struct {
	Baseline    string // the target that the others are compared with; empty: none
	Connections int
	Blocks      int
	CPUs        float64
	MemoryBytes int64
	Stay        bool           // some cannot be moved to other cores: containers, what runs already
	SLO         string         // of a search for the capacity, after the other loads; empty: none
	Speaks      suite.Scenario // what is spoken, as a suite's scenario has it; nothing else of it
}

// Name is what the suite of a command line is called.
const Name = "versus"

// Suite is the experiment that a command line stands for: closed at the peak, open at half of it.
// The requests are those that were asked, with what is expected of their answers.
func Suite(held []Held, o Options) (*suite.Suite, error) {
	var requests []map[string]any
	for _, h := range held {
		r := map[string]any{"request": h.Request.Request}
		for key, value := range map[string]string{"body": h.Request.Body, "type": h.Request.Type} {
			if value != "" {
				r[key] = value
			}
		}
		if len(h.Request.Headers) > 0 {
			r["headers"] = h.Request.Headers
		}
		requests = append(requests, r)
	}
	type part = map[string]any
	loads := []part{
		{"name": "peak", "model": "closed", "connections": o.Connections, "lead": "200ms",
			"measure": "3s"},
		{"name": "half", "model": "open", "rate": "50% of peak", "connections": o.Connections,
			"lead": "200ms", "measure": "3s", "drain": "1s"},
	}
	if o.SLO != "" {
		loads = append(loads, part{"name": "users", "model": "capacity", "slo": o.SLO,
			"connections": o.Connections, "lead": "200ms", "measure": "1s", "budget": "40s"})
	}
	text, err := json.Marshal(part{ // which is YAML, so that all defaults and checks are a suite's
		"name": Name, "baseline": o.Baseline, "blocks": o.Blocks,
		"limits":    part{"cpus": o.CPUs, "memory": fmt.Sprintf("%dM", o.MemoryBytes>>20)},
		"warmup":    warmup(o),
		"scenarios": []part{{"name": "requests", "requests": requests}},
		"loads":     loads,
	})
	if err != nil {
		return nil, err
	}
	s, err := suite.Read(Name, text)
	if err != nil {
		return nil, err
	}
	s.File = ""
	sc := &s.Scenarios[0]
	sc.Protocol, sc.Unix, sc.Streams, sc.TLS = o.Speaks.Protocol, o.Speaks.Unix, o.Speaks.Streams,
		o.Speaks.TLS
	for i, h := range held {
		to := &s.Scenarios[0].Requests[i]
		to.Expect, to.Checks = h.Request.Expect, h.Request.Checks
	}
	return s, s.Override(suite.Override{}) // which checks what was filled in
}

// warmup lets what compiles while it serves have all cores until its compilers are silent: on one
// core they and the requests that they compile for take turns, for minutes. What is steady earlier
// is measured earlier. Where one cannot be given them, none is.
func warmup(o Options) map[string]any {
	out := map[string]any{"connections": o.Connections, "min": "1s", "max": "20s"}
	whole := o.CPUs == math.Trunc(o.CPUs) // parts of cores are a quota, which holds on all of them
	if whole && !o.Stay {
		out["cores"] = suite.AllCores
	}
	return out
}

// ParseRequest reads "GET /path" or a path alone, which is asked with GET.
func ParseRequest(text string) (suite.Request, error) {
	method, path, ok := strings.Cut(text, " ")
	if !ok {
		method, path = "GET", text
	}
	if !strings.HasPrefix(path, "/") {
		return suite.Request{}, fmt.Errorf("%q is no request: a path begins with /, as in "+
			"--get /items or --request 'POST /items'", text)
	}
	return suite.Request{Request: method + " " + path, Weight: 1,
		Expect: suite.Expect{Status: 200}}, nil
}
