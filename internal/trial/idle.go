package trial

import (
	"cmp"
	"slices"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/record"
)

// idleGroup keeps targets stopped for seconds while another one is used alone. After each
// longestStop, all of them run at the same time for wakeTime, because supervisors replace workers
// that show no sign of life for 5 s. A target that wakes on its own would slow the measured one
// more often.
type idleGroup struct {
	sides    []*side
	finish   chan struct{}
	finished chan struct{}

	turn chan struct{} // full while targets run; no Mutex, with which fake time would stand still
	err  error         // an idleError
}

// idleError is the error of a target that could not be resumed or stopped.
type idleError struct {
	*side
	err error
}

func (e idleError) Error() string { return e.err.Error() }
func (e idleError) Unwrap() error { return e.err }

// keepIdle keeps all stopped targets except one stopped until finish is called.
func (s *start) keepIdle(except *side) *idleGroup {
	g := &idleGroup{finish: make(chan struct{}), finished: make(chan struct{}),
		turn: make(chan struct{}, 1)}
	for _, f := range s.all {
		if f != except && !f.ended && f.freezer != nil && f.freezer.Way() != record.FreezeOff {
			g.sides = append(g.sides, f)
		}
	}
	go g.run()
	return g
}

func (g *idleGroup) run() {
	defer close(g.finished)
	for len(g.sides) > 0 {
		g.turn <- struct{}{}
		due := g.dueNs()
		if due <= clock.Mono() {
			g.wake()
			due = g.dueNs()
		}
		failed := g.err != nil
		<-g.turn
		if failed {
			return
		}
		timer := time.NewTimer(time.Duration(due - clock.Mono()))
		select {
		case <-g.finish:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// dueNs is when the targets must run again, by clock.Mono.
func (g *idleGroup) dueNs() int64 {
	due := g.sides[0].stoppedNs
	for _, f := range g.sides {
		due = min(due, f.stoppedNs)
	}
	return due + int64(longestStop)
}

// wake lets all targets run for a moment.
func (g *idleGroup) wake() {
	for _, f := range g.sides {
		g.note(f, f.freezer.Thaw())
	}
	time.Sleep(wakeTime)
	for _, f := range g.sides {
		g.note(f, f.stop())
	}
}

func (g *idleGroup) note(f *side, err error) {
	if err != nil && g.err == nil {
		g.err = idleError{f, err}
	}
}

// beforeLoad lets the targets run now if they would otherwise have to in a load of this length. In
// longer loads they must run in any case.
func (g *idleGroup) beforeLoad(length time.Duration) error {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	if len(g.sides) > 0 && g.err == nil && length <= longestStop &&
		g.dueNs() < clock.Mono()+int64(length) {
		g.wake()
	}
	return g.err
}

// end returns when no target will run any more, with the error of the first one that failed.
func (g *idleGroup) end() error {
	close(g.finish)
	<-g.finished
	return g.err
}

// idleClocks read the processor time that other targets use while one is measured. Nil reads
// nothing.
type idleClocks struct {
	sides  []*side
	opened []int64 // readings at the window's opening
}

func (s *start) idleClocks(except *side) *idleClocks {
	c := &idleClocks{}
	for _, f := range s.all {
		if f != except && !f.ended && f.clock != nil {
			c.sides = append(c.sides, f)
		}
	}
	return c
}

// refresh lists the targets' processes again. That may take milliseconds, so call it outside of
// windows.
func (c *idleClocks) refresh() {
	if c != nil {
		for _, f := range c.sides {
			f.clock.Refresh()
		}
	}
}

// open begins a window.
func (c *idleClocks) open() {
	if c != nil {
		c.opened = c.opened[:0]
		for _, f := range c.sides {
			c.opened = append(c.opened, f.clock.Read())
		}
	}
}

// used returns the targets that used processor time since the window's opening. It lists their
// processes again, because a supervisor may have replaced some.
func (c *idleClocks) used() (all []record.IdleTarget) {
	if c == nil || len(c.opened) < len(c.sides) {
		return nil
	}
	c.refresh()
	for i, f := range c.sides {
		if ns := passed(c.opened[i], f.clock.Read()); ns > 0 {
			all = append(all, record.IdleTarget{Target: f.rec.Target.Row(),
				Freeze: f.freezer.Way(), CPUNs: ns})
		}
	}
	slices.SortStableFunc(all, func(a, b record.IdleTarget) int {
		return cmp.Compare(b.CPUNs, a.CPUNs)
	})
	return all
}
