package live

import (
	"time"

	"prony/internal/clock"
	"prony/internal/load"
)

// measures is what monitoring gets. Counters count since the beginning of the lead-in, for they may
// not go back; gauges are of the last point.
type measures struct {
	target, model, engine string
	began, now            time.Time
	totals                load.Totals
	inWindow              bool
	backlog               int64
	response              tally
	lagNs                 [3]int64 // by lagNames; 0: unknown
}

var lagNames = [3]string{"0.5", "0.99", "1"}

func (s *state) measures() measures {
	return measures{
		target: s.Target, model: s.Model, engine: s.Engine, began: s.began, now: clock.Wall(),
		totals: s.totals, inWindow: s.inWindow, backlog: s.backlog(),
		response: s.ever,
		lagNs:    [3]int64{s.now.lagP50Ns, s.now.lagP99Ns, s.now.lagMaxNs},
	}
}

// Names of the metrics, by the conventions of Prometheus; OpenTelemetry's have dots and no units in
// them. docs/formats/load-live.md lists both.
var counters = []struct {
	name, otel, unit, help string
	of                     func(*load.Totals) int64
}{
	{"prony_load_due_total", "prony.load.due", "{request}",
		"Requests whose time has come.", func(t *load.Totals) int64 { return t.Due }},
	{"prony_load_sent_total", "prony.load.sent", "{request}",
		"Requests sent.", func(t *load.Totals) int64 { return t.Sent }},
	{"prony_load_done_total", "prony.load.done", "{request}",
		"Requests answered well.", func(t *load.Totals) int64 { return t.Done }},
	{"prony_load_received_bytes_total", "prony.load.received", "By",
		"Bytes received.", func(t *load.Totals) int64 { return t.BytesIn }},
}

var gauges = []struct {
	name, otel, unit, help string
	of                     func(*measures) float64
}{
	{"prony_load_in_flight", "prony.load.in_flight", "{request}",
		"Requests sent and not yet ended.",
		func(m *measures) float64 { return float64(m.totals.InFlight) }},
	{"prony_load_backlog", "prony.load.backlog", "{request}",
		"Requests whose time has come and that have not ended.",
		func(m *measures) float64 { return float64(m.backlog) }},
	{"prony_load_window", "prony.load.window", "1",
		"1 while the window is open, whose requests make the result.",
		func(m *measures) float64 {
			if m.inWindow {
				return 1
			}
			return 0
		}},
}

// The metrics that have labels, or buckets.
const (
	failedName, failedOtel = "prony_load_failed_total", "prony.load.failed"
	failedHelp             = "Requests that failed, by class."

	responseName, responseOtel = "prony_load_response_seconds", "prony.load.response"
	responseHelp               = "Response time, from when a request was due to its last byte."

	lagName, lagOtel = "prony_load_lag_seconds", "prony.load.lag"
	lagHelp          = "Lateness of sending in the last interval, by quantile; 1 is the largest."

	infoName = "prony_load_info"
	infoHelp = "What is offered, to what, and how."
)

func inSeconds(ns float64) float64 { return ns / 1e9 }
