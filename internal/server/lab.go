package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/record"
)

// Lab gives access to a checkout, or to a user's project, and to this machine.
type Lab interface {
	// Suites lists the suites that can run, by their names in forms.
	Suites() ([]Suite, error)
	// Catalog lists the targets.
	Catalog(ctx context.Context) ([]Target, error)
	// Plan returns the plan of a command line of prony run.
	Plan(ctx context.Context, args []string) (Plan, error)
	// Start starts such a command line as a process in a session of its own, and reports its end.
	Start(args []string, reply *os.File) (ended <-chan error, err error)
	// Host grades the machine, and lists its tools for building and running services.
	Host(ctx context.Context) (Host, error)
}

// Suite is a suite that can run, with the settings of its file.
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
	Loads     []string `json:"loads"`     // by name
	Launchers []string `json:"launchers"`
	Argument  string   `json:"-"`                 // of prony run; empty: it has no name there
	Path      string   `json:"-"`                 // of its file; empty: of an experiment in a file
	Problem   string   `json:"problem,omitempty"` // why it cannot be read
	YAML      string   `json:"yaml,omitempty"`    // only if one suite is requested
}

// Target is a target of the catalog.
type Target struct {
	Name      string   `json:"name"`
	Service   string   `json:"service"`
	Language  string   `json:"language"`
	Framework string   `json:"framework"`
	Runtime   string   `json:"runtime"`
	Mode      string   `json:"mode"`
	Contracts []string `json:"contracts"`
	Aside     string   `json:"explicitOnly,omitempty"` // why it takes part only if it is named
	Missing   []string `json:"missing"`                // requirements to build and run it here
}

// Host describes this machine.
type Host struct {
	Doctor  record.Grading `json:"doctor"`  // as in prony doctor --json
	Docker  string         `json:"docker"`  // why containers are unavailable; empty: available
	Stack   []Part         `json:"stack"`   // of telemetry, as in prony stack status
	Grafana string         `json:"grafana"` // address of the stack's; empty: not running
	Tools   []Tool         `json:"tools"`
	Version string         `json:"version"` // of prony
	Time    time.Time      `json:"time"`    // time of the check
}

// Part is a container of the stack.
type Part struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// Tool is a tool that builds or runs services.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"` // empty: it is not installed
	Path    string `json:"path"`
}

// ofLab responds with the result of a request that needs the lab, or 404 without a lab.
func (s *Server) ofLab(status int, value func(*http.Request, Lab) (any, error)) handler {
	return made(status, func(r *http.Request) (any, error) {
		if s.Lab == nil {
			return nil, refuse(http.StatusNotFound, "prony serve was started outside of a "+
				"checkout and of a project, so it can show runs but not start them; start it in "+
				"a folder with a prony.yaml, or with --root")
		}
		return value(r, inTurn{s.Lab, s})
	})
}

// inTurn is a lab whose methods that start programs wait for their turn.
type inTurn struct {
	Lab
	server *Server
}

// Catalog implements Lab.
func (l inTurn) Catalog(ctx context.Context) (out []Target, err error) {
	leave, err := l.server.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return l.Lab.Catalog(ctx)
}

// Plan implements Lab.
func (l inTurn) Plan(ctx context.Context, args []string) (p Plan, err error) {
	leave, err := l.server.turn(ctx)
	if err != nil {
		return p, err
	}
	defer leave()
	return l.Lab.Plan(ctx, args)
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
	return nil, cmp.Or(err, refuse(http.StatusNotFound, "no suite has the name %.128q",
		r.PathValue("name")))
}

func (*Server) catalog(r *http.Request, lab Lab) (any, error) {
	targets, err := lab.Catalog(r.Context())
	return map[string][]Target{"targets": orNone(targets)}, err
}

// hostBound is the lifetime of a check of the host, which takes a second.
const hostBound = 30 * time.Second

// lookBound is how long a request waits for a check of the host, with the checks before it: a
// container engine may never answer.
const lookBound = time.Minute

// looks caches the last check of the host.
type looks struct {
	turn chan struct{} // has a place for the one check that runs
	host Host
}

func (s *Server) host(r *http.Request, lab Lab) (any, error) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), lookBound, fmt.Errorf("the check of the "+
		"machine did not end within %v: see whether docker version answers", lookBound))
	defer cancel()
	select {
	case s.looks.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.looks.turn }()
	if clock.Wall().Sub(s.looks.host.Time).Abs() > hostBound {
		host, err := lab.Host(ctx)
		if err != nil {
			return nil, err
		}
		host.Stack, host.Tools = orNone(host.Stack), orNone(host.Tools)
		host.Time, host.Version = clock.Wall().Truncate(time.Second), s.Version
		s.looks.host = host
	}
	return s.looks.host, nil
}

// orNone returns a list that is [] rather than null in JSON if it is empty.
func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
