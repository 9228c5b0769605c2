package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/record"
)

func member(args ...string) launch.Spec {
	return launch.Spec{Args: append([]string{"/act"}, args...), CPUs: 0.5,
		MemoryBytes: 64 << 20, ShareBytes: 32 << 20}
}

// podded skips a test without a control group for several containers.
func podded(t *testing.T, l *Launcher) {
	t.Helper()
	if p, why := l.podFor(); p == nil {
		t.Skip("no common control group: " + why)
	}
}

// One limit applies to the memory of all containers of a system, and their peak outlives the one
// that is killed.
func TestSystemOutOfMemory(t *testing.T) {
	l := launcher(t, Options{})
	podded(t, l)
	first := start(t, l, member("act-forever"))
	says(t, first, "ready")
	s := member("act-eats")
	s.Beside, s.Port = first, 8080
	s.Env = []string{"HOST=0.0.0.0", "PORT=8080"}
	second := start(t, l, s)
	says(t, second, "ready")
	dial(t, second)
	<-second.Exited()
	const want = "killed by the kernel: out of memory (limit 64 MiB, peak 64 MiB)"
	if second.Exit() != want {
		t.Errorf("the process ended with %q, want %q", second.Exit(), want)
	}
	dir := filepath.Join(first.Groups()[0].Dir)
	if err := second.Stop(0); err != nil {
		t.Error(err)
	}
	if err := first.Stop(0); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is left", dir)
	}
}

// If no group can hold a system, each container gets its share, and the record lists the missing
// limits.
func TestSystemWithoutGroup(t *testing.T) {
	l := launcher(t, Options{})
	l.driver = "systemd"
	p := start(t, l, member("act-forever"))
	inForce, missing := p.Limits()
	if !slices.ContainsFunc(inForce, func(l record.Limit) bool {
		return l.Kind == record.LimitMemory && l.Value == 32<<20
	}) {
		t.Errorf("in force is %+v, want its share of memory", inForce)
	}
	const why = "the engine's cgroup driver is systemd, so only systemd may create control groups"
	want := []record.Limit{
		{Kind: record.LimitCPU, Value: 0.5, By: record.ByNone, Reason: record.PerContainer,
			Detail: why},
		{Kind: record.LimitMemory, Value: 64 << 20, By: record.ByNone, Reason: record.PerContainer,
			Detail: why},
	}
	if !reflect.DeepEqual(missing, want) {
		t.Errorf("missing is %+v, want %+v", missing, want)
	}
	if len(p.Groups()) > 0 || !slices.Contains(p.PIDs(), p.Main()) {
		t.Errorf("groups are %v, want none; processes %v with %d", p.Groups(), p.PIDs(), p.Main())
	}
}

// A process that was started without a system accepts no neighbour, because no limit could hold
// both.
func TestNoNeighbour(t *testing.T) {
	l := launcher(t, Options{Host: true})
	first := start(t, l, launch.Spec{Args: []string{"/act", "act-forever"}})
	_, err := l.Launch(t.Context(), filled(t, launch.Spec{Beside: first}))
	if err == nil || !strings.Contains(err.Error(), "started without a share of the memory") {
		t.Errorf("error is %v, want one that refuses the neighbour", err)
	}
}

func TestPodGroups(t *testing.T) {
	check := func(name, mounts string, version int, want string) {
		t.Helper()
		if got := fmt.Sprint(podGroups(cgroup.Mounts(mounts), "x", version)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	const v1 = "1 2 0:3 / /c/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"1 2 0:3 / /c/blkio rw - cgroup cgroup rw,blkio\n1 2 0:3 / /c/u rw - cgroup2 cgroup2 rw\n"
	check("version 1", v1, 1, "[{/c/cpu,cpuacct/x cpu 1} {/c/cpu,cpuacct/x cpuacct 1}]")
	check("version 2", v1, 2, "[{/c/u/x  2}]")
	check("in a container", "1 2 0:3 /docker/7 /c/memory ro - cgroup cgroup rw,memory\n", 1, "[]")
	check("not mounted", "1 2 0:3 / / rw - ext4 /dev/sda rw\n", 1, "[]")
}

// The limits of a system are written correctly for both versions.
func TestPodLimits(t *testing.T) {
	s := launch.Spec{Cores: []int{0, 1}, CPUs: 1.5, MemoryBytes: 1 << 20}
	check := func(controller string, version int, files ...string) {
		t.Helper()
		above := t.TempDir()
		p := pod{name: "x", groups: []launch.Group{{
			Dir: filepath.Join(above, "x"), Controller: controller, Version: version}}}
		mems := filepath.Join(above, "cpuset.mems")
		if err := os.WriteFile(mems, []byte("0\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := p.make(s); err != nil {
			t.Fatal(err)
		}
		var got []string
		entries, err := os.ReadDir(p.groups[0].Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(p.groups[0].Dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Name()+"="+string(b))
		}
		if !slices.Equal(got, files) {
			t.Errorf("%s version %d: %q, want %q", controller, version, got, files)
		}
	}
	check("cpu", 1, "cpu.cfs_period_us=100000", "cpu.cfs_quota_us=150000")
	check("cpuset", 1, "cpuset.cpus=0,1", "cpuset.mems=0")
	check("memory", 1, "memory.limit_in_bytes=1048576", "memory.memsw.limit_in_bytes=1048576")
	check("cpuacct", 1)
	check("", 2, "cpu.max=150000 100000", "cpuset.cpus=0,1", "memory.max=1048576",
		"memory.swap.max=0")
}

// All groups of a system are made, one folder for controllers that share it. A group that exists
// belongs to somebody else.
func TestPodIsMade(t *testing.T) {
	above := t.TempDir()
	shared, memory := filepath.Join(above, "cpu,cpuacct", "x"), filepath.Join(above, "memory", "x")
	p := pod{name: "x", groups: []launch.Group{{Dir: shared, Controller: "cpu", Version: 1},
		{Dir: shared, Controller: "cpuacct", Version: 1},
		{Dir: memory, Controller: "memory", Version: 1}}}
	spec := launch.Spec{CPUs: 1, MemoryBytes: 1 << 20}
	if err := p.make(spec); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the trees: %v", err)
	}
	for _, dir := range []string{shared, memory} {
		if err := os.Mkdir(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.make(spec); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(shared, "cpu.cfs_quota_us"),
		filepath.Join(memory, "memory.limit_in_bytes")} {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
	if err := p.make(spec); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second time: %v", err)
	}
}

// A limit that cannot be written is an error, but a kernel may lack the files for swap and for the
// hierarchy of version 1.
func TestLimitErrors(t *testing.T) {
	dir := t.TempDir()
	group := launch.Group{Dir: dir, Controller: "memory", Version: 1}
	spec := launch.Spec{MemoryBytes: 1 << 20}
	hierarchy := filepath.Join(dir, "memory.use_hierarchy")
	if err := os.WriteFile(hierarchy, []byte("0"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := limit(group, spec); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(hierarchy); err != nil || string(b) != "1" {
		t.Errorf("memory.use_hierarchy is %q, %v", b, err)
	}
	for _, file := range []string{"memory.use_hierarchy", "memory.limit_in_bytes",
		"memory.memsw.limit_in_bytes"} {
		path := filepath.Join(dir, file)
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o755)); err != nil {
			t.Fatal(err)
		}
		if err := limit(group, spec); !errors.Is(err, unix.EISDIR) {
			t.Errorf("%s cannot be written: %v", file, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := limit(group, spec); err != nil {
			t.Error(err)
		}
	}
}
