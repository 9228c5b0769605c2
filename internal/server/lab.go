package server

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"sync"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/record"
)

// Lab is what is known of a checkout, or of a project of a user's own, and of this machine.
type Lab interface {
	// Suites lists what can be run, by the names that forms call them by.
	Suites() ([]Suite, error)
	// Catalog lists the targets that there are.
	Catalog(ctx context.Context) ([]Target, error)
	// Plan says what a line of the verb run, with its flags, would run.
	Plan(ctx context.Context, args []string) (Plan, error)
	// Start starts such a line as a process of its own, in a session of its own, and tells its end.
	Start(args []string, reply *os.File) (ended <-chan error, err error)
	// Host grades the machine, and says what it has for services to be built and run with.
	Host(ctx context.Context) (Host, error)
}

// Suite is one that can be run, with what its file sets.
type Suite struct {
	Name      string   `json:"name"` // "canonical", or "prony.yaml:NAME" of a project
	File      string   `json:"file"`
	Question  string   `json:"question"`
	Blocks    int      `json:"blocks"`
	Seed      uint64   `json:"seed"`
	MeasureS  float64  `json:"measureS"` // of its first load
	CPUs      float64  `json:"cpus"`
	Memory    int64    `json:"memoryBytes"`
	Targets   []string `json:"targets"`   // as globs
	Scenarios []string `json:"scenarios"` // by name
	Loads     []string `json:"loads"`     // likewise
	Launchers []string `json:"launchers"`
	Argument  string   `json:"-"`                 // of the verb run; empty: none names it
	Path      string   `json:"-"`                 // of its file; empty: of an experiment in one
	Problem   string   `json:"problem,omitempty"` // it cannot be read
	YAML      string   `json:"yaml,omitempty"`    // where one suite is asked for
}

// Target is one of the catalog.
type Target struct {
	Name      string   `json:"name"`
	Service   string   `json:"service"`
	Language  string   `json:"language"`
	Framework string   `json:"framework"`
	Runtime   string   `json:"runtime"`
	Mode      string   `json:"mode"`
	Contracts []string `json:"contracts"`
	Aside     string   `json:"explicitOnly,omitempty"` // why it takes part only where it is named
	Missing   []string `json:"missing"`                // that it could be built and run here
}

// Host is this machine.
type Host struct {
	Doctor  record.Grading `json:"doctor"`  // as prony doctor --json has it
	Docker  string         `json:"docker"`  // what keeps containers from being used; empty: nothing
	Stack   []Part         `json:"stack"`   // of telemetry, as prony stack status has it
	Grafana string         `json:"grafana"` // where the stack's answers; empty: it does not run
	Tools   []Tool         `json:"tools"`
	Version string         `json:"version"` // of prony
	Time    time.Time      `json:"time"`    // when it was looked at
}

// Part is a container of the stack.
type Part struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// Tool is one that services are built or run with.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"` // empty: it is not here
	Path    string `json:"path"`
}

// ofLab answers with what is made of a request with the lab, where there is one.
func (s *Server) ofLab(status int, value func(*http.Request, Lab) (any, error)) handler {
	return made(status, func(r *http.Request) (any, error) {
		if s.Lab == nil {
			return nil, refuse(http.StatusNotFound, "prony serve was started outside of a "+
				"checkout and of a project: it shows runs and starts none; start it where a "+
				"prony.yaml is, or with --root")
		}
		return value(r, s.Lab)
	})
}

func (*Server) suites(_ *http.Request, lab Lab) (any, error) {
	all, err := lab.Suites()
	for i := range all {
		all[i].YAML = ""
	}
	return map[string][]Suite{"suites": orNone(all)}, err
}

func (*Server) suite(r *http.Request, lab Lab) (any, error) {
	all, err := lab.Suites()
	for _, suite := range all {
		if suite.Name == r.PathValue("name") {
			return suite, err
		}
	}
	return nil, cmp.Or(err, refuse(http.StatusNotFound, "there is no suite %.128q",
		r.PathValue("name")))
}

func (*Server) catalog(r *http.Request, lab Lab) (any, error) {
	targets, err := lab.Catalog(r.Context())
	return map[string][]Target{"targets": orNone(targets)}, err
}

// hostBound is for how long a look at the host holds: to look takes a second of it.
const hostBound = 30 * time.Second

// looks keeps the last look at the host.
type looks struct {
	mu   sync.Mutex
	host Host
}

func (s *Server) host(r *http.Request, lab Lab) (any, error) {
	s.looks.mu.Lock()
	defer s.looks.mu.Unlock()
	if clock.Wall().Sub(s.looks.host.Time).Abs() > hostBound {
		host, err := lab.Host(r.Context())
		if err != nil {
			return nil, err
		}
		host.Stack, host.Tools = orNone(host.Stack), orNone(host.Tools)
		host.Time, host.Version = clock.Wall().Truncate(time.Second), s.Version
		s.looks.host = host
	}
	return s.looks.host, nil
}

// orNone is a list that is [] in JSON where there is nothing.
func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
