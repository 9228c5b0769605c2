package host_test

import (
	"fmt"
	"testing"

	"prony.example/internal/observe/host"
	"prony.example/record"
)

func TestDivide(t *testing.T) {
	check := func(cores []int, cpus float64, want string) {
		t.Helper()
		l, err := host.Divide(cores, cpus)
		got := fmt.Sprint(l.Service, l.Load, l.Shared)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("Divide(%v, %g) is %s, want %s", cores, cpus, got, want)
		}
	}
	check([]int{0, 1}, 1, "[1] [0] false")
	check([]int{0, 1, 2, 3}, 2, "[2 3] [0 1] false")
	check([]int{0, 1, 2, 3}, 1, "[3] [0 1 2] false")
	check([]int{0, 1, 2, 3}, 1.5, "[2 3] [0 1] false")
	check([]int{5}, 1, "[5] [5] true")
	check([]int{0, 1}, 2, "divide 2 cores: the service requests 2 cores and the load needs 1; "+
		"set limits.cpus to 1 or less")
	check(nil, 1, "divide 0 cores: there is no room for a service with 1 CPUs")
}

func TestDescribeKnowsThisMachine(t *testing.T) {
	var p record.Provenance
	host.Describe(&p)
	if p.Kernel == "" || p.Cores < 1 || p.MemoryBytes < 1<<20 || p.CPUModel == "" {
		t.Errorf("described as %+v", p)
	}
}
