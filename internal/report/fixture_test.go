package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/analysis/table"
	"prony.example/record"
)

// subject is a fictional target: the results of its trials without noise. The numbers are plausible
// but come from no machine.
type subject struct {
	target    record.Target
	peakPerS  float64
	p50Ms     float64 // at half of peak
	sigma     float64 // of the logarithm of response times
	cpuUs     float64 // per request
	rssMiB    float64
	readyMs   float64
	artifactB int64
}

func named(name, language, framework, version, runtime, mode string) record.Target {
	return record.Target{
		Name: name, Service: name, Language: language, Framework: framework, Version: version,
		Runtime: runtime, Mode: mode, Variant: "none",
	}
}

var subjects = []subject{
	{named("rust-axum", "Rust", "axum", "0.8.4", "native", "reactive"),
		48_200, 0.21, 0.42, 18.9, 9, 4, 5 << 20},
	{named("java-netty", "Java", "Netty", "4.2.6", "jvm", "reactive"),
		47_600, 0.22, 0.44, 20.1, 142, 310, 4 << 20},
	{named("go-nethttp", "Go", "net/http", "1.26", "native", "virtual"),
		39_000, 0.25, 0.46, 24.7, 18, 6, 7 << 20},
	{named("java-jdk/virtual", "Java", "JDK HttpServer", "25", "jvm", "virtual"),
		31_400, 0.31, 0.55, 33.2, 168, 290, 1 << 20},
	{named("node-express", "JavaScript", "Express", "5.1.0", "node", "reactive"),
		11_300, 0.74, 0.61, 90.5, 88, 410, 6 << 20},
	{named("python-django/reactive", "Python", "Django", "6.0.6", "cpython", "reactive"),
		580, 5.4, 0.7, 1730, 96, 1240, 31 << 20},
	{named("php-swoole", "PHP", "Swoole", "6.1", "cpython", "reactive"),
		0, 0, 0, 0, 0, 0, 0},
}

const (
	fixtureBlocks  = 5
	fixtureWindowS = 10
)

// pointers returns pointers to records that a test has as values.
func pointers(records []record.Record) (out []*record.Record) {
	for i := range records {
		out = append(out, &records[i])
	}
	return out
}

func analyze(records []record.Record, o table.Options) table.Study {
	return table.Analyze(pointers(records), o)
}

func sheetOf(records []record.Record, o table.Options) table.Sheet {
	study := analyze(records, o)
	return study.Sheet()
}

// fixture returns a run of five blocks: many trials VALID, some SUSPECT, one INVALID in one load,
// one target without a good open load, one that fails once and one that always fails. It is a pure
// function of its seed.
func fixture() []record.Record {
	rng := rand.New(rand.NewPCG(42, 7))
	start := time.Date(2026, 11, 21, 3, 40, 11, 0, time.UTC)
	var records []record.Record
	order := 0
	for block := 1; block <= fixtureBlocks; block++ {
		shared := math.Exp(0.02 * rng.NormFloat64()) // what the machine does to the whole block
		for _, k := range rng.Perm(len(subjects)) {
			order++
			s := subjects[k]
			r := trialOf(s, block, order, start.Add(time.Duration(order)*45*time.Second))
			pace := shared * math.Exp(0.012*rng.NormFloat64())
			if s.peakPerS == 0 {
				fail(&r, "ready", "no 200 from /health within 10s: connection refused",
					"PHP Fatal error: Uncaught Error: Class \"Swoole\\Http\\Server\" not found")
			} else if s.target.Name == "java-netty" && block == 4 {
				fail(&r, "verify", "GET /hello: body is 13 bytes, wanted 11",
					"log line with </script><script>alert('x')</script> & <b>tags</b>\u2028end")
			} else {
				measure(&r, s, pace, rng)
			}
			judge(&r)
			records = append(records, r)
		}
	}
	return records
}

func trialOf(s subject, block, order int, at time.Time) record.Record {
	return record.Record{
		Version: record.Version, Run: "2026-11-21T03-40-11Z", Suite: "canonical",
		Trial: fmt.Sprintf("b%d-%02d-%s", block, order, s.target.Name), Time: at,
		Block: block, Order: order, Target: s.target, Scenario: "hello", Contract: "hello",
		Outcome: record.Measured, DurationNs: 31e9,
		Limits: record.Limits{
			CPUs: 1, MemoryBytes: 512 << 20, ServiceCores: []int{0}, LoadCores: []int{1},
			InForce: []record.Limit{
				{Kind: record.LimitCores, By: record.ByCgroup1, Cores: []int{1}},
				{Kind: record.LimitMemory, By: record.ByCgroup1, Value: 1 << 30}},
		},
		Artifact: record.Artifact{
			SHA256: fmt.Sprintf("%064x", len(s.target.Name)), SizeBytes: s.artifactB,
			BuildHash: "b0",
		},
		Probe: record.Cost{Samples: 300, PeriodNs: 1e8, CPUNs: 3e7, CPUShare: 0.001},
		Provenance: record.Provenance{
			Prony: "0.1.0", Commit: "4be1c0ffee", Seed: 42, SuiteHash: "5u17e", PlanHash: "91a4",
			Command: []string{"prony", "run", "suites/canonical.yaml", "--seed", "42",
				"--blocks", "5"},
			Tools: map[string]string{"go": "go1.26.8", "java": "openjdk 25.0.3 2026-10-20",
				"node": "v24.9.0"},
			OS: "linux", Kernel: "6.18.2", Arch: "amd64", CPUModel: "Example CPU @ 2.00GHz",
			Cores: 2, MemoryBytes: 8 << 30, Governor: "none", Cgroup: "v1", Hypervisor: true,
			ServiceArgs: []string{"./" + s.target.Service, "--port", "0"},
		},
		Verdict: record.Verdict{Grade: record.Valid},
	}
}

func fail(r *record.Record, step, cause, log string) {
	r.Outcome = record.Failed
	r.Failure = &record.Failure{
		Step: step, Error: cause, Hint: "run the service by hand", Log: []string{"starting", log},
	}
	r.DurationNs = 11e9
}

func measure(r *record.Record, s subject, pace float64, rng *rand.Rand) {
	r.Start = record.Start{
		ListenNs: int64(0.8 * s.readyMs * 1e6 / pace), ReadyNs: int64(s.readyMs * 1e6 / pace),
		FirstResponseNs: int64(1.01 * s.readyMs * 1e6 / pace),
	}
	r.Warmup = record.Warmup{
		DurationNs: 8e9, Requests: int64(7 * s.peakPerS), Steady: true, SteadyAtNs: 6e9,
		IntervalNs: 1e9,
	}
	for i := range 8 {
		r.Warmup.RatePerS = append(r.Warmup.RatePerS, s.peakPerS*pace*(1-0.4/float64(i*i+1)))
	}
	peak := s.peakPerS * pace
	r.Loads = []record.Load{
		loadOf(s, "peak", "closed", peak, 64/peak*1e3, s.sigma*0.6, rng),
		loadOf(s, "half", "open", peak/2, s.p50Ms/pace, s.sigma, rng),
	}
	half := &r.Loads[1]
	half.Arrivals, half.RateOf, half.RatePerS = "poisson", "50% of peak", peak/2
	half.RateBase = "peak"
}

// loadOf returns one load: counts, a log-normal distribution of response times, and a series.
func loadOf(s subject, name, model string, perS, p50Ms, sigma float64, rng *rand.Rand) record.Load {
	l := record.Load{
		Name: name, Model: model, Connections: 64, Threads: 1, Seed: rng.Uint64(),
		WindowNs: fixtureWindowS * 1e9, LeadInNs: 1e9, DrainNs: 2e6, CeilingPerS: 190_000,
	}
	l.ResponseTime = logNormal(int64(perS*fixtureWindowS), p50Ms, sigma)
	n := l.ResponseTime.Count
	l.Scheduled, l.Sent, l.Done, l.Answered = n, n, n, n
	l.ThroughputPerS = float64(n) / fixtureWindowS
	l.BytesIn, l.BytesOut = 150*n, 70*n
	l.InFlightMean = l.ThroughputPerS * l.ResponseTime.MeanNs / 1e9
	l.ServiceTime = l.ResponseTime
	l.ServiceTime.HDR = ""
	l.Lag = record.Dist{Count: n, P50Ns: 4_000, P90Ns: 8_000, P99Ns: 14_000, MaxNs: 90_000}
	l.OwnLag = l.Lag
	l.Generator = record.Gen{
		Engine: "epoll", EngineReason: "default on Linux", Pacing: "timer",
		CPUPerRequestNs: 4_300, CPUShare: 4.3e-6 * perS, Priority: "other",
	}
	l.Service = record.Usage{
		Source: "cgroup v1", WindowNs: l.WindowNs,
		CPUPerRequestNs: s.cpuUs * 1e3 * (1 + 0.01*rng.NormFloat64()),
		CPUShare:        min(1, s.cpuUs*perS/1e6),
		RSSMaxBytes:     int64(s.rssMiB * (1 << 20) * (1 + 0.02*rng.Float64())),
	}
	l.Host = record.Host{StealShare: 0.001, PressureCPU: 0.2, PressureMemory: -1, PressureIO: -1}
	l.Series = seriesOf(perS, p50Ms, sigma, rng)
	return l
}

func seriesOf(perS, p50Ms, sigma float64, rng *rand.Rand) record.Series {
	s := record.Series{IntervalNs: 1e9}
	for range fixtureWindowS {
		n := int64(perS * (1 + 0.02*rng.NormFloat64()))
		s.Scheduled, s.Sent = append(s.Scheduled, n), append(s.Sent, n)
		s.Done, s.Failed = append(s.Done, n), append(s.Failed, 0)
		p50 := p50Ms * 1e6 * (1 + 0.02*rng.NormFloat64())
		p99 := p50 * math.Exp(2.326*sigma) * math.Exp(0.15*rng.NormFloat64())
		s.P50Ns, s.P99Ns = append(s.P50Ns, int64(p50)), append(s.P99Ns, int64(p99))
		s.MaxNs = append(s.MaxNs, int64(3*p99))
	}
	return s
}

// logNormal records evenly spaced quantiles instead of random draws, so that percentiles are exact.
func logNormal(count int64, p50Ms, sigma float64) record.Dist {
	h := hdrhistogram.New(1, 60e9, 3)
	strata := min(count, 20_000)
	each, rest := count/strata, count%strata
	for i := range strata {
		p := (float64(i) + 0.5) / float64(strata)
		v := p50Ms * 1e6 * math.Exp(sigma*math.Sqrt2*math.Erfinv(2*p-1))
		n := each
		if i == strata/2 {
			n += rest // the middle, where it moves no percentile that is shown
		}
		if err := h.RecordValues(int64(v), n); err != nil {
			panic(err) // a fixture beyond a minute
		}
	}
	hdr, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err)
	}
	return record.Dist{
		Count: h.TotalCount(), MinNs: h.Min(), MeanNs: h.Mean(), MaxNs: h.Max(),
		P50Ns: h.ValueAtPercentile(50), P90Ns: h.ValueAtPercentile(90),
		P99Ns: h.ValueAtPercentile(99), P999Ns: h.ValueAtPercentile(99.9), HDR: string(hdr),
	}
}

func judge(r *record.Record) {
	switch {
	case r.Outcome == record.Failed:
		r.Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{{
			Rule: "failed", Grade: record.Invalid, Facts: record.Facts{Step: r.Failure.Step,
				Messages: []string{r.Failure.Error}, Hint: r.Failure.Hint},
		}}}
	case r.Target.Name == "node-express" && r.Block == 2:
		r.Verdict = record.Verdict{Grade: record.Suspect, Findings: []record.Finding{{
			Rule: "steal", Load: "peak", Grade: record.Suspect, Value: 0.013, Limit: 0.01,
			Unit: record.UnitShare, Side: record.Above,
		}, neighbours("peak", 6.7)}}
	case r.Target.Name == "rust-axum" && r.Block != 3:
		r.Verdict = record.Verdict{Grade: record.Suspect, Findings: []record.Finding{
			neighbours("half", 5.2+float64(r.Block)),
		}}
	case r.Target.Name == "java-jdk/virtual":
		r.Verdict = record.Verdict{Grade: record.Invalid, Findings: overloaded(r.Block)}
	case r.Target.Name == "go-nethttp" && r.Block == 3:
		r.Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{{
			Rule: "delivered", Load: "half", Grade: record.Invalid, Value: 0.962, Limit: 0.99,
			Unit: record.UnitShare, Side: record.Below,
		}}}
	}
}

// neighbours returns a finding of version 1.
func neighbours(load string, percent float64) record.Finding {
	amount := fmt.Sprintf("%.1f %%", percent)
	return record.Finding{
		Rule: "neighbors", Load: load, Grade: record.Suspect, Value: percent / 100, Limit: 0.05,
		Unit: record.UnitShare, Side: record.Above, Text: &record.Words{
			Observed: amount + " of the machine", Limit: "5.0 %", Amount: amount, Quantity: true,
			Hint: "end what else is running"},
	}
}

// overloaded leaves a target without any latency: in block 2 because of its peak, else because of
// itself. Its findings are of version 1.
func overloaded(block int) []record.Finding {
	if block == 2 {
		return []record.Finding{{
			Rule: "errors", Load: "peak", Grade: record.Invalid, Limit: 0.001,
			Unit: record.UnitShare, Text: &record.Words{
				Observed: "812 of 314,000 requests failed (status 503)", Limit: "0.1 %",
				Quantity: true,
				Hint:     "errors do not count as responses; read the service's log"},
		}}
	}
	return []record.Finding{{
		Rule: "capacity", Load: "half", Grade: record.Invalid, Value: float64(200 + block),
		Limit: 157, Unit: record.UnitPerS, Side: record.Above, Text: &record.Words{
			Observed: fmt.Sprintf("the backlog of requests grows by %d/s",
				200+block), Limit: "157/s",
			Amount: fmt.Sprintf("%d/s", 200+block), Quantity: true,
			Hint: "above capacity, latency says only how long the test was: lower the rate"},
	}}
}

// fixtureOptions returns the options of a canonical run.
func fixtureOptions() table.Options {
	return table.Options{
		Baseline:  "go-nethttp",
		Reproduce: "prony run suites/canonical.yaml --seed 42 --blocks 5",
		Report:    "results/2026-11-21T03-40-11Z/report.html",
		Skipped: []record.Skipped{{Target: "java-quarkus/native", Reason: "native-image is not " +
			"installed (see services/java-quarkus/README.md)"}},
	}
}
