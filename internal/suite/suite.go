// Package suite reads the file of an experiment and expands it into a fixed list of trials.
//
//	suite.yaml ─► Read (strict, with defaults) ─► Override (flags) ─► Plan(catalog) ─► trials
//
// The result depends only on files, overrides and catalog, so that a seed in a report suffices to
// repeat the order and the arrivals on any machine. docs/formats/suite.md describes the file; its
// table, the JSON Schema beside it, the defaults and the ranges all come from the table of
// parameters in this package.
//
// The package reads only the bodies and traces that a suite names, which are beside it: they are
// part of the suite and of its hashes.
//
// Non-goals: it launches, builds and looks up nothing, and renders no request; a plan has the names
// of targets, and no information on whether their tools are installed.
package suite

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/strictyaml"
	"prony.example/load/pace"
	"prony.example/record"
	"prony.example/record/metric"
)

// Arrival processes of open loads.
const (
	Poisson  = "poisson"  // the default: arrivals of many independent users
	Constant = "constant" // equal gaps
	Replay   = "replay"   // from a trace
)

// Drivers are the load generators; the first is Prony's own and the default.
var Drivers = []string{"prony", "wrk", "wrk2", "hey", "k6", "h2load", "jmeter"}

// Columns are the further columns that a suite can request; see docs/report.md.
var Columns = metric.ColumnNames()

// Engines are the engines of Prony's generator; the first, the default, selects what the machine
// supports.
var Engines = []string{"auto", "epoll", "nethttp"}

// Pacings are the ways to wait for the next arrival; the first is the default.
var Pacings = []string{"precise", "frugal"}

// Protocols are the protocols of scenarios; the first is HTTP/1.1 and the default.
var Protocols = []string{"http", "https", "h2", "h2c", "h3", "grpc", "grpcs", "ws", "wss"}

// Contracts are the contracts that a suite can require; see contract/README.md.
var Contracts = []string{"hello", "http", "compute", "petclinic"}

// Launchers are the launchers of targets; the first is the default. The others start containers: on
// a network of their own, or on the host's; as pods of a cluster, reached by their own address or
// through a service.
var Launchers = []string{"process", "docker", "docker-host", "kubernetes", "kubernetes-service"}

// Pods reports whether a launcher starts pods.
func Pods(launcher string) bool { return strings.HasPrefix(launcher, "kubernetes") }

// Suite is an experiment: targets × scenarios × drivers × loads × blocks. Read and New make it.
// Only Override may change its fields.
type Suite struct {
	Name     string `yaml:"name" json:"name"`
	Question string `yaml:"question" json:"question,omitempty"`
	Contract string `yaml:"contract" json:"contract"`
	// Targets are globs (path.Match) over names of targets and of services; "all" or none of them:
	// every target that supports the contract.
	Targets  []string `yaml:"targets" json:"targets,omitempty"`
	Baseline string   `yaml:"baseline" json:"baseline,omitempty"` // a target's name; empty: none
	Blocks   int      `yaml:"blocks" json:"blocks"`
	Seed     uint64   `yaml:"seed" json:"seed"` // below 2^53
	Limits   Limits   `yaml:"limits" json:"limits"`
	// Timeout is for one request, from its sending.
	Timeout Duration `yaml:"timeout" json:"timeout"`
	// Interleave is how targets are compared: one of Interleavings; empty: the first that is
	// possible.
	Interleave string `yaml:"interleave" json:"interleave,omitempty"`
	// Freeze is one of Freezing; empty: on.
	Freeze string `yaml:"freeze" json:"freeze,omitempty"`
	// Idle is one of Idling; empty: poll.
	Idle string `yaml:"idle" json:"idle,omitempty"`
	// NoSlices is why slices are impossible on this machine or in this run; empty: no known reason.
	NoSlices string `yaml:"-" json:"-"`
	// Together is how many targets fit into this machine's memory at the same time; 0: all. Crowd
	// is why not all fit.
	Together int    `yaml:"-" json:"-"`
	Crowd    string `yaml:"-" json:"-"`
	// Slices is how long each target is loaded in the slices of a start, including lead-ins.
	Slices Duration `yaml:"slices" json:"slices,omitempty"`
	// Resolution is the smallest relevant relative difference; 0: record.Resolution.
	Resolution Percent `yaml:"resolution" json:"resolution,omitempty"`

	Warmup    Warmup     `yaml:"warmup" json:"warmup"`
	Scenarios []Scenario `yaml:"scenarios" json:"scenarios"`
	Loads     []Load     `yaml:"loads" json:"loads"`
	// Networks are simulated in turn: every load is offered over each, under a name of its own.
	Networks []Network `yaml:"network" json:"network,omitempty"`
	// Drivers offer the same loads in trials of their own; nil: only Prony's generator.
	Drivers []string `yaml:"drivers" json:"drivers,omitempty"`
	// Launchers start the same targets in trials of their own; nil: only as processes.
	Launchers []string `yaml:"launchers" json:"launchers,omitempty"`
	// Variants are added to targets, each in trials of its own beside the bare target's.
	Variants []Variant `yaml:"variants" json:"variants,omitempty"`
	// Capacity is measured before the blocks if a rate is a share of it.
	Capacity Capacity `yaml:"capacity" json:"capacity,omitzero"`
	// Observe is what the lab records in all trials of the comparison.
	Observe Observe `yaml:"observe" json:"observe,omitzero"`
	// Columns are further columns of the table.
	Columns []string `yaml:"columns" json:"columns,omitempty"`
	// AA measures every target against itself, in two arms a block. Only a flag sets it, because it
	// measures the machine, not the targets.
	AA bool `yaml:"-" json:"aa,omitempty"`

	// For is the time budget of the run; 0: Blocks decides. Only a flag sets it.
	For Duration `yaml:"-" json:"for,omitempty"`

	// Precision plans starts beyond Blocks by the scatter of the first ones. Only a flag sets it.
	Precision Precision `yaml:"-" json:"precision,omitzero"`

	// Observed adds a trial outside of the comparison for each target and scenario, with the first
	// of Watching that fits, in which the lab records Watch. Only a flag sets it.
	Observed bool      `yaml:"-" json:"observed,omitempty"`
	Watching []Variant `yaml:"-" json:"watching,omitempty"`
	Watch    Observe   `yaml:"-" json:"watch,omitzero"`

	// Hash is the hash of the file's bytes and of the files that it names: SHA-256, the first 16
	// hex digits.
	Hash string `yaml:"-" json:"hash,omitempty"`
	File string `yaml:"-" json:"file,omitempty"` // as passed to Read

	// source is the file's document, for errors found after reading; nil for a suite made in code.
	source     *strictyaml.Document
	preview    preview
	retargeted bool // by Override, so that errors of a pattern do not name the file
}

// Limits are the resources of each target.
type Limits struct {
	CPUs   float64         `yaml:"cpus" json:"cpus"`     // cores
	Memory strictyaml.Size `yaml:"memory" json:"memory"` // bytes
}

// Warmup is a closed load before the first window: at least Min, then until steady, at most Max.
type Warmup struct {
	Connections int      `yaml:"connections" json:"connections"`
	Min         Duration `yaml:"min" json:"min"`
	// MinCompiling replaces a shorter Min for a service that compiles at run time.
	MinCompiling Duration `yaml:"minCompiling" json:"minCompiling,omitempty"`
	Max          Duration `yaml:"max" json:"max"`
	// Cores are the cores of a service that compiles at run time: one of WarmupCores; empty: the
	// first.
	Cores string `yaml:"cores" json:"cores,omitempty"`
	// Compilers is the priority of compilers: one of Turns; empty: the first.
	Compilers string `yaml:"compilers" json:"compilers,omitempty"`
}

// CompilersFirst gives compilers priority during the warm-up.
const CompilersFirst = "first"

// Turns are the ways in which compilers and the threads that wait for them share cores; the first
// is the default.
var Turns = []string{CompilersFirst, "equal"}

// AllCores are the cores of the service and the load.
const AllCores = "all"

// WarmupCores are the cores of a service during its warm-up; the first is the default.
var WarmupCores = []string{"own", AllCores}

// Load is one load of a trial; a trial offers those of its suite one after another.
type Load struct {
	Name        string `yaml:"name" json:"name"`
	Model       string `yaml:"model" json:"model"` // Closed, Open or Capacity
	Connections int    `yaml:"connections" json:"connections"`
	// Most is the maximum number of connections of an open load; 0: it does not grow.
	Most int `yaml:"maxConnections" json:"maxConnections,omitempty"`
	// Generators is the number of Prony's processes that offer it together; 0: only the lab.
	Generators int      `yaml:"generators" json:"generators,omitempty"`
	Users      Users    `yaml:"users" json:"users,omitzero"`        // closed only
	Think      Think    `yaml:"think" json:"think,omitzero"`        // closed only
	Rate       Rate     `yaml:"rate" json:"rate,omitzero"`          // open only
	Arrivals   string   `yaml:"arrivals" json:"arrivals,omitempty"` // open only
	Trace      string   `yaml:"trace" json:"trace,omitempty"`       // a file; Replay only
	SLO        string   `yaml:"slo" json:"slo,omitempty"`           // capacity only
	Budget     Duration `yaml:"budget" json:"budget,omitzero"`      // capacity only: of the search
	Churn      int      `yaml:"churn" json:"churn,omitempty"`       // requests per connection
	Pacing     string   `yaml:"pacing" json:"pacing,omitempty"`     // empty: the first of Pacings
	Engine     string   `yaml:"engine" json:"engine,omitempty"`     // empty: the first of Engines
	Lead       Duration `yaml:"leadIn" json:"lead"`                 // before the window
	Measure    Duration `yaml:"measure" json:"measure"`             // the window
	Drain      Duration `yaml:"drain" json:"drain"`                 // after it, at most

	Network   Network `yaml:"-" json:"network,omitzero"`    // of Suite.Networks
	TraceHash string  `yaml:"-" json:"traceHash,omitempty"` // of the file, as Suite.Hash
	trace     []int64
}

// searchBudget is the default budget of a search: about twice the minimum number of steps, with the
// default window (docs/capacity.md).
const searchBudget = Duration(time.Minute)

// Length returns how long the load is offered, without its drain; for a search, the maximum.
func (l Load) Length() time.Duration {
	if l.Model == record.Capacity {
		return time.Duration(l.Budget)
	}
	return time.Duration(l.Lead + l.Measure)
}

// Schedule returns the load's arrivals. ofPerS is the throughput in requests/s of the load that its
// rate is a share of.
func (l Load) Schedule(ofPerS float64) pace.Schedule {
	if l.Arrivals == Replay {
		return pace.Schedule{Arrivals: Replay, Trace: l.trace}
	}
	return pace.Schedule{Arrivals: l.Arrivals, Rate: l.Rate.Profile(ofPerS)}
}

// UnmarshalYAML sets the defaults before it reads the file's own keys, so that an explicit zero
// stays.
func (l *Load) UnmarshalYAML(decode func(any) error) error {
	type load Load
	return defaulted("loads[].", (*load)(l), decode)
}

// Read decodes and checks data, the content of the named file, and sets defaults. The error joins
// one *strictyaml.Error per problem, each with file and line.
func Read(file string, data []byte) (*Suite, error) {
	c, err := newChecker(file, data)
	if err != nil {
		return nil, err
	}
	return c.suite(file, data)
}

// CheckEdited checks an edited text of a suite's file and returns its problems, as Read does; data
// is the file's content. Because anyone may send the text, it opens only files that the suite's own
// text names.
func CheckEdited(file string, data []byte, text string) error {
	files := map[named][]byte{}
	if c, err := newChecker(file, data); err == nil {
		c.files = files
		_, _ = c.suite(file, data) // suites with errors can also be edited
	}
	c, err := newChecker(editedName, []byte(text))
	if err != nil {
		return err
	}
	c.files, c.sealed = files, true
	_, err = c.suite(editedName, []byte(text))
	return err
}

// editedName is the file name in errors of a text without a file.
const editedName = "YAML"

// suite decodes the suite from the document, and hashes the file's bytes.
func (c *checker) suite(file string, data []byte) (*Suite, error) {
	s := &Suite{}
	preset(reflect.ValueOf(s).Elem(), "")
	if err := c.Decode(s); err != nil {
		return nil, err
	}
	s.File, s.source = file, c.Document
	s.fill()
	sum := sha256.New()
	sum.Write(data)
	c.attach(s, filepath.Dir(file), sum)
	if err := s.check(c); err != nil {
		return nil, err
	}
	s.spread(s.Networks)
	s.settle()
	s.Hash = short(sum.Sum(nil))
	return s, nil
}

// short returns the first 16 hex digits of a hash.
func short(sum []byte) string { return hex.EncodeToString(sum)[:16] }

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return short(sum[:])
}

// hashAsJSON relies on encoding/json, which writes the fields of a struct in the order of
// declaration, and maps by key.
func hashAsJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("suite: %T cannot be written as JSON: %v", value, err))
	}
	return hashOf(text)
}

// fill sets the defaults that depend on other values, after preset.
func (s *Suite) fill() {
	for i := range s.Loads {
		l := &s.Loads[i]
		if l.Model == record.Open && l.Arrivals == "" {
			l.Arrivals = Poisson
		}
		if l.Model == record.Capacity && l.Budget == 0 {
			l.Budget = searchBudget
		}
		isSet := s.source.Node(fmt.Sprintf("loads[%d].connections", i)) != nil
		if !l.Users.IsZero() && !isSet {
			l.Connections = int(math.Ceil(l.Users.Max()))
		}
	}
	for i := range s.Scenarios {
		s.Scenarios[i].fill()
	}
	for i := range s.Variants {
		v := &s.Variants[i]
		v.Name = cmp.Or(v.Name, agentName(v.Agent))
		v.Home = v.sends()
	}
	s.fillCapacity()
}

// settle clears explicit values that equal a late default, so that the plan is the same as without
// them. It keeps those of Capacity, because fillCapacity sets them if they are missing.
func (s *Suite) settle() {
	walk(reflect.ValueOf(s).Elem(), "", "", func(row *parameter, v reflect.Value, _ string) {
		if row.late && !v.IsZero() && !strings.HasPrefix(row.key, "capacity.") &&
			reflect.DeepEqual(v.Interface(), row.usualValue(v.Type()).Interface()) {
			v.SetZero()
		}
	})
}

// Scenario returns the scenario with a name of this suite's plan, and panics if there is none.
func (s *Suite) Scenario(name string) Scenario {
	for _, sc := range s.Scenarios {
		if sc.Name == name {
			return sc
		}
	}
	panic(fmt.Sprintf("suite %s has no scenario %q: it is not of this plan", s.Name, name))
}

// SceneHash is the hash of all settings of the scenario's trials except the loads: requests,
// checks, keys, timeout and warm-up. It excludes seed and targets.
func (s *Suite) SceneHash(sc Scenario) string {
	return hashAsJSON(struct {
		Scenario Scenario
		Timeout  Duration
		Warmup   Warmup
	}{sc, s.Timeout, s.WarmupOf(sc)})
}

// LoadsOf returns the loads of the scenario's trials, in order: those of the suite, with the
// scenario's own number of connections if it has one. Virtual users keep theirs.
func (s *Suite) LoadsOf(sc Scenario) []Load {
	loads := slices.Clone(s.Loads)
	for i := range loads {
		if sc.Connections != 0 && loads[i].Users.IsZero() {
			loads[i].Connections = sc.Connections
		}
		loads[i].Connections, loads[i].Most = sc.over(loads[i].Connections), sc.over(loads[i].Most)
	}
	return loads
}

// WarmupOf returns the warm-up of the scenario's trials, with as many connections as their loads.
func (s *Suite) WarmupOf(sc Scenario) Warmup {
	w := s.Warmup
	w.Connections = sc.over(cmp.Or(sc.Connections, w.Connections))
	return w
}
