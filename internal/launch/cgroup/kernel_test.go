package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/launch"
	"prony.example/record"
)

// folder makes a folder with files, given as name and content in turn.
func folder(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestGroups(t *testing.T) {
	dir := folder(t, "cpu/docker/7/x", "", "memory/7/x", "", "u/docker/7/x", "")
	mounts := Mounts(fmt.Sprintf("1 2 0:3 / %s/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"+
		"1 2 0:3 /docker %[1]s/memory rw shared:1 - cgroup cgroup rw,memory\n"+
		"1 2 0:3 / %[1]s/gone rw - cgroup cgroup rw,cpuset\n"+
		"1 2 0:3 /elsewhere %[1]s/cpu rw - cgroup cgroup rw,cpuset\n"+
		"1 2 0:3 / %[1]s/u rw - cgroup2 cgroup2 rw\n1 2 8:1 / / rw - ext4 /dev/sda rw\n", dir))
	paths := Paths("5:cpuset:/docker/7\n4:memory:/docker/7\n2:cpu,cpuacct:/docker/7\n" +
		"0::/docker/7\n")
	check := func(version int, want string) {
		t.Helper()
		got := strings.ReplaceAll(fmt.Sprint(Groups(mounts, paths, version)), dir, "")
		if got != want {
			t.Errorf("version %d: %s, want %s", version, got, want)
		}
	}
	check(1, "[{/cpu/docker/7 cpu 1} {/cpu/docker/7 cpuacct 1} {/memory/7 memory 1}]")
	check(2, "[{/u/docker/7  2}]")
	m := Mount{Root: "/docker", Dir: "/memory"}
	if dir, ok := m.Below("/docker/7"); dir != "/memory/7" || !ok {
		t.Errorf("a group below the root of a mount is at %s, %t", dir, ok)
	}
	if dir, ok := m.Below("/dockers"); ok {
		t.Errorf("a group beside the root of a mount is seen at %s", dir)
	}
}

func TestPIDs(t *testing.T) {
	dir := folder(t, "cgroup.procs", "4\n5", "below/cgroup.procs", "6", "none/x", "")
	if got := PIDs(dir); !slices.Equal(got, []int{4, 5, 6}) {
		t.Errorf("processes are %v, want 4, 5 and 6", got)
	}
	if got := PIDs(filepath.Join(dir, "gone")); len(got) > 0 {
		t.Errorf("a group that is not there has %v", got)
	}
}

func TestLimits(t *testing.T) {
	check := func(name string, groups []launch.Group, want ...string) {
		t.Helper()
		got, err := Limits(groups, 0, launch.Spec{Cores: []int{0}})
		if err != nil || !slices.Equal(wording.Limits(got), want) {
			t.Errorf("%s: %+v, %v, want %q", name, got, err, want)
		}
	}
	one := func(controllers string, dir string) (out []launch.Group) {
		for c := range strings.SplitSeq(controllers, ",") {
			out = append(out, launch.Group{Dir: dir, Controller: c, Version: 1})
		}
		return out
	}
	two := func(dir string) []launch.Group { return []launch.Group{{Dir: dir, Version: 2}} }
	check("version 1", one("cpu,cpuset,memory", folder(t, "cpuset.cpus", "0-1",
		"cpu.cfs_quota_us", "50000", "cpu.cfs_period_us", "100000",
		"memory.limit_in_bytes", "4096")),
		"cpuset 0-1 (cgroup v1)", "cpu quota 0.5 (cgroup v1)", "memory 4096 (cgroup v1)")
	check("version 1, none", one("cpu,cpuset,memory", folder(t, "cpuset.cpus", "0-1",
		"cpu.cfs_quota_us", "-1", "cpu.cfs_period_us", "100000",
		"memory.limit_in_bytes", "9223372036854771712")), "cpuset 0-1 (cgroup v1)")
	check("version 1, of one controller", one("memory", folder(t, "cpuset.cpus", "0",
		"memory.limit_in_bytes", "4096")), "memory 4096 (cgroup v1)")
	check("version 2", two(folder(t, "cpuset.cpus", "0,2", "cpu.max", "150000 100000",
		"memory.max", "8192")),
		"cpuset 0,2 (cgroup v2)", "cpu quota 1.5 (cgroup v2)", "memory 8192 (cgroup v2)")
	check("version 2, none", two(folder(t, "cpuset.cpus", "", "cpu.max", "max 100000",
		"memory.max", "max")))
	check("no group", nil)
	above := two(folder(t, "cpuset.cpus", "0-1"))
	if got, err := Limits(above, 0, launch.Spec{}); err != nil || len(got) > 0 {
		t.Errorf("a group with the cores of the one above: %+v, %v", got, err)
	}
}

func TestAffinity(t *testing.T) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	var own []int
	for i := range 1024 {
		if set.IsSet(i) {
			own = append(own, i)
		}
	}
	check := func(pid int, cores []int, want string) {
		t.Helper()
		got, err := Limits(nil, pid, launch.Spec{Cores: cores})
		if text := fmt.Sprint(wording.Limits(got), err); text != want {
			t.Errorf("cores %v: %s, want %s", cores, text, want)
		}
	}
	check(os.Getpid(), own, "[affinity "+CoreList(own)+"] <nil>")
	check(os.Getpid(), own[1:], "[] <nil>")
	check(os.Getpid(), append([]int{1023}, own[1:]...), "[] <nil>")
	check(-1, own, "[] affinity: no such process")
}

func TestUnenforced(t *testing.T) {
	check := func(inForce, why string, s launch.Spec, want ...string) {
		t.Helper()
		var limits []record.Limit
		for kind := range strings.FieldsSeq(inForce) {
			limits = append(limits, record.Limit{Kind: kind, By: record.ByCgroup2})
		}
		got := Unenforced(s, limits, record.Refused, why)
		if !slices.Equal(wording.Limits(got), want) {
			t.Errorf("of %s: %+v, want %q", inForce, got, want)
		}
	}
	s := launch.Spec{Cores: []int{0}, CPUs: 0.5, MemoryBytes: 1 << 20}
	check("", "no", s, "cores [0]: no", "0.5 CPUs: no", "memory 1048576: no")
	check("cores cpu", "", s, "memory 1048576")
	check("cores memory", "", s, "0.5 CPUs")
	check("memory", "", s, "cores [0]", "0.5 CPUs")
	s.CPUs = 1 // its single core enforces it
	check("cores memory", "no", s)
	check("", "no", launch.Spec{})
}

func TestMemory(t *testing.T) {
	const mib = 1 << 20
	one := folder(t, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2",
		"memory.limit_in_bytes", fmt.Sprint(64*mib), "memory.memsw.limit_in_bytes",
		fmt.Sprint(64*mib), "memory.max_usage_in_bytes", fmt.Sprint(63*mib))
	two := folder(t, "memory.events", "low 0\noom 7\noom_kill 1\noom_group_kill 0",
		"memory.max", fmt.Sprint(64*mib), "memory.swap.max", "0", "memory.peak", fmt.Sprint(mib))
	old := folder(t, "memory.events", "oom 7", "memory.max", "max", "memory.swap.max", "max")
	check := func(dir string, version int, want Memory, swap bool) {
		t.Helper()
		groups := []launch.Group{{Dir: dir, Controller: "memory", Version: version}}
		if got := ReadMemory(groups); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if got := SwapLimited(groups); got != swap {
			t.Errorf("swap is limited: %t, want %t", got, swap)
		}
	}
	check(one, 1, Memory{2, 64 * mib, 63 * mib}, true)
	check(two, 2, Memory{1, 64 * mib, mib}, true)
	check(old, 2, Memory{}, false)
	check(t.TempDir(), 1, Memory{}, false)
	if got := ReadMemory(nil); got != (Memory{}) || SwapLimited(nil) {
		t.Errorf("without groups: %+v", got)
	}
}

// The limit on swap is that of memory in version 1 and 0 in version 2. A kernel may lack its file.
func TestDisableSwap(t *testing.T) {
	const mib = 1 << 20
	check := func(controller string, version int, bytes int64, file, want string) {
		t.Helper()
		g := launch.Group{Dir: t.TempDir(), Controller: controller, Version: version}
		err := DisableSwap(g, launch.Spec{MemoryBytes: bytes})
		if got := Value(g.Dir, file); err != nil || got != want {
			t.Errorf("%s, version %d: %q, error %v; want %q", controller, version, got, err, want)
		}
	}
	const one, two = "memory.memsw.limit_in_bytes", "memory.swap.max"
	check("memory", 1, mib, one, fmt.Sprint(mib))
	check("cpu", 1, mib, one, "")
	check("memory", 1, 0, one, "")
	check("", 2, mib, two, "0")
	check("", 2, 0, two, "")
	none := launch.Group{Dir: filepath.Join(t.TempDir(), "none"), Version: 2}
	if err := DisableSwap(none, launch.Spec{MemoryBytes: mib}); err != nil {
		t.Errorf("without the file: %v", err)
	}
	refused := launch.Group{Dir: folder(t), Version: 2}
	if err := os.Mkdir(filepath.Join(refused.Dir, two), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := DisableSwap(refused, launch.Spec{MemoryBytes: mib}); err == nil {
		t.Error("a refusal is no error")
	}
}

func TestExit(t *testing.T) {
	const mib = 1 << 20
	all := Memory{Kills: 1, LimitBytes: 64 * mib, PeakBytes: 63*mib + 943718} // 63.9 MiB
	check := func(m Memory, how string, stopped bool, want string) {
		t.Helper()
		if got := m.Exit(how, stopped); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	const cause = "out of memory (limit 64 MiB, peak 63.9 MiB)"
	check(Memory{}, killed, false, killed)
	check(Memory{LimitBytes: mib, PeakBytes: mib}, killed, false, killed)
	check(all, killed, false, "killed by the kernel: "+cause)
	// The lab sends this signal too; the killed process was another one.
	check(all, killed, true, killed+"; the kernel had killed a process of this target: "+cause)
	check(all, "exit status 1", false,
		"exit status 1; the kernel had killed a process of this target: "+cause)
	check(Memory{Kills: 3}, "exit status 1", false,
		"exit status 1; the kernel had killed 3 processes of this target: out of memory")
	check(Memory{Kills: 1, LimitBytes: mib}, killed, false,
		"killed by the kernel: out of memory (limit 1 MiB)")
}

func TestBorn(t *testing.T) {
	if born := Born(os.Getpid()); born == "" || Born(os.Getppid()) == "" {
		t.Errorf("this process was born at %q", born)
	}
	if Born(-1) != "" || Stat(-1) != nil {
		t.Error("there is a process -1")
	}
}

// 0.29 of a core is 29 ms of 100; truncating the binary fraction would give 0.28999.
func TestQuotaIsTheNearest(t *testing.T) {
	for cpus, want := range map[float64]int64{0.29: 29000, 1: 100000, 1.5: 150000, 0.001: 100} {
		if got := QuotaUs(cpus); got != want {
			t.Errorf("%g cores: %d µs, want %d", cpus, got, want)
		}
	}
}

// TestExitWords checks that engines' statuses are described like ends of plain processes.
func TestExitWords(t *testing.T) {
	for status, want := range map[int64]string{
		0: "exit status 0", 3: "exit status 3", 137: "signal: killed",
		139: "signal: segmentation fault",
		143: "exit status 143", // a JVM after SIGTERM: no other cause gives it
	} {
		if got := ExitWords(status); got != want {
			t.Errorf("%d: %q, want %q", status, got, want)
		}
	}
}

func TestParseCores(t *testing.T) {
	for text, want := range map[string][]int{"0-2,7\n": {0, 1, 2, 7}, "1": {1}, "": nil, "a": nil,
		"3-": nil, "0-99999999": nil, "-1": nil, "2-1": nil} {
		if got := ParseCores(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestRightsIn describes the rights of a process by the lines of its status.
func TestRightsIn(t *testing.T) {
	status := func(uid, effective, noNew string) string {
		return "Name:\tserver\nUid:\t0\t" + uid + "\t0\t0\nGid:\t7\t7\t7\t7\n" +
			"CapInh:\t0000000000000000\nCapEff:\t" + effective + "\nCapBnd:\t000001ffffffffff\n" +
			"Groups:\t\nNoNewPrivs:\t" + noNew + "\n"
	}
	for text, want := range map[string]string{
		"":                                      "",
		status("1000", "0000000000000000", "1"): "user 1000, no capabilities, no new privileges",
		status("1000", "0000000000000000", "0"): "user 1000, no capabilities",
		status("0", "000001ffffffffff", "0"):    "user 0, capabilities 000001ffffffffff",
		status("12", "0000000000000400", "1"): "user 12, capabilities 0000000000000400, no new " +
			"privileges",
	} {
		if got := rightsIn(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
