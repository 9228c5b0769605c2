package verdict

import (
	"time"

	"prony/internal/result"
)

// How long a load thread may stand still. What a machine does to a thread of its own accord is
// shorter than the first: a slice of each of some dozen others, a period of a bandwidth limit (100
// ms), a hypervisor that gives the core to another guest; that is lag, run delay and steal. None of
// it reaches the second: somebody has stopped the process or the machine (SIGSTOP, Ctrl-Z, a
// snapshot), and a load that was cut off and came back with all that was due meanwhile is not the
// one that was asked for, in either model.
const (
	stillLeast = 100 * time.Millisecond
	stillMost  = 500 * time.Millisecond
)

// stoodStill bounds what a shorter stop took of a closed window by its length, but for what the
// thread waited for a processor, which run delay bounds. What it did to an open load is its lag.
func stoodStill(_ *result.Record, l *load) *result.Finding {
	still := time.Duration(l.Generator.StillMaxNs)
	observed, hint := still.Round(time.Millisecond).String(),
		"somebody stopped prony or its machine (Ctrl-Z, a paused VM): run it again undisturbed"
	switch {
	case still >= stillMost:
		return invalid(observed, "less than "+stillMost.String(), hint)
	case still < stillLeast || l.Model != result.Closed || l.WindowNs <= 0:
		return nil
	}
	delay := l.Generator.RunDelayNs / int64(max(l.Threads, 1))
	share := min(float64(max(int64(still)-delay, 0))/float64(l.WindowNs), 0.9)
	return bounded(observed, hint, evenly(l.Load, share/(1-share)))
}
