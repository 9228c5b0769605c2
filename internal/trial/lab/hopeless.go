package lab

import (
	"fmt"
	"slices"

	"prony.example/record"
)

// hopelessAfter is the number of first starts, or blocks, without any good trial after which a run
// ends: one can fail by a disturbance of the machine.
const hopelessAfter = 2

// hopeless returns an error if no trial of the first starts or blocks is good, because further ones
// would fail in the same way; nil: the run goes on. A run that was resumed goes on.
func hopeless(done []*record.Record) error {
	var blocks []int
	var first *record.Failure
	for _, r := range done {
		f := r.Failure
		if f == nil || f.Interrupted {
			return nil
		}
		if !slices.Contains(blocks, r.Block) {
			blocks = append(blocks, r.Block)
		}
		if first == nil || first.Step == record.StepPeer {
			first = f
		}
	}
	if len(blocks) < hopelessAfter {
		return nil
	}
	hint := ""
	if slices.Contains(slowSteps, first.Step) {
		hint = ". If the service is slow, use fewer connections and longer windows, such as " +
			"--connections 4 --measure 10s (in prony.yaml: connections and measure of the loads)"
	}
	return fmt.Errorf("the run ends early, because no trial was good in its first %d starts or "+
		"blocks: %s: %s%s", hopelessAfter, first.Step, first.Error, hint)
}

// slowSteps are the steps of a trial that fail if a service is slow.
var slowSteps = []string{"warmup", "slices", "measure"}
