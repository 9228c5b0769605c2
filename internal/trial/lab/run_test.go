package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/record"
)

func TestDivide(t *testing.T) {
	backed := &service.Service{Name: "b", Targets: []service.Target{{}}}
	backed.Run.Processes = []service.Process{{Name: "db", Backing: true}, {Name: "b"}}
	catalog := Catalog{backed, {Name: "plain", Targets: []service.Target{{}}}}
	target, launcher := "plain", ""
	check := func(cores []int, layout string) {
		t.Helper()
		s := &suite.Suite{Limits: suite.Limits{CPUs: 1}}
		plan := &suite.Plan{Suite: s, Trials: []suite.Trial{{Target: target},
			{Target: target, Launcher: launcher}}}
		r := &run{cores: cores, planned: planned{plan: plan, catalog: catalog}}
		err := r.divide()
		if err != nil || fmt.Sprint(r.layout) != layout {
			t.Errorf("%v: %v, error %v, want %s", cores, r.layout, err, layout)
		}
	}
	check([]int{0, 1}, "{[1] [0] [] [] false}")
	// Cores that this kernel does not have count as cores of their own.
	check([]int{9001, 9002, 9003, 9004}, "{[9004] [9001 9002] [9003] [] false}")
	check([]int{9001, 9002, 9003, 9004, 9005}, "{[9005] [9001 9002 9003] [9004] [] false}")
	target = "b"
	check([]int{9001, 9002, 9003, 9004, 9005}, "{[9005] [9001 9002] [9004] [9003] false}")
	check([]int{9001, 9002, 9003, 9004}, "{[9004] [9001 9002] [9003] [] false}")
	launcher = "docker" // no cores for backing processes, also in the other trials
	check([]int{9001, 9002, 9003, 9004, 9005}, "{[9005] [9001 9002 9003] [9004] [] false}")
	launcher = ""
}

// Runs that begin within a second have folders of their own.
func TestNewFolder(t *testing.T) {
	results := t.TempDir()
	for _, want := range []string{"now", "now-2", "now-3"} {
		id, dir := record.NewFolder(results, "now")
		if id != want || dir != filepath.Join(results, want) {
			t.Fatalf("%s in %s, want %s", id, dir, want)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
