package lab

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/units"
	"prony.example/internal/observe/host"
	"prony.example/internal/suite"
	"prony.example/internal/suite/agents"
)

// Wish is a request for a run.
type Wish struct {
	Suite     string // file; empty: the canonical suite
	Own       *Own   // replaces a file and the checkout's catalog
	Override  suite.Override
	Against   string // another checkout whose services also run: FOLDER or NAME=FOLDER
	Host      string // demand on the machine: one of doctor.Bars
	Out       string // folder of the run; empty: a new one below results/
	Resume    string // folder of a run whose trials without a record are run; empty: a new run
	Telemetry Telemetry
	Command   []string // for the records
	Version   string   // version of this program, for the records
	Labels    map[string]string
}

// Own is an experiment that is not in a checkout.
type Own struct {
	Suite    *suite.Suite
	Services Catalog
	Results  string // folder of the runs' folders
	Decides  string // metric that decides: one of compare.Decisive; empty: that of the ranking
}

// Telemetry is the destination of services' telemetry.
type Telemetry struct {
	Wanted      bool
	Forward     string // OTLP endpoint that receives all telemetry; empty: none
	ForwardOnly bool   // do not store telemetry with the run
	Stack       string // address of a running Grafana stack; empty: not used
}

// Observers are the agents of observed trials, one per runtime, which trace only the requests that
// the load marks.
var Observers = []string{"otel-java/tagged", "otel-node/tagged", "otel-python/tagged",
	"otel-sdk/tagged"}

// planned is a suite expanded against the whole catalog.
type planned struct {
	suite   *suite.Suite
	plan    *suite.Plan
	catalog Catalog
}

// Plan expands a suite into its trials.
func (l *Lab) Plan(w Wish) (*suite.Plan, error) {
	p, err := l.expand(w)
	return p.plan, err
}

// expand reads a suite and expands it against the whole catalog, so that a target without its
// toolchain is not reported as a misspelled name.
func (l *Lab) expand(w Wish) (p planned, err error) {
	if w.Own != nil {
		// A copy, because a plan must not change the suite that a run uses later.
		ownSuite := *w.Own.Suite
		p.suite, p.catalog = &ownSuite, w.Own.Services
	} else if p.suite, err = l.Suite(w.Suite); err != nil {
		return p, err
	}
	if err := p.suite.Override(w.Override); err != nil {
		return p, cli.Usage(err)
	}
	if err := l.attach(p.suite); err != nil {
		return p, err
	}
	if w.Own == nil {
		if p.catalog, err = l.Catalog(); err != nil {
			return p, err
		}
	}
	rivals, err := l.rivals(w.Against)
	if err != nil {
		return p, err
	}
	p.catalog = append(p.catalog, rivals...)
	if w.Telemetry.Wanted {
		p.suite.NoSlices = "telemetry can be collected from only one target at a time"
	}
	if err = p.planAll(); err == nil && (p.fixedPorts() || p.crowded()) {
		err = p.planAll()
	}
	if err != nil && (len(w.Override.Targets) > 0 || len(w.Override.Launchers) > 0 ||
		p.suite.Precision.Half > 0) {
		err = cli.Usage(err)
	}
	if err != nil {
		return p, err
	}
	for _, name := range w.Override.Agents {
		if !slices.ContainsFunc(p.plan.Trials, func(t suite.Trial) bool {
			return p.plan.Suite.Variant(t.Variant).Agent == name
		}) {
			return p, cli.Usagef("--agent %s: none of the targets supports this agent; prony "+
				"agents lists the runtimes that it supports", name)
		}
	}
	return p, nil
}

// planAll expands the suite against the catalog.
func (p *planned) planAll() (err error) {
	p.plan, err = p.suite.Plan(p.catalog.Targets())
	return err
}

// fixedPorts reports whether targets of a start listen on the same fixed port. It then sets in the
// suite that slices are impossible.
func (p *planned) fixedPorts() bool {
	used := map[string][]int{} // ports by start
	for _, t := range p.plan.Trials {
		s, _, ok := p.catalog.Find(t.Target)
		if t.Start == "" || !ok || s.Port == 0 {
			continue
		}
		if slices.Contains(used[t.Start], s.Port) {
			p.suite.NoSlices = fmt.Sprintf("several targets listen on the fixed port %d", s.Port)
			return true
		}
		used[t.Start] = append(used[t.Start], s.Port)
	}
	return false
}

// crowded reports whether memory does not suffice for all targets of a start. It then sets in the
// suite how many targets fit, or that slices are impossible.
func (p *planned) crowded() bool {
	sides, most := map[string]int{}, 0
	for _, t := range p.plan.Trials {
		if t.Start != "" {
			sides[t.Start]++
			most = max(most, sides[t.Start])
		}
	}
	limit, available := int64(p.suite.Limits.Memory), host.AvailableBytes()
	if int64(most)*limit <= available {
		return false
	}
	reason := fmt.Sprintf("%d targets of up to %s do not fit into %s of free memory", most,
		units.Bytes(float64(limit)), units.Bytes(float64(available)))
	p.suite.Together, p.suite.NoSlices = p.plan.GroupsOf(int(available/limit), reason)
	p.suite.Crowd = reason
	return true
}

// attach completes the variants of a suite that name agents.
func (l *Lab) attach(s *suite.Suite) error {
	names := func(v suite.Variant) bool { return v.Agent != "" }
	if !slices.ContainsFunc(s.Variants, names) && len(s.Watching) == 0 {
		return nil
	}
	catalog, err := l.Agents()
	if err != nil {
		return err
	}
	s.Watching = slices.DeleteFunc(s.Watching, func(v suite.Variant) bool {
		_, _, err := catalog.Find(v.Agent)
		return err != nil // a checkout may have none or other agents
	})
	return s.Attach(func(name string) (suite.Variant, error) {
		match, level, err := catalog.Find(name)
		if err != nil && len(catalog.Agents) == 0 {
			err = fmt.Errorf("agent %q does not exist: %s has no agents.yaml", name, l.Root)
		}
		if err != nil {
			return suite.Variant{}, err
		}
		r := match.Variant(level)
		v := suite.Variant{Runtimes: r.Runtimes, Languages: r.Languages, Build: r.Fetch.Build,
			Scrape: r.Scrape, Home: r.NeedsTelemetry, Version: match.Source(),
			Env: map[string]suite.Text{}, UserEnv: map[string]suite.Text{}}
		written, resolved, err := r.Own(os.LookupEnv)
		if errors.Is(err, agents.ErrMissing) {
			written, err = r.Env, nil // board leaves it out and reports why
		}
		for name, value := range written {
			v.Env[name] = suite.Text(value)
		}
		for name, value := range resolved {
			v.UserEnv[name] = suite.Text(value)
		}
		return v, err
	})
}

// rivalName is the default name after the @ for services of another checkout.
const rivalName = "base"

var rivalNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// rivals returns the services of another checkout, named after it. It takes only services from
// there: both sides need the same suite, contract and program to be comparable.
func (l *Lab) rivals(against string) (Catalog, error) {
	if against == "" {
		return nil, nil
	}
	name, dir, named := strings.Cut(against, "=")
	if !named {
		name, dir = rivalName, against
	}
	if !rivalNames.MatchString(name) {
		return nil, cli.Usagef("--against %s: %q is not a valid name; use letters, digits, dots "+
			"and dashes before the =", against, name)
	}
	if dir == "" {
		return nil, cli.Usagef("--against %s: the folder after the = is missing; name the folder "+
			"of another checkout", against)
	}
	services, err := l.servicesOf(dir)
	if err != nil {
		return nil, fmt.Errorf("read the other checkout of --against: %w", err)
	}
	for _, s := range services {
		s.Origin = name
	}
	return services, nil
}
