// Package suite reads the file that describes an experiment and freezes it into a list of trials.
//
//	suite.yaml ─► Read (strict, with defaults) ─► Override (flags) ─► Plan(catalog) ─► trials
//
// All of it is pure: the same bytes, overrides and catalog give the same plan on any machine, so
// that a seed in a report is enough to repeat the order and the arrivals. docs/formats/suite.md
// describes the file; its table, the JSON Schema beside it, the defaults and the ranges all come
// from the table of parameters in this package.
//
// Non-goals: nothing is launched, built or looked up here, and no request is rendered; a plan knows
// the names of targets, not whether their tools are installed.
package suite

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"prony/internal/config"
)

// Load models.
const (
	Closed = "closed" // N connections, the next request when the last was answered
	Open   = "open"   // arrivals on a schedule, whatever the answers do
)

// Arrival processes of open loads.
const (
	Poisson  = "poisson"  // the default: what many independent users make
	Constant = "constant" // equal gaps
)

// Contracts are what a suite may ask of its targets; contract/README.md describes them.
var Contracts = []string{"hello", "http", "compute", "petclinic"}

// Suite is an experiment: targets × scenarios × loads × blocks. Read makes it; its fields are to be
// read, and changed by Override only.
type Suite struct {
	Name     string `yaml:"name" json:"name"`
	Question string `yaml:"question" json:"question,omitempty"`
	Contract string `yaml:"contract" json:"contract"`
	// Targets are globs (path.Match) over names of targets and of services; "all" or none of them:
	// every target that keeps the contract.
	Targets  []string `yaml:"targets" json:"targets,omitempty"`
	Baseline string   `yaml:"baseline" json:"baseline,omitempty"` // a target's name; empty: none
	Blocks   int      `yaml:"blocks" json:"blocks"`
	Seed     uint64   `yaml:"seed" json:"seed"` // below 2^53
	Limits   Limits   `yaml:"limits" json:"limits"`
	// Timeout is for one request, from its sending.
	Timeout   Duration   `yaml:"timeout" json:"timeout"`
	Warmup    Warmup     `yaml:"warmup" json:"warmup"`
	Scenarios []Scenario `yaml:"scenarios" json:"scenarios"`
	Loads     []Load     `yaml:"loads" json:"loads"`

	// Hash is of the file's bytes: SHA-256, the first 16 hex digits.
	Hash string `yaml:"-" json:"hash,omitempty"`
	File string `yaml:"-" json:"file,omitempty"` // as it was given to Read

	// source is of the file, for errors found after reading; nil for a suite made in code.
	source     *config.Document
	retargeted bool // by Override, so that the file is not blamed for a pattern
}

// Limits are what each target may use while it is measured.
type Limits struct {
	CPUs   float64 `yaml:"cpus" json:"cpus"`     // cores
	Memory Size    `yaml:"memory" json:"memory"` // bytes
}

// Warmup is a closed load before the first window: at least Min, then until steady, at most Max.
type Warmup struct {
	Connections int      `yaml:"connections" json:"connections"`
	Min         Duration `yaml:"min" json:"min"`
	Max         Duration `yaml:"max" json:"max"`
}

// Scenario is what is sent: one kind of request or a weighted mix.
type Scenario struct {
	Name string `yaml:"name" json:"name"`
	// Keys are the first and the last of the keys that {key} is drawn from, uniformly; {0, 0}:
	// none.
	Keys Keys `yaml:"keys" json:"keys"`
	// Connections, when not 0, replaces that of every load and of the warm-up: see LoadsOf.
	Connections int       `yaml:"connections" json:"connections,omitempty"`
	Requests    []Request `yaml:"requests" json:"requests"`
}

// Request is one kind of request and the answer that is right for it.
type Request struct {
	Request string `yaml:"request" json:"request"` // "GET /hello/{mode}?key={key}"
	Body    string `yaml:"body" json:"body,omitempty"`
	Type    string `yaml:"type" json:"type,omitempty"` // media type of Body
	Weight  int    `yaml:"weight" json:"weight"`       // its share is Weight / sum of weights
	Expect  Expect `yaml:"expect" json:"expect"`
}

// Expect is what is checked on every answer: the status, and at most one of the other three.
type Expect struct {
	Status int     `yaml:"status" json:"status"`
	Body   *string `yaml:"body" json:"body,omitempty"`   // byte for byte; {key} stands for the key
	Size   *int64  `yaml:"size" json:"size,omitempty"`   // the body's length in bytes
	Lorem  *int64  `yaml:"lorem" json:"lorem,omitempty"` // bytes of lorem.txt repeated
}

// Load is one load of a trial; a trial offers those of its suite one after another.
type Load struct {
	Name        string   `yaml:"name" json:"name"`
	Model       string   `yaml:"model" json:"model"` // Closed or Open
	Connections int      `yaml:"connections" json:"connections"`
	Rate        Rate     `yaml:"rate" json:"rate,omitzero"`          // open only
	Arrivals    string   `yaml:"arrivals" json:"arrivals,omitempty"` // open only
	Lead        Duration `yaml:"lead" json:"lead"`                   // before the window
	Measure     Duration `yaml:"measure" json:"measure"`             // the window
	Drain       Duration `yaml:"drain" json:"drain"`                 // after it, at most
}

// UnmarshalYAML fills in the defaults before the file's own keys, so that an explicit zero stays.
func (l *Load) UnmarshalYAML(decode func(any) error) error {
	type load Load
	var in load
	preset(reflect.ValueOf(&in).Elem(), "loads[].")
	if err := decode(&in); err != nil {
		return err
	}
	*l = Load(in)
	return nil
}

// UnmarshalYAML fills in the defaults before the file's own keys.
func (r *Request) UnmarshalYAML(decode func(any) error) error {
	type request Request
	var in request
	preset(reflect.ValueOf(&in).Elem(), "scenarios[].requests[].")
	if err := decode(&in); err != nil {
		return err
	}
	*r = Request(in)
	return nil
}

// Read decodes and checks data, the content of the named file, and fills in what it leaves out. The
// error joins one *config.Error per problem, each with file and line.
func Read(file string, data []byte) (*Suite, error) {
	src, err := newSource(file, data)
	if err != nil {
		return nil, err
	}
	s := &Suite{}
	preset(reflect.ValueOf(s).Elem(), "")
	if err := config.Decode(file, data, s); err != nil {
		return nil, err
	}
	s.File, s.source = file, src
	s.fill()
	if err := s.check(src); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	s.Hash = hex.EncodeToString(sum[:])[:16]
	return s, nil
}

// fill sets the defaults that depend on other values; preset has set all the others.
func (s *Suite) fill() {
	for i := range s.Loads {
		if l := &s.Loads[i]; l.Model == Open && l.Arrivals == "" {
			l.Arrivals = Poisson
		}
	}
	for _, sc := range s.Scenarios {
		for i := range sc.Requests {
			if r := &sc.Requests[i]; r.Body != "" && r.Type == "" {
				r.Type = "text/plain"
			}
		}
	}
}

// Override is what flags change; a zero value leaves the file's.
type Override struct {
	Blocks  int
	Seed    *uint64
	Measure Duration // of every load
	Warmup  Duration // Max; Min is lowered to it where it would be longer
	Targets []string
}

// Override applies o, or returns an error and changes nothing. Hash stays the file's; the plan's
// hash follows what is really done.
func (s *Suite) Override(o Override) error {
	changed := *s
	changed.Loads = slices.Clone(s.Loads)
	if o.Blocks != 0 {
		changed.Blocks = o.Blocks
	}
	if o.Seed != nil {
		changed.Seed = *o.Seed
	}
	if o.Measure != 0 {
		for i := range changed.Loads {
			changed.Loads[i].Measure = o.Measure
		}
	}
	if o.Warmup != 0 {
		changed.Warmup.Max = o.Warmup
		changed.Warmup.Min = min(changed.Warmup.Min, o.Warmup)
	}
	if len(o.Targets) > 0 {
		changed.Targets = slices.Clone(o.Targets)
		changed.retargeted = true
	}
	if err := changed.check(nil); err != nil {
		return fmt.Errorf("override suite %s: %w", s.Name, err)
	}
	*s = changed
	return nil
}

// Scenario returns the scenario of that name, which is one of a plan of this suite.
func (s *Suite) Scenario(name string) Scenario {
	for _, sc := range s.Scenarios {
		if sc.Name == name {
			return sc
		}
	}
	panic(fmt.Sprintf("suite %s has no scenario %q: it is not of this plan", s.Name, name))
}

// LoadsOf returns the loads that a trial of the scenario offers, in order: those of the suite, with
// the scenario's own number of connections where it has one.
func (s *Suite) LoadsOf(sc Scenario) []Load {
	loads := slices.Clone(s.Loads)
	for i := range loads {
		if sc.Connections != 0 {
			loads[i].Connections = sc.Connections
		}
	}
	return loads
}

// WarmupOf returns the warm-up of the scenario's trials, which has as many connections as the loads
// that it prepares for.
func (s *Suite) WarmupOf(sc Scenario) Warmup {
	w := s.Warmup
	if sc.Connections != 0 {
		w.Connections = sc.Connections
	}
	return w
}

// Line returns method and path for a target that serves the mode. {key} stays: it is drawn for each
// request.
func (r Request) Line(mode string) (method, path string) {
	method, path, _ = strings.Cut(r.Request, " ")
	return method, strings.ReplaceAll(path, "{mode}", mode)
}
