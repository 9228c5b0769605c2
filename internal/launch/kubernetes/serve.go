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

// Protocol between a lab and its reader: questions and answers are lines of JSON, matched by
// number, in any order. After a broken stream the lab repeats unanswered questions, so repeating
// any question must be harmless. A reader opens no port, opens only files of the kernel, and writes
// only to its lab.

// protocol changes with the meaning of any message: lab and reader must use the same.
const protocol = 1

// readerEnv is the variable that makes a process of this program a reader.
const readerEnv = "PRONY_KUBERNETES_READ"

// Limits on the messages of the stream.
const (
	maxQuestion = 64 << 10
	maxAnswer   = 16 << 20
	maxAtOnce   = 64 // questions in progress at once
)

// question is a request to a reader; Do determines which fields are set.
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

// answer is a reader's answer to the question with this number.
type answer struct {
	ID    int64           `json:"id"`
	Error string          `json:"error,omitempty"`
	Is    json.RawMessage `json:"is,omitempty"`
}

// hello has the identity of a reader and its clocks.
type hello struct {
	Protocol int    `json:"protocol"`
	Boot     string `json:"boot"`
	MonoNs   int64  `json:"monoNs"`
	WallNs   int64  `json:"wallNs"`
}

// reading is a mark and the time of the reading on the reader's monotonic clock.
type reading struct {
	AtNs int64      `json:"atNs"`
	Mark probe.Mark `json:"mark"`
}

// stopped is the final result of a sampler.
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

// podRead is the state of a reader for one pod.
type podRead struct {
	sight    sight
	first    sighting
	observed chan struct{} // closed when first is set

	end     *cgroup.Evidence
	sampler *probe.Sampler
	cpuNs   int64 // of this process when the sampler began
	sinceNs int64
	last    *stopped
}

// read serves as a reader until its standard input ends.
func read(from io.Reader, to io.Writer) error {
	ownWhose, err := cgroup.Own()
	if err != nil {
		return err
	}
	r := &reader{boot: ownWhose.Boot, pods: map[string]*podRead{}}
	return r.serve(from, to)
}

// serve answers until the stream ends. It skips malformed lines: after a broken stream, a partial
// question may precede the next.
func (r *reader) serve(from io.Reader, to io.Writer) error {
	var writing sync.Mutex
	busy := make(chan struct{}, maxAtOnce)
	lines := bufio.NewReaderSize(from, maxQuestion)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue // the rest of this line is malformed too
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
				return // cannot happen: all answers can be encoded
			}
			writing.Lock()
			defer writing.Unlock()
			_, _ = to.Write(append(b, '\n')) // after an error the lab asks again
		}()
	}
}

// answer returns the answer to one question.
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

// pod returns the state for a pod. The first call begins the search for its containers.
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
				e.close() // watching on would use much of the node's processor time
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

// sample starts to sample a pod.
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

// sampled returns a result of a pod's sampler.
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

// stop ends the sampler. Its cost is the processor time of this whole process since the start.
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

// forget ends all work for a pod.
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

// strictly decodes one value of JSON: unknown keys are errors.
func strictly(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
