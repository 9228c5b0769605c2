package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/suite/agents"
	"prony.example/internal/trial"
	"prony.example/record"
)

// ride is what was fetched for a variant, or why nothing could be.
type ride struct {
	trial.Ride
	lacking error
}

// board fetches the agents of a suite's variants. A variant whose agent is not available here is
// left out of the suite, with the reason; a failed download fails the variant's trials.
func (r *run) board(ctx context.Context) error {
	catalog, err := r.Agents()
	if err != nil {
		return err
	}
	r.rides = map[string]ride{}
	keep := func(list []suite.Variant) (retained []suite.Variant) {
		for _, v := range list {
			used := slices.ContainsFunc(r.plan.Trials, func(t suite.Trial) bool {
				return t.Variant == v.Name
			})
			if v.Agent != "" && used {
				got := r.fetch(ctx, catalog, v.Agent)
				if errors.Is(got.lacking, agents.ErrMissing) {
					r.skip("+"+v.Name, got.lacking)
					continue
				}
				r.rides[v.Name] = got
			}
			retained = append(retained, v)
		}
		return retained
	}
	r.suite.Variants, r.suite.Watching = keep(r.suite.Variants), keep(r.suite.Watching)
	return ctx.Err()
}

// fetch downloads an agent, named with its level.
func (r *run) fetch(ctx context.Context, catalog *agents.Catalog, name string) (out ride) {
	match, level, err := catalog.Find(name)
	if err == nil {
		_, _, err = match.Variant(level).Own(os.LookupEnv)
	}
	if err == nil {
		out.Ride, err = r.World.Fetch(ctx, r.Root, match, r.Tell.Say)
	}
	out.lacking = err
	return out
}

// skip records what is left out of the run.
func (r *run) skip(subject string, why error) {
	r.skipped = append(r.skipped, record.Skipped{Target: subject, Reason: why.Error()})
}

// open opens the launchers of the suite. A launcher that is not available here is left out of the
// suite, with the reason.
func (r *run) open(ctx context.Context) error {
	for _, t := range r.plan.Trials { // the user's own images
		s, _, _ := r.catalog.Find(t.Target)
		if name := t.Launcher; Contained(s) != "" && r.launchers.By[name] == nil &&
			len(r.World.Missing(r.tools, s)) == 0 { // otherwise narrow leaves it out
			if err := r.World.Container(ctx, name, r.launchers); err != nil {
				return fmt.Errorf("run %s: start %s: %w", r.suite.Name, t.Target, err)
			}
		}
	}
	var retained []string
	var first error
	for _, name := range r.suite.Launchers {
		if r.launchers.By[name] != nil {
			retained = append(retained, name)
			continue
		}
		if name != suite.Launchers[0] {
			if err := r.World.Container(ctx, name, r.launchers); err != nil {
				r.skip("launcher "+name, err)
				first = cmp.Or(first, fmt.Errorf("launcher %s: %w", name, err))
				continue
			}
		}
		retained = append(retained, name)
	}
	if first == nil {
		return nil
	}
	if len(retained) == 0 {
		return fmt.Errorf("run %s: none of the suite's launchers works here; "+
			"%w", r.suite.Name, first)
	}
	return r.suite.Override(suite.Override{Launchers: retained})
}

// plain reports whether a suite also starts plain processes.
func plain(s *suite.Suite) bool {
	return len(s.Launchers) == 0 || slices.Contains(s.Launchers, suite.Launchers[0])
}

// part returns the targets of a plan whose tools are installed, and the others as left out. In a
// plan of containers alone, it leaves out none.
func (l *Lab) part(tools *service.Tools, p planned) (retained []string, lost []record.Skipped) {
	for _, name := range p.plan.Targets() {
		s, t, _ := p.catalog.Find(name)
		missing := l.World.Missing(tools, s, t)
		if len(missing) == 0 || !plain(p.suite) {
			retained = append(retained, name)
			continue
		}
		reason := missing[0]
		if s.Environ == nil {
			reason += fmt.Sprintf(" (see services/%s/README.md)", s.Name)
		}
		lost = append(lost, record.Skipped{Target: name, Reason: reason})
	}
	return retained, lost
}

// Here returns the plan of the targets that can run here. It leaves out targets without a tool, as
// a run does, and reports them in a line. If no target remains, it returns the whole plan.
func (l *Lab) Here(ctx context.Context, w Wish) (*suite.Plan, error) {
	p, err := l.expand(w)
	if err != nil {
		return nil, err
	}
	for _, t := range p.plan.Uncontained {
		l.Tell.Say("the container of target " + t.Name + " is left out: " + t.NoImage)
	}
	if !plain(p.suite) {
		return p.plan, nil
	}
	retained, lost := l.part(cmp.Or(l.Tools, service.FindTools(ctx)), p)
	if len(lost) == 0 {
		return p.plan, nil
	}
	var names []string
	for _, x := range lost {
		names = append(names, x.Target)
	}
	l.Tell.Say(fmt.Sprintf("targets left out because a tool is missing here: %s; the first one %s",
		strings.Join(names, ", "), lost[0].Reason))
	if len(retained) == 0 {
		return p.plan, nil
	}
	if err := p.suite.Override(suite.Override{Targets: retained}); err != nil {
		return nil, err
	}
	return p.suite.Plan(p.catalog.Targets())
}

// narrow leaves out the targets that lack a tool here, and reports them with the reasons.
func (r *run) narrow() (err error) {
	var uncontained []record.Skipped
	p := r.plan
	for _, t := range p.Aside {
		r.Tell.Say("target " + t.Name + " is excluded by default (--targets " + t.Name + " " +
			"includes it): " + t.Aside)
	}
	for _, t := range p.Uncontained {
		uncontained = append(uncontained, record.Skipped{Target: t.Name + " in a container",
			Reason: t.NoImage})
	}
	retained, skipped := r.part(r.tools, r.planned)
	drivers, absent := r.drivers()
	r.skipped = slices.Concat(skipped, absent, r.skipped, uncontained)
	if len(r.skipped) == 0 {
		return nil
	}
	if len(absent) > 0 && len(drivers) == 0 {
		return fmt.Errorf("run %s: none of the suite's load generators is installed; %s: "+
			"%s", r.suite.Name,
			absent[0].Target, absent[0].Reason)
	}
	r.suite.Drivers = drivers
	if len(retained) == 0 {
		lost := r.skipped[0]
		return fmt.Errorf("run %s: none of the suite's targets can run here; %s: %s", r.suite.Name,
			lost.Target, lost.Reason)
	}
	if err := r.suite.Override(suite.Override{Targets: retained}); err != nil {
		return err
	}
	r.plan, err = r.suite.Plan(r.catalog.Targets())
	return err
}

// drivers returns the suite's load generators that are available here, and the others as left out.
func (r *run) drivers() (retained []string, lost []record.Skipped) {
	for _, name := range r.suite.Drivers {
		if name != suite.Drivers[0] {
			if _, err := r.World.Driver(name); err != nil {
				lost = append(lost, record.Skipped{Target: "driver " + name, Reason: err.Error()})
				continue
			}
		}
		retained = append(retained, name)
	}
	return retained, lost
}
