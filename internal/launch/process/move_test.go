package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/observe/host"
)

// A shell that forks without end is moved to more cores and back. The kernel must report the
// requested cores for each of its processes.
func TestMove(t *testing.T) {
	all, err := host.Cores()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 2 {
		t.Skip("there is one core")
	}
	one, two := all[1:2], all[:2]
	check := func(t *testing.T, p *proc, cores []int) {
		t.Helper()
		if err := p.Move(cores); err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, pid := range p.PIDs() {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if err != nil {
				continue // it has ended
			}
			seen++
			_, rest, _ := strings.Cut(string(b), "Cpus_allowed_list:")
			got, _, _ := strings.Cut(rest, "\n")
			want := cgroup.CoreList(cores)
			// The kernel writes neighbours as a range.
			if got = strings.TrimSpace(got); strings.ReplaceAll(got, "-", ",") != want {
				t.Errorf("process %d may run on %s, want %s", pid, got, want)
			}
		}
		inForce, missing := p.Limits()
		// One core limits it to one processor, two cores do not.
		own := "affinity " + cgroup.CoreList(cores)
		if seen == 0 || !slices.Contains(wording.Limits(inForce), own) ||
			len(missing) != len(cores)-1 {
			t.Errorf("%d processes seen; in force %+v, missing %+v", seen, inForce, missing)
		}
	}
	for _, noGroup := range []bool{false, true} {
		t.Run(fmt.Sprintf("no group %v", noGroup), func(t *testing.T) {
			dir := t.TempDir()
			l := &Launcher{Journal: journal(t), NoGroup: noGroup}
			started, err := l.Launch(context.Background(), launch.Spec{
				Name: "t", Dir: dir, LogFile: filepath.Join(dir, "log"), Cores: one, CPUs: 1,
				Args: []string{"sh", "-c", "while :; do sleep 0.002; done & sleep 60"},
				Env:  []string{"PATH=/usr/bin:/bin"},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer started.Stop(0)
			p := started.(*proc)
			for range 5 {
				check(t, p, two)
				check(t, p, one)
			}
		})
	}
}
