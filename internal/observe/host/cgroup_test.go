package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCgroupVersion(t *testing.T) {
	// Names with a final / are folders, as in a kernel's /sys/fs/cgroup.
	check := func(name, names, want string) {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for n := range strings.FieldsSeq(names) {
				path := filepath.Join(root, n)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if strings.HasSuffix(n, "/") {
					if err := os.MkdirAll(path, 0o755); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if err := os.WriteFile(path, nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := CgroupVersion(root); got != want {
				t.Errorf("version of %q is %s, want %s", names, got, want)
			}
		})
	}
	check("version 1", "blkio/ cpu/ cpuacct/ cpuset/ memory/", "v1")
	check("version 1, joined", "cpu,cpuacct/ cpuset/ memory/", "v1")
	check("hybrid", "cpu,cpuacct/ cpuset/ memory/ unified/cgroup.controllers", "v1")
	check("version 2", "cgroup.controllers cgroup.procs cpu.stat cpuset.cpus.effective", "v2")
	check("version 2 without statistics", "cgroup.controllers", "v2")
	check("no controller of processors", "memory/ pids/", "none")
	check("nothing mounted", "", "none")

	if got := CgroupVersion(filepath.Join(t.TempDir(), "missing")); got != "none" {
		t.Errorf("version of a missing folder is %s, want none", got)
	}
}
