package progress

import (
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load"
)

// measures are the metrics for monitoring. Counters start at the begin of the lead-in, because
// counters must not decrease; gauges are of the last point.
type measures struct {
	began, now time.Time
	metrics    []metric
	about      []string // pairs of name and value: engine, model and target
	response   tally
}

// metric is a metric with a name by OpenTelemetry's rules, with dots and without a unit.
// docs/formats/load-live.md lists all.
type metric struct {
	name, unit, help string
	counter          bool // otherwise a gauge
	samples          []sample
}

// sample is a value with its labels: pairs of name and value.
type sample struct {
	value  float64
	labels []string
}

// The histogram of response times is exported separately.
const (
	responseName = "prony.load.response"
	responseHelp = "Response time from the moment at which a request was due until its last byte."
)

func (s *state) measures() measures {
	t := &s.totals
	item := func(n int64) []sample { return []sample{{value: float64(n)}} }
	window := int64(0)
	if s.inWindow {
		window = 1
	}
	var failed, lag []sample
	for i, class := range load.ClassNames {
		failed = append(failed, sample{float64(t.Errors[i]), []string{"class", class}})
	}
	for i, ns := range []int64{s.now.lagP50Ns, s.now.lagP99Ns, s.now.lagMaxNs} {
		if ns > 0 { // otherwise unknown
			lag = append(lag, sample{inSeconds(float64(ns)),
				[]string{"quantile", []string{"0.5", "0.99", "1"}[i]}})
		}
	}
	m := measures{
		began: s.began, now: clock.Wall(), response: s.ever,
		about: []string{"engine", s.Engine, "model", s.Model, "target", s.Target},
		metrics: []metric{
			{"prony.load.due", "{request}",
				"Requests that were due so far.", true, item(t.Due)},
			{"prony.load.sent", "{request}",
				"Requests sent.", true, item(t.Sent)},
			{"prony.load.done", "{request}",
				"Requests with a good response.", true, item(t.Done)},
			{"prony.load.received", "By",
				"Bytes received.", true, item(t.BytesIn)},
			{"prony.load.failed", "{request}",
				"Requests that failed, by class of error.", true, failed},
			{"prony.load.in_flight", "{request}",
				"Requests that were sent and are not complete yet.", false, item(t.InFlight)},
			{"prony.load.backlog", "{request}",
				"Requests that are due and not complete yet.", false, item(s.backlog())},
			{"prony.load.window", "1",
				"1 during the window, whose requests count for the result; otherwise " +
					"0.", false, item(window)},
		},
	}
	if len(lag) > 0 {
		m.metrics = append(m.metrics, metric{"prony.load.lag", "s",
			"Send delay in the last interval, by quantile; quantile 1 is the largest " +
				"delay.", false, lag})
	}
	return m
}

func inSeconds(ns float64) float64 { return ns / 1e9 }
