package metric

import (
	"math"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/stats"
)

// Reasons why a value is missing, with what would give one.
const (
	noProbe = "the service was not sampled in that window (on this machine, see limits and " +
		"probe in the record)"
	notKeptUp = "the target did not keep up with the load, so times grow with the length of " +
		"the test"
	noRequest = "no request ended in the window"
	notTimed  = "the start was not timed"
	notSteady = "the service reached no steady state, or only because the warm-up gave its " +
		"compilers priority or more cores (in the suite, set warmup: {compilers: equal, cores: " +
		"own} and raise warmup.max)"
	fewGCs = "too few collections in the window (raise --measure)"
	noRole = "thread names do not show it (those of HotSpot and .NET do)"
	noGC   = "no collection in the window (raise --measure)"
	// The value may be unknown, too, which the note on stalls of the machine says.
	noStalls = "stalls of the machine were not recorded, or too many, or they depend on the " +
		"service (prony doctor reports whether they can be recorded)"
)

// response documents the values of which percentiles are computed.
const response = "percentile of the response time (done − scheduled), from each trial's " +
	"histogram; withheld if a trial has too few samples for an interval, and for open loads " +
	"above the capacity"

// named documents the values of threads with certain names.
const named = "by the names of threads; withheld if the runtime does not name them"

// All are the metrics in the order of machine-readable reports: metrics of loads, then of whole
// trials.
var All = []Metric{
	{Name: Throughput, Unit: units.PerS, Peak: true,
		Label: "throughput", Short: "req/s", Higher: true, Better: "faster", Worse: "slower",
		Load:   func(l *record.Load) float64 { return l.ThroughputPerS },
		Slices: ofClosed(func(s *record.Sliced) float64 { return Positive(s.ThroughputPerS()) }),
		Told:   "prony_trial_throughput_per_second",
		Doc:    "good responses in the window, divided by its length"},
	{Name: Achieved, Unit: units.One, Model: record.Open,
		Label: "answered in time", Higher: true, Better: "more", Worse: "less",
		Load: func(l *record.Load) float64 {
			return Positive(float64(l.Done) / float64(l.Scheduled))
		},
		Missing: "no arrival was due in the window",
		Doc:     "open loads: good responses in the window, divided by the arrivals due in it"},
	{Name: Capacity, Unit: units.PerS, Model: record.Capacity,
		Label: "capacity", Short: "capacity", Higher: true, Better: "faster", Worse: "slower",
		Load:    searched,
		Missing: "the search ended before the rate was known",
		Doc: "loads of model capacity: the highest rate of Poisson arrivals at which half of the " +
			"steps meet the objectives; withheld if a search reached its bound"},
	{Name: "error_share", Unit: units.One, Asked: true,
		Label: "errors", Better: "fewer", Worse: "more",
		Load: func(l *record.Load) float64 {
			failed := float64(l.Errors.Total())
			return failed / (failed + float64(l.Done))
		},
		Missing: noRequest, Told: "prony_trial_error_share",
		Column: &Column{"errors", "errors", OfLoad, 5, units.Percent},
		Doc:    "failed requests, divided by all requests that ended"},
	{Name: CPU, Unit: units.Ns, Peak: true,
		Label: "CPU per request", Short: "CPU/request", Better: "less", Worse: "more",
		Load:    func(l *record.Load) float64 { return Positive(l.Service.CPUPerRequestNs) },
		Slices:  func(s *record.Sliced) float64 { return Positive(s.CPUPerRequestNs()) },
		Missing: noProbe, Told: "prony_trial_cpu_seconds_per_request",
		Doc: "CPU time of the service, divided by all requests that ended in the window; in " +
			"slices, by good responses"},
	{Name: RSS, Unit: units.Octet, Peak: true,
		Label: "memory (RSS)", Better: "less", Worse: "more",
		Load:    func(l *record.Load) float64 { return Positive(float64(l.Service.RSSMaxBytes)) },
		Missing: noProbe, Told: "prony_trial_memory_peak_bytes",
		Doc: "largest resident memory of all processes of the service"},
	{Name: "generator_cpu_per_request", Unit: units.Ns, Lab: true,
		Label: "generator's CPU", Better: "less", Worse: "more",
		Load:    func(l *record.Load) float64 { return Positive(l.Generator.CPUPerRequestNs) },
		Missing: "the generator did not report its CPU time",
		Doc:     "CPU time of the load generator per request"},
	{Name: "mean", Unit: units.Ns, Asked: true,
		Label: "mean response time", Better: "faster", Worse: "slower",
		Load:    func(l *record.Load) float64 { return ofTimes(l, l.ResponseTime.MeanNs) },
		Slices:  func(s *record.Sliced) float64 { return Positive(s.ResponseTime.MeanNs) },
		Missing: notKeptUp, Column: &Column{"mean", "mean", OfLoad, 1, nil},
		Doc: "mean response time; withheld for open loads above the capacity"},
	{Name: "max", Unit: units.Ns, Asked: true,
		Label: "longest response time", Better: "faster", Worse: "slower",
		Load:    func(l *record.Load) float64 { return ofTimes(l, float64(l.ResponseTime.MaxNs)) },
		Missing: notKeptUp, Column: &Column{"max", "max", OfLoad, 3, nil},
		Doc: "longest response time; withheld for open loads above the capacity"},
	{Name: "requests", Unit: units.One, Asked: true,
		Label: "requests", Higher: true, Better: "more", Worse: "fewer",
		Load:    func(l *record.Load) float64 { return Positive(float64(l.Done)) },
		Missing: noRequest, Column: &Column{"requests", "requests", OfLoad, 4, units.Whole},
		Doc: "good responses in the window"},
	{Name: ThroughputWithoutStalls, Unit: units.PerS, Model: record.Closed, Asked: true, Peak: true,
		Label: "throughput without stalls", Higher: true, Better: "faster", Worse: "slower",
		Load: func(l *record.Load) float64 {
			if l.WithoutStalls == nil || l.WithoutStalls.Unknown != "" {
				return math.NaN()
			}
			return l.WithoutStalls.PerS
		},
		Missing: noStalls,
		Column:  &Column{"withoutStalls", "req/s without stalls", OfLoad, 6, units.Rate},
		Doc: "closed loads: good responses in the window, divided by the time in which the cores " +
			"of service and load ran"},
	{Name: "cpu_used", Unit: units.One, Asked: true,
		Label: "processors used", Better: "less", Worse: "more",
		Load: func(l *record.Load) float64 {
			return Positive(float64(l.Service.CPUNs) / float64(l.Service.WindowNs))
		},
		Missing: noProbe, Column: &Column{"cpu", "CPU", OfCost, 1, units.Processors},
		Doc: "processors that the service used: its CPU time, divided by the length of the window"},
	{Name: "threads_max", Unit: units.One, Asked: true,
		Label: "threads", Better: "fewer", Worse: "more",
		Load:    func(l *record.Load) float64 { return Positive(float64(l.Service.ThreadsMax)) },
		Missing: noProbe, Column: &Column{"threads", "threads", OfCost, 2, units.Whole},
		Doc: "largest number of threads of all processes of the service"},
	{Name: "compiler_share", Unit: units.One, Asked: true,
		Label: "compiler", Better: "less", Worse: "more",
		Load:    ofRoles(func(r record.Roles) int64 { return r.CompilerNs }),
		Missing: noRole, Column: &Column{"compiler", "compiler", OfCost, 3, units.Percent},
		Doc: "lower bound of the share of the service's CPU time that compilers used, " + named},
	{Name: "gc_share", Unit: units.One, Asked: true,
		Label: "collector", Better: "less", Worse: "more",
		Load:    ofRoles(func(r record.Roles) int64 { return r.GCNs }),
		Missing: noRole, Column: &Column{"gc", "collector", OfCost, 4, units.Percent},
		Doc: "lower bound of the share of the service's CPU time that garbage collectors used, " +
			named},
	{Name: "energy_per_request", Unit: units.J, Asked: true, Peak: true,
		Label: "energy per request", Better: "less", Worse: "more",
		Load:    func(l *record.Load) float64 { return Positive(l.Host.EnergyJ / float64(l.Done)) },
		Missing: "this machine counts no energy (RAPL), or hides it from its guests and users",
		Column:  &Column{"energy", "energy/req", OfCost, 5, units.Joules},
		Doc: "energy of all processors of the machine, divided by good responses; includes load " +
			"and idle processors"},
	{Name: "backend_calls_per_response", Unit: units.One, Asked: true,
		Label: "backend calls per response", Better: "fewer", Worse: "more",
		Load: func(l *record.Load) (sum float64) {
			if len(l.BackendCalls) == 0 {
				return math.NaN()
			}
			for _, a := range l.BackendCalls {
				sum += AsksEach(a, l)
			}
			return sum
		},
		Missing: "no counter of its backend calls was read",
		Column:  &Column{"backendCalls", "calls/response", OfCost, 6, units.Hundredths},
		Doc: "calls that databases and upstreams counted in the window, divided by good " +
			"responses; the sum of all counters"},
	{Name: "lag_p99", Unit: units.Ns, Model: record.Open, Lab: true,
		Label: "generator's lag p99", Better: "less", Worse: "more",
		Load:    func(l *record.Load) float64 { return p99Of(l.Lag) },
		Missing: "the generator did not report its lag",
		Doc:     "open loads: sent − scheduled, including the wait for a free connection"},
	{Name: "own_lag_p99", Unit: units.Ns, Model: record.Open, Lab: true,
		Label: "generator's own lag p99", Better: "less", Worse: "more",
		Load:    func(l *record.Load) float64 { return p99Of(l.OwnLag) },
		Missing: "the generator did not report its own lag",
		Doc: "open loads: the part of the lag after a connection was free, which the generator " +
			"caused"},

	{Name: Allocated, Unit: units.Octet, Watched: true,
		Label: "allocated per request", Better: "less", Worse: "more",
		Load: ofGC(func(l *record.Load) float64 {
			return Positive(float64(l.GC.AllocatedBytes) / float64(l.Done+l.Errors.Total()))
		}),
		Missing: fewGCs, Told: "prony_trial_allocated_bytes_per_request",
		Doc: "allocated bytes of the heap per request; needs a log of garbage collections"},
	{Name: HeapAfterGC, Unit: units.Octet, Watched: true,
		Label: "heap after gc", Better: "less", Worse: "more",
		Load: ofGC(func(l *record.Load) float64 {
			return Positive(float64(l.GC.HeapAfterBytes))
		}),
		Missing: noGC, Told: "prony_trial_heap_after_gc_bytes",
		Doc: "heap after the last collection of the window; needs a log of garbage collections"},
	{Name: GCPaused, Unit: units.One, Watched: true,
		Label: "gc paused", Better: "less", Worse: "more",
		Load: ofGC(func(l *record.Load) float64 {
			return float64(l.GC.PauseNs) / float64(l.WindowNs)
		}),
		Missing: "its collections were not logged", Told: "prony_trial_gc_paused_share",
		Doc: "share of the window in which collections stopped the service; needs a log of " +
			"garbage collections"},
	{Name: GCPauseMax, Unit: units.Ns, Watched: true,
		Label: "gc pause max", Better: "faster", Worse: "slower",
		Load:    ofGC(func(l *record.Load) float64 { return Positive(float64(l.GC.PauseMaxNs)) }),
		Missing: noGC, Doc: "longest stop by a garbage collection; needs a log of garbage " +
			"collections"},
	{Name: SpansEach, Unit: units.One, Watched: true,
		Label: "spans per request", Better: "less", Worse: "more",
		Load: func(l *record.Load) float64 {
			if l.Telemetry == nil || l.Telemetry.WindowNs == 0 {
				return math.NaN()
			}
			// The marks are slightly outside the window, under the same load.
			requests := float64(l.Done+l.Errors.Total()) * float64(l.Telemetry.WindowNs)
			return float64(l.Telemetry.Spans) / requests * float64(l.WindowNs)
		},
		Missing: "no collector received spans", Told: "prony_trial_spans_per_request",
		Doc: "spans per request that the telemetry collector received; needs the collector"},

	{Name: "p50", Unit: units.Ns, Quantile: 0.5, Label: "p50", Better: "faster", Worse: "slower",
		Doc: response},
	{Name: "p90", Unit: units.Ns, Quantile: 0.9, Label: "p90", Better: "faster", Worse: "slower",
		Column: &Column{"p90", "p90", OfLoad, 2, nil}, Doc: response},
	{Name: "p99", Unit: units.Ns, Quantile: 0.99, Label: "p99", Better: "faster", Worse: "slower",
		Doc: response},
	{Name: "p99.9", Unit: units.Ns, Quantile: 0.999, Label: "p99.9", Better: "faster",
		Worse: "slower", Doc: response},

	{Name: "listen", Unit: units.Ns, Asked: true,
		Label: "time to listen", Better: "faster", Worse: "slower",
		Trial:   func(r *record.Record) float64 { return Positive(float64(r.Start.ListenNs)) },
		Missing: notTimed, Column: &Column{"listen", "listens", OfTrial, 1, units.Duration},
		Doc: "time from the exec of the program until its port was open"},
	{Name: Ready, Unit: units.Ns,
		Label: "time to ready", Better: "faster", Worse: "slower",
		Trial:   func(r *record.Record) float64 { return Positive(float64(r.Start.ReadyNs)) },
		Missing: notTimed, Doc: "time from the exec of the program until its readiness path " +
			"responded"},
	{Name: "first_response", Unit: units.Ns, Asked: true,
		Label: "first response", Better: "faster", Worse: "slower",
		Trial: func(r *record.Record) float64 {
			return Positive(float64(r.Start.FirstResponseNs))
		},
		Missing: notTimed, Column: &Column{"first", "first answer", OfTrial, 2, units.Duration},
		Doc: "time from the launch until the whole response to the first request of the contract"},
	{Name: "idle_rss", Unit: units.Octet, Asked: true,
		Label: "idle memory (RSS)", Better: "less", Worse: "more",
		Trial:   func(r *record.Record) float64 { return Positive(float64(r.Start.RSSBytes)) },
		Missing: "memory was not sampled before the load",
		Column:  &Column{"idle", "idle RSS", OfTrial, 3, units.Bytes},
		Doc: "resident memory of all processes of the service after the first response, before " +
			"the load"},
	{Name: SteadyAt, Unit: units.Ns,
		Label: "time to steady", Better: "faster", Worse: "slower",
		Trial: func(r *record.Record) float64 {
			if r.Target.URL != "" && r.Warmup.DurationNs == 0 { // there was no warm-up
				return math.NaN()
			}
			if w := r.Warmup; !w.Steady || w.Kind == stats.Unsteady || helped(w) {
				return math.NaN()
			}
			return float64(r.Warmup.SteadyAtNs)
		},
		Missing: notSteady,
		Doc: "time in the warm-up at which the steady state began; withheld if a trial has " +
			"none"},
	{Name: TimeToPeak, Unit: units.Ns,
		Label: "time to peak", Better: "faster", Worse: "slower",
		Trial:   ofWarmup(func(w record.Warmup) int64 { return w.PeakAtNs }),
		Missing: notSteady, Doc: "time from the beginning of the warm-up until the first " +
			"interval at the level of the steady state; withheld if a trial has none"},
	{Name: WarmupCost, Unit: units.Ns,
		Label: "warm-up cost", Better: "less", Worse: "more",
		Trial:   ofWarmup(func(w record.Warmup) int64 { return w.CostNs }),
		Missing: notSteady, Doc: "requests that the warm-up lost, divided by the steady rate; " +
			"withheld if a trial has no steady state"},
	{Name: "artifact_size", Unit: units.Octet, Exact: true,
		Label: "artifact size", Better: "smaller", Worse: "larger",
		Trial:   func(r *record.Record) float64 { return Positive(float64(r.Artifact.SizeBytes)) },
		Missing: "the artifact was not measured",
		Column:  &Column{"size", "size", OfTrial, 4, units.Bytes},
		Doc:     "size of the files that the build made"},
	{Name: "image_size", Unit: units.Octet, Exact: true, Asked: true,
		Label: "image size", Better: "smaller", Worse: "larger",
		Trial:   func(r *record.Record) float64 { return Positive(float64(r.Artifact.ImageBytes)) },
		Missing: "no image of it was built (prony build --images)",
		Column:  &Column{"image", "image", OfTrial, 5, units.Bytes},
		Doc:     "size of the container's image; withheld if no image was built"},
}

// AsksEach returns the number of backend calls per good response; NaN: unknown.
func AsksEach(a record.BackendCalls, l *record.Load) float64 {
	if a.Error != "" || a.IntervalNs <= 0 || l.Done == 0 {
		return math.NaN()
	}
	return a.Count * float64(l.WindowNs) / float64(a.IntervalNs) / float64(l.Done)
}

// Requests returns how many requests of a trial ended, in its warm-up and its loads; NaN: none. A
// lead-in, which is not counted, has as many as the same time of the window.
func Requests(r *record.Record) float64 {
	n := float64(r.Warmup.Requests)
	for i := range r.Loads {
		l := &r.Loads[i]
		lead := float64(l.LeadInNs) / float64(max(l.WindowNs, 1))
		n += float64(l.Done+l.Errors.Total()) * (1 + lead)
	}
	return Positive(n)
}

// ofGC makes a value unknown if collections were not logged.
func ofGC(value func(*record.Load) float64) func(*record.Load) float64 {
	return func(l *record.Load) float64 {
		if l.GC == nil {
			return math.NaN()
		}
		return value(l)
	}
}

// ofRoles returns a share of the service's CPU time. It is unknown for V8, whose workers both
// compile and collect.
func ofRoles(value func(record.Roles) int64) func(*record.Load) float64 {
	return func(l *record.Load) float64 {
		r, all := l.Service.Roles, l.Service.CPUNs
		if r == nil || r.CompilerOrGCNs > 0 || all <= 0 {
			return math.NaN()
		}
		return float64(value(*r)) / float64(all)
	}
}

// Split describes how a service's CPU time in a window was spent by purpose of threads: "91 %
// service, 6 % compiler, 3 % collector". It is empty if thread names do not show it.
func Split(u record.Usage) string {
	r := u.Roles
	if r == nil || u.CPUNs <= 0 {
		return ""
	}
	share := func(ns int64) string { return units.PercentTo(float64(ns)/float64(u.CPUNs), 0) }
	remaining := max(u.CPUNs-r.CompilerNs-r.GCNs-r.CompilerOrGCNs, 0)
	if r.CompilerOrGCNs > 0 {
		return share(remaining) + " service, " + share(r.CompilerOrGCNs) + " compiler or collector"
	}
	return share(remaining) + " service, " + share(r.CompilerNs) + " compiler, " +
		share(r.GCNs) + " collector"
}

// ofWarmup returns a value of the warm-up if there is a steady state to compare with. Records
// without Kind had no such analysis.
func ofWarmup(value func(record.Warmup) int64) func(*record.Record) float64 {
	return func(r *record.Record) float64 {
		if w := r.Warmup; w.Kind == "" || w.Kind == stats.Unsteady || helped(w) {
			return math.NaN()
		}
		return float64(value(r.Warmup))
	}
}

// helped reports whether a warm-up was made shorter than in production.
func helped(w record.Warmup) bool {
	return len(w.Cores) > 0 || w.PrioritizedThreads > 0 || w.ReconnectedAtNs > 0
}

// ofTimes returns a statistic of response times, unless a growing backlog determines them.
func ofTimes(l *record.Load, ns float64) float64 {
	if l.Model == record.Open && float64(l.Done) < KeptUp*float64(l.Scheduled) {
		return math.NaN()
	}
	return Positive(ns)
}

func p99Of(d record.Dist) float64 {
	if d.Count == 0 {
		return math.NaN()
	}
	return float64(d.P99Ns)
}

// searched returns the result of a search.
func searched(l *record.Load) float64 {
	if l.Search == nil || l.Search.Reason != "" {
		return math.NaN()
	}
	return Positive(l.Search.RatePerS)
}
