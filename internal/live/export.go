package live

import (
	"time"

	"prony/internal/clock"
	"prony/internal/load"
)

// measures is what monitoring gets. Counters count since the beginning of the lead-in, for they may
// not go back; gauges are of the last point.
type measures struct {
	began, now time.Time
	metrics    []metric
	about      []string // engine, model and target, each before its value
	response   tally
}

// metric has a name by the conventions of Prometheus, and one of OpenTelemetry, with dots and no
// unit in it. docs/formats/load-live.md lists both.
type metric struct {
	name, otel, unit, help string
	counter                bool // else a gauge
	samples                []sample
}

// sample is a value with what it is told apart by: a name, then its value.
type sample struct {
	value  float64
	labels []string
}

// The metrics that are no metric above: one has buckets, the other nothing but labels.
const (
	responseName, responseOtel = "prony_load_response_seconds", "prony.load.response"
	responseHelp               = "Response time, from when a request was due to its last byte."

	infoName = "prony_load_info"
	infoHelp = "What is offered, to what, and how."
)

func (s *state) measures() measures {
	t := &s.totals
	one := func(n int64) []sample { return []sample{{value: float64(n)}} }
	window := int64(0)
	if s.inWindow {
		window = 1
	}
	var failed, lag []sample
	for i, class := range load.ClassNames {
		failed = append(failed, sample{float64(t.Errors[i]), []string{"class", class}})
	}
	for i, ns := range []int64{s.now.lagP50Ns, s.now.lagP99Ns, s.now.lagMaxNs} {
		if ns > 0 { // else it is unknown
			lag = append(lag, sample{inSeconds(float64(ns)),
				[]string{"quantile", []string{"0.5", "0.99", "1"}[i]}})
		}
	}
	m := measures{
		began: s.began, now: clock.Wall(), response: s.ever,
		about: []string{"engine", s.Engine, "model", s.Model, "target", s.Target},
		metrics: []metric{
			{"prony_load_due_total", "prony.load.due", "{request}",
				"Requests whose time has come.", true, one(t.Due)},
			{"prony_load_sent_total", "prony.load.sent", "{request}",
				"Requests sent.", true, one(t.Sent)},
			{"prony_load_done_total", "prony.load.done", "{request}",
				"Requests answered well.", true, one(t.Done)},
			{"prony_load_received_bytes_total", "prony.load.received", "By",
				"Bytes received.", true, one(t.BytesIn)},
			{"prony_load_failed_total", "prony.load.failed", "{request}",
				"Requests that failed, by class.", true, failed},
			{"prony_load_in_flight", "prony.load.in_flight", "{request}",
				"Requests sent and not yet ended.", false, one(t.InFlight)},
			{"prony_load_backlog", "prony.load.backlog", "{request}",
				"Requests whose time has come and that have not ended.", false, one(s.backlog())},
			{"prony_load_window", "prony.load.window", "1",
				"1 while the window is open, whose requests make the result.", false, one(window)},
		},
	}
	if len(lag) > 0 {
		m.metrics = append(m.metrics, metric{"prony_load_lag_seconds", "prony.load.lag", "s",
			"Lateness of sending in the last interval, by quantile; 1 is the largest.", false, lag})
	}
	return m
}

func inSeconds(ns float64) float64 { return ns / 1e9 }
