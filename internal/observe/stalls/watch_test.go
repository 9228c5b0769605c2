//go:build linux && !portable

package stalls

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
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

// hogVariable makes this program a hog. It has a core, a length and an interval in ns, and a
// number.
const hogVariable = "PRONY_STALLS_HOG"

// hogName is the hog's process name.
const hogName = "pronyhog"

func TestMain(m *testing.M) {
	if os.Getenv(opensVariable) != "" {
		if err := openAndWait(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	if text := os.Getenv(hogVariable); text != "" {
		if err := hog(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// hog occupies a core with a higher priority than all other processes of the test, and prints the
// begin and end of each turn by CLOCK_MONOTONIC.
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
	// Neither time.Now nor unix.ClockGettime, because Go's scheduler could interrupt this loop
	// there.
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

// startHog returns the hog's process id, and a function that returns its turns.
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

// lastCore returns the core that tests watch.
func lastCore(tb testing.TB) int {
	tb.Helper()
	cores, err := host.Cores()
	if err != nil {
		tb.Fatal(err)
	}
	return cores[len(cores)-1]
}

type opener func(cores []int, periodNs int64) (clocks, error)

// inBothWays runs a test with a watch of the last core, once for each way to record.
func inBothWays(t *testing.T, ours func(core, pid int) bool, run func(*testing.T, *Watch, int)) {
	t.Helper()
	testsets.Live(t)
	t.Run("perf event", func(t *testing.T) {
		w, core := openEvent(t, ours)
		run(t, w, core)
	})
	t.Run("heartbeat", func(t *testing.T) {
		w, core := openWay(t, ours, openBoth)
		run(t, w, core)
	})
}

// openEvent opens a watch of the last core with only perf events. On a kernel that drops ticks of
// idle cores, it keeps the core busy until the test ends.
func openEvent(t *testing.T, ours func(core, pid int) bool) (w *Watch, core int) {
	t.Helper()
	w, core = openBare(t, ours)
	if ticksOnIdleCores(core, int64(Period)) != nil {
		keepBusy(t, core)
	}
	return w, core
}

// openBare opens a watch of the last core that records nothing while the core is idle, if the
// kernel drops these ticks.
func openBare(t *testing.T, ours func(core, pid int) bool) (w *Watch, core int) {
	t.Helper()
	return openWay(t, ours, openEvents)
}

func openWay(t *testing.T, ours func(core, pid int) bool, way opener) (w *Watch, core int) {
	t.Helper()
	testsets.Live(t)
	core = lastCore(t)
	w, err := open([]int{core}, Period, ours, way)
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("this user may not: %v", err)
	}
	ok(t, err)
	t.Cleanup(func() { ok(t, w.Close()) })
	return w, core
}

// keepBusy runs this process on a core until the test ends.
func keepBusy(t *testing.T, core int) {
	t.Helper()
	began, ended := make(chan bool), make(chan error)
	var over atomic.Bool
	go func() {
		ended <- onCore(core, func() {
			began <- true
			for !over.Load() {
			}
		})
	}()
	select {
	case <-began:
	case err := <-ended:
		t.Fatal("the core is not busy: ", err)
	}
	t.Cleanup(func() {
		over.Store(true)
		ok(t, <-ended)
	})
}

func isSelf(_, pid int) bool { return pid == os.Getpid() }

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

// findHog begins before the hog and ends after it. Stalls must cover each of its turns, because a
// turn includes a tick whatever else the machine does. It returns the stalls with the right cause,
// at most one for each turn.
func findHog(t *testing.T, w *Watch, core int, right func(Stall) bool) (found []Stall) {
	t.Helper()
	return findHogs(t, w, core, hogLength, right)
}

// findHogs is findHog for turns of another length.
func findHogs(t *testing.T, w *Watch, core int, length time.Duration, right func(Stall) bool) (
	found []Stall) {
	t.Helper()
	mayFIFO(t)
	ok(t, w.Begin())
	_, ended := startHog(t, core, length, hogEvery, hogTimes)
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
	if len(found) < hogTimes {
		t.Errorf("%s: the reason of %d of %d turns is right", w.Way(), len(found), len(turns))
	}
	return found
}

// covers reports whether stalls cover a turn completely.
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

func TestNamesOfProcesses(t *testing.T) {
	inBothWays(t, isSelf, func(t *testing.T, w *Watch, core int) {
		for _, s := range findHog(t, w, core, isHog) {
			if s.Core != core || s.LeastNs > s.EndNs-s.BeginNs {
				t.Errorf("%+v", s)
			}
		}
	})
}

// TestLateHeartbeat checks that a heartbeat alone reports a process of a higher priority like a
// hypervisor that takes the core.
func TestLateHeartbeat(t *testing.T) {
	w, core := openWay(t, isSelf, openBoth)
	ok(t, w.cores[0].busy.close()) // it shows the process
	w.cores[0].busy = nil
	findHog(t, w, core, func(s Stall) bool { return s.Cause != Process })
}

// TestBusyCore checks that a core that is never idle ticks on any kernel.
func TestBusyCore(t *testing.T) {
	w, core := openBare(t, isSelf)
	keepBusy(t, core)
	findHog(t, w, core, isHog)
}

// TestLengths checks the lengths of stalls by the hog, by their median, which is robust to
// disturbances.
func TestLengths(t *testing.T) {
	testsets.Measured(t)
	inBothWays(t, isSelf, func(t *testing.T, w *Watch, core int) {
		// Three periods of the clock that shows processes, so that a turn includes three of its
		// ticks.
		period := max(w.busyNs, w.way.PeriodNs)
		length := 3 * period
		var least, most []int64
		for _, s := range findHogs(t, w, core, time.Duration(length), isHog) {
			least, most = append(least, s.LeastNs), append(most, s.EndNs-s.BeginNs)
		}
		if t.Failed() {
			return
		}
		slices.Sort(least)
		slices.Sort(most)
		bound := period + slack
		low, high := least[len(least)/2], most[len(most)/2]
		if low > length+slack || low < length-bound ||
			high < length || high > length+2*bound {
			t.Errorf("stalls of %d ns were found to be %d to %d ns long", length, low, high)
		}
	})
}

// burn keeps a core busy with this process for a duration.
func burn(t *testing.T, core int, d time.Duration) {
	t.Helper()
	ok(t, onCore(core, func() {
		for over := clock.Mono() + int64(d); clock.Mono() < over; {
		}
	}))
}

// TestOursIsNoStall checks that the core's own process is never a stall, however busy it is, and
// that the same loop in another process is one.
func TestOursIsNoStall(t *testing.T) {
	ours := true
	mine := func(_, pid int) bool { return ours && pid == os.Getpid() }
	inBothWays(t, mine, func(t *testing.T, w *Watch, core int) {
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
		ours = true
		if ns := byMe(); ns != 0 {
			t.Errorf("%d ns of our own are stalls", ns)
		}
		ours = false
		if ns := byMe(); ns == 0 {
			t.Error("a busy process of others is not a stall")
		}
	})
}

// TestIdleCore checks that an idle core has few stalls, apart from those by other processes.
func TestIdleCore(t *testing.T) {
	testsets.Measured(t)
	testsets.Live(t)
	w, err := Open([]int{lastCore(t)}, Period, isSelf)
	if errors.Is(err, fs.ErrPermission) {
		t.Skip(err)
	}
	ok(t, err)
	t.Cleanup(func() { ok(t, w.Close()) })
	ok(t, w.Begin())
	time.Sleep(500 * time.Millisecond)
	ok(t, w.End())
	var sum time.Duration
	all := w.Read()
	t.Logf("%s: %+v", w.Way(), all)
	for _, s := range all {
		if s.Cause != Process {
			sum += time.Duration(s.EndNs - s.BeginNs)
		}
	}
	if sum > 50*time.Millisecond {
		t.Errorf("stalls of %v in 500 ms of an idle core: %+v", sum, all)
	}
}

func allTicks(w *Watch) (all []tick) {
	for _, c := range w.cores {
		all = append(all, append(c.ticks, c.ran...)...)
	}
	return all
}

// TestSpans checks that the clock does not tick between End and Begin, and that each span is judged
// separately.
func TestSpans(t *testing.T) {
	inBothWays(t, func(int, int) bool { return true }, testSpans)
}

func testSpans(t *testing.T, w *Watch, _ int) {
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
	ticks := allTicks(w)
	if len(ticks) < 3*10 {
		t.Errorf("%d ticks in 60 ms", len(ticks))
	}
	for _, ns := range ticks {
		if !slices.ContainsFunc(begins, func(begin int64) bool {
			end := ends[slices.Index(begins, begin)]
			return begin <= ns.ns && ns.ns <= end
		}) {
			t.Errorf("a tick at %d, between %v and %v", ns.ns, begins, ends)
		}
	}
	for _, s := range w.Read() {
		if !slices.ContainsFunc(begins, func(begin int64) bool {
			end := ends[slices.Index(begins, begin)]
			return begin <= s.BeginNs && s.EndNs <= end
		}) {
			t.Errorf("a stall in no span: %+v", s)
		}
	}
	if again := w.Read(); len(again) > 0 {
		t.Errorf("read twice: %+v", again)
	}
	if w.End() == nil {
		t.Error("it ends twice")
	}
}

// TestFullBuffer checks that a full buffer gives a stall with the cause Unrecorded, and a count.
func TestFullBuffer(t *testing.T) {
	w, core := openEvent(t, func(int, int) bool { return true })
	ok(t, w.cores[0].all.close())
	small, err := openRoom(core, int64(Period), os.Getpagesize()/tickBytes)
	ok(t, err)
	w.cores[0].all = small
	ok(t, w.Begin())
	time.Sleep(250 * time.Millisecond) // the buffer has room for 170 ticks
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
		t.Errorf("%d ticks are lost before %d, and the stalls are %+v", w.Lost(), full, all)
	}
	// It is full at the end of a span: no tick reports lost ones, but the full buffer does.
	ok(t, w.Begin())
	time.Sleep(250 * time.Millisecond)
	full = clock.Mono()
	ok(t, w.End())
	if all := w.Read(); !slices.ContainsFunc(all, func(s Stall) bool {
		return s.Cause == Unrecorded && s.BeginNs < full && s.EndNs > full
	}) {
		t.Errorf("the buffer is full at %d, and the stalls are %+v", full, all)
	}
}

// TestPrice checks that the price is a share of the core, or that an error says why it is unknown.
func TestPrice(t *testing.T) {
	testsets.Live(t)
	_, share, err := Price(lastCore(t), Period, 300*time.Millisecond)
	switch {
	case err != nil:
		t.Skip(err) // the core was always busy, or this user lacks permission
	case share <= 0 || share >= 1:
		t.Errorf("it takes %g of a core", share)
	}
	t.Logf("it takes %.2f %% of a core", 100*share)
}

// TestVerdictOfKernel checks that one core's verdict on the kernel applies to all cores, and is
// measured once.
func TestVerdictOfKernel(t *testing.T) {
	_, core := openBare(t, isSelf)
	err := ticksOnIdleCores(core, int64(Period))
	if errors.Is(err, errBusy) {
		t.Skip(err)
	}
	begin := clock.Mono()
	if again := ticksOnIdleCores(1<<15, int64(Period)); !errors.Is(again, err) ||
		clock.Mono()-begin > int64(20*time.Millisecond) {
		t.Errorf("%v, then %v after %d ns", err, again, clock.Mono()-begin)
	}
}

// TestBusyCoreIsUndecided checks that a core that is always busy gives no verdict on idle ticks.
func TestBusyCoreIsUndecided(t *testing.T) {
	_, core := openBare(t, isSelf)
	keepBusy(t, core)
	p, err := openPerf(core, int64(Period), capacity)
	ok(t, err)
	if err := p.ticksWhileIdle(int64(Period)); !errors.Is(err, errBusy) {
		t.Errorf("%v, want %v", err, errBusy)
	}
	ok(t, p.close())
}

func TestRefusals(t *testing.T) {
	check := func(cores []int, want string) {
		t.Helper()
		w, err := Open(cores, Period, func(int, int) bool { return true })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, %v, want %q", cores, w, err, want)
		}
	}
	check(nil, "the list of cores is empty")
	check([]int{1 << 15}, "core 32768")
}
