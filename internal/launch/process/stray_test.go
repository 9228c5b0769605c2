package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"prony.example/internal/launch"
	"prony.example/record"
)

// After a service has moved to another control group, none of its limits applies, and none is
// reported as in force.
func TestStrays(t *testing.T) {
	p, err := (&Launcher{Journal: journal(t)}).Launch(t.Context(), launch.Spec{
		Name: "stray", Args: []string{"/bin/sh", "-c", "sleep 1000"}, Dir: t.TempDir(),
		LogFile: filepath.Join(t.TempDir(), "log"), Cores: []int{0}, CPUs: 1, MemoryBytes: 64 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(0) //nolint:errcheck // below
	if len(p.Groups()) == 0 {
		t.Skip("control groups are not permitted on this machine")
	}
	inForce, missing := p.Limits()
	if len(inForce) == 0 || len(missing) > 0 {
		t.Errorf("before: in force %+v, missing %+v", inForce, missing)
	}
	for _, g := range p.Groups() {
		err := os.WriteFile(filepath.Join(filepath.Dir(g.Dir), "cgroup.procs"),
			[]byte(strconv.Itoa(p.Main())), 0)
		if err != nil {
			t.Fatal(err)
		}
	}
	inForce, missing = p.Limits()
	if len(inForce) > 0 || len(missing) != 1 || !record.HasStrayed(missing) ||
		!slices.Contains(missing[0].PIDs, p.Main()) {
		t.Errorf("after: in force %+v, missing %+v", inForce, missing)
	}
	if err := p.Stop(0); err != nil {
		t.Error(err)
	}
}
