package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"prony.example/internal/launch/process"
	"prony.example/internal/service"
	"prony.example/record"
)

// turn is this lab's use of the machine. Labs may build at the same time, but each measures alone
// (docs/decisions/0060-builds.md).
type turn struct {
	shared  bool             // for builds only
	journal *process.Journal // nil: shared, or that of a test
	reaped  []string         // leftovers of an earlier lab, until they are reported
	leave   func() error
}

// Take builds services and takes the machine for all steps of the returned lab, until leave is
// called: no other lab measures between them. Later builds of the same services take the results
// from the cache. Take fails before the builds if out, a folder of results, is not writable; empty:
// it is not known yet.
func (l *Lab) Take(ctx context.Context, services Catalog, out string) (ownLab *Lab,
	leave func() error, err error) {
	if out != "" {
		release, err := record.Reserve(out, "--out")
		if err != nil {
			return nil, nil, err
		}
		release()
	}
	services = slices.DeleteFunc(slices.Clone(services), func(s *service.Service) bool {
		return s.Made != nil || s.ControlOf != ""
	})
	used := *l
	begin := l.begin
	if len(services) == 0 {
		begin = l.enter
	}
	t, err := begin(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(services) > 0 {
		b := l.Builder(service.FindTools(ctx))
		b.Note = t.journal.Step
		for _, o := range BuildAll(ctx, l.World.Build, b, services, 0) {
			err = errors.Join(err, o.Err)
		}
		used.built = true
	}
	if err == nil {
		err = l.alone(ctx, t)
	}
	if err != nil {
		return nil, nil, errors.Join(err, t.leave())
	}
	used.used = t
	return &used, t.leave, nil
}

// begin takes the machine for builds. Without Wait it takes it alone, because a lab that came
// between builds and measurements would end this one.
func (l *Lab) begin(ctx context.Context) (t *turn, err error) {
	if l.used != nil || l.Wait == 0 {
		return l.enter(ctx)
	}
	t = &turn{shared: true}
	err = l.wait(ctx, func() (err error) {
		t.leave, err = l.World.Share()
		return err
	})
	return t, err
}

// alone turns a use for builds into one for measurements, after those of labs that came before.
func (l *Lab) alone(ctx context.Context, t *turn) error {
	if !t.shared {
		return nil
	}
	if err := t.leave(); err != nil {
		return err
	}
	t.leave = stayed
	next, err := l.enter(ctx)
	if err == nil {
		*t = *next
	}
	return err
}

// stayed ends a use that belongs to nobody or to a longer one.
func stayed() error { return nil }

// enter takes the machine alone in its turn, or uses the turn that Take took.
func (l *Lab) enter(ctx context.Context) (*turn, error) {
	if t := l.used; t != nil {
		out := &turn{journal: t.journal, reaped: t.reaped, leave: stayed}
		t.reaped = nil
		return out, nil
	}
	t := &turn{}
	err := l.wait(ctx, func() (err error) {
		t.journal, t.reaped, err = l.World.Enter()
		if err != nil {
			l.leftovers(t.reaped, nil) // nobody else finds them again
		}
		return err
	})
	t.leave = t.journal.Close
	return t, err
}

// waitEvery is the time between two checks of a waiting lab: long enough not to disturb
// measurements, and short enough for its user.
const waitEvery = time.Second

// wait calls take until the machine is free. If another lab has it, it waits in a queue, in the
// order of arrival, and reports which lab it waits for.
func (l *Lab) wait(ctx context.Context, take func() error) (err error) {
	over := time.After(l.Wait)
	text := ""
	var ticket *process.Ticket
	defer func() {
		if ticket != nil {
			err = errors.Join(err, ticket.Leave())
		}
	}()
	for {
		err = take()
		busy, is := errors.AsType[*process.Busy](err)
		if l.Wait == 0 || !is {
			return err
		}
		if ticket == nil {
			var failed error
			if ticket, failed = process.Join(process.DefaultDir()); failed != nil {
				return failed
			}
		}
		if busy.Who != text {
			text = busy.Who
			l.Tell.Say(fmt.Sprintf("waiting for the machine, for at most %v: it is used by %s",
				l.Wait, text))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return fmt.Errorf("waited %v: %w", l.Wait, err)
		case <-time.After(waitEvery):
		}
	}
}

// leftovers reports what an earlier, killed lab left, and what of it stays.
func (l *Lab) leftovers(reaped, stay []string) {
	for _, r := range reaped {
		l.Tell.Say("ended " + r + ", which an earlier run left when it was killed")
	}
	for _, why := range stay {
		l.Tell.Say("cannot remove a copy of a service's folder, which an earlier run left: " +
			why + ": remove it by hand")
	}
}
