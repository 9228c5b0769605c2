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

// Follows returns an error that names the first difference between a record and the run's plan; nil
// if there is none, or if the record is INVALID as a whole.
func (r Run) Follows(rec *Record) error {
	if rec.invalid("") {
		return nil
	}
	return errors.Join(r.followsTrial(rec), r.followsLoads(rec))
}

// followsTrial compares what a record says of its trial with the plan.
func (r Run) followsTrial(rec *Record) error {
	for _, p := range slices.Concat(r.Planned, r.Reserve) {
		switch {
		case p.Trial != rec.Trial || p.Row == "":
		case p.Block != rec.Block:
			return fmt.Errorf("block is %d, but %s plans block %d", rec.Block, RunFile, p.Block)
		case p.Scenario != rec.Scenario:
			return fmt.Errorf("scenario is %q, but %s plans %q", rec.Scenario, RunFile, p.Scenario)
		case p.Role != rec.Role:
			return fmt.Errorf("role is %q, but %s plans %q", rec.Role, RunFile, p.Role)
		case p.Row != rec.Target.Row():
			return fmt.Errorf("target is %q, but %s plans %q", rec.Target.Row(), RunFile, p.Row)
		}
	}
	return nil
}

// followsLoads compares the loads of a measured trial of the comparison with the plan.
func (r Run) followsLoads(rec *Record) error {
	if len(r.Loads) == 0 || rec.Outcome != Measured || rec.Role != "" {
		return nil
	}
	for _, name := range r.Loads {
		if !slices.ContainsFunc(rec.Loads, func(l Load) bool { return l.Name == name }) {
			return fmt.Errorf("load %s is missing: %s plans it", name, RunFile)
		}
	}
	for _, l := range rec.Loads {
		if !slices.Contains(r.Loads, l.Name) {
			return fmt.Errorf("load %s is not in the plan of %s", l.Name, RunFile)
		}
	}
	return nil
}
