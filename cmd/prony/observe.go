package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"prony/internal/agent"
	"prony/internal/cli"
	"prony/internal/clock"
	"prony/internal/host"
	"prony/internal/result"
	"prony/internal/service"
	"prony/internal/suite"
	"prony/internal/table"
	"prony/internal/telemetry"
	"prony/internal/trial"
)

// observeFlags say what a run watches beside its samples, and what rides along.
type observeFlags struct {
	telemetry []string
	agents    []string
	profile   []string
	inWindow  bool
	traces    string
	lgtm      bool // Grafana's stack is wanted
}

const (
	embedded    = "embedded"
	lgtm        = "lgtm" // embedded, and Grafana's stack
	otlpPrefix  = "otlp="
	usualTraces = suite.Percent(0.05)
)

// observers are what an observed trial runs with: the agent of its runtime, which traces what the
// load asks it to and nothing else.
var observers = []string{"otel-java/tagged", "otel-node/tagged", "otel-python/tagged",
	"otel-sdk/tagged"}

func (f *observeFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringSliceVar(&f.telemetry, "telemetry", nil, "watch a further trial of each target: "+
		"metrics, logs, traces, a profile. Kept with the run (by itself), sent to another "+
		"endpoint (--telemetry=otlp=URL), both (--telemetry=embedded,otlp=URL), or kept and "+
		"sent to Grafana's stack of prony stack up (--telemetry=lgtm)")
	fs.Lookup("telemetry").NoOptDefVal = embedded
	fs.StringSliceVar(&f.agents, "agent", nil, "ride along with every target that can have it, in "+
		"trials of its own: NAME/LEVEL, as prony agents lists them")
	cli.SomeOf(c, &f.profile, "profile", "kinds of profiles that the further trial takes (with "+
		"--telemetry: cpu)", suite.ProfileKinds...)
	fs.BoolVar(&f.inWindow, "profile-in-window", false, "take the profiles in the windows of the "+
		"comparison's own trials: what profiling costs is then in its numbers")
	fs.StringVar(&f.traces, "traces", "", "share of the further trial's requests that carry a "+
		"trace id (with --telemetry: "+usualTraces.String()+")")
}

// override is what the flags make of a suite.
func (f *observeFlags) override(o *suite.Override) error {
	o.Agents = f.agents
	w := suite.Observe{Profile: f.profile}
	if f.traces != "" {
		if err := w.Traces.UnmarshalText([]byte(f.traces)); err != nil {
			return cli.Usagef("--traces: %w", err)
		}
	}
	if err := f.destinations(); err != nil {
		return cli.Usage(err)
	}
	if f.traces != "" && len(f.telemetry) == 0 {
		return cli.Usagef("--traces: add --telemetry, or nobody takes the traces")
	}
	if f.inWindow {
		if len(f.profile) != 1 {
			return cli.Usagef("--profile-in-window: name one kind with --profile; " +
				"most profilers can take one at a time")
		}
		o.InWindow, w.Profile = f.profile, nil
	}
	if len(f.telemetry) > 0 {
		w.Home, w.GC, o.Watching = true, true, observers
		if w.Traces == 0 {
			w.Traces = usualTraces
		}
		if len(w.Profile) == 0 && !f.inWindow {
			w.Profile = suite.ProfileKinds[:1]
		}
	}
	o.Observed, o.Watch = !w.IsZero(), w
	return nil
}

// stack looks whether Grafana's stack is there, before anything is built for it.
func (f *observeFlags) stack(ctx context.Context, w world) error {
	if !f.lgtm {
		return nil
	}
	at := strings.TrimPrefix(stackOTLP, "http://")
	if err := w.reach(ctx, at); err != nil {
		return fmt.Errorf("send telemetry to Grafana's stack: nobody listens at %s (%w); start "+
			"it with prony stack up", at, err)
	}
	return nil
}

// destinations says what is wrong with where telemetry is to go.
func (f *observeFlags) destinations() error {
	if at := slices.Index(f.telemetry, lgtm); at >= 0 {
		f.telemetry = slices.Replace(f.telemetry, at, at+1, embedded, otlpPrefix+stackOTLP)
		f.lgtm = true
	}
	others := 0
	for _, t := range f.telemetry {
		text, ok := strings.CutPrefix(t, otlpPrefix)
		if !ok && t != embedded {
			return fmt.Errorf("--telemetry=%s: want %s, %sURL, both with a comma, or %s", t,
				embedded, otlpPrefix, lgtm)
		}
		if !ok {
			continue
		}
		at, err := url.Parse(text)
		if err == nil && at.User != nil {
			return errors.New("--telemetry: a password on a command line is in every record; use " +
				"an endpoint on this machine that adds it")
		}
		if err != nil || at.Host == "" {
			return fmt.Errorf("--telemetry=%s: want %shttp://HOST:4318 or %sgrpc://HOST:4317", t,
				otlpPrefix, otlpPrefix)
		}
		if others++; others > 1 {
			return errors.New("--telemetry: one other endpoint is what there can be")
		}
	}
	return nil
}

// misplaced is what became of --telemetry otlp=URL with a blank: a suite's name.
func misplaced(args []string) error {
	for _, a := range args {
		if strings.HasPrefix(a, otlpPrefix) || strings.HasPrefix(a, embedded) {
			return cli.Usagef("%s is no suite; write --telemetry=%s, with an equals "+
				"sign", a, a)
		}
	}
	return nil
}

// ride wants every agent that a flag names to ride with some target.
func (f *observeFlags) ride(p *suite.Plan) error {
	for _, name := range f.agents {
		if !slices.ContainsFunc(p.Trials, func(t suite.Trial) bool {
			return p.Suite.Variant(t.Variant).Agent == name
		}) {
			return cli.Usagef("--agent %s: none of the targets can have it; prony "+
				"agents says which runtimes it is for", name)
		}
	}
	return nil
}

// home is the wish where telemetry goes.
func (f *observeFlags) home(spec *telemetry.LaunchSpec) {
	for _, t := range f.telemetry {
		if url, ok := strings.CutPrefix(t, otlpPrefix); ok {
			spec.Forward = url
		}
	}
	spec.ForwardOnly = spec.Forward != "" && !slices.Contains(f.telemetry, embedded)
}

// tellResults sends a run's table after its telemetry, for dashboards. Without trials there is
// none.
func (a *app) tellResults(ctx context.Context, meter trial.Meter, dir string) {
	head, records, _, err := result.Read(dir)
	if err != nil {
		return // the report says it
	}
	run := filepath.Base(dir)
	study := table.Analyze(result.Values(records), table.Options{Baseline: head.Baseline})
	meter.Points(context.WithoutCancel(ctx), telemetry.Own{Trial: telemetry.Trial{Run: run},
		Series: trial.Results(study, run, clock.Wall().UnixNano())})
}

// agents reads agents.yaml, which a checkout may lack.
func (a *app) agents(root string) (*agent.Catalog, error) {
	file := filepath.Join(root, "agents.yaml")
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return &agent.Catalog{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the agents: %w", err)
	}
	return agent.Read("agents.yaml", data)
}

// attach completes the variants of a suite that name agents.
func (a *app) attach(root string, s *suite.Suite) error {
	names := func(v suite.Variant) bool { return v.Agent != "" }
	if !slices.ContainsFunc(s.Variants, names) && len(s.Watching) == 0 {
		return nil
	}
	catalog, err := a.agents(root)
	if err != nil {
		return err
	}
	s.Watching = slices.DeleteFunc(s.Watching, func(v suite.Variant) bool {
		_, _, err := catalog.Find(v.Agent)
		return err != nil // a checkout may have none, or only some of its own
	})
	return s.Attach(func(name string) (suite.Variant, error) {
		found, level, err := catalog.Find(name)
		if err != nil && len(catalog.Agents) == 0 {
			err = fmt.Errorf("find agent %q: %s has no agents.yaml", name, root)
		}
		if err != nil {
			return suite.Variant{}, err
		}
		r := found.Variant(level)
		v := suite.Variant{Runtimes: r.Runtimes, Languages: r.Languages, Build: r.Build,
			Scrape: r.Scrape, Home: r.NeedsHome, Version: found.Source(),
			Env: map[string]suite.Text{}}
		own, err := r.Own(os.LookupEnv)
		if errors.Is(err, agent.ErrMissing) {
			own, err = r.Env, nil // board leaves it out, and says why
		}
		for name, value := range own {
			v.Env[name] = suite.Text(value)
		}
		return v, err
	})
}

// board fetches what the variants of a suite name. One that cannot be had here is left out of the
// suite, with the reason; one that fails to be fetched fails its trials.
func (a *app) board(ctx context.Context, root string, s *suite.Suite, p *suite.Plan,
	say func(string)) (rides map[string]trial.Ride, lost []result.Skipped, err error) {
	catalog, err := a.agents(root)
	if err != nil {
		return nil, nil, err
	}
	rides = map[string]trial.Ride{}
	keep := func(list []suite.Variant) (kept []suite.Variant) {
		for _, v := range list {
			taken := slices.ContainsFunc(p.Trials, func(t suite.Trial) bool {
				return t.Variant == v.Name
			})
			if v.Agent != "" && taken {
				found, level, err := catalog.Find(v.Agent)
				if err == nil {
					_, err = found.Variant(level).Own(os.LookupEnv)
				}
				if err == nil {
					rides[v.Name], err = a.world.fetch(ctx, root, found, say)
				}
				if errors.Is(err, agent.ErrMissing) {
					lost = append(lost, result.Skipped{Target: "+" + v.Name, Reason: err.Error()})
					continue
				}
				if err != nil {
					rides[v.Name] = trial.Ride{Lacking: err}
				}
			}
			kept = append(kept, v)
		}
		return kept
	}
	s.Variants, s.Watching = keep(s.Variants), keep(s.Watching)
	return rides, lost, ctx.Err()
}

// twins builds the other builds that variants ask for, by target and build.
func (a *app) twins(ctx context.Context, p *suite.Plan, services []*service.Service,
	builder *service.Builder, e *trial.Experiment) {
	e.Twins = map[string]trial.Subject{}
	for _, t := range p.Trials {
		build := p.Suite.Variant(t.Variant).Build
		name := t.Target + "+" + build
		if _, done := e.Twins[name]; build == "" || done || e.Broken[name] != nil {
			continue
		}
		s, target, _ := find(services, t.Target)
		other, twin, ok := twinOf(services, s, target, build)
		if !ok {
			e.Broken[name] = fmt.Errorf("%s has no build %q for mode %s", s.Name, build,
				target.Mode)
			continue
		}
		built, err := a.world.build(ctx, builder, other)
		if err != nil {
			e.Broken[name] = err
			continue
		}
		subject := e.Subjects[t.Target]
		subject.Service, subject.Target, subject.Built = other, twin, built
		e.Twins[name] = subject
	}
}

// twinOf is a target as another build of its service has it: in the same mode.
func twinOf(services []*service.Service, s *service.Service, t service.Target, build string) (
	*service.Service, service.Target, bool) {
	for _, other := range services {
		if other.Name != s.Name || other.Other != build || other.Origin != s.Origin {
			continue
		}
		for _, twin := range other.Targets {
			if twin.Mode == t.Mode {
				return other, twin, true
			}
		}
	}
	return nil, service.Target{}, false
}

// buildsOf are the further builds in which a target can be had.
func buildsOf(services []*service.Service, s *service.Service, t service.Target) (out []string) {
	for _, other := range services {
		if other.Name == s.Name && other.Other != "" && other.Other != s.Other {
			if _, _, ok := twinOf(services, s, t, other.Other); ok {
				out = append(out, other.Other)
			}
		}
	}
	return out
}

// coreOfHome is where the home of telemetry runs: on the last of the load's cores, with a lower
// priority. A core of its own would take one from the load, and a run with telemetry would be
// measured by another method than one without.
func coreOfHome(l host.Layout) []int { return l.Load[len(l.Load)-1:] }
