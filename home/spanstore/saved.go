package spanstore

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry/traces"
	"prony.example/record"
)

// Kinds of the records of a saved store, in the order in which Save writes them.
const (
	savedCounts  = 'C' // of all trials, in JSON
	savedTrials  = 'c' // of one trial, in JSON
	savedSeries  = 'm' // the span metrics of one trial, in JSON
	savedKept    = 'k' // a trace that is kept so far, in JSON
	savedPending = 'p' // a trace under assembly, in OTLP
)

// Put receives a record of a saved store.
type Put func(kind byte, data []byte) error

// JSON passes on a value as JSON.
func (put Put) JSON(kind byte, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return put(kind, data)
}

// cutAttribute has the number of spans that a saved trace under assembly has lost.
const cutAttribute = "prony.cut"

// SavedUnder is what the stores have in common of a trial under way, besides its items.
type SavedUnder struct {
	Trial   string                            `json:"trial"`
	Counts  Counts                            `json:"counts"`
	Windows map[string]record.WindowTelemetry `json:"windows,omitempty"`
	Recent  []SavedMoment                     `json:"recent,omitempty"`
}

// SavedMoment is a moment whose window marks may still change.
type SavedMoment struct {
	Ns  int64                  `json:"ns"`
	Add record.WindowTelemetry `json:"add"`
}

// SaveCounts saves the counts of a store as records of two kinds. The caller holds the lock.
func (r *Roll[U, T]) SaveCounts(put Put, all, one byte) error {
	if err := put.JSON(all, r.ended); err != nil {
		return err
	}
	for _, t := range r.Trials {
		u := t.under()
		s := SavedUnder{Trial: u.ID, Counts: u.Counts, Windows: u.Windows.told}
		for _, m := range u.Windows.recent {
			s.Recent = append(s.Recent, SavedMoment{m.ns, m.add})
		}
		if err := put.JSON(one, s); err != nil {
			return err
		}
	}
	return nil
}

// LoadEnded restores the counts of ended trials. The caller holds the lock.
func (r *Roll[U, T]) LoadEnded(data []byte) error { return json.Unmarshal(data, &r.ended) }

// LoadUnder restores the counts of a trial that has begun again. The caller holds the lock.
func (r *Roll[U, T]) LoadUnder(data []byte) error {
	var s SavedUnder
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	var none U
	t := r.Find(s.Trial)
	if t == none {
		return fmt.Errorf("trial %q has not begun", s.Trial)
	}
	u := t.under()
	u.Counts, u.Windows.told = s.Counts, s.Windows
	for _, m := range s.Recent {
		u.Windows.recent = append(u.Windows.recent, moment{m.Ns, m.Add})
	}
	return nil
}

type savedMetrics struct {
	Trial   string      `json:"trial"`
	SinceNs int64       `json:"sinceNs"`
	Series  []savedCall `json:"series"`
}

type savedCall struct {
	Service string            `json:"service"`
	Name    string            `json:"name"`
	Kind    ptrace.SpanKind   `json:"kind"`
	Status  ptrace.StatusCode `json:"status"`
	Calls   int64             `json:"calls"`
	SumNs   float64           `json:"sumNs"`
	MinNs   int64             `json:"minNs"`
	MaxNs   int64             `json:"maxNs"`
	Buckets []uint64          `json:"buckets"`
}

type savedCandidate struct {
	Trace traces.Trace `json:"trace"`
	Asked bool         `json:"asked,omitempty"`
	Stale bool         `json:"stale,omitempty"`
	Bytes int64        `json:"bytes"`
}

// Save passes on everything that the store has in memory of trials under way, so that Load can
// restore it. It blocks arrivals meanwhile.
func (s *Store) Save(put Put) error {
	s.trials.Lock()
	defer s.trials.Unlock()
	if err := s.trials.SaveCounts(put, savedCounts, savedTrials); err != nil {
		return err
	}
	for _, t := range s.trials.Trials {
		m := savedMetrics{Trial: t.ID, SinceNs: t.metrics.sinceNs}
		for _, k := range t.metrics.keys() {
			v := t.metrics.series[k]
			m.Series = append(m.Series, savedCall{k.service, k.name, k.kind, k.status, v.calls,
				v.sumNs, v.minNs, v.maxNs, v.buckets})
		}
		if err := put.JSON(savedSeries, m); err != nil {
			return err
		}
		for _, c := range t.kept {
			if err := put.JSON(savedKept, savedCandidate{c.trace, c.asked, c.stale,
				c.Bytes}); err != nil {
				return err
			}
		}
	}
	for e := s.pending.silent.Front(); e != nil; e = e.Next() {
		data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(e.Value.(*pending).save())
		if err == nil {
			err = put(savedPending, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// save returns the trace as it may have arrived: a resource for each run of spans of one service.
func (p *pending) save() ptrace.Traces {
	out := ptrace.NewTraces()
	var to ptrace.SpanSlice
	for i, h := range p.spans {
		if i == 0 || h.service != p.spans[i-1].service {
			r := out.ResourceSpans().AppendEmpty()
			r.Resource().Attributes().PutStr("service.name", h.service)
			r.Resource().Attributes().PutStr(traces.TrialAttribute, p.trial.ID)
			if i == 0 && p.cut > 0 {
				r.Resource().Attributes().PutInt(cutAttribute, p.cut)
			}
			to = r.ScopeSpans().AppendEmpty().Spans()
		}
		h.span.CopyTo(to.AppendEmpty())
	}
	return out
}

// Load restores a record of Save. It ignores other kinds. The trials must have begun again, and
// records must come in the order of Save, because counts are restored before items.
func (s *Store) Load(kind byte, data []byte) error {
	s.trials.Lock()
	defer s.trials.Unlock()
	switch kind {
	case savedCounts:
		return s.trials.LoadEnded(data)
	case savedTrials:
		return s.trials.LoadUnder(data)
	case savedSeries:
		return s.loadMetrics(data)
	case savedKept:
		return s.loadKept(data)
	case savedPending:
		return s.loadPending(data)
	}
	return nil
}

func (s *Store) loadMetrics(data []byte) error {
	var m savedMetrics
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	t := s.trials.Find(m.Trial)
	if t == nil {
		return fmt.Errorf("trial %q has not begun", m.Trial)
	}
	t.metrics.sinceNs = m.SinceNs
	for _, c := range m.Series {
		if len(c.Buckets) != len(traces.Bounds)+1 {
			return fmt.Errorf("the metrics of trial %q have %d buckets", m.Trial, len(c.Buckets))
		}
		t.metrics.services[c.Service] = true
		t.metrics.series[seriesKey{c.Service, c.Name, c.Kind, c.Status}] = &series{c.Calls,
			c.SumNs, c.MinNs, c.MaxNs, slices.Clone(c.Buckets)}
	}
	return nil
}

func (s *Store) loadKept(data []byte) error {
	var k savedCandidate
	if err := json.Unmarshal(data, &k); err != nil {
		return err
	}
	t := s.trials.Find(k.Trace.Trial)
	if t == nil {
		return fmt.Errorf("trial %q has not begun", k.Trace.Trial)
	}
	id, err := ParseID(k.Trace.TraceID)
	if err != nil {
		return err
	}
	c := &candidate{Seat: Seat{Bytes: k.Bytes}, trace: k.Trace, id: id, hash: evenHash(id),
		asked: k.Asked, stale: k.Stale}
	t.kept[c.id] = c
	s.trials.Keep(t, t.groupOf(c), c)
	return nil
}

func (s *Store) loadPending(data []byte) error {
	d, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(data)
	if err != nil {
		return err
	}
	for _, r := range d.ResourceSpans().All() {
		service, t := s.trials.Origin(r.Resource().Attributes())
		if t == nil {
			return fmt.Errorf("the trial of a trace has not begun")
		}
		for _, span := range r.ScopeSpans().At(0).Spans().All() {
			s.assemble(t, span, service, clock.Mono())
		}
		if cut, ok := r.Resource().Attributes().Get(cutAttribute); ok {
			first := r.ScopeSpans().At(0).Spans().At(0)
			if p := s.pending.byID[first.TraceID()]; p != nil {
				p.cut += cut.Int()
			}
		}
	}
	return nil
}

// Files returns the names of the files to which End appends.
func (s *Store) Files() []string { return []string{s.trace.Name(), s.calls.Name()} }

// ParseID reads the 32 hexadecimal digits of a trace id.
func ParseID(text string) (id pcommon.TraceID, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%q is not a trace id", text)
	}
	return pcommon.TraceID(b), nil
}
