package capacity

import (
	"strings"
	"testing"

	"prony.example/record"
	"prony.example/record/slo"
	"prony.example/stats"
)

// fine2s returns a valid load of 2 s at 1000/s: 10 requests in progress, p99 46 ms.
func fine2s() *record.Load {
	d := exponential(2000, 10e6)
	return &record.Load{
		Model: "open", RatePerS: 1000, WindowNs: 2e9, DrainNs: 5e9, Threads: 1, Connections: 64,
		Scheduled: 2000, Sent: 2000, Done: 2000, Answered: 2000, ThroughputPerS: 1000,
		InFlightMean: 10, ResponseTime: d, ServiceTime: d, OwnLag: exponential(2000, 1e3),
	}
}

// judged checks the result of judge for that load after a change.
type judged func(objectives, word, why string, change func(*record.Load))

func checkJudge(t *testing.T) judged {
	return func(objectives, word, why string, change func(*record.Load)) {
		t.Helper()
		l := fine2s()
		if change != nil {
			change(l)
		}
		got := judge(l, must(slo.Parse(objectives)))
		if got.Outcome != word || !strings.Contains(got.Reason, why) ||
			(got.Reason == "") != (why == "") {
			t.Errorf("%s: %s, %q; want %s, %q", objectives, got.Outcome, got.Reason, word, why)
		}
		told := got.P99Ns > 0
		if want := got.overload == "" && l.ResponseTime.Count >= 381; told != want {
			t.Errorf("%s: p99 told %v, want %v", objectives, told, want)
		}
	}
}

func TestJudgeService(t *testing.T) {
	check := checkJudge(t)
	fails := func(n int64) func(*record.Load) {
		return func(l *record.Load) {
			l.Errors.Status, l.Done, l.Answered = n, l.Done-n, l.Answered-n
			l.ResponseTime.Count -= n
		}
	}
	check("p99<50ms", Met, "", nil)
	check("p99<40ms", Missed, "p99<40ms: 46.1ms", nil)
	check("p99<50ms,p50<1ms", Missed, "p50<1ms: 6.93ms", nil)
	check("p99.9<50ms", Missed, "p99.9<50ms", func(l *record.Load) {
		l.ResponseTime = exponential(2000, 10e6)
		l.ResponseTime.HDR = histogram(2000, 10e6)
	})
	check("p99.9<1s", Invalid, "needs n ≥ 3838, has 2000", nil)
	check("p99<40ms,p99.9<1s", Missed, "p99<40ms", nil) // one missed objective is sufficient

	// Missing responses: 1 % of 2000 is 20, and 5 + 3 sqrt(10) = 14.5.
	check("p99<50ms", Met, "", func(l *record.Load) { l.Done -= 20 })
	check("p99<50ms", Missed, "only 99.0 % of the due requests received a response",
		func(l *record.Load) {
			l.Done -= 21
		})
	// With 100 in progress, 5 + 3 sqrt(100) = 35 are permitted.
	check("p99<500ms", Met, "", func(l *record.Load) {
		l.InFlightMean, l.ResponseTime = 100, exponential(2000, 100e6)
		l.ServiceTime = l.ResponseTime
		l.Done -= 35
	})
	// The backlog may grow by 1 % of the rate, and by 14.5 in 2 s.
	check("p99<50ms", Met, "", func(l *record.Load) { l.BacklogPerS = 10 })
	check("p99<50ms", Missed, "capacity: the backlog", func(l *record.Load) { l.BacklogPerS = 11 })

	// Errors: above 0.1 % the service has failed, if it has no objective about errors.
	check("p99<50ms", Met, "", fails(2))
	check("p99<50ms", Missed, "errors: 3 of 2000", fails(3))
	check("p99<50ms,errors<1%", Met, "", fails(3))
	check("p99<50ms,errors<1%", Missed, "errors<1%: 1.05% (21 of 2000)", fails(21))
	check("p99<50ms,errors<5%", Met, "", fails(50)) // failed, but quickly
	check("p99<50ms,route x errors<5%", Missed, "only 97.5 % of the due requests", fails(50))
	check("p99<50ms", Missed, "censored", func(l *record.Load) {
		l.Answered, l.Censored = 1970, 30
		l.ResponseTime.Count = 1970
	})
}

func TestJudgeInstrument(t *testing.T) {
	check := checkJudge(t)
	// Unsent arrivals: the service is at fault if all connections were busy.
	check("p99<50ms", Invalid, "delivered", func(l *record.Load) { l.Sent = 1900 })
	check("p99<50ms", Missed, "delivered", func(l *record.Load) { l.Sent, l.Waited = 1900, 200 })

	// Permitted delays of the generator: 50 µs, or 5 % of 50 ms = 2.5 ms.
	late := func(p99Ns float64) func(*record.Load) {
		return func(l *record.Load) { l.OwnLag = exponential(2000, p99Ns/4.606) }
	}
	check("p99<50ms", Met, "", late(2.4e6))
	check("p99<50ms", Invalid, "lag: the generator sent late, with a p99 delay of 2.6ms (limit "+
		"2.5ms)", late(2.6e6))
	check("p99<40ms", Invalid, "lag", late(2.6e6))  // broken, but by whom?
	check("errors<1%", Invalid, "lag", late(2.6e6)) // no time promised: 5 % of p99, 2.3 ms
	check("p99<50ms,max<100us", Invalid, "lag", late(60e3))
	check("p99<50ms", Invalid, "steal", func(l *record.Load) { l.Host.StealShare = 0.2 })
	check("p99<50ms", Met, "", func(l *record.Load) { l.Host.StealShare = 0.05 })
	check("p99<50ms", Met, "", func(l *record.Load) { l.Generator.CPUShare = 0.95 })
	check("p99<40ms", Invalid, "generator: ", func(l *record.Load) { l.Generator.CPUShare = 0.95 })

	// Little's law: a defect of the measurement, unless the service was too slow anyway.
	check("p99<50ms", Invalid, "little", func(l *record.Load) { l.InFlightMean = 50 })
	check("p99<50ms", Missed, "capacity", func(l *record.Load) {
		l.InFlightMean, l.BacklogPerS = 50, 100
	})
	check("errors<1%", Met, "", func(l *record.Load) { l.Model = record.Closed })
	check("p99<50ms", Missed, "answers: no good response", func(l *record.Load) {
		*l = record.Load{Model: "closed", WindowNs: 2e9, Threads: 1}
	})
}

func TestJudgeSuspect(t *testing.T) {
	l := fine2s()
	l.Host.OtherCPUShare = 0.5
	got := judge(l, must(slo.Parse("p99<50ms")))
	if got.Outcome != Met || len(got.Suspect) != 1 || got.Suspect[0] != "neighbors" {
		t.Errorf("%+v", got)
	}
}

// TestJudgeLagWithoutStalls checks that the generator's lag counts by its part in the percentiles
// of objectives, if these are known without the machine's stalls, and by its p99 otherwise.
func TestJudgeLagWithoutStalls(t *testing.T) {
	check := checkJudge(t)
	stalled := func(ns, punctualNs int64) func(*record.Load) {
		return func(l *record.Load) {
			l.OwnLag = exponential(2000, 10e6) // p99 46 ms: the load's core stalled
			l.StallFree = []record.StallFree{{Quantile: 0.99, Ns: ns, PunctualNs: punctualNs,
				RawNs: l.ResponseTime.P99Ns, KeptShare: 0.9}}
		}
	}
	const late = "lag: the generator sent late, which is 3ms of p99 (limit 2.5ms)"
	check("p99<50ms", Met, "", stalled(40e6, 39e6))
	check("p99<50ms", Invalid, late, stalled(40e6, 37e6))
	check("p99<20ms", Missed, "p99<20ms: 40ms (46.1ms with the machine's stalls)",
		stalled(40e6, 39.9e6))
	check("p99<50ms,p50<20ms", Invalid, "lag: the generator sent late, with a p99 delay of 46",
		stalled(40e6, 39e6))
}

// TestStepsWithStalls checks that the row of a step says so if a percentile includes the machine's
// stalls.
func TestStepsWithStalls(t *testing.T) {
	check := func(change func(*record.Load), want bool) {
		t.Helper()
		l := fine2s()
		l.Stalls = &record.Stalls{Way: "test", TimeNs: l.WindowNs, StalledNs: 1e6}
		for _, q := range []float64{0.5, 0.99} {
			l.StallFree = append(l.StallFree, record.StallFree{Quantile: q, Ns: 1e6,
				PunctualNs: 1e6, RawNs: 2e6, KeptShare: 0.9})
		}
		change(l)
		row := judge(l, nil)
		row.RatePerS = l.RatePerS
		var b strings.Builder
		if err := SweepText(&b, []Tried{row}, nil); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{row.Line(), b.String()} {
			if strings.Contains(text, "with stalls") != want || row.P99Ns == 0 {
				t.Errorf("%q: with stalls, want %v", text, want)
			}
		}
	}
	check(func(*record.Load) {}, false)
	check(func(l *record.Load) { l.StallFree[1].Unknown = stats.TooMuchExcluded }, true)
	check(func(l *record.Load) { l.StallFree = l.StallFree[1:] }, true)
	check(func(l *record.Load) { l.StallFree, l.Stalls.StalledNs = nil, 0 }, false)
	check(func(l *record.Load) { l.StallFree, l.Stalls = nil, nil }, false)
}
