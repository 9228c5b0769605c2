// Package logstore stores log records of services by trial. It counts all, and stores warnings and
// worse, records of stored traces and a uniform sample of the rest, all within bounds.
//
//	plog.Logs ─► counts by window
//	         └─► places of its window, or held until its trace is known to be kept ─► logs.ndjson
//
// It counts what it drops.
//
// Non-goals: it does not receive or read records (package logs reads), or interpret lines.
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

// Options bound a store. Zero fields have the defaults.
type Options struct {
	Warnings  int   // stored in each window, of severity WARN and above, the severest first: 1,000
	Uniform   int   // stored in each window of the others: 200
	HeldBytes int64 // of records with a trace id, until the kept traces are known: 32 MB
	KeptBytes int64 // of other stored records, until their trial ends: 32 MB
	// Wanted reports whether a trace may still be kept (spanstore.Store.Wanted). If there are too
	// many held records, those of other traces are dropped first. Nil: all may be kept.
	Wanted func(pcommon.TraceID) bool
}

func (o Options) withDefaults() Options {
	o.Warnings = cmp.Or(o.Warnings, 1000)
	o.Uniform = cmp.Or(o.Uniform, 200)
	o.HeldBytes = cmp.Or(o.HeldBytes, 32<<20)
	o.KeptBytes = cmp.Or(o.KeptBytes, 32<<20)
	return o
}

// Store receives log records and writes those that it keeps. It is safe for concurrent use.
type Store struct {
	o    Options
	file *os.File

	trials    spanstore.Roll[*trial, *entry] // its lock also guards the field below
	heldBytes int64
}

type trial struct {
	spanstore.Under[*entry]
	held []*entry // with trace ids, in order of arrival
}

// Open creates the folder if it is missing, and appends to its file. It terminates a line that a
// crash left incomplete, so that the next line is valid.
func Open(dir string, o Options) (*Store, error) {
	f, err := spanstore.OpenLines(filepath.Join(dir, telemetry.LogsFile))
	if err != nil {
		return nil, fmt.Errorf("open logs: %w", err)
	}
	s := &Store{o: o.withDefaults(), file: f}
	s.trials.Most, s.trials.Lost = s.o.KeptBytes, drop
	return s, nil
}

// Begin starts a trial. Records belong to the latest one, unless their resource has the attribute
// traces.TrialAttribute.
func (s *Store) Begin(t telemetry.Trial) error {
	return s.trials.Begin(&trial{Under: spanstore.Under[*entry]{Trial: t,
		Places: func() spanstore.Group[*entry] { return newGroup(s.o) }}})
}

// Mark opens or closes a window of a trial.
func (s *Store) Mark(m telemetry.Mark) error { return s.trials.Mark(m) }

// ConsumeLogs counts records and copies those that it keeps.
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

// drop is called when an entry has lost its last place. It may still be held for its trace.
func drop(t *trial, e *entry) {
	if e.In == 0 {
		t.Counts.Dropped++
	}
}

// relieve drops held records: those of unwanted traces and, if that does not free a quarter, also
// the oldest ones.
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

// End ends a trial, and writes and syncs its stored records. kept reports whether a trace was kept
// (spanstore.Ended.IDs, so end the spans first). The counts are right even after an error.
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
		if e.In&isTraced == 0 { // the others are already in entries
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, byTime)
	for _, e := range entries {
		records = append(records, &e.record)
		e.record.Window = t.Windows.At(e.ns) // marks may have arrived since
		e.record.Classes = e.classes()
	}
	t.Counts.Kept = int64(len(entries))
	s.trials.End(t)
	out.Counts = t.Counts
	return out, records, nil
}

// Counts returns the counts of all trials so far. Kept includes only ended trials.
func (s *Store) Counts() spanstore.Counts { return s.trials.Counts() }

// Close ends the trials under way, without the final decision on traces, and closes the file.
func (s *Store) Close() error {
	var errs []error
	for _, id := range s.trials.IDs() {
		_, err := s.End(id, s.o.Wanted)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, s.file.Close())...)
}

// arrival is a received record.
type arrival struct {
	record  plog.LogRecord
	service string
	logger  string
	wallNs  int64 // of its arrival
}

// time returns when the record was written, or else observed, or else received. It limits times to
// the last moment in int64, in the year 2262.
func (a arrival) time() int64 {
	for _, t := range []pcommon.Timestamp{a.record.Timestamp(), a.record.ObservedTimestamp()} {
		if t > 0 {
			return int64(min(uint64(t), 1<<63-1))
		}
	}
	return a.wallNs
}

// levelOf returns the index in logs.Severities. Some appenders send only the word.
func levelOf(r plog.LogRecord) int {
	if n := int(r.SeverityNumber()); n > 0 {
		return min((n+3)/4, len(logs.Severities)-1)
	}
	return max(0, logs.Level(r.SeverityText()))
}

// hash depends only on the record's content, so that the sample does not depend on the order of
// arrival.
func (a arrival) hash() uint64 {
	h := fnv.New64a()
	trace, span := a.record.TraceID(), a.record.SpanID()
	ns := binary.LittleEndian.AppendUint64(nil, uint64(a.time()))
	const head = 256 // of the body; more bytes distinguish records no better
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

// copy returns the record to store, and its approximate size in bytes.
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

// bodyOf returns the text of a body, or another body as JSON.
func bodyOf(v pcommon.Value) string {
	if v.Type() == pcommon.ValueTypeStr {
		return traces.CutText(v.Str(), traces.MaxValueBytes)
	}
	short := pcommon.NewValueEmpty()
	if err := short.FromRaw(spanstore.ValueOf(v)); err != nil {
		return "" // cannot happen: FromRaw accepts all results of ValueOf
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

// Bits of Seat.In: the places, and whether it is held for its trace.
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

// byValue orders by severity, the highest first, then by hash.
func byValue(a, b *entry) int {
	return cmp.Or(cmp.Compare(b.level, a.level), cmp.Compare(a.hash, b.hash),
		cmp.Compare(a.ns, b.ns))
}

func byHash(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.ns, b.ns))
}

// newGroup returns the places of one window, without traced records.
func newGroup(o Options) spanstore.Group[*entry] {
	return spanstore.Group[*entry]{warnings: {Limit: o.Warnings, Order: byValue},
		uniform: {Limit: o.Uniform, Order: byHash}}
}

// Eligible reports whether a record may have a place.
func (e *entry) Eligible(place int) bool {
	return (place == warnings) == (e.level >= logs.Warn)
}
