package trial

import (
	"math"

	"prony/internal/metric"
	"prony/internal/result"
	"prony/internal/table"
	"prony/internal/telemetry"
)

// whole are the values of a trial that is over and judged, as of a moment.
func (f *life) whole(nowNs int64) []telemetry.Series {
	r := f.rec
	s := f.sheet("")
	s.opened = nowNs
	s.one("prony_trial_verdict", 1, "grade", r.Verdict.Grade)
	for _, x := range r.Verdict.Findings {
		if x.Grade == result.Valid {
			continue // too little to move a number is no reason
		}
		s.one("prony_trial_reason", 1, "reason", x.Rule, "load", x.Load, "grade", x.Grade)
	}
	s.one("prony_trial_start_seconds", metric.Positive(inSeconds(r.Start.ReadyNs)))
	s.one("prony_trial_duration_seconds", metric.Positive(inSeconds(r.DurationNs)))
	s.one("prony_trial_sampler_cpu_cores", metric.Positive(r.Probe.CPUShare))
	if t := r.Telemetry; t != nil && len(t.Signals) > 0 { // else the home did not answer
		var bytes, asked int64
		for _, x := range t.Signals {
			bytes += x.Bytes
		}
		for i := range r.Loads {
			asked += ended(&r.Loads[i])
		}
		s.one("prony_trial_bytes_per_request",
			float64(bytes)/float64(r.Warmup.Requests+asked))
		s.one("prony_trial_home_cpu_cores", t.Home.CPUShare)
		s.one("prony_trial_home_memory_bytes", metric.Positive(float64(t.Home.RSSBytes)))
	}
	out := s.out
	for i := range r.Loads {
		s := f.sheet(r.Loads[i].Name)
		s.opened = nowNs
		s.load(&r.Loads[i])
		out = append(out, s.out...)
	}
	return out
}

// ended are the requests of a load that did in its window, well or not.
func ended(l *result.Load) int64 { return l.Done + l.Errors.Total() }

// load writes what one came to.
func (s *sheet) load(l *result.Load) {
	for _, m := range metric.All {
		if m.Told != "" {
			s.one(m.Told, m.Load(l)/units[m.Unit].each)
		}
	}
	s.one("prony_trial_network_bytes_per_request",
		metric.Positive(l.Service.NetworkBytesPerRequest))
	// What is not kept up with has no response times, but those of a queue that grows.
	keptUp := l.Model != result.Open || float64(l.Done) >= metric.KeptUp*float64(l.Scheduled)
	if d := l.ResponseTime; keptUp && d.Count > 0 {
		for _, x := range []struct {
			quantile string
			ns       int64
		}{{"0.5", d.P50Ns}, {"0.9", d.P90Ns}, {"0.99", d.P99Ns}, {"0.999", d.P999Ns},
			{"1", d.MaxNs}} {
			s.one("prony_trial_latency_seconds", metric.Positive(inSeconds(x.ns)), "quantile",
				x.quantile)
		}
	}
}

// units are those of the table as metrics have them: what it is called, and how many are one.
var units = map[string]struct {
	name string
	each float64
}{"1/s": {"per_second", 1}, "ns": {"seconds", 1e9}, "B": {"bytes", 1}, "J": {"joules", 1},
	"1": {"ratio", 1}}

// Results are the values of a run's table as series, as of a moment: a median of trials with the
// ends of its interval, where it has one. What the table withholds is not there.
func Results(study table.Study, run string, nowNs int64) []telemetry.Series {
	var out []telemetry.Series
	for _, sc := range study.Scenarios {
		for _, t := range sc.Targets {
			s := sheet{opened: nowNs}
			for _, m := range t.Metrics {
				if m.Withheld != "" || m.Summary.N == 0 {
					continue
				}
				s.labels = map[string]string{"run": run, "target": t.Info.Name,
					"scenario": sc.Name, "load": m.Load,
					"launcher": launcherOf(t.Info), "arm": armOf(t.Info)}
				u, ok := units[m.Unit]
				if !ok {
					panic("trial: a metric of the table has the unit " + m.Unit +
						": say what it is called here")
				}
				bound := func(name string, v float64) {
					s.one("prony_result", v/u.each, "metric", m.Name, "unit", u.name,
						"bound", name)
				}
				bound("median", m.Summary.Center)
				if !math.IsNaN(m.Summary.Lo) {
					bound("low", m.Summary.Lo)
					bound("high", m.Summary.Hi)
				}
			}
			out = append(out, s.out...)
		}
	}
	return out
}
