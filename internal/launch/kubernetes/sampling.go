package kubernetes

import (
	"fmt"
	"sync"
	"time"

	"prony/internal/clock"
	"prony/internal/probe"
	"prony/internal/result"
)

// Bounds of readings at a window's edges.
const (
	markBound = time.Second     // a later one would be of another moment
	pssBound  = 5 * time.Second // the kernel walks all memory for it, after the reading
	maxLost   = 8               // that are told of
)

// Sampling is a probe.Sampler on a pod's node, asked over the stream to a reader there. A reading
// has the node's own moment, so that the way there and back is no part of what is between two of
// them; how late the latest was is kept. One that does not come is Lost, and the trial goes on.
type Sampling struct {
	f     *far
	start int64 // of the sampler, by the reader's clock
	from  string
	self  bool // the reader is on the lab's own machine: its load is no stranger there

	mu     sync.Mutex
	last   int64 // TNs
	late   int64 // ns
	lost   []string
	series probe.Series
	roles  probe.Roles
}

// Sample samples the pod on its node; nil: it is this machine, where anybody can.
func (p *proc) Sample(period time.Duration) (*Sampling, error) {
	f, is := p.site.(*far)
	if !is {
		return nil, nil
	}
	s := &Sampling{f: f, self: f.boot == p.l.self.Boot}
	q := question{Do: "sample", At: p.at, Groups: p.groups, PeriodNs: int64(period)}
	if err := f.quick(q, nil); err != nil {
		return nil, fmt.Errorf("sample the pod on node %s: %w", said(p.pod.Spec.NodeName), err)
	}
	var first reading
	if err := f.quick(question{Do: "mark"}, &first); err != nil {
		return nil, fmt.Errorf("sample the pod on node %s: %w", said(p.pod.Spec.NodeName), err)
	}
	s.start, s.last, s.from = first.AtNs-first.Mark.TNs, first.Mark.TNs, first.Mark.Source
	p.sampling = s
	return s, nil
}

// Mark is probe.Sampler's.
func (s *Sampling) Mark() probe.Mark { return s.mark("mark", markBound) }

// MarkPSS is probe.Sampler's.
func (s *Sampling) MarkPSS() probe.Mark { return s.mark("pss", pssBound) }

func (s *Sampling) mark(do string, bound time.Duration) probe.Mark {
	asked := clock.Mono()
	var r reading
	err := s.ask(do, bound, &r)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := r.Mark
	if err == nil && (m.TNs <= s.last || m.Source != s.from) {
		err = fmt.Errorf("it tells of the past")
	}
	if err != nil {
		if len(s.lost) < maxLost {
			s.lost = append(s.lost, fmt.Sprintf("%s: %s", clock.Wall().UTC().Format(
				"15:04:05.000"), said(err.Error())))
		}
		m = probe.Mark{Lost: true, Source: s.from,
			TNs: max(asked+s.f.clock.OffsetNs-s.start, s.last+1)}
	} else {
		s.late = max(s.late, r.AtNs-s.f.clock.OffsetNs-asked)
		if s.self && m.LabNs >= 0 {
			m.LabNs += probe.SelfCPUNs()
		}
	}
	s.last = m.TNs
	return m
}

// ask asks where somebody can be asked at this moment.
func (s *Sampling) ask(do string, bound time.Duration, into any) error {
	if err := s.f.lost(); err != nil {
		return err
	}
	return s.f.within(bound, question{Do: do}, into)
}

// Series is probe.Sampler's; where the reader does not answer, what it said last.
func (s *Sampling) Series() (now probe.Series) {
	err := s.f.quick(question{Do: "series"}, &now)
	return newest(s, &s.series, now, err)
}

// Roles is probe.Sampler's, likewise.
func (s *Sampling) Roles() (now probe.Roles) {
	err := s.ask("roles", markBound, &now)
	return newest(s, &s.roles, now, err)
}

// Stop is probe.Sampler's. Its cost is all that the reader's process has used meanwhile.
func (s *Sampling) Stop() (probe.Series, result.Cost) {
	var end stopped
	err := s.f.quick(question{Do: "stop"}, &end)
	return newest(s, &s.series, end.Series, err), end.Cost
}

// newest keeps what was said now, unless that failed, and gives what is kept.
func newest[T any](s *Sampling, kept *T, now T, err error) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		*kept = now
	}
	return *kept
}
