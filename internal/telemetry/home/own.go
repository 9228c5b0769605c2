package home

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"prony/internal/clock"
	"prony/internal/telemetry"
)

// own takes in what the lab itself measured: it is stored and sent on with the time stamps that it
// has, and the marks of a trial that is over as if they had been told while it ran.
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
		return fmt.Errorf("take the marks of trial %s: it is under way, so they are told one by "+
			"one", o.Trial.ID)
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

// tellOwn stores gauges of the lab's own and sends them on.
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
	return fmt.Errorf("samples of the lab's own were not kept, by reason: %s",
		strings.Join(why, ", "))
}

// gauges makes OTLP of series. All that tells them apart is at the points, and the resource has the
// name only: receivers make a sample of target_info for each other attribute that it has, at the
// times of the points, which lie before those of the phases.
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
			p.SetFlags(p.Flags().WithNoRecordedValue(true)) // what ends a series in Prometheus
			label(p, s.Labels, s.UntilNs)
		}
	}
	return d
}

func label(p pmetric.NumberDataPoint, labels map[string]string, ns int64) {
	p.SetTimestamp(pcommon.Timestamp(ns))
	a := p.Attributes()
	a.PutStr("service_name", telemetry.Lab) // for receivers that make no label of the resource's
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

// holds is how often an open phase is said again: within the five minutes for which a sample holds.
const holds = time.Minute

// past makes of the marks of a trial that is over what they would have been one by one: events, and
// phases that are open from a mark to the next, or until the end.
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
