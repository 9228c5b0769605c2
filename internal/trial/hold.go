package trial

import (
	"context"

	"prony/internal/clock"
	"prony/internal/result"
	"prony/internal/system"
)

// Held is a failed trial whose service was not stopped yet. It may have ended by itself.
type Held struct {
	Trial   string
	Failure result.Failure
	Service *system.System
	Dir     string // in which its processes were started, where they are no containers
}

// hold lets somebody look at the service of a trial that failed. One that was ended, by an
// interrupt or since the other side of its duet failed, has nothing to show.
func (f *life) hold(ctx context.Context) {
	if f.lab.Hold == nil || f.rec.Outcome != result.Failed || f.taken || ctx.Err() != nil {
		return
	}
	began := clock.Mono()
	f.lab.tell(Event{Trial: f.trial.ID, Step: "held"})
	f.lab.Hold(ctx, Held{Trial: f.trial.ID, Failure: *f.rec.Failure, Service: f.proc,
		Dir: f.trial.Subject.Built.Dir})
	f.heldNs = clock.Mono() - began
}
