package record

import (
	"errors"
	"fmt"
	"slices"
)

// Row returns the name of a target's row in tables: the target with its variant, launcher, driver
// and arm.
func (t Target) Row() string {
	name := t.Name
	if t.Variant != "" && t.Variant != "none" {
		name += " +" + t.Variant
	}
	if t.Launcher != "" {
		name += " in " + t.Launcher
	}
	if t.Driver != "" {
		name += " by " + t.Driver
	}
	if t.Arm != "" {
		name += " (" + t.Arm + ")"
	}
	return name
}

// ControlRow returns the name of the row of which a control is a second copy; empty: it is none.
func (t Target) ControlRow() string {
	if t.ControlOf == "" {
		return ""
	}
	t.Name = t.ControlOf
	return t.Row()
}

// Plan has the planned trials of a run by name, so that the time to compare a record with its plan
// does not depend on the number of trials. Make it with Run.Plan.
type Plan struct {
	trials map[string][]Planned // also of the reserve
	listed map[string]bool      // Run.Trials; only these and the reserve may have records
	loads  []string
}

// Plan returns the run's plan.
func (r Run) Plan() *Plan {
	p := &Plan{trials: map[string][]Planned{}, loads: r.Loads}
	for _, x := range slices.Concat(r.Planned, r.Reserve) {
		p.trials[x.Trial] = append(p.trials[x.Trial], x)
	}
	if len(r.Trials) > 0 {
		p.listed = map[string]bool{}
		for _, x := range r.Reserve {
			p.listed[x.Trial] = true
		}
		for _, id := range r.Trials {
			p.listed[id] = true
		}
	}
	return p
}

// Follows returns an error that names the first difference between a record and the run's plan; nil
// if there is none, or if the record is INVALID as a whole.
func (p *Plan) Follows(rec *Record) error {
	if rec.invalid("") {
		return nil
	}
	return errors.Join(p.followsTrial(rec), p.followsLoads(rec))
}

// followsTrial compares what a record says of its trial with the plan.
func (p *Plan) followsTrial(rec *Record) error {
	for _, x := range p.trials[rec.Trial] {
		switch {
		case x.Row == "":
		case x.Block != rec.Block:
			return fmt.Errorf("block is %d, but %s plans block %d", rec.Block, RunFile, x.Block)
		case x.Scenario != rec.Scenario:
			return fmt.Errorf("scenario is %q, but %s plans %q", rec.Scenario, RunFile, x.Scenario)
		case x.Role != rec.Role:
			return fmt.Errorf("role is %q, but %s plans %q", rec.Role, RunFile, x.Role)
		case x.Row != rec.Target.Row():
			return fmt.Errorf("target is %q, but %s plans %q", rec.Target.Row(), RunFile, x.Row)
		}
	}
	return nil
}

// followsLoads compares the loads of a measured trial of the comparison with the plan.
func (p *Plan) followsLoads(rec *Record) error {
	if len(p.loads) == 0 || rec.Outcome != Measured || rec.Role != "" {
		return nil
	}
	for _, name := range p.loads {
		if !slices.ContainsFunc(rec.Loads, func(l Load) bool { return l.Name == name }) {
			return fmt.Errorf("load %s is missing: %s plans it", name, RunFile)
		}
	}
	for _, l := range rec.Loads {
		if !slices.Contains(p.loads, l.Name) {
			return fmt.Errorf("load %s is not in the plan of %s", l.Name, RunFile)
		}
	}
	return nil
}
