package load

import (
	"fmt"

	"prony.example/load/pace"
)

// Part is what one of several processes offers of a load: of the schedule the arrivals Index, Index
// + Of, … as the threads of one process share it, so that all parts together are the same schedule
// whatever Of is; of connections, users and turns every Of-th. The zero Part is all.
// The parts of one load must have as many threads each.
type Part struct{ Index, Of int }

func (p Part) of() int { return max(p.Of, 1) }

// share is the part's share of a number; negative where there is no bound.
func (p Part) share(total int64) int64 { return share(total, p.Index, p.of()) }

// has says whether the i-th of something that is dealt out in turn is the part's.
func (p Part) has(i int) bool { return i%p.of() == p.Index }

// thread is the number of the part's i-th thread among those of all parts.
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

// schedule are the arrivals of the part.
func (s *Spec) schedule() pace.Process {
	return pace.Share(s.whole(), s.Part.Index, s.Part.of())
}

// whole are those of all parts.
func (s *Spec) whole() pace.Process {
	p, err := s.Schedule.Process(s.Seed)
	if err != nil {
		panic("load: the schedule was checked and is bad all the same: " + err.Error())
	}
	return p
}
