package load

import (
	"fmt"

	"prony.example/load/pace"
)

// Part is the share of a load that one of several processes sends. From the schedule it takes the
// arrivals Index, Index + Of, …, as the threads of one process share it, so all parts together send
// the same schedule for any Of. From connections, users and turns it takes every Of-th. The zero
// Part is the whole load. All parts of one load must have the same number of threads.
type Part struct{ Index, Of int }

func (p Part) of() int { return max(p.Of, 1) }

// share returns the part's share of a number; negative if there is no bound.
func (p Part) share(total int64) int64 { return share(total, p.Index, p.of()) }

// has reports whether the i-th item of a round-robin deal belongs to the part.
func (p Part) has(i int) bool { return i%p.of() == p.Index }

// thread returns the number of the part's i-th thread among the threads of all parts.
func (p Part) thread(i int) int { return p.Index + i*p.of() }

func (s *Spec) checkPart() error {
	p := s.Part
	switch {
	case p.Of < 0 || p.Index < 0 || p.Index >= p.of():
		return fmt.Errorf("part %d of %d is none", p.Index, p.Of)
	case s.Connections < p.of():
		return fmt.Errorf("%d connections for %d generators; each needs one", s.Connections, p.Of)
	}
	return nil
}

// schedule returns the arrivals of this part.
func (s *Spec) schedule() pace.Process {
	return pace.Share(s.whole(), s.Part.Index, s.Part.of())
}

// whole returns the arrivals of all parts.
func (s *Spec) whole() pace.Process {
	p, err := s.Schedule.Process(s.Seed)
	if err != nil {
		panic("load: the schedule was checked and is bad all the same: " + err.Error())
	}
	return p
}
