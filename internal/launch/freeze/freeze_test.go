package freeze

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/launch/fake"
	"prony.example/internal/launch/launchtest"
	"prony.example/internal/launch/process"
	"prony.example/record"
)

// Acts of this binary as a target, in addition to those of launchtest.
const (
	burn = "burn" // followed by a number of generations: each process has two busy threads
	idle = "idle" // followed by a number of waiting threads
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == burn {
		generations, _ := strconv.Atoi(os.Args[2])
		if generations > 0 {
			child := exec.Command(os.Args[0], burn, strconv.Itoa(generations-1))
			child.Stdout = os.Stdout
			if err := child.Start(); err != nil {
				panic(err)
			}
		}
		fmt.Println("burns")
		go spin()
		spin()
	}
	if len(os.Args) > 2 && os.Args[1] == idle {
		threads, _ := strconv.Atoi(os.Args[2])
		for range threads {
			go unix.Pause() // occupies its thread
		}
		fmt.Println("ready")
		time.Sleep(time.Hour)
	}
	if status, ok := launchtest.Act(os.Args[1:], os.Stdout, os.Stderr); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

func spin() {
	for sum := 0; ; sum++ {
		_ = sum
	}
}

// patience limits waits for other processes, even on a busy machine.
const patience = 2 * time.Minute

// await waits until a condition holds.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := clock.Mono() + int64(patience); !ok(); time.Sleep(time.Millisecond) {
		if clock.Mono() > end {
			t.Fatalf("%s: not after %v", what, patience)
		}
	}
}

// target is a launched target that may have another freezer than its launcher's.
type target struct {
	launch.Process
	freezer launch.Group
}

func (t target) Freezer() launch.Group { return t.freezer }

// launched starts a command and waits until it has written this many lines. The way selects the
// freezer: "cgroup v1" is record.FreezeCgroup with a group of version 1.
func launched(t testing.TB, way string, lines int, args ...string) launch.Process {
	t.Helper()
	dir := t.TempDir()
	l := &process.Launcher{NoGroup: way == record.FreezeSignals}
	p, err := l.Launch(t.Context(), launch.Spec{Name: "t", Dir: dir, Args: args,
		LogFile: filepath.Join(dir, "log"), Env: []string{"PATH=/usr/bin:/bin", "GOMAXPROCS=4"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(0); err != nil {
			t.Error(err)
		}
	})
	await(t, "what it writes", func() bool { return len(p.Log(lines)) >= lines })
	if way != versionOne {
		return p
	}
	return target{p, inVersionOne(t, p)}
}

const versionOne = "cgroup v1"

var ways = []string{record.FreezeCgroup, versionOne, record.FreezeSignals}

// inVersionOne moves a target into a group of version 1's freezer.
func inVersionOne(t testing.TB, p launch.Process) launch.Group {
	t.Helper()
	mounts := cgroup.OwnMounts()
	i := slices.IndexFunc(mounts, func(m cgroup.Mount) bool { return m.Freezer })
	if i < 0 {
		t.Skip("no freezer of version 1 is mounted")
	}
	g := launch.Group{Version: 1, Controller: "freezer", Dir: filepath.Join(mounts[i].Dir,
		fmt.Sprintf("prony-test-%d", p.Main()))}
	if err := os.Mkdir(g.Dir, 0o755); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		err := cgroup.Thaw(g.Dir)
		await(t, "the end of frozen processes", func() bool {
			for _, pid := range cgroup.PIDs(g.Dir) {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			return len(cgroup.PIDs(g.Dir)) == 0
		})
		if err := errors.Join(err, cgroup.Remove(g.Dir)); err != nil {
			t.Error(err)
		}
	})
	for range 3 { // forks follow, except those of the first pass
		for _, pid := range p.PIDs() {
			if err := cgroup.Write(g.Dir, "cgroup.procs", pid); err != nil && !errors.Is(err,
				unix.ESRCH) {
				t.Fatal(err)
			}
		}
	}
	return g
}

func freezer(t testing.TB, p launch.Process, way string) *Freezer {
	t.Helper()
	want := strings.TrimSuffix(way, " v1")
	f, err := New(p, want)
	if err != nil && os.Getuid() != 0 {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if f.Way() != want {
		t.Fatalf("it is frozen by %s, want %s", f.Way(), want)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// used returns the processor time of processes by their clocks (clock_getcpuclockid(3)).
func used(t *testing.T, pids []int) (ns int64) {
	t.Helper()
	for _, pid := range pids {
		var at unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|2), &at); err != nil {
			t.Fatalf("process %d: %v", pid, err)
		}
		ns += at.Nano()
	}
	return ns
}

// Three generations of busy processes use no processor time while they are frozen, and go on
// afterwards.
func TestFreeze(t *testing.T) {
	testsets.Live(t)
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			p := launched(t, way, 3, os.Args[0], burn, "2")
			f := freezer(t, p, way)
			for range 5 {
				if err := errors.Join(f.Freeze(), f.Freeze()); err != nil {
					t.Fatal(err)
				}
				pids := p.PIDs()
				if len(pids) != 3 {
					t.Fatalf("processes %v, want 3", pids)
				}
				before := used(t, pids)
				time.Sleep(50 * time.Millisecond)
				// A thread counts as frozen some microseconds before it leaves its core. Up to a
				// tick is then added to its clock.
				if after := used(t, pids); after-before > int64(5*time.Millisecond) {
					t.Errorf("frozen processes used %d ns", after-before)
				}
				if err := errors.Join(f.Thaw(), f.Thaw()); err != nil {
					t.Fatal(err)
				}
				await(t, "use of processor time", func() bool { return used(t, pids) > before })
			}
		})
	}
}

// A target that forks without end stops completely: it creates no process while it is frozen.
func TestFreezeOfAStorm(t *testing.T) {
	testsets.Live(t)
	const storm = "echo ready; while :; do for i in 1 2 3; do sleep 0.003 & done; wait; done"
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			p := launched(t, way, 1, "sh", "-c", storm)
			f := freezer(t, p, way)
			for range 20 {
				if err := f.Freeze(); err != nil {
					t.Fatal(err)
				}
				before := p.PIDs()
				time.Sleep(10 * time.Millisecond)
				for _, pid := range p.PIDs() { // some were already ending
					if !slices.Contains(before, pid) {
						t.Errorf("processes were %v, then also %d", before, pid)
					}
				}
				if err := f.Thaw(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Millisecond)
			}
			await(t, "new processes", func() bool { return !slices.Equal(p.PIDs(), p.PIDs()) })
		})
	}
}

// The launcher's Stop thaws a frozen target first, so that it can end regularly.
func TestStopOfAFrozenTarget(t *testing.T) {
	testsets.Live(t)
	for _, way := range []string{record.FreezeCgroup, record.FreezeSignals} {
		t.Run(way, func(t *testing.T) {
			p := launched(t, way, 1, os.Args[0], "act-forever")
			f := freezer(t, p, way)
			if err := errors.Join(f.Freeze(), p.Stop(patience)); err != nil {
				t.Fatal(err)
			}
			if log := p.Log(9); !slices.Contains(log, "heard terminated") {
				t.Errorf("it wrote %q", log)
			}
			if err := f.Freeze(); !errors.Is(err, ErrEnded) {
				t.Errorf("freezing what has ended: %v, want ErrEnded", err)
			}
			if err := f.Thaw(); err != nil {
				t.Errorf("thawing what has ended: %v", err)
			}
		})
	}
}

// A process of a frozen target can be killed, if the kernel's freezer permits it, and the others
// stay frozen.
func TestEndWhileFrozen(t *testing.T) {
	testsets.Live(t)
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			p := launched(t, way, 2, os.Args[0], burn, "1")
			f := freezer(t, p, way)
			if err := f.Freeze(); err != nil {
				t.Fatal(err)
			}
			pids := p.PIDs()
			if err := unix.Kill(pids[1], unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			dead := func() bool { s := cgroup.Stat(pids[1]); return len(s) == 0 || s[0] == "Z" }
			if way == versionOne {
				time.Sleep(20 * time.Millisecond)
				if dead() {
					t.Error("a frozen process ended: package process need not thaw it")
				}
			} else {
				await(t, "the end of one process", dead)
			}
			before := used(t, pids[:1])
			if err := f.Freeze(); err != nil {
				t.Error(err)
			}
			time.Sleep(50 * time.Millisecond)
			// The signal about its child's end wakes the parent, which the kernel stops again.
			if after := used(t, pids[:1]); after-before > int64(2*time.Millisecond) {
				t.Errorf("the other process used %d ns", after-before)
			}
			if err := f.Thaw(); err != nil {
				t.Error(err)
			}
			await(t, "the end of one process", dead)
		})
	}
}

// A target that cannot be stopped stays running without a named way, and is refused with one.
func TestWays(t *testing.T) {
	testsets.Live(t)
	check := func(p launch.Process, way, want, refusal string) {
		t.Helper()
		f, err := New(p, way)
		if refusal != "" {
			if err == nil || !strings.Contains(err.Error(), refusal) {
				t.Errorf("%q: %v, want %q", way, err, refusal)
			}
			return
		}
		if err != nil || f.Way() != want {
			t.Fatalf("%q: %v, %v, want %s", way, f, err, want)
		}
		if err := errors.Join(f.Freeze(), f.Thaw(), f.Close(), f.Freeze()); err != nil {
			t.Errorf("%q: %v", way, err)
		}
	}
	inside, err := fakeProcess(t)
	if err != nil {
		t.Fatal(err)
	}
	check(inside, "", record.FreezeOff, "")
	check(inside, record.FreezeCgroup, "", "no separate control group")
	check(inside, record.FreezeSignals, "", "no processes")
	check(inside, "hammer", "", "not a way")
	p := launched(t, record.FreezeSignals, 1, os.Args[0], "act-forever")
	check(p, "", record.FreezeSignals, "")
	check(p, record.FreezeCgroup, "", "no separate control group")
	check(p, record.FreezeOff, record.FreezeOff, "")
	// A group with the test itself must be refused, because it would stop the test.
	own := target{p, launch.Group{Version: 2, Dir: ownGroup(t)}}
	check(own, record.FreezeCgroup, "", "no separate control group")
}

// ownGroup returns this program's group of version 2, or any other folder if there is none.
func ownGroup(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range cgroup.OwnMounts() {
		if dir, ok := m.Below(cgroup.Paths(string(text))[""]); m.Version == 2 && ok {
			return dir
		}
	}
	return t.TempDir()
}

func fakeProcess(t *testing.T) (launch.Process, error) {
	l := &fake.Launcher{Note: func(string) {},
		Start: func(launch.Spec) (http.Handler, time.Duration, error) {
			return http.NotFoundHandler(), 0, nil
		}}
	return l.Launch(t.Context(), launch.Spec{Name: "t"})
}

// A freezer of version 1 that cannot be opened is not used, also not to thaw.
func TestGroupThatCannotBeOpened(t *testing.T) {
	testsets.Live(t)
	p := launched(t, record.FreezeSignals, 1, os.Args[0], burn, "0")
	dir := t.TempDir()
	err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Appendln(nil, p.Main()), 0o600)
	if err = errors.Join(err, os.Mkdir(filepath.Join(dir, cgroup.StateFile), 0o700)); err != nil {
		t.Fatal(err)
	}
	f, err := New(target{p, launch.Group{Version: 1, Dir: dir}}, "")
	if err != nil || f.Way() != record.FreezeSignals {
		t.Fatalf("%v, error %v, want signals", f, err)
	}
	if err := errors.Join(f.Freeze(), f.Thaw()); err != nil {
		t.Error(err)
	}
	before := used(t, p.PIDs())
	await(t, "use of processor time", func() bool { return used(t, p.PIDs()) > before })
}

// listed is a target with a list of its own.
type listed struct {
	launch.Process
	pids []int
}

func (l *listed) PIDs() []int { return l.pids }

// A process that leaves the target after it was stopped is resumed, and no later process with its
// number.
func TestThawOfWhatHasLeft(t *testing.T) {
	testsets.Live(t)
	p := launched(t, record.FreezeSignals, 3, os.Args[0], burn, "2")
	all := p.PIDs()
	l := &listed{p, all}
	f := freezer(t, l, record.FreezeSignals)
	state := func(i int) string { return cgroup.Stat(all[i])[0] }
	if err := f.Freeze(); err != nil {
		t.Fatal(err)
	}
	// On a busy machine, Freeze returns before threads stop.
	await(t, "the stop", func() bool { return state(0)+state(1)+state(2) == "TTT" })
	l.pids, f.signal.newest = all[:1], ""
	if err := f.Freeze(); err != nil {
		t.Fatal(err)
	}
	born := f.signal.stopped[2].born
	f.signal.stopped[2].born = "0"
	if err := f.Thaw(); err != nil {
		t.Fatal(err)
	}
	if state(0) == "T" || state(1) == "T" || state(2) != "T" {
		t.Errorf("the states are %s, %s and %s", state(0), state(1), state(2))
	}
	member{all[2], born}.send(unix.SIGCONT)
}

// An engine that pauses some containers and then fails gets the command to resume all.
func TestPauseOfHalf(t *testing.T) {
	paused := [2]bool{}
	fails := true
	p := &pause{do: func(pause bool) error {
		paused[0] = pause
		if fails {
			return errors.New("no response")
		}
		paused[1] = pause
		return nil
	}}
	f := &Freezer{process: &listed{&endless{}, []int{1}}, way: record.FreezeEngine, pause: p}
	if err := f.Freeze(); err == nil || paused[0] {
		t.Errorf("paused %v, error %v", paused, err)
	}
	fails = false
	if err := f.Freeze(); err != nil || paused != [2]bool{true, true} {
		t.Errorf("paused %v, error %v", paused, err)
	}
	fails = true
	if err := f.Thaw(); err == nil {
		t.Error("an engine that does not respond has resumed the target")
	}
	fails = false
	if err := f.Close(); err != nil || paused != [2]bool{} {
		t.Errorf("after Close, paused are %v, error %v", paused, err)
	}
}

// endless is a target that never ends.
type endless struct{ launch.Process }

func (*endless) Exited() <-chan struct{} { return nil }
