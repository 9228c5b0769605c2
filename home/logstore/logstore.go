// Package logstore keeps what services wrote about a trial as log records: it counts all, and keeps
// warnings and worse, those that belong to kept traces, and a uniform sample of the rest, all
// within bounds.
//
//	plog.Logs ─► counts by window
//	         └─► places of its window, or held until its trace is known to be kept ─► logs.ndjson
//
// What is not kept is counted.
//
// Non-goals: receiving, reading again, which is logs, and understanding what a line says.
package logstore

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"prony.example/home/spanstore"
	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/logs"
	"prony.example/internal/telemetry/traces"
	"prony.example/record"
)

// Options bound a store. What is zero has the default.
type Options struct {
	Warnings  int   // kept in each window of severity WARN and above, the severest first: 1,000
	Uniform   int   // kept in each window of the others: 200
	HeldBytes int64 // of records with a trace id, until it is known which traces are kept: 32 MB
	KeptBytes int64 // of the others that are kept, until their trial ends: 32 MB
	// Wanted says whether a trace may still be kept (spanstore.Store.Wanted). When held records are
	// too many, those whose trace is not wanted go first. Nil: all may.
	Wanted func(pcommon.TraceID) bool
}

func (o Options) withDefaults() Options {
	o.Warnings = cmp.Or(o.Warnings, 1000)
	o.Uniform = cmp.Or(o.Uniform, 200)
	o.HeldBytes = cmp.Or(o.HeldBytes, 32<<20)
	o.KeptBytes = cmp.Or(o.KeptBytes, 32<<20)
	return o
}

// Store takes records in and writes those that it keeps. Its methods may be called from any
// goroutine.
type Store struct {
	o    Options
	file *os.File

	trials    spanstore.Roll[*trial, *entry] // its lock is for all below, too
	heldBytes int64
}

type trial struct {
	spanstore.Under[*entry]
	held []*entry // with trace ids, in the order of their arrival
}

// Open makes the folder if it is not there and appends to the file in it. A line that a crash tore
// is closed, so that the next one is whole.
func Open(dir string, o Options) (*Store, error) {
	f, err := spanstore.OpenLines(filepath.Join(dir, telemetry.LogsFile))
	if err != nil {
		return nil, fmt.Errorf("open logs: %w", err)
	}
	s := &Store{o: o.withDefaults(), file: f}
	s.trials.Most, s.trials.Lost = s.o.KeptBytes, drop
	return s, nil
}

// Begin tells that a trial begins: records belong to the latest that did, unless their resource has
// the attribute traces.TrialAttribute.
func (s *Store) Begin(t telemetry.Trial) error {
	return s.trials.Begin(&trial{Under: spanstore.Under[*entry]{Trial: t,
		Places: func() spanstore.Group[*entry] { return newGroup(s.o) }}})
}

// Mark opens or closes a window of a trial.
func (s *Store) Mark(m telemetry.Mark) error { return s.trials.Mark(m) }

// ConsumeLogs takes records in. It copies what it keeps.
func (s *Store) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	wall := clock.Wall().UnixNano()
	s.trials.Lock()
	defer s.trials.Unlock()
	for _, r := range ld.ResourceLogs().All() {
		service, t := s.trials.Origin(r.Resource().Attributes())
		for _, scope := range r.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				s.consume(t, arrival{record, service, scope.Scope().Name(), wall})
			}
		}
	}
	return nil
}

func (s *Store) consume(t *trial, a arrival) {
	if t == nil {
		s.trials.Stray()
		return
	}
	ns, level := a.time(), levelOf(a.record)
	t.Counts.Received++
	t.Windows.Add(ns, a.wallNs, record.WindowTelemetry{Logs: 1})
	e := &entry{ns: ns, level: level, hash: a.hash(), trace: a.record.TraceID()}
	g := t.Group(t.Windows.At(ns))
	wanted := g.Wants(e)
	if e.trace.IsEmpty() && !wanted {
		t.Counts.Dropped++
		return
	}
	e.record, e.Bytes = a.copy(t, level)
	if !e.trace.IsEmpty() {
		e.In |= isTraced
		t.held = append(t.held, e)
		s.heldBytes += e.Bytes
	}
	if wanted {
		s.trials.Keep(t, g, e)
	}
	if s.heldBytes > s.o.HeldBytes {
		s.relieve()
	}
}

// drop is told that an entry has no place left; it may still be held for its trace.
func drop(t *trial, e *entry) {
	if e.In == 0 {
		t.Counts.Dropped++
	}
}

// relieve lets go of held records: those of traces that nobody wants, and if that does not free a
// quarter, the oldest ones as well.
func (s *Store) relieve() {
	enough := s.o.HeldBytes / 4 * 3
	for _, t := range s.trials.Trials {
		t.held = slices.DeleteFunc(t.held, func(e *entry) bool {
			if s.o.Wanted == nil || s.o.Wanted(e.trace) {
				return false
			}
			s.release(t, e)
			return true
		})
	}
	for _, t := range s.trials.Trials {
		n := 0
		for n < len(t.held) && s.heldBytes > enough {
			s.release(t, t.held[n])
			n++
		}
		t.held = slices.Delete(t.held, 0, n)
	}
}

func (s *Store) release(t *trial, e *entry) {
	s.heldBytes -= e.Bytes
	e.In &^= isTraced
	drop(t, e)
}

// End ends a trial: what is kept is written and synced. kept says which traces are
// (spanstore.Ended.IDs, so the spans end first). An error does not make the counts wrong.
func (s *Store) End(id string, kept func(pcommon.TraceID) bool) (spanstore.Ended, error) {
	out, records, err := s.finish(id, kept)
	if err != nil {
		return out, err
	}
	return out, spanstore.AppendLines(s.file, records)
}

func (s *Store) finish(id string, kept func(pcommon.TraceID) bool) (out spanstore.Ended,
	records []*logs.Record, err error) {
	s.trials.Lock()
	defer s.trials.Unlock()
	t := s.trials.Find(id)
	if t == nil {
		return out, nil, fmt.Errorf("end trial %s: the trial is not running", id)
	}
	out.Loads = t.Windows.End(clock.Wall().UnixNano())
	var entries []*entry
	for _, e := range t.held {
		if kept != nil && kept(e.trace) {
			s.heldBytes -= e.Bytes
			entries = append(entries, e)
		} else {
			s.release(t, e)
		}
	}
	for _, e := range t.Items() {
		s.trials.Bytes -= e.Bytes
		if e.In&isTraced == 0 { // those are there already
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, byTime)
	for _, e := range entries {
		records = append(records, &e.record)
		e.record.Window = t.Windows.At(e.ns) // marks may have come since
		e.record.Classes = e.classes()
	}
	t.Counts.Kept = int64(len(entries))
	s.trials.End(t)
	out.Counts = t.Counts
	return out, records, nil
}

// Counts of all trials so far. Kept is of those that have ended.
func (s *Store) Counts() spanstore.Counts { return s.trials.Counts() }

// Close ends the trials that are under way, without knowing which traces are kept, and closes the
// file.
func (s *Store) Close() error {
	var errs []error
	for _, id := range s.trials.IDs() {
		_, err := s.End(id, s.o.Wanted)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, s.file.Close())...)
}

// arrival is a record as it came.
type arrival struct {
	record  plog.LogRecord
	service string
	logger  string
	wallNs  int64 // when
}

// time is when it was written, or first seen; if it does not say, the present. Times after the year
// 2262 are cut to its last moment in int64.
func (a arrival) time() int64 {
	for _, t := range []pcommon.Timestamp{a.record.Timestamp(), a.record.ObservedTimestamp()} {
		if t > 0 {
			return int64(min(uint64(t), 1<<63-1))
		}
	}
	return a.wallNs
}

// levelOf is the index in logs.Severities. Some appenders send only the word.
func levelOf(r plog.LogRecord) int {
	if n := int(r.SeverityNumber()); n > 0 {
		return min((n+3)/4, len(logs.Severities)-1)
	}
	return max(0, logs.Level(r.SeverityText()))
}

// hash depends on what the record says alone, so that the sample is the same in whatever order
// records come.
func (a arrival) hash() uint64 {
	h := fnv.New64a()
	trace, span := a.record.TraceID(), a.record.SpanID()
	ns := binary.LittleEndian.AppendUint64(nil, uint64(a.time()))
	const head = 256 // of the body; more tells records apart no better
	body := ""
	if a.record.Body().Type() == pcommon.ValueTypeStr {
		body = a.record.Body().Str()
	}
	for _, b := range [][]byte{ns, trace[:], span[:], []byte(a.service),
		[]byte(body[:min(len(body), head)])} {
		_, _ = h.Write(b) // never fails (package hash)
	}
	return spanstore.Mix(h.Sum64())
}

// copy makes the record that is kept, and says about how many bytes it takes.
func (a arrival) copy(t *trial, level int) (logs.Record, int64) {
	const fixed = 336
	r := logs.Record{
		Trial: t.ID, Target: t.Target, Ns: a.time(), Service: a.service,
		Severity: logs.Severities[level], Logger: traces.CutText(a.logger, traces.MaxNameBytes),
		Body: bodyOf(a.record.Body()),
	}
	if id := a.record.TraceID(); !id.IsEmpty() {
		r.TraceID = id.String()
	}
	if id := a.record.SpanID(); !id.IsEmpty() {
		r.SpanID = id.String()
	}
	r.Attributes, r.Cut = spanstore.AttributesOf(a.record.Attributes())
	r.Cut += int64(a.record.DroppedAttributesCount())
	return r, int64(fixed+len(r.Body)) + spanstore.SizeOfKept(map[string]any(r.Attributes))
}

// bodyOf is the text, or what else the body is, as JSON.
func bodyOf(v pcommon.Value) string {
	if v.Type() == pcommon.ValueTypeStr {
		return traces.CutText(v.Str(), traces.MaxValueBytes)
	}
	short := pcommon.NewValueEmpty()
	if err := short.FromRaw(spanstore.ValueOf(v)); err != nil {
		return "" // ValueOf makes only what FromRaw knows
	}
	return traces.CutText(short.AsString(), traces.MaxValueBytes)
}

// entry is a record that has a place or is held.
type entry struct {
	spanstore.Seat
	record logs.Record
	ns     int64
	level  int
	hash   uint64
	trace  pcommon.TraceID
}

// Where an entry is: in which place, and whether it is held for its trace.
const (
	warnings = iota
	uniform
	places
	isTraced = 1 << places
)

func byTime(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.ns, b.ns), cmp.Compare(a.hash, b.hash))
}

func (e *entry) classes() (out []string) {
	for i, name := range []string{logs.Warning, logs.Uniform, logs.Traced} {
		if e.In&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// byValue puts the severest first, of equal ones those of the lowest hash.
func byValue(a, b *entry) int {
	return cmp.Or(cmp.Compare(b.level, a.level), cmp.Compare(a.hash, b.hash),
		cmp.Compare(a.ns, b.ns))
}

func byHash(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.ns, b.ns))
}

// newGroup has the places of one window, traced records apart.
func newGroup(o Options) spanstore.Group[*entry] {
	return spanstore.Group[*entry]{warnings: {Limit: o.Warnings, Order: byValue},
		uniform: {Limit: o.Uniform, Order: byHash}}
}

// Eligible says which place a record may have.
func (e *entry) Eligible(place int) bool {
	return (place == warnings) == (e.level >= logs.Warn)
}
