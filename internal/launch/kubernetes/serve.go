package kubernetes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/observe/probe"
	"prony.example/record"
)

// What a lab asks of a reader, and what that answers: a line of JSON each, in any order, told apart
// by a number. What was asked and not answered when the stream broke is asked again, so that all
// questions may be asked twice. There is no other way to a reader: it opens no port and no file but
// those of the kernel, and writes nowhere but to its lab.

// protocol is changed with the meaning of any message: lab and reader must have the same.
const protocol = 1

// readerEnv makes a process of this program a reader.
const readerEnv = "PRONY_KUBERNETES_READ"

// Bounds of what is said over the stream.
const (
	maxQuestion = 64 << 10
	maxAnswer   = 16 << 20
	maxAtOnce   = 64 // questions that a reader is busy with
)

// question is what a lab asks; which fields it has depends on Do.
type question struct {
	ID        int64          `json:"id"`
	Do        string         `json:"do"`
	UID       string         `json:"uid,omitempty"` // of a pod
	Container string         `json:"container,omitempty"`
	At        sighting       `json:"at,omitzero"`
	Limits    limits         `json:"limits,omitzero"`
	Groups    []launch.Group `json:"groups,omitempty"`
	CPUs      float64        `json:"cpus,omitempty"`
	On        bool           `json:"on,omitempty"`
	PeriodNs  int64          `json:"periodNs,omitempty"`
}

// answer is what a reader says to a question of this number.
type answer struct {
	ID    int64           `json:"id"`
	Error string          `json:"error,omitempty"`
	Is    json.RawMessage `json:"is,omitempty"`
}

// hello is who a reader is, and its clocks.
type hello struct {
	Protocol int    `json:"protocol"`
	Boot     string `json:"boot"`
	MonoNs   int64  `json:"monoNs"`
	WallNs   int64  `json:"wallNs"`
}

// reading is a mark, and when it was taken, by the reader's monotonic clock.
type reading struct {
	AtNs int64      `json:"atNs"`
	Mark probe.Mark `json:"mark"`
}

// stopped is what a sampler says last.
type stopped struct {
	Series probe.Series `json:"series"`
	Cost   record.Cost  `json:"cost"`
}

// reader answers a lab's questions from this machine's kernel.
type reader struct {
	here
	boot string

	mu   sync.Mutex
	pods map[string]*podRead // by UID
}

// podRead is what a reader does about one pod.
type podRead struct {
	sight    sight
	first    sighting
	observed chan struct{} // closed when first is there

	end     *cgroup.Evidence
	sampler *probe.Sampler
	cpuNs   int64 // of this process when the sampler began
	sinceNs int64
	last    *stopped
}

// read is the whole life of a process that is a reader.
func read(from io.Reader, to io.Writer) error {
	ownWhose, err := cgroup.Own()
	if err != nil {
		return err
	}
	r := &reader{boot: ownWhose.Boot, pods: map[string]*podRead{}}
	return r.serve(from, to)
}

// serve answers until there is nobody to ask any more. What is no question is passed over: where a
// stream broke, half of one may stand before the next.
func (r *reader) serve(from io.Reader, to io.Writer) error {
	var writing sync.Mutex
	busy := make(chan struct{}, maxAtOnce)
	lines := bufio.NewReaderSize(from, maxQuestion)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue // its rest is no question either
		}
		if err != nil {
			return err
		}
		var q question
		if json.Unmarshal(line, &q) != nil || q.ID == 0 {
			continue
		}
		busy <- struct{}{}
		go func() {
			defer func() { <-busy }()
			a := answer{ID: q.ID}
			is, err := r.answer(q)
			if err == nil {
				a.Is, err = json.Marshal(is)
			}
			if err != nil {
				a.Is, a.Error = nil, err.Error()
			}
			b, err := json.Marshal(a)
			if err != nil {
				return // nothing of it has no JSON
			}
			writing.Lock()
			defer writing.Unlock()
			_, _ = to.Write(append(b, '\n')) // who is gone asks again
		}()
	}
}

// answer is what one question is answered by.
func (r *reader) answer(q question) (any, error) {
	switch q.Do {
	case "hello":
		return hello{protocol, r.boot, clock.Mono(), clock.Wall().UnixNano()}, nil
	case "facts":
		return r.facts(q.At, q.Limits), nil
	case "pids":
		return r.pids(q.Groups), nil
	case "favour":
		return r.favour(q.Groups, q.On)
	case "cores":
		return r.cores(q.Groups), nil
	case "shared":
		return r.shared(q.Groups, q.CPUs), nil
	}
	p := r.pod(q.UID)
	switch q.Do {
	case "watch":
		<-p.observed
		return p.first, nil
	case "find":
		return p.sight.find(q.Container), nil
	case "ending":
		return r.ended(p, q), nil
	case "sample":
		return nil, r.sample(p, q)
	case "forget":
		return nil, r.forget(q.UID)
	}
	return r.sampled(p, q)
}

// pod is what is done about a pod, which begins with a look for its containers.
func (r *reader) pod(uid string) *podRead {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[uid]
	if p == nil {
		e := watchNode(uid)
		p = &podRead{sight: e, observed: make(chan struct{})}
		r.pods[uid] = p
		go func() {
			defer close(p.observed)
			select {
			case p.first = <-e.seen():
				e.close() // to look on would take more of the node than all that comes
			case <-e.done:
			}
		}()
	}
	return p
}

// ended waits for the end of a pod's main process.
func (r *reader) ended(p *podRead, q question) cgroup.Memory {
	p.sight.close()
	r.mu.Lock()
	if p.end == nil {
		p.end = r.ending(q.At.PID, q.Groups)
	}
	r.mu.Unlock()
	<-p.end.Done()
	return p.end.Memory()
}

// sample begins to sample a pod.
func (r *reader) sample(p *podRead, q question) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.sampler != nil {
		return nil
	}
	p.cpuNs, p.sinceNs = probe.SelfCPUNs(), clock.Mono()
	subject := probe.Subject{PIDs: func() []int { return r.pids(q.Groups) }, Network: q.At.PID}
	for _, g := range q.Groups {
		subject.Groups = append(subject.Groups, probe.Group(g))
	}
	p.sampler, err = probe.Start(probe.Config{Period: time.Duration(q.PeriodNs)}, subject)
	return err
}

// sampled is what the sampler of a pod has.
func (r *reader) sampled(p *podRead, q question) (any, error) {
	r.mu.Lock()
	s, last := p.sampler, p.last
	r.mu.Unlock()
	if s == nil {
		return nil, fmt.Errorf("pod %s is not sampled by this reader", q.UID)
	}
	switch q.Do {
	case "series":
		return s.Series(), nil
	case "roles":
		return s.Roles(), nil
	case "mark", "pss":
		if last != nil {
			return nil, fmt.Errorf("sampling of pod %s has ended", q.UID)
		}
		atNs, take := clock.Mono(), s.Mark
		if q.Do == "pss" {
			take = s.MarkPSS
		}
		return reading{atNs, take()}, nil
	case "stop":
		return r.stop(p), nil
	}
	return nil, fmt.Errorf("the request %q is unknown, because Prony and its reader have "+
		"different versions", q.Do)
}

// stop ends the sampler. What it has cost is what this whole process has used since.
func (r *reader) stop(p *podRead) *stopped {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.last == nil {
		series, cost := p.sampler.Stop()
		cost.CPUNs = probe.SelfCPUNs() - p.cpuNs
		cost.CPUShare = float64(cost.CPUNs) / float64(max(clock.Mono()-p.sinceNs, 1))
		p.last = &stopped{series, cost}
	}
	return p.last
}

// forget ends all that is done about a pod.
func (r *reader) forget(uid string) error {
	r.mu.Lock()
	p := r.pods[uid]
	delete(r.pods, uid)
	r.mu.Unlock()
	if p == nil {
		return nil
	}
	p.sight.close()
	if p.sampler != nil {
		r.stop(p)
	}
	return nil
}

// strictly reads one value of JSON: unknown keys are errors.
func strictly(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
