package host_test

import (
	"fmt"
	"slices"
	"testing"

	"prony.example/internal/observe/host"
)

// machine returns processors in nodes of equal size. Numbers of siblings differ by half a node, as
// Linux numbers them on most servers.
func machine(processors, threads, nodes int) (out []host.Processor) {
	cores := processors / threads
	for id := range processors {
		core := id % cores
		out = append(out, host.Processor{ID: id, Core: core, Node: core * nodes / cores})
	}
	return out
}

func TestApart(t *testing.T) {
	check := func(of []host.Processor, cpus float64, want string) {
		t.Helper()
		var ids []int
		for _, p := range of {
			ids = append(ids, p.ID)
		}
		l, err := host.Divide(ids, cpus)
		if err != nil {
			t.Fatal(err)
		}
		got := l.Apart(of)
		if text := fmt.Sprint(got.Home, len(got.Load), got.Service); text != want {
			t.Errorf("%d processors for %g CPUs: home, loads and service are %s, want %s", len(of),
				cpus, text, want)
		}
		core := map[int]int{}
		for _, p := range of {
			core[p.ID] = p.Core
		}
		for _, h := range got.Home {
			for _, other := range got.Cores() {
				if core[h] == core[other] {
					t.Errorf("%d processors: the home's %d is of the core of %d", len(of), h, other)
				}
			}
		}
		if !slices.Equal(got.Service, l.Service) {
			t.Errorf("the service has moved from %v to %v", l.Service, got.Service)
		}
	}
	// One or two cores, or a service with half of them: the load keeps its cores.
	check(machine(1, 1, 1), 1, "[] 1 [0]")
	check(machine(2, 1, 1), 1, "[] 1 [1]")
	check(machine(3, 1, 1), 1, "[] 2 [2]")
	check(machine(4, 1, 1), 2, "[] 2 [2 3]")
	// The load keeps two, and as many as the service has: 8 − 4 = 4 is one too few.
	check(machine(4, 1, 1), 1, "[2] 2 [3]")
	check(machine(8, 1, 1), 1, "[6] 6 [7]")
	check(machine(8, 1, 1), 4, "[] 4 [4 5 6 7]")
	check(machine(8, 1, 1), 3, "[4] 4 [5 6 7]")
	// SMT: 7 serves, and 3 shares its core; 0+4, 1+5 and 2+6 are free, and the last one is taken.
	check(machine(4, 2, 1), 1, "[] 3 [3]")
	check(machine(8, 2, 1), 1, "[2 6] 5 [7]")
	check(machine(16, 2, 1), 2, "[5 13] 12 [14 15]")
	// Two nodes: 0-7 and 16-23 are node 0; the service is on node 1, the collector is not.
	check(machine(16, 1, 2), 1, "[7] 14 [15]")
	check(machine(64, 2, 2), 4, "[15 47] 58 [60 61 62 63]")
	check(machine(64, 1, 4), 2, "[47] 61 [62 63]")
}

// TestBack checks that a backing process gets a core after the collector, by the same rule.
func TestBack(t *testing.T) {
	check := func(of []host.Processor, cpus float64, want string) {
		t.Helper()
		l, err := host.Divide(upTo(len(of)), cpus)
		if err != nil {
			t.Fatal(err)
		}
		l = l.Apart(of).Back(of)
		if text := fmt.Sprint(l.Backing, l.Home, len(l.Load), l.Service); text != want {
			t.Errorf("%d processors for %g CPUs: %s, want %s", len(of), cpus, text, want)
		}
	}
	check(machine(2, 1, 1), 1, "[] [] 1 [1]")
	check(machine(4, 1, 1), 1, "[] [2] 2 [3]")
	check(machine(5, 1, 1), 1, "[2] [3] 2 [4]")
	// The load keeps as many as the service has: 8 − 3 − 1 = 4 leaves one, and 3 of 8 remain.
	check(machine(8, 1, 1), 3, "[3] [4] 3 [5 6 7]")
	check(machine(8, 1, 1), 4, "[] [] 4 [4 5 6 7]")
	// SMT: 2+6 is the collector's, 1+5 is taken, and the load keeps 0+4 and 3, which include one
	// complete core.
	check(machine(8, 2, 1), 1, "[] [2 6] 5 [7]")
	check(machine(16, 2, 1), 2, "[4 12] [5 13] 10 [14 15]")
	// The other node is preferred.
	check(machine(16, 1, 2), 1, "[6] [7] 13 [15]")
}

func TestProcessorsOfThisMachine(t *testing.T) {
	ids, err := host.Cores()
	if err != nil {
		t.Skip(err)
	}
	got := host.Processors(ids)
	for i, p := range got {
		if p.ID != ids[i] || p.Core > p.ID || p.Core < 0 || p.Node < 0 {
			t.Errorf("processor %d is %+v", ids[i], p)
		}
	}
	if p := host.Processors([]int{1 << 20}); p[0] != (host.Processor{ID: 1 << 20, Core: 1 << 20}) {
		t.Errorf("one that there is not is %+v", p[0])
	}
}

func upTo(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}
