package adhoc

import (
	"fmt"
	"math"
	"strings"
	"time"

	"prony.example/internal/base/strictyaml"
	"prony.example/internal/suite"
	"prony.example/record"
)

// Options are how targets are measured. What is zero is the suites' default.
type Options struct {
	Baseline    string // the target that the others are compared with; empty: none
	Connections int
	Blocks      int
	CPUs        float64
	MemoryBytes int64
	Interleave  string         // how targets are compared; empty: in slices where possible
	Stay        bool           // some cannot be moved to other cores: containers, what runs already
	SLO         string         // of a search for the capacity, after the other loads; empty: none
	Speaks      suite.Scenario // what is spoken, as a suite's scenario has it; nothing else of it
}

// Name is what the suite of a command line is called.
const Name = "versus"

// Suite is the experiment that a command line stands for: closed at the peak, open at half of it.
// The requests are those that were asked, with what is expected of their answers.
func Suite(retained []Held, o Options) (*suite.Suite, error) {
	return suite.New(func(s *suite.Suite) {
		s.Name, s.Baseline, s.Blocks = Name, o.Baseline, o.Blocks
		s.Limits = suite.Limits{CPUs: o.CPUs, Memory: strictyaml.Size(o.MemoryBytes >> 20 << 20)}
		warmup(&s.Warmup, o)
		scene := o.Speaks
		scene.Name, scene.Requests = "requests", nil
		for _, h := range retained {
			r := suite.NewRequest(h.Request.Request)
			r.Headers, r.Body, r.Type = h.Request.Headers, h.Request.Body, h.Request.Type
			r.Expect, r.Checks = h.Request.Expect, h.Request.Checks
			scene.Requests = append(scene.Requests, r)
		}
		s.Scenarios = []suite.Scenario{scene}
		load := func(name, model string, measure time.Duration) suite.Load {
			l := suite.NewLoad(name, model)
			l.Connections, l.Lead = o.Connections, suite.Duration(200*time.Millisecond)
			l.Measure = suite.Duration(measure)
			return l
		}
		s.Slices = suite.Duration(2 * time.Second)
		measure := time.Second // slices decide; windows alone give levels
		if o.Interleave == suite.ByBlocks {
			measure = 3 * time.Second
		}
		peak := load("peak", record.Closed, measure)
		half := load("half", record.Open, measure)
		half.Rate = suite.Rate{Share: 0.5, Of: peak.Name}
		half.Drain = suite.Duration(time.Second)
		s.Loads = []suite.Load{peak, half}
		if o.SLO != "" {
			users := load("users", record.Capacity, time.Second)
			users.SLO, users.Budget = o.SLO, suite.Duration(40*time.Second)
			s.Loads = append(s.Loads, users)
		}
	})
}

// warmup lets a service that compiles while it serves have all cores until its compilers are
// silent: on one core they and the requests that they compile for take turns, for minutes. A
// service that is steady earlier is measured earlier. If one target cannot be given all cores, none
// is.
func warmup(to *suite.Warmup, o Options) {
	to.Connections = o.Connections
	to.Min, to.Max = suite.Duration(time.Second), suite.Duration(20*time.Second)
	complete := o.CPUs == math.Trunc(
		o.CPUs,
	) // parts of cores are a quota, which holds on all of them
	if complete && !o.Stay {
		to.Cores = suite.AllCores
	}
}

// ParseRequest reads "GET /path" or a path alone, which is asked with GET.
func ParseRequest(text string) (suite.Request, error) {
	method, path, ok := strings.Cut(text, " ")
	if !ok {
		method, path = "GET", text
	}
	if !strings.HasPrefix(path, "/") {
		return suite.Request{}, fmt.Errorf("%q is not a request: a path begins with /, as in "+
			"--get /items or --request 'POST /items'", text)
	}
	return suite.Request{Request: method + " " + path, Weight: 1,
		Expect: suite.Expect{Status: 200}}, nil
}
