//go:build linux && !portable

package stalls

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/rtsched"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/observe/host"
)

// hogVariable holds a core, a length and an interval in ns, and a number: this program is a hog
// then.
const hogVariable = "PRONY_STALLS_HOG"

// hogName is what the kernel calls it.
const hogName = "pronyhog"

func TestMain(m *testing.M) {
	if text := os.Getenv(hogVariable); text != "" {
		if err := hog(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// hog takes a core at a priority above all of ours, and prints from when to when, by
// CLOCK_MONOTONIC.
func hog(text string) error {
	var core, number int
	var length, every int64
	if _, err := fmt.Sscan(text, &core, &length, &every, &number); err != nil {
		return err
	}
	var ran [][2]int64
	runtime.LockOSThread()
	var only unix.CPUSet
	only.Set(core)
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		return err
	}
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO,
		Priority: rtsched.Probe + 8}
	if err := unix.SchedSetAttr(0, &first, 0); err != nil {
		return err
	}
	// Neither time.Now nor unix.ClockGettime: Go's scheduler could take turns with this loop there.
	now := func() int64 {
		var ts unix.Timespec
		_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC,
			uintptr(unsafe.Pointer(&ts)), 0)
		return ts.Nano()
	}
	for range number {
		begin := now()
		for now() < begin+length {
		}
		ran = append(ran, [2]int64{begin, now()})
		pause := unix.NsecToTimespec(every - length)
		_ = unix.Nanosleep(&pause, nil)
	}
	for _, r := range ran {
		fmt.Println(r[0], r[1])
	}
	return nil
}

// startHog returns the hog's process id, and a function that returns from when to when it ran.
func startHog(t *testing.T, core int, length, every time.Duration, number int) (
	pid int, ended func() []pause) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), hogName)
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(link)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %d %d", hogVariable, core, length, every,
		number), "GODEBUG=asyncpreemptoff=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, func() (ran []pause) {
		offset, err := clock.Kernel()
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			begin, end, _ := strings.Cut(lines.Text(), " ")
			b, err := strconv.ParseInt(begin, 10, 64)
			e, wrong := strconv.ParseInt(end, 10, 64)
			if err != nil || wrong != nil {
				t.Fatalf("the hog prints %q", lines.Text())
			}
			ran = append(ran, pause{b - offset, e - offset})
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("the hog: %v", err)
		}
		return ran
	}
}

// openAs opens a watch of the last core in a given way.
func openAs(t *testing.T, name string, ours func(core, pid int) bool) (w *Watch, core int) {
	t.Helper()
	testsets.Live(t)
	cores, err := host.Cores()
	if err != nil {
		t.Fatal(err)
	}
	core = cores[len(cores)-1]
	i := slices.IndexFunc(ways(Period), func(way Way) bool { return way.Name == name })
	w, err = open(ways(Period)[i], []int{core}, ours)
	if err != nil {
		t.Skipf("this user may not: %v", err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, core
}

// eventWay is the way by which this kernel records processes.
func eventWay(t *testing.T) string {
	t.Helper()
	cores, err := host.Cores()
	ok(t, err)
	err = ticksOnIdleCores(cores[len(cores)-1], int64(Period))
	if errors.Is(err, errIdle) {
		return PerfAndThread
	}
	return PerfEvent // whatever else is wrong says why the test is skipped
}

// usable are the ways that this kernel and user permit.
func usable(t *testing.T) (names []string) {
	t.Helper()
	for _, way := range ways(Period) {
		if way.Name != PerfEvent || eventWay(t) == PerfEvent {
			names = append(names, way.Name)
		}
	}
	return names
}

func mayFIFO(t *testing.T) {
	t.Helper()
	ok := false
	rtsched.Locked(rtsched.Load, func() {
		_, ok = rtsched.Ahead(rtsched.Load)
	})
	if !ok {
		t.Skip("this user may not put threads first (CAP_SYS_NICE)")
	}
}

func ok(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

const (
	hogLength = 3 * time.Millisecond
	hogEvery  = 50 * time.Millisecond
	hogTimes  = 20
)

// findHog begins before the hog and ends after it. Stalls must cover each of its turns: a turn
// spans a tick whatever else the machine does. It returns the stalls with the right reason, at most
// one for each turn.
func findHog(t *testing.T, w *Watch, core int, right func(Stall) bool) (found []Stall) {
	t.Helper()
	mayFIFO(t)
	ok(t, w.Begin())
	_, ended := startHog(t, core, hogLength, hogEvery, hogTimes)
	turns := ended()
	ok(t, w.End())
	all := w.Read()
	if len(turns) != hogTimes || w.Lost() > 0 {
		t.Fatalf("the hog ran %d times, %d ticks are lost", len(turns), w.Lost())
	}
	for _, turn := range turns {
		around := slices.DeleteFunc(slices.Clone(all), func(s Stall) bool {
			return s.EndNs <= turn.begin || s.BeginNs >= turn.end
		})
		if !covers(around, turn) {
			t.Errorf("%s: the hog had core %d from %d to %d, and the stalls there are %+v", w.Way(),
				core, turn.begin, turn.end, around)
		}
		if i := slices.IndexFunc(around, right); i >= 0 {
			found = append(found, around[i])
		}
	}
	// A turn of the hog is shorter than what the second way always records, and seen in two of
	// three cases.
	least := hogTimes
	if w.Way().ShortestProcessNs > int64(hogLength) {
		least = hogTimes / 4
	}
	if len(found) < least {
		t.Errorf("%s: the reason of %d of %d turns is right", w.Way(), len(found), len(turns))
	}
	return found
}

// covers reports whether stalls leave nothing out of a turn.
func covers(all []Stall, turn pause) bool {
	ns := turn.begin
	for _, s := range all {
		if s.BeginNs <= ns {
			ns = max(ns, s.EndNs)
		}
	}
	return ns >= turn.end
}

func isHog(s Stall) bool { return s.Cause == Process && s.Name == hogName }

func TestPerfEventNamesProcesses(t *testing.T) {
	w, core := openAs(t, eventWay(t), func(_, pid int) bool { return pid == os.Getpid() })
	found := findHog(t, w, core, isHog)
	for _, s := range found {
		if s.Core != core || s.LeastNs > s.EndNs-s.BeginNs {
			t.Errorf("%+v", s)
		}
	}
}

// The event alone finds late ticks and processes, on any kernel, if the core is never idle.
func TestPerfEventAlone(t *testing.T) {
	w, core := openAs(t, eventWay(t), func(_, pid int) bool { return pid == os.Getpid() })
	for _, c := range w.cores {
		ok(t, c.close())
	}
	w.way = newWay(PerfEvent, period, period)
	p, err := openPerf(core, period, capacity, 0)
	ok(t, err)
	w.cores = []*coreLog{{recorder: p, core: core, periodNs: period, looksFor: both}}
	busy := make(chan error)
	var over atomic.Bool
	go func() {
		busy <- onCore(core, func() {
			for !over.Load() {
			}
		})
	}()
	findHog(t, w, core, isHog)
	over.Store(true)
	ok(t, <-busy)
}

// The lengths of stalls by the hog, of which the median disturbs nobody.
func TestPerfEventLengths(t *testing.T) {
	testsets.Measured(t)
	w, core := openAs(t, eventWay(t), func(_, pid int) bool { return pid == os.Getpid() })
	var least, most []int64
	for _, s := range findHog(t, w, core, isHog) {
		least, most = append(least, s.LeastNs), append(most, s.EndNs-s.BeginNs)
	}
	if t.Failed() {
		return
	}
	slices.Sort(least)
	slices.Sort(most)
	length, bound := int64(hogLength), w.Way().ShortestProcessNs
	low, high := least[len(least)/2], most[len(most)/2]
	if low > length+slack || low < length-bound ||
		high < length || high > length+2*bound {
		t.Errorf("stalls of %d ns were found to be %d to %d ns long", length, low, high)
	}
}

func TestThreadsAreDelayed(t *testing.T) {
	w, core := openAs(t, RealTimeThread, func(int, int) bool { return false })
	findHog(t, w, core, func(s Stall) bool { return s.Cause == Unknown || s.Cause == Unrecorded })
}

// burn has a core busy with this process for a while.
func burn(t *testing.T, core int, d time.Duration) {
	t.Helper()
	ok(t, onCore(core, func() {
		for over := clock.Mono() + int64(d); clock.Mono() < over; {
		}
	}))
}

// What is ours is no stall by a process, however busy it is; the same loop is one if it is not
// ours.
func TestOursIsNoStall(t *testing.T) {
	ours := true
	w, core := openAs(t, eventWay(t), func(_, pid int) bool { return ours && pid == os.Getpid() })
	name, _ := w.known.lookUp(os.Getpid())
	byMe := func() (ns int64) {
		ok(t, w.Begin())
		burn(t, core, 100*time.Millisecond)
		ok(t, w.End())
		for _, s := range w.Read() {
			if s.Cause == Process && s.Name == name {
				ns += s.EndNs - s.BeginNs
			}
		}
		return ns
	}
	if ns := byMe(); ns != 0 {
		t.Errorf("%d ns of our own are stalls", ns)
	}
	ours = false
	if ns := byMe(); ns == 0 {
		t.Error("a busy process of others is no stall")
	}
}

// An idle core has no stalls to speak of, apart from processes of others that come in between. A
// thread at normal priority waits for these.
func TestIdleCore(t *testing.T) {
	testsets.Measured(t)
	for _, name := range usable(t) {
		t.Run(name, func(t *testing.T) {
			w, _ := openAs(t, name, func(_, pid int) bool { return pid == os.Getpid() })
			if !w.Way().Independent() {
				return
			}
			ok(t, w.Begin())
			time.Sleep(500 * time.Millisecond)
			ok(t, w.End())
			var sum time.Duration
			all := w.Read()
			for _, s := range all {
				if s.Cause != Process {
					sum += time.Duration(s.EndNs - s.BeginNs)
				}
			}
			if sum > 50*time.Millisecond {
				t.Errorf("%s: stalls of %v in 500 ms of an idle core: %+v", name, sum, all)
			}
		})
	}
}

func allTicks(w *Watch) (all []tick) {
	for _, c := range w.cores {
		all = append(all, c.ticks...)
	}
	return all
}

// Between End and Begin the clock does not tick, and each span is judged by itself.
func TestSpans(t *testing.T) {
	for _, name := range usable(t) {
		t.Run(name, func(t *testing.T) {
			w, _ := openAs(t, name, func(int, int) bool { return true })
			var begins, ends []int64
			for range 3 {
				begins = append(begins, clock.Mono())
				ok(t, w.Begin())
				time.Sleep(20 * time.Millisecond)
				ok(t, w.End())
				ends = append(ends, clock.Mono())
				time.Sleep(30 * time.Millisecond)
			}
			w.drain()
			for _, ns := range allTicks(w) {
				if !slices.ContainsFunc(begins, func(begin int64) bool {
					end := ends[slices.Index(begins, begin)]
					return begin <= ns.ns && ns.ns <= end
				}) {
					t.Errorf("%s: a tick at %d, between %v and %v", name, ns.ns, begins, ends)
				}
			}
			for _, s := range w.Read() {
				if !slices.ContainsFunc(begins, func(begin int64) bool {
					end := ends[slices.Index(begins, begin)]
					return begin <= s.BeginNs && s.EndNs <= end
				}) {
					t.Errorf("%s: a stall in no span: %+v", name, s)
				}
			}
			if again := w.Read(); len(again) > 0 {
				t.Errorf("%s: read twice: %+v", name, again)
			}
			if w.End() == nil {
				t.Errorf("%s: it ends twice", name)
			}
		})
	}
}

// A buffer that nobody reads becomes full. What was not recorded is a stall of its own, and
// counted.
func TestFullBuffer(t *testing.T) {
	for _, name := range usable(t) {
		t.Run(name, func(t *testing.T) {
			w, core := openAs(t, name, func(int, int) bool { return true })
			way := w.Way()
			for _, c := range w.cores {
				ok(t, c.close())
			}
			small, err := openClocks(way, core, os.Getpagesize()/tickBytes)
			ok(t, err)
			w.cores = small
			ok(t, w.Begin())
			time.Sleep(250 * time.Millisecond) // 170 ticks have room
			full := clock.Mono()
			w.mutex.Lock()
			w.drain()
			w.mutex.Unlock()
			time.Sleep(20 * time.Millisecond)
			ok(t, w.End())
			all := w.Read()
			if w.Lost() == 0 || !slices.ContainsFunc(all, func(s Stall) bool {
				return s.Cause == Unrecorded && s.EndNs-s.BeginNs > 30*int64(time.Millisecond)
			}) {
				t.Errorf("%s: %d ticks are lost before %d, and the stalls are %+v", way,
					w.Lost(), full, all)
			}
			// It is full at the end of a span, so that no tick says that others are lost.
			ok(t, w.Begin())
			time.Sleep(250 * time.Millisecond)
			full = clock.Mono()
			ok(t, w.End())
			if all := w.Read(); !slices.ContainsFunc(all, func(s Stall) bool {
				return s.Cause == Unknown && s.BeginNs < full && s.EndNs > full
			}) {
				t.Errorf("%s: the buffer is full at %d, and the stalls are %+v", way, full, all)
			}
		})
	}
}

// Goroutines that keep all processors of Go's scheduler busy delay the clock's thread after its
// sleep. That is no stall of the core, and not known to be none.
func TestBusyScheduler(t *testing.T) {
	mayFIFO(t)
	w, _ := openAs(t, RealTimeThread, func(int, int) bool { return true })
	var over atomic.Bool
	for range 2 * runtime.GOMAXPROCS(0) {
		go func() {
			for !over.Load() {
			}
		}()
	}
	ok(t, w.Begin())
	time.Sleep(300 * time.Millisecond)
	ok(t, w.End())
	over.Store(true)
	all := w.Read()
	if !slices.ContainsFunc(all, func(s Stall) bool { return s.Cause == Unrecorded }) {
		t.Errorf("Go's scheduler delays the clock, and the stalls are %+v", all)
	}
}

func TestPrice(t *testing.T) {
	testsets.Live(t)
	cores, err := host.Cores()
	ok(t, err)
	way, share, err := Price(cores[len(cores)-1], Period, 300*time.Millisecond)
	if err != nil || way.Name == "" {
		t.Skipf("%s: %v", way.Name, err) // the core was taken from this test all the time
	}
	if share <= 0 || share >= 1 {
		t.Errorf("%s takes %g of a core", way, share)
	}
	t.Logf("%s takes %.2f %% of a core", way, 100*share)
}

func TestRefusals(t *testing.T) {
	check := func(cores []int, want string) {
		t.Helper()
		w, err := Open(cores, Period, func(int, int) bool { return true })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, %v, want %q", cores, w, err, want)
		}
	}
	check(nil, "no cores are named")
	check([]int{1 << 15}, "core 32768")
	check([]int{1 << 15}, NormalThread+": "+errDepends.Error())
	check([]int{1 << 15}, PerfAndThread+": "+errHarms.Error())
}
