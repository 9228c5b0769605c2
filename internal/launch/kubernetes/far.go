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

// Limits on waiting for a reader.
const (
	// askBound limits answers outside of windows: the API may be unavailable for a moment, and a
	// reader, which requests no processors, has to wait for its turn on a busy node.
	askBound = 40 * time.Second
	// deadTurns is the number of consecutive failures of a reader's stream, with the API available,
	// after which the reader counts as dead.
	deadTurns = 3
	exchanges = 16 // of clocks: at least one of 16 is fast on any machine
)

// line is the stream to a reader, reopened when it breaks. It is safe for concurrent use.
type line struct {
	open func(context.Context) (*stream, error)
	runs func(context.Context) error // returns why the reader has stopped; nil: it runs

	ctx  context.Context
	stop context.CancelFunc
	done chan struct{}
	over chan struct{} // closed when no further answer will come

	mu    sync.Mutex
	last  int64
	waits map[int64]wait
	to    io.Writer // nil: the stream is broken
	why   error     // cause of a broken or ended stream
}

// wait is a question without an answer yet.
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

// one reads answers from one stream until it ends, and reports whether there were any.
func (l *line) one() (heard bool, err error) {
	s, err := l.open(l.ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	l.mu.Lock()
	l.to, l.why = s.input, nil
	// This line break ends a partial question that an earlier stream may have sent.
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
			continue // rest of an answer to an earlier stream
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

// write writes to the stream within a second. The caller holds the lock.
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

// lost returns why the reader cannot be reached now; nil: it can.
func (l *line) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to != nil {
		return nil
	}
	return cmp.Or(l.why, errors.New("the reader is not connected yet"))
}

// ask sends a question and waits for the answer until the context ends.
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
	_ = l.write(l.waits[q.ID].text) // after a failure, one sends it on the next stream
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

// far is a site on another node, or on this one if a reader was requested: a reader there.
type far struct {
	*line
	pod   pod    // of the reader
	uid   string // of the pod that it reads, the subject of its questions
	boot  string // boot id of its kernel
	clock record.Clock
}

var _ site = (*far)(nil)

// of returns the same reader for another pod.
func (f *far) of(uid string) *far {
	out := *f
	out.uid = uid
	return &out
}

// meet checks the reader's protocol and measures the offset of its clocks.
func (f *far) meet(ctx context.Context) error {
	now, err := f.exchange(ctx)
	f.clock = record.Clock{OffsetNs: now.MonoNs, WallNs: now.WallNs, ErrorNs: now.ErrorNs}
	return err
}

// exchange measures the offset of the reader's clocks and reads its identity.
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

// quick asks a question that is answered at once, within askBound.
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

// farSight is a search for a pod by a reader.
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

// lab converts the times of a sighting to this machine's clock.
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
	for i := range out.InForce { // the texts come from another machine
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

// pids returns nil if the reader does not answer.
func (f *far) pids(groups []launch.Group) (out []int) {
	_ = f.quick(question{Do: "pids", Groups: groups}, &out)
	return out
}

func (f *far) favour(groups []launch.Group, enabled bool) (threads int, err error) {
	err = f.quick(question{Do: "favour", Groups: groups, On: enabled}, &threads)
	return threads, err
}

func (f *far) cores(groups []launch.Group) (out []int) {
	_ = f.quick(question{Do: "cores", Groups: groups}, &out) // no answer counts as ended
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

// Limits on readings at a window's edges.
const (
	markBound = time.Second     // a later reading would be of another moment
	pssBound  = 5 * time.Second // the kernel walks all memory for it, after the reading
	maxLost   = 8               // reported losses
)

// Sampling is a probe.Sampler on a pod's node, controlled over the stream to a reader there.
// Readings have times of the node's clock, so that the network delay is not part of the interval
// between them. The delay of the latest reading is recorded. A missing reading is Lost, and the
// trial goes on.
type Sampling struct {
	f     *far
	start int64 // of the sampler, by the reader's clock
	from  string
	self  bool // the reader is on this machine: its load is not foreign

	mu     sync.Mutex
	last   int64 // TNs
	late   int64 // ns
	lost   []string
	series probe.Series
	roles  probe.Roles
}

// Sample starts sampling the pod on its node. It returns nil on this machine, where a local sampler
// works.
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

// Mark implements the method of probe.Sampler.
func (s *Sampling) Mark() probe.Mark { return s.mark("mark", markBound) }

// MarkPSS implements the method of probe.Sampler.
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

// ask sends a question only if the reader can be reached at this moment.
func (s *Sampling) ask(do string, bound time.Duration, into any) error {
	if err := s.f.lost(); err != nil {
		return err
	}
	return s.f.within(bound, question{Do: do}, into)
}

// Series implements the method of probe.Sampler. Without an answer it returns the previous one.
func (s *Sampling) Series() (now probe.Series) {
	err := s.f.quick(question{Do: "series"}, &now)
	return newest(s, &s.series, now, err)
}

// Roles implements the method of probe.Sampler. Without an answer it returns the previous one.
func (s *Sampling) Roles() (now probe.Roles) {
	err := s.ask("roles", markBound, &now)
	return newest(s, &s.roles, now, err)
}

// Stop implements the method of probe.Sampler. The cost includes all processor time of the reader's
// process since the start.
func (s *Sampling) Stop() (probe.Series, record.Cost) {
	var end stopped
	err := s.f.quick(question{Do: "stop"}, &end)
	return newest(s, &s.series, end.Series, err), end.Cost
}

// newest stores now unless err is set, and returns the stored value.
func newest[T any](s *Sampling, retained *T, now T, err error) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		*retained = now
	}
	return *retained
}
