package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/launch/freeze"
	"prony.example/internal/launch/launchtest"
	"prony.example/record"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("PRONY_TEST_LAB"); dir != "" {
		lab(dir)
	}
	if len(os.Args) == 4 && os.Args[1] == "daemon" {
		l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[2])
		if err == nil {
			err = os.WriteFile(os.Args[3], []byte(strconv.Itoa(os.Getpid())), 0o600)
		}
		if err != nil {
			panic(err)
		}
		time.Sleep(time.Hour)
		runtime.KeepAlive(l)
	}
	if status, ok := launchtest.Act(os.Args[1:], os.Stdout, os.Stderr); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

const forks = "trap '' TERM HUP; sleep 1000 & echo ready; sleep 1000"

// target is this test binary itself, which runs Act.
var target = launchtest.Target{Program: os.Args[0], Peak: true}

func journal(t *testing.T) *Journal {
	t.Helper()
	j, _, err := OpenJournal(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func TestWithGroups(t *testing.T) {
	launchtest.Run(t, func(t *testing.T) launch.Launcher {
		return &Launcher{Journal: journal(t)}
	}, target)
}

func TestWithoutGroups(t *testing.T) {
	launchtest.Run(t, func(t *testing.T) launch.Launcher {
		return &Launcher{Journal: journal(t), NoGroup: true}
	}, target)
}

// Limits are in force only if the target itself reads them from the kernel.
func TestLimitsAreInForce(t *testing.T) {
	check := func(name string, noGroup bool) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := &Launcher{Journal: journal(t), NoGroup: noGroup}
			const tell = "grep Cpus_allowed_list /proc/self/status; ulimit -d; echo ready; sleep 9"
			p, err := l.Launch(context.Background(), launch.Spec{
				Name: "t", Dir: dir, LogFile: filepath.Join(dir, "log"),
				Args: []string{"sh", "-c", tell}, Env: []string{"PATH=/usr/bin:/bin"},
				Cores: []int{0}, CPUs: 0.5, MemoryBytes: 256 << 20,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Stop(0)
			for end := clock.Mono() + patience; clock.Mono() < end && len(p.Log(9)) < 3; {
				time.Sleep(time.Millisecond)
			}
			inForce, missing := p.Limits()
			all := strings.Join(wording.Limits(inForce), "; ")
			log := p.Log(9)
			if !strings.Contains(strings.Join(log, " "), "Cpus_allowed_list:\t0 ") {
				t.Errorf("the target sees %q", log)
			}
			if !strings.Contains(all, "affinity 0") {
				t.Errorf("in force is %q, missing %+v", all, missing)
			}
			hasGroup := strings.Contains(all, "memory 268435456 (cgroup")
			hasRlimit := strings.Contains(all, "private memory 268435456 (rlimit)") &&
				log[1] == strconv.Itoa(256<<10)
			if hasGroup == hasRlimit {
				t.Errorf("memory is limited by both or by neither: %q, the target sees %q",
					all, log)
			}
			const left = "0.5 CPUs: cgroup: left alone as asked"
			if noGroup && !slices.Equal(wording.Limits(missing), []string{left}) {
				t.Errorf("missing is %+v, want %s", missing, left)
			}
			counted := false // whether this kernel counts swap
			for _, g := range p.Groups() {
				for _, file := range []string{"memory.swap.max", "memory.memsw.limit_in_bytes"} {
					_, err := os.Stat(filepath.Join(g.Dir, file))
					counted = counted || err == nil
				}
				if pids := cgroup.PIDs(g.Dir); len(pids) == 0 {
					t.Errorf("group %s is empty", g.Dir)
				}
			}
			if hasGroup && cgroup.SwapLimited(p.Groups()) != counted {
				t.Errorf("memory may be swapped out: %t, swap is counted: %t",
					!cgroup.SwapLimited(p.Groups()), counted)
			}
		})
	}
	check("groups", false)
	check("no groups", true)
}

// lab is a lab that a test kills: it launches a target that forks, and prints the processes.
func lab(dir string) {
	j, _, err := OpenJournal(dir)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	l := &Launcher{Journal: j, NoGroup: os.Getenv("PRONY_TEST_NOGROUP") != ""}
	p, err := l.Launch(context.Background(), launch.Spec{
		Name: "t", Dir: filepath.Dir(dir), LogFile: filepath.Join(filepath.Dir(dir), "log"),
		Args: []string{"sh", "-c", forks}, Env: []string{"PATH=/usr/bin:/bin"},
	})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for len(p.PIDs()) < 3 {
		time.Sleep(time.Millisecond)
	}
	if way := os.Getenv("PRONY_TEST_FREEZE"); way != "" {
		f, err := freeze.New(p, way)
		if err == nil {
			err = f.Freeze()
		}
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	// The target first: process numbers wrap around, so its child may have a lower one.
	own := strconv.Itoa(os.Getpid())
	pids := p.PIDs()
	at := slices.IndexFunc(pids, func(pid int) bool { return cgroup.Stat(pid)[1] == own })
	pids[0], pids[at] = pids[at], pids[0]
	fmt.Println("pids", pids)
	time.Sleep(time.Hour)
}

// If a lab is killed, its target ends with it, and the next lab ends the target's children.
func TestKilledLabLeavesNothing(t *testing.T) {
	check := func(name, noGroup, frozen string) {
		t.Run(name, func(t *testing.T) {
			killed(t, filepath.Join(t.TempDir(), "journal"), noGroup, frozen)
		})
	}
	check("groups", "", "")
	check("no groups", "yes", "")
	check("frozen", "", record.FreezeCgroup)
	check("stopped", "", record.FreezeSignals)
	check("stopped, no groups", "yes", record.FreezeSignals)
}

func killed(t *testing.T, dir, noGroup, frozen string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PRONY_TEST_LAB="+dir, "PRONY_TEST_NOGROUP="+noGroup,
		"PRONY_TEST_FREEZE="+frozen)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	line = strings.TrimSpace(line)
	if strings.Contains(line, "no separate control group") {
		t.Skip(line)
	}
	if !strings.HasPrefix(line, "pids [") {
		t.Fatalf("the lab said %q", line)
	}
	pids := numbers(strings.Trim(strings.TrimPrefix(line, "pids "), "[]"))
	if _, _, err := OpenJournal(dir); !errors.Is(err, ErrBusy) {
		t.Errorf("a second lab got %v, want ErrBusy", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() //nolint:errcheck // it was killed
	gone(t, pids[:1])
	if !running(pids[1]) {
		t.Errorf("the child has gone by itself: this test proves nothing")
	}
	j, reaped, err := OpenJournal(dir)
	if err != nil || len(reaped) == 0 {
		t.Fatalf("the next lab reaped %v, error %v", reaped, err)
	}
	j.Close()
	gone(t, pids)
}

func numbers(s string) (out []int) {
	for _, f := range strings.Fields(s) {
		n, err := strconv.Atoi(f)
		if err != nil {
			panic(err)
		}
		out = append(out, n)
	}
	return out
}

func running(pid int) bool {
	f := cgroup.Stat(pid)
	return unix.Kill(pid, 0) == nil && len(f) > 0 && f[0] != "Z"
}

// patience limits waits for other processes, even on a busy machine.
const patience = int64(2 * time.Minute)

func gone(t *testing.T, pids []int) {
	t.Helper()
	for end := clock.Mono() + patience; clock.Mono() < end; time.Sleep(time.Millisecond) {
		left := 0
		for _, pid := range pids {
			if running(pid) {
				left++
			}
		}
		if left == 0 {
			return
		}
	}
	t.Errorf("of processes %v some are still there", pids)
}

// TestHierarchies covers the three ways in which control groups are mounted.
func TestHierarchies(t *testing.T) {
	check := func(name, mounts, own, want string) {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, h := range hierarchies(cgroup.Mounts(mounts), cgroup.Paths(own)) {
				got = append(got, fmt.Sprint(h.version, h.controllers, h.parents))
			}
			if s := strings.Join(got, " "); s != want {
				t.Errorf("got  %s\nwant %s", s, want)
			}
		})
	}
	check("v1", "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"+
		"31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"+
		"32 25 0:28 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio",
		"4:memory:/a/b\n2:cpu,cpuacct:/\n1:blkio:/",
		"1 [cpu cpuacct] [/sys/fs/cgroup/cpu,cpuacct] 1 [memory] [/sys/fs/cgroup/memory/a/b]")
	check("v2", "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw", "0::/user.slice/x.scope",
		"2 [] [/sys/fs/cgroup/user.slice /sys/fs/cgroup]")
	check("v2 in its root", "30 25 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw", "0::/",
		"2 [] [/sys/fs/cgroup/unified]")
	check("container", "30 25 0:26 /docker/77 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory",
		"4:memory:/docker/77", "1 [memory] [/sys/fs/cgroup/memory]")
	check("none", "22 1 8:1 / / rw - ext4 /dev/sda1 rw", "0::/", "")
}

// If cgroups are not permitted, nothing fails: the record says so, and other means replace them.
func TestCgroupsNotPermitted(t *testing.T) {
	spec := launch.Spec{Cores: []int{0}, CPUs: 1, MemoryBytes: 1 << 20}
	check := func(name, want string, trees []hierarchy) {
		t.Run(name, func(t *testing.T) {
			g := makeGroups("prony-1-1", spec, trees)
			all := strings.Join(g.refused, "; ")
			if len(g.list) > 0 || !strings.Contains(all, want) {
				t.Errorf("groups %v, refused %q; want none and %q", g.list, all, want)
			}
		})
	}
	check("nothing mounted", "none is mounted", nil)
	// No user can make folders in /proc.
	check("v1", "no such file", []hierarchy{
		{version: 1, controllers: []string{"memory"}, parents: []string{"/proc/self"}}})
	check("v2", "no such file", []hierarchy{
		{version: 2, parents: []string{"/proc/self", "/proc/1"}}})
}

// Without cgroups, a target's children also receive SIGTERM.
func TestAllAreAskedToEnd(t *testing.T) {
	dir := t.TempDir()
	const child = `trap "echo child was asked; exit" TERM; echo ready; while :; do sleep 0.02; done`
	l := &Launcher{Journal: journal(t), NoGroup: true}
	p, err := l.Launch(context.Background(), launch.Spec{
		Name: "t", Dir: dir, LogFile: filepath.Join(dir, "log"),
		Args: []string{"sh", "-c", "trap 'wait; exit' TERM; sh -c '" + child + "' & wait"},
		Env:  []string{"PATH=/usr/bin:/bin"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for end := clock.Mono() + patience; clock.Mono() < end && len(p.Log(9)) < 1; {
		time.Sleep(time.Millisecond)
	}
	if err := p.Stop(time.Duration(patience)); err != nil {
		t.Fatal(err)
	}
	if log := p.Log(9); !slices.Contains(log, "child was asked") {
		t.Errorf("it wrote %q", log)
	}
}

// An environment that is larger than one variable may be reaches the service.
func TestLargeEnvironment(t *testing.T) {
	testsets.Live(t)
	dir := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH")}
	for i := range 20 {
		env = append(env, fmt.Sprintf("V%d=%s", i, strings.Repeat("x", 20_000)))
	}
	p, err := (&Launcher{NoGroup: true}).Launch(t.Context(), launch.Spec{Name: "t", Dir: dir,
		Args: []string{"sh", "-c", "echo ${#V19}; exec sleep 1000"}, Env: env,
		LogFile: filepath.Join(dir, "log")})
	if err != nil {
		t.Fatal(err)
	}
	testsets.Eventually(t, "the output", func() bool { return len(p.Log(9)) > 0 })
	if err := p.Stop(0); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(p.Log(9)); got != "[20000]" {
		t.Errorf("the service wrote %s", got)
	}
}

// Without cgroups, a worker that has left the process group and lost its parent ends with the
// target if it listens at the target's port and has its environment. Another program there runs on.
func TestDaemonsEnd(t *testing.T) {
	for _, own := range []bool{true, false} {
		dir := t.TempDir()
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := free.Addr().(*net.TCPAddr).Port
		free.Close()
		number := filepath.Join(dir, "number")
		args := []string{os.Args[0], "daemon", strconv.Itoa(port), number}
		service := "sleep 1000"
		if own {
			service = "(setsid " + strings.Join(args, " ") + " &) ; sleep 1000"
		}
		l := &Launcher{Journal: journal(t), NoGroup: true}
		p, err := l.Launch(context.Background(), launch.Spec{
			Name: "t", Dir: dir, LogFile: filepath.Join(dir, "log"), Port: port,
			Args: []string{"sh", "-c", service},
			Env:  []string{"PATH=/usr/bin:/bin", "PORT=" + strconv.Itoa(port)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if !own {
			other := exec.Command(args[0], args[1:]...)
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := errors.Join(other.Process.Kill(), other.Wait()); err == nil ||
					err.Error() != "signal: killed" {
					t.Error(err)
				}
			}()
		}
		pid := 0
		testsets.Eventually(t, "the daemon listens", func() bool {
			text, _ := os.ReadFile(number)
			pid, _ = strconv.Atoi(string(text))
			return pid > 0
		})
		if err := p.Stop(0); err != nil {
			t.Fatal(err)
		}
		if own {
			testsets.Eventually(t, "the daemon ends", func() bool {
				return cgroup.Born(pid) == ""
			})
			continue
		}
		time.Sleep(100 * time.Millisecond) // a signal may need a moment
		if fields := cgroup.Stat(pid); len(fields) == 0 || fields[0] == "Z" {
			t.Errorf("a program of somebody else was ended: %q", fields)
		}
	}
}
