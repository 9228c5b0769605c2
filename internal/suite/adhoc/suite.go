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

// Options are the settings of a measurement. Zero values are the defaults of suites.
type Options struct {
	Baseline    string // the target that the others are compared with; empty: none
	Connections int
	Blocks      int
	CPUs        float64
	MemoryBytes int64
	Interleave  string         // how targets are compared; empty: in slices if possible
	Stay        bool           // some target cannot move to other cores, see Source.Stays
	SLO         string         // of a capacity search after the other loads; empty: none
	Speaks      suite.Scenario // protocol of the requests; the rest is ignored
}

// Name is the name of a command line's suite.
const Name = "versus"

// Suite returns the suite of a command line: a closed load at the peak and an open load at half of
// it. retained are the requests with their expectations.
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
		measure := time.Second // slices decide; windows give absolute values only
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

// warmup gives a service that compiles at run time all cores until its compilers are idle: on one
// core they and the requests take turns for minutes. A service that is steady earlier is measured
// earlier. If one target cannot have all cores, none has them.
func warmup(to *suite.Warmup, o Options) {
	to.Connections = o.Connections
	to.Min, to.Max = suite.Duration(time.Second), suite.Duration(20*time.Second)
	complete := o.CPUs == math.Trunc(
		o.CPUs,
	) // a fraction of a core is a quota, which also holds on all cores
	if complete && !o.Stay {
		to.Cores = suite.AllCores
	}
}

// ParseRequest reads "GET /path", or a path alone, which implies GET.
func ParseRequest(text string) (suite.Request, error) {
	method, path, ok := strings.Cut(text, " ")
	if !ok || strings.HasPrefix(text, "/") {
		method, path = "GET", text
	}
	if !strings.HasPrefix(path, "/") {
		return suite.Request{}, fmt.Errorf("%q is not a request: a path begins with /, as in "+
			"--get /items or --request 'POST /items'", text)
	}
	return suite.Request{Request: method + " " + path, Weight: 1,
		Expect: suite.Expect{Status: 200}}, nil
}
