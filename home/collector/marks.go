package collector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"prony.example/home/spanstore"
	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
)

// MarksFile holds the marks with their trials, one a line, in the collector's folder. They are
// separate from log records, because those are counted for services.
const MarksFile = "marks.ndjson"

// MarkEvent is the name of the log event that reports a mark to another endpoint. PhaseMetric is a
// gauge that is 1 while a phase or a window is open and 0 when it ends, for use in dashboards;
// PromQL calls it prony_phase.
const (
	MarkEvent   = "prony.mark"
	PhaseMetric = "prony.phase"
)

// window is the kind of phase between open and close marks. The other kind is telemetry.Phase, of
// which a trial has one at a time.
const window = "window"

type phase struct{ trial, kind, name string }

// phases are the open phases.
type phases map[phase]opened

type opened struct {
	of      telemetry.Trial
	sinceNs int64 // Unix time
}

// line is a line of MarksFile.
type line struct {
	Run     string `json:"run"`
	Target  string `json:"target"`
	Variant string `json:"variant,omitempty"`
	telemetry.Mark
}

// tellMark stores a mark and sends it to the other endpoint.
func (h *Home) tellMark(ctx context.Context, t telemetry.Trial, m telemetry.Mark) error {
	d := pmetric.NewMetrics()
	h.mu.Lock()
	for _, p := range h.open.turn(t, m) {
		_, open := h.open[p]
		addPhase(d, t, p, open, pcommon.Timestamp(m.WallNs))
	}
	h.mu.Unlock()
	events := plog.NewLogs()
	addEvent(events, t, m)
	h.forward.Logs(ctx, events)
	return errors.Join(h.keepMark(t, m), h.tellMetrics(ctx, d))
}

// turn updates the open phases by a mark, and returns those that changed.
func (open phases) turn(t telemetry.Trial, m telemetry.Mark) []phase {
	var changed []phase
	p := phase{t.ID, window, m.Name}
	switch m.Kind {
	case telemetry.Close:
		delete(open, p)
		return []phase{p}
	case telemetry.Phase:
		p.kind = telemetry.Phase
		for other := range open {
			if other.trial == t.ID && other.kind == telemetry.Phase && other != p {
				delete(open, other)
				changed = append(changed, other)
			}
		}
	case telemetry.Open:
	default:
		return nil
	}
	open[p] = opened{t, m.WallNs}
	return append(changed, p)
}

// closePhases ends all phases of a trial, a millisecond before its series end, because a series may
// have only one value at a time.
func (h *Home) closePhases(ctx context.Context, trial string) error {
	before := clock.Wall().Add(-time.Millisecond)
	d, now := pmetric.NewMetrics(), pcommon.NewTimestampFromTime(before)
	h.mu.Lock()
	for p, o := range h.open {
		if p.trial == trial {
			delete(h.open, p)
			addPhase(d, o.of, p, false, now)
		}
	}
	h.mu.Unlock()
	return h.tellMetrics(ctx, d)
}

// tellPhases sends the open phases again.
func (h *Home) tellPhases(ctx context.Context) error {
	d, now := pmetric.NewMetrics(), pcommon.NewTimestampFromTime(clock.Wall())
	h.mu.Lock()
	for p, o := range h.open {
		addPhase(d, o.of, p, true, now)
	}
	h.mu.Unlock()
	return h.tellMetrics(ctx, d)
}

func (h *Home) tellMetrics(ctx context.Context, d pmetric.Metrics) error {
	if d.DataPointCount() == 0 {
		return nil
	}
	// Drops are phases of zero length, with two values at one time.
	if _, err := h.tellOwn(ctx, d); err != nil {
		return fmt.Errorf("store phases: %w", err)
	}
	return nil
}

func addPhase(d pmetric.Metrics, t telemetry.Trial, p phase, open bool, at pcommon.Timestamp) {
	r := d.ResourceMetrics().AppendEmpty()
	describe(r.Resource().Attributes(), t)
	m := r.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(PhaseMetric)
	m.SetDescription("1 while this phase or window of the trial is open")
	point := m.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(at)
	point.SetIntValue(0) // a point without a value is not the same
	if open {
		point.SetIntValue(1)
	}
	a := point.Attributes()
	name(a, t)
	a.PutStr("kind", p.kind)
	a.PutStr("name", p.name)
}

// name adds the labels of Prony's own metrics to a phase or a mark, because a receiver need not
// turn a resource's attributes into labels.
func name(a pcommon.Map, t telemetry.Trial) {
	a.PutStr("run", t.Run)
	a.PutStr("trial", t.ID)
	a.PutStr("target", t.Target)
	if t.Variant != "" && t.Variant != "none" {
		a.PutStr("arm", t.Variant)
	}
}

// describe names Prony as the sender, and the trial as in metrics and spans.
func describe(resource pcommon.Map, t telemetry.Trial) {
	resource.PutStr("service.name", telemetry.Lab)
	resource.PutStr("prony.run", t.Run)
	resource.PutStr("prony.trial", t.ID)
	resource.PutStr("prony.target", t.Target)
	resource.PutStr("prony.variant", t.Variant)
}

// addEvent adds a mark in the form of OpenTelemetry's events: a log record with a name.
// https://opentelemetry.io/docs/specs/semconv/general/events/
func addEvent(d plog.Logs, t telemetry.Trial, m telemetry.Mark) {
	r := d.ResourceLogs().AppendEmpty()
	describe(r.Resource().Attributes(), t)
	rec := r.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	rec.SetEventName(MarkEvent)
	rec.SetTimestamp(pcommon.Timestamp(m.WallNs))
	rec.SetObservedTimestamp(pcommon.NewTimestampFromTime(clock.Wall()))
	rec.SetSeverityNumber(plog.SeverityNumberInfo)
	rec.SetSeverityText("INFO")
	rec.Body().SetStr(m.Kind + " " + m.Name)
	a := rec.Attributes()
	a.PutStr("event.name", MarkEvent) // its place before it became a field
	name(a, t)
	a.PutStr("kind", m.Kind)
	a.PutStr("name", m.Name)
}

// keepMark appends lines to MarksFile. Marks are rare, so the file does not stay open.
func (h *Home) keepMark(t telemetry.Trial, marks ...telemetry.Mark) error {
	var data []byte
	for _, m := range marks {
		text, err := json.Marshal(line{t.Run, t.Target, t.Variant, m})
		if err != nil {
			return fmt.Errorf("keep a mark: %w", err)
		}
		data = append(append(data, text...), '\n')
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	f, err := os.OpenFile(filepath.Join(h.c.Dir, MarksFile),
		os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("keep a mark: %w", err)
	}
	if err = spanstore.Terminate(f); err == nil { // a full disk may have left a part of a line
		_, err = f.Write(data)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keep a mark: %w", err)
	}
	return nil
}

// own stores Prony's own metrics and sends them on with their own time stamps, and the marks of an
// ended trial as if they had arrived while it ran.
func (h *Home) own(ctx context.Context, o telemetry.Own) error {
	for _, s := range o.Series {
		if err := s.Check(); err != nil {
			return err
		}
	}
	h.mu.Lock()
	under := h.find(o.Trial.ID) != nil
	h.mu.Unlock()
	if under && len(o.Marks) > 0 {
		return fmt.Errorf("receive the marks of trial %s: the trial is running, so marks must be "+
			"sent one by one", o.Trial.ID)
	}
	events, phases := past(o.Trial, o.Marks, clock.Wall().UnixNano())
	var kept error
	if len(o.Marks) > 0 {
		h.forward.Logs(ctx, events)
		kept = h.keepMark(o.Trial, o.Marks...)
	}
	told := h.tellMetrics(ctx, phases)
	dropped, err := h.tellOwn(ctx, gauges(o.Series))
	return errors.Join(told, kept, err, refused(dropped))
}

// tellOwn stores gauges of Prony itself and sends them on.
func (h *Home) tellOwn(ctx context.Context, d pmetric.Metrics) (map[string]int64, error) {
	if d.DataPointCount() == 0 {
		return nil, nil
	}
	h.forward.Metrics(ctx, d)
	return h.stores.ConsumeOwn(ctx, d)
}

func refused(dropped map[string]int64) error {
	if len(dropped) == 0 {
		return nil
	}
	var why []string
	for _, reason := range slices.Sorted(maps.Keys(dropped)) {
		why = append(why, fmt.Sprintf("%d %s", dropped[reason], reason))
	}
	return fmt.Errorf("Prony's own samples that were not stored, by reason: %s",
		strings.Join(why, ", "))
}

// gauges converts series to OTLP. All distinguishing labels are at the points, and the resource has
// only the name: for each other attribute receivers make a sample of target_info at the times of
// the points, which are before those of the phases.
func gauges(series []telemetry.Series) pmetric.Metrics {
	d := pmetric.NewMetrics()
	r := d.ResourceMetrics().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", telemetry.Lab)
	into := r.ScopeMetrics().AppendEmpty().Metrics()
	for _, s := range series {
		m := into.AppendEmpty()
		m.SetName(s.Name)
		m.SetDescription(help(s.Name))
		points := m.SetEmptyGauge().DataPoints()
		points.EnsureCapacity(len(s.WallNs) + 1)
		for i, at := range s.WallNs {
			p := points.AppendEmpty()
			p.SetDoubleValue(s.Values[i])
			label(p, s.Labels, at)
		}
		if s.UntilNs != 0 {
			p := points.AppendEmpty()
			p.SetFlags(p.Flags().WithNoRecordedValue(true)) // ends a series in Prometheus
			label(p, s.Labels, s.UntilNs)
		}
	}
	return d
}

func label(p pmetric.NumberDataPoint, labels map[string]string, ns int64) {
	p.SetTimestamp(pcommon.Timestamp(ns))
	a := p.Attributes()
	a.PutStr("service_name", telemetry.Lab) // for receivers without labels of the resource
	for k, v := range labels {
		if v != "" {
			a.PutStr(k, v)
		}
	}
}

func help(name string) string {
	i := slices.IndexFunc(telemetry.Metrics, func(m telemetry.Metric) bool {
		return m.Name == name
	})
	return telemetry.Metrics[i].Help // Check has found it
}

// holds is the interval of repeating an open phase, within the five minutes for which a sample is
// valid.
const holds = time.Minute

// past converts the marks of an ended trial to the events and phases that would have been sent one
// by one: a phase is open from its mark to the next one, or until the end.
func past(t telemetry.Trial, marks []telemetry.Mark, endNs int64) (plog.Logs, pmetric.Metrics) {
	events, told := plog.NewLogs(), pmetric.NewMetrics()
	end := func(p phase, at, to int64) {
		for ; at < to; at += int64(holds) {
			addPhase(told, t, p, true, pcommon.Timestamp(at))
		}
		addPhase(told, t, p, false, pcommon.Timestamp(to))
	}
	open := phases{}
	for _, m := range marks {
		addEvent(events, t, m)
		before := maps.Clone(open)
		for _, p := range open.turn(t, m) {
			if o, ok := before[p]; ok {
				end(p, o.sinceNs, m.WallNs)
			}
		}
	}
	for p, o := range open {
		end(p, o.sinceNs, endNs)
	}
	return events, told
}
