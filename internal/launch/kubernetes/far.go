package kubernetes

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/observe/probe"
	"prony.example/record"
)

// How long a reader is waited for.
const (
	// askBound is for an answer outside of windows: the API may be away for a moment, and a reader,
	// which asks for no processors, waits its turn on a busy node.
	askBound = 40 * time.Second
	// deadTurns is how often in a row a reader's stream may fail, with the API there, until it
	// counts as dead.
	deadTurns = 3
	exchanges = 16 // of clocks: one of so many is quick on any machine
)

// line is the stream to a reader, which is opened again when it breaks. Several may ask at once.
type line struct {
	open func(context.Context) (*stream, error)
	runs func(context.Context) error // says why the reader does not run any more, if it does not

	ctx  context.Context
	stop context.CancelFunc
	done chan struct{}
	over chan struct{} // closed when nothing will be answered any more

	mu    sync.Mutex
	last  int64
	waits map[int64]wait
	to    io.Writer // nil: the stream is broken
	why   error     // it is, or is over
}

// wait is a question under way.
type wait struct {
	text  []byte
	reply chan answer
}

func newLine(open func(context.Context) (*stream, error), runs func(context.Context) error) *line {
	l := &line{open: open, runs: runs, done: make(chan struct{}), over: make(chan struct{}),
		waits: map[int64]wait{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	go l.carry()
	return l
}

// carry keeps a stream open until the line is closed or its reader is dead.
func (l *line) carry() {
	defer close(l.done)
	defer close(l.over)
	for failed := 0; l.ctx.Err() == nil; sleep(l.ctx, retryTurn) {
		heard, err := l.one()
		if failed++; heard || isAway(err) {
			failed = 0
		}
		l.broken(cmp.Or(err, errors.New("the stream to the reader has ended")))
		if l.ctx.Err() != nil || isAway(err) {
			continue
		}
		if gone := l.runs(l.ctx); gone != nil && !isAway(gone) {
			l.broken(gone)
			return
		}
		if failed >= deadTurns {
			return
		}
	}
}

// one reads answers as long as one stream lasts, and says whether there was any.
func (l *line) one() (heard bool, err error) {
	s, err := l.open(l.ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	l.mu.Lock()
	l.to, l.why = s.input, nil
	// Half a question may be on its way already; it ends here.
	text := []byte{'\n'}
	for _, w := range l.waits {
		text = append(text, w.text...)
	}
	err = l.write(text)
	l.mu.Unlock()
	if err != nil {
		return false, err
	}
	lines := bufio.NewScanner(s)
	lines.Buffer(make([]byte, 64<<10), maxAnswer)
	for lines.Scan() {
		var a answer
		if strictly(lines.Bytes(), &a) != nil {
			continue // the rest of an answer to an earlier stream
		}
		heard = true
		l.mu.Lock()
		if w, requested := l.waits[a.ID]; requested {
			delete(l.waits, a.ID)
			w.reply <- a
		}
		l.mu.Unlock()
	}
	return heard, lines.Err()
}

// write writes to the stream, in bounded time; the caller has the lock.
func (l *line) write(text []byte) error {
	if l.to == nil {
		return l.why
	}
	if d, is := l.to.(interface{ SetWriteDeadline(time.Time) error }); is {
		if err := d.SetWriteDeadline(clock.Wall().Add(time.Second)); err != nil {
			return err
		}
	}
	_, err := l.to.Write(text)
	return err
}

func (l *line) broken(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to, l.why = nil, why
}

// lost is why nobody can be asked at this moment; nil: somebody can.
func (l *line) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to != nil {
		return nil
	}
	return cmp.Or(l.why, errors.New("the reader is not connected yet"))
}

// ask asks, and waits for the answer until the context ends.
func (l *line) ask(ctx context.Context, q question, into any) error {
	reply := make(chan answer, 1)
	l.mu.Lock()
	l.last++
	q.ID = l.last
	text, err := json.Marshal(q)
	if err != nil {
		panic("kubernetes: a request of strings and numbers cannot be encoded as " +
			"JSON: " + err.Error())
	}
	l.waits[q.ID] = wait{append(text, '\n'), reply}
	_ = l.write(l.waits[q.ID].text) // on a broken stream it is written to the next
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.waits, q.ID)
		l.mu.Unlock()
	}()
	var a answer
	select {
	case a = <-reply:
	case <-ctx.Done():
		return cmp.Or(l.lost(), ctx.Err())
	case <-l.over:
		return cmp.Or(l.lost(), errors.New("the connection to the reader is closed"))
	}
	if a.Error != "" {
		return errors.New(said(a.Error))
	}
	if into == nil {
		return nil
	}
	if err := strictly(a.Is, into); err != nil {
		return fmt.Errorf("the reader sent an invalid response: %w", err)
	}
	return nil
}

func (l *line) close() {
	l.stop()
	<-l.done
}

// far is a site on another node than the lab's, or one that is taken for that: a reader there.
type far struct {
	*line
	pod   pod    // that it is
	uid   string // of the pod that it reads; its questions are about that one
	boot  string // of its kernel
	clock record.Clock
}

var _ site = (*far)(nil)

// of is the same reader for another pod.
func (f *far) of(uid string) *far {
	out := *f
	out.uid = uid
	return &out
}

// meet hears who is there and how its clocks are set.
func (f *far) meet(ctx context.Context) error {
	now, err := f.exchange(ctx)
	f.clock = record.Clock{OffsetNs: now.MonoNs, WallNs: now.WallNs, ErrorNs: now.ErrorNs}
	return err
}

// exchange asks a reader for its clocks, and who it is.
func (f *far) exchange(ctx context.Context) (clock.Offset, error) {
	return clock.Against(exchanges, func() (mono, wall, heard int64, err error) {
		var h hello
		if err := f.ask(ctx, question{Do: "hello"}, &h); err != nil {
			return 0, 0, 0, err
		}
		if h.Protocol != protocol {
			return 0, 0, 0, fmt.Errorf("the reader has protocol version %d, but this Prony has "+
				"%d: set PRONY_KUBERNETES_READER_IMAGE to an image of the same version",
				h.Protocol, protocol)
		}
		f.boot = h.Boot
		return h.MonoNs, h.WallNs, clock.Mono(), nil
	})
}

// quick asks what is answered at once; what is not answered is nothing.
func (f *far) quick(q question, into any) error { return f.within(askBound, q, into) }

func (f *far) within(bound time.Duration, q question, into any) error {
	ctx, cancel := context.WithTimeout(f.ctx, bound)
	defer cancel()
	q.UID = f.uid
	return f.ask(ctx, q, into)
}

func (f *far) watch(uid string) sight {
	s := &farSight{far: f.of(uid), first: make(chan sighting, 1)}
	s.ctx, s.stop = context.WithTimeout(f.ctx, eyeBound)
	go func() {
		var place sighting
		if s.ask(s.ctx, question{Do: "watch", UID: uid}, &place) == nil && place.PID > 0 {
			s.first <- s.lab(place)
		}
	}()
	return s
}

// farSight is a pod that a reader looks for.
type farSight struct {
	*far
	ctx   context.Context
	stop  context.CancelFunc
	first chan sighting
}

func (s *farSight) seen() <-chan sighting { return s.first }

func (s *farSight) find(id string) (place sighting) {
	if s.quick(question{Do: "find", Container: id}, &place) != nil {
		return sighting{}
	}
	return s.lab(place)
}

func (s *farSight) close() { s.stop() }

// lab is a sighting by the lab's clock.
func (f *far) lab(place sighting) sighting {
	if place.BeganNs != 0 {
		place.BeganNs -= f.clock.OffsetNs
	}
	return place
}

func (f *far) facts(item sighting, requested limits) (out facts) {
	if f.quick(question{Do: "facts", At: item, Limits: requested}, &out) != nil {
		return facts{AgeNs: -1}
	}
	for i := range out.InForce { // the reader's words are another machine's
		l := &out.InForce[i]
		*l = record.Limit{Kind: said(l.Kind), By: said(l.By), Value: l.Value, Cores: l.Cores}
	}
	return out
}

func (f *far) ending(pid int, groups []launch.Group) *cgroup.Evidence {
	return cgroup.HearEnd(func() (m cgroup.Memory, err error) {
		q := question{Do: "ending", UID: f.uid, At: sighting{PID: pid}, Groups: groups}
		err = f.ask(f.ctx, q, &m)
		return m, err
	})
}

func (f *far) gone() <-chan struct{} { return f.over }

// pids are none where nobody tells.
func (f *far) pids(groups []launch.Group) (out []int) {
	_ = f.quick(question{Do: "pids", Groups: groups}, &out)
	return out
}

func (f *far) favour(groups []launch.Group, enabled bool) (threads int, err error) {
	err = f.quick(question{Do: "favour", Groups: groups, On: enabled}, &threads)
	return threads, err
}

func (f *far) cores(groups []launch.Group) (out []int) {
	_ = f.quick(question{Do: "cores", Groups: groups}, &out) // as of one that has ended
	return out
}

func (f *far) shared(groups []launch.Group, cpus float64) (out []string) {
	if err := f.quick(question{Do: "shared", Groups: groups, CPUs: cpus}, &out); err != nil {
		return []string{"the pod's cores are unknown: " + said(err.Error())}
	}
	out = out[:min(len(out), maxNeighbours)]
	for i, words := range out {
		out[i] = said(words)
	}
	return slices.Clip(out)
}

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
	q := question{Do: "sample", At: p.sighting, Groups: p.groups, PeriodNs: int64(period)}
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
	requested := clock.Mono()
	var r reading
	err := s.ask(do, bound, &r)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := r.Mark
	if err == nil && (m.TNs <= s.last || m.Source != s.from) {
		err = fmt.Errorf("the reading is older than the one before it")
	}
	if err != nil {
		if len(s.lost) < maxLost {
			s.lost = append(s.lost, fmt.Sprintf("%s: %s", clock.Wall().UTC().Format(
				"15:04:05.000"), said(err.Error())))
		}
		m = probe.Mark{Lost: true, Source: s.from,
			TNs: max(requested+s.f.clock.OffsetNs-s.start, s.last+1)}
	} else {
		s.late = max(s.late, r.AtNs-s.f.clock.OffsetNs-requested)
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
func (s *Sampling) Stop() (probe.Series, record.Cost) {
	var end stopped
	err := s.f.quick(question{Do: "stop"}, &end)
	return newest(s, &s.series, end.Series, err), end.Cost
}

// newest keeps what was said now, unless that failed, and gives what is kept.
func newest[T any](s *Sampling, retained *T, now T, err error) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		*retained = now
	}
	return *retained
}
