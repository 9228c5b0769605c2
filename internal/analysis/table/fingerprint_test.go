package table

import (
	"testing"

	"prony/record/metric"
	"prony/record"
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
	check := func(want string, inForce ...string) {
		t.Helper()
		if got := kinds(inForce); got != want {
			t.Errorf("%q is %q, want %q", inForce, got, want)
		}
	}
	check("")
	check("affinity, cpuset (cgroup v1), memory (cgroup v1)", "cpuset 0-1,3 (cgroup v1)",
		"memory 1073741824 (cgroup v1)", "affinity 1")
}

func TestFingerprints(t *testing.T) {
	r := &result.Record{Contract: "hello", Scenario: "read",
		Loads: []result.Load{{Name: "peak", Model: result.Closed, Connections: 64}}}
	base := MethodOf([]*result.Record{r}, []string{"GET /"})
	if len(base.Fingerprint()) != 8 {
		t.Errorf("the fingerprint is %q", base.Fingerprint())
	}
	check := func(same bool, change func(*result.Record), requests ...string) {
		t.Helper()
		other := *r
		other.Loads = []result.Load{r.Loads[0]}
		change(&other)
		m := MethodOf([]*result.Record{&other}, requests)
		if got := m.Fingerprint() == base.Fingerprint(); got != same {
			t.Errorf("the same: %v, want %v", got, same)
		}
	}
	check(true, func(*result.Record) {}, "GET /")
	check(true, func(r *result.Record) { r.Provenance.Seed, r.Block, r.Run = 7, 2, "x" }, "GET /")
	check(true, func(r *result.Record) { r.Provenance.SuiteHash = "x" }, "GET /")
	check(false, func(*result.Record) {}, "POST /")
	check(true, func(r *result.Record) { r.Loads[0].Generator.Priority = "fifo 1" }, "GET /")
	check(false, func(r *result.Record) { r.Contract = "http" }, "GET /")
	check(false, func(r *result.Record) { r.Limits.HomeCores = []int{2} }, "GET /")
	check(true, func(r *result.Record) { r.Limits.HomeCores = []int{} }, "GET /")
	check(false, func(r *result.Record) { r.Provenance.Rides = []string{"AGENT=x"} }, "GET /")
	check(false, func(r *result.Record) { r.Target.Launcher = "docker" }, "GET /")
	check(false, func(r *result.Record) { r.Loads[0].Connections = 63 }, "GET /")
	check(false, func(r *result.Record) { r.Loads[0].Name = "top" }, "GET /")
	check(false, func(r *result.Record) { r.Loads[0].Generators = make([]result.Generator, 1) },
		"GET /")
}

func TestWhatIsShownUnasked(t *testing.T) {
	both := []LoadInfo{{Name: "peak", Model: result.Closed}, {Name: "half", Model: result.Open}}
	check := func(want bool, name, model string, loads []LoadInfo) {
		t.Helper()
		if got := Usual(Metric{Name: name, Model: model}, loads); got != want {
			t.Errorf("%s of %s is shown: %v, want %v", name, model, got, want)
		}
	}
	check(true, metric.Throughput, result.Closed, both)
	check(false, metric.Throughput, result.Open, both)
	check(false, "p99", result.Closed, both)
	check(true, "p99", result.Closed, both[:1])
	check(true, "p99", result.Open, both)
	check(true, metric.Achieved, result.Open, both)
	check(true, metric.CPU, result.Closed, both)
	check(false, metric.CPU, result.Open, both)
	check(true, metric.CPU, result.Open, both[1:])
	check(true, metric.Ready, "", both)
	check(false, "own_lag_p99", result.Open, both)
	check(false, "error_share", result.Closed, both)
}

// Whether the load goes first on its cores is told, and does not bind: on a quiet machine there is
// nobody else to go before.
func TestPrecedenceIsTold(t *testing.T) {
	by := func(priority string) Method {
		return MethodOf([]*result.Record{{Loads: []result.Load{{Model: result.Open,
			Generator: result.Gen{Priority: priority}}}}}, nil)
	}
	binding, told := by("fifo 1").Differences(by("other nice 0"))
	if len(binding) > 0 || len(told) != 1 ||
		told[0] != (Difference{"precedence", "fifo 1", "other nice 0"}) {
		t.Errorf("bind %v, told %v", binding, told)
	}
}
