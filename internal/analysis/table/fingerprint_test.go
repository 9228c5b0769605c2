package table

import (
	"encoding/json"
	"testing"

	"prony.example/record"
	"prony.example/record/metric"
)

func TestWhatBindsOfAVersion(t *testing.T) {
	check := func(version, want string) {
		t.Helper()
		if got := compatible(version); got != want {
			t.Errorf("%q binds as %q, want %q", version, got, want)
		}
	}
	check("v0.4.1 0123456789ab", "v0.4")
	check("v0.0.0-20261121 0123456789ab", "v0.0")
	check("v1.2.3", "v1")
	check("v2", "v2")
	check("devel", "between releases")
	check("", "")
}

func TestWhatBindsOfLimits(t *testing.T) {
	check := func(want, inForce string) {
		t.Helper()
		var limits []record.Limit
		if err := json.Unmarshal([]byte(inForce), &limits); err != nil {
			t.Fatal(err)
		}
		if got := kinds(limits); got != want {
			t.Errorf("%s is %q, want %q", inForce, got, want)
		}
	}
	check("", `[]`)
	const want = "affinity, cpuset (cgroup v1), memory (cgroup v1)"
	check(want, `[{"kind": "cores", "by": "cgroup v1", "cores": [0, 1, 3]},
		{"kind": "memory", "by": "cgroup v1", "value": 1073741824},
		{"kind": "cores", "by": "affinity", "cores": [1]}]`)
	// Numbers of an older version's records must be comparable with these.
	check(want, `["cpuset 0-1,3 (cgroup v1)", "memory 1073741824 (cgroup v1)", "affinity 1"]`)
}

func TestFingerprints(t *testing.T) {
	r := &record.Record{Contract: "hello", Scenario: "read",
		Loads: []record.Load{{Name: "peak", Model: record.Closed, Connections: 64}}}
	base := MethodOf([]*record.Record{r}, []string{"GET /"})
	if len(base.Fingerprint()) != 8 {
		t.Errorf("the fingerprint is %q", base.Fingerprint())
	}
	check := func(same bool, change func(*record.Record), requests ...string) {
		t.Helper()
		other := *r
		other.Loads = []record.Load{r.Loads[0]}
		change(&other)
		m := MethodOf([]*record.Record{&other}, requests)
		if got := m.Fingerprint() == base.Fingerprint(); got != same {
			t.Errorf("the same: %v, want %v", got, same)
		}
	}
	check(true, func(*record.Record) {}, "GET /")
	check(true, func(r *record.Record) { r.Provenance.Seed, r.Block, r.Run = 7, 2, "x" }, "GET /")
	check(true, func(r *record.Record) { r.Provenance.SuiteHash = "x" }, "GET /")
	check(false, func(*record.Record) {}, "POST /")
	check(true, func(r *record.Record) { r.Loads[0].Generator.Priority = "fifo 1" }, "GET /")
	check(false, func(r *record.Record) { r.Contract = "http" }, "GET /")
	check(false, func(r *record.Record) { r.Limits.TelemetryCores = []int{2} }, "GET /")
	check(true, func(r *record.Record) { r.Limits.TelemetryCores = []int{} }, "GET /")
	check(false, func(r *record.Record) { r.Provenance.VariantEnv = []string{"AGENT=x"} }, "GET /")
	check(false, func(r *record.Record) { r.Target.Launcher = "docker" }, "GET /")
	check(false, func(r *record.Record) { r.Loads[0].Connections = 63 }, "GET /")
	check(false, func(r *record.Record) { r.Loads[0].Name = "top" }, "GET /")
	start := func(others int) func(*record.Record) {
		return func(r *record.Record) {
			r.SideBySide = &record.SideBySide{With: make([]string, others)}
		}
	}
	check(false, start(1), "GET /")
	blocks, one := base, *r
	start(1)(&one)
	base = MethodOf([]*record.Record{&one}, []string{"GET /"})
	check(true, start(4), "GET /") // the number of targets beside it does not bind
	base = blocks
	check(false, func(r *record.Record) { r.Loads[0].Generators = make([]record.Generator, 1) },
		"GET /")
}

func TestWhatIsShownUnasked(t *testing.T) {
	both := []LoadInfo{{Name: "peak", Model: record.Closed}, {Name: "half", Model: record.Open}}
	check := func(want bool, name, model string, loads []LoadInfo) {
		t.Helper()
		if got := ShownByDefault(Metric{Name: name, Model: model}, loads); got != want {
			t.Errorf("%s of %s is shown: %v, want %v", name, model, got, want)
		}
	}
	check(true, metric.Throughput, record.Closed, both)
	check(false, metric.Throughput, record.Open, both)
	check(false, "p99", record.Closed, both)
	check(true, "p99", record.Closed, both[:1])
	check(true, "p99", record.Open, both)
	check(true, metric.Achieved, record.Open, both)
	check(true, metric.CPU, record.Closed, both)
	check(false, metric.CPU, record.Open, both)
	check(true, metric.CPU, record.Open, both[1:])
	check(true, metric.Ready, "", both)
	check(false, "own_lag_p99", record.Open, both)
	check(false, "error_share", record.Closed, both)
}

// TestPrecedenceIsTold checks that the load's priority on its cores is reported but not binding: on
// a quiet machine it makes no difference.
func TestPrecedenceIsTold(t *testing.T) {
	by := func(priority string) Method {
		return MethodOf([]*record.Record{{Loads: []record.Load{{Model: record.Open,
			Generator: record.Gen{Priority: priority}}}}}, nil)
	}
	binding, told := by("fifo 1").Differences(by("other nice 0"))
	if len(binding) > 0 || len(told) != 1 ||
		told[0] != (Difference{"precedence", "fifo 1", "other nice 0"}) {
		t.Errorf("bind %v, told %v", binding, told)
	}
}

// TestAspectsOfALoad checks the rate and the length of loads as methods name them.
func TestAspectsOfALoad(t *testing.T) {
	check := func(rate, window string, l record.Load) {
		t.Helper()
		l.Name = "x"
		got := map[string]string{}
		for _, a := range MethodOf([]*record.Record{{Loads: []record.Load{l}}}, nil).Aspects {
			got[a.Name] = a.Value
		}
		if got["x rate"] != rate || got["x window"] != window {
			t.Errorf("rate %q, window %q; want %q, %q", got["x rate"], got["x window"], rate,
				window)
		}
	}
	check("500/s", "10 s", record.Load{Model: record.Open, RatePerS: 500, WindowNs: 10e9})
	check("50% of peak", "10 s", record.Load{Model: record.Open, RatePerS: 500, WindowNs: 10e9,
		RateOf: "50% of peak"})
	check("as answers come", "2.5 s", record.Load{Model: record.Closed, WindowNs: 2.5e9})
	check("as answers come", "300 requests", record.Load{Model: record.Closed, WindowNs: 2e9,
		Requests: 300})
	check("the highest that keeps p99<50ms", "60 s of steps", record.Load{WindowNs: 2e9,
		Search: &record.Search{SLO: "p99<50ms", BudgetNs: 60e9}})
}
