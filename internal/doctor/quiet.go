package doctor

import (
	"cmp"
	"context"
	"time"

	"prony/internal/result"
)

const (
	quietWindow = 200 * time.Millisecond
	quietBound  = 10 * time.Second
	looksMax    = 1000 // a bound on looking, whatever the clock says
)

// QuietOptions say how long to look and to wait.
type QuietOptions struct {
	Root   string        // where /proc and /sys are; "" is "/"
	Window time.Duration // of one look; 0 is 200 ms
	Bound  time.Duration // on waiting, all windows but the last together; 0 is 10 s

	senses *senses
}

// Quiet looks at the host while nothing of ours runs, and waits for calm: it looks again and again
// until a window is quiet, the bound is reached or ctx ends. It says what the last window showed,
// and what was waited for or still goes on; shares are -1 where the kernel does not tell, and the
// host counts as not quiet then. A look reads a handful of small files twice; once it waits, all
// processes too, to name who disturbs.
func Quiet(ctx context.Context, o QuietOptions) result.Before {
	o.Root = cmp.Or(o.Root, "/")
	o.Window = cmp.Or(o.Window, quietWindow)
	o.Bound = cmp.Or(o.Bound, quietBound)
	o.senses = cmp.Or(o.senses, realSenses())
	var began int64
	var before result.Before
	for look := range looksMax {
		a := takeEdge(o.Root, o.senses, look > 0)
		if look == 0 {
			began = a.atNs
		}
		o.senses.wait(ctx, o.Window)
		s := between(a, takeEdge(o.Root, o.senses, look > 0))
		s.hottestC, _ = hottest(o.Root)
		before = s.before(a.atNs-began, before.Why)
		over := o.senses.nowNs()-began >= int64(o.Bound)
		if before.Quiet || before.StealShare < 0 || over || ctx.Err() != nil {
			break
		}
	}
	return before
}

// before is a sight in the record's words. A quiet one keeps the reason that was waited for.
func (s sight) before(waitedNs int64, earlier string) result.Before {
	b := result.Before{
		WindowNs: s.windowNs, WaitedNs: waitedNs, StealShare: s.steal, OtherCPUShare: s.other,
		TemperatureC: s.hottestC, ThrottledN: max(s.throttledN, 0), Why: s.unrest(),
	}
	switch {
	case s.steal < 0:
		b.Why = "the kernel does not say who uses its processors"
	case b.Why == "":
		b.Quiet, b.Why = true, earlier
	}
	return b
}
