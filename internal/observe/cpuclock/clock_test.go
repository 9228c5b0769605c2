package cpuclock

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
)

// Roles of this binary as a target.
const (
	work    = "work"    // for a line of input, burns 20 ms and prints its processor time, in ns
	parent  = "parent"  // as work, after a child has done so; prints the sum of both
	threads = "threads" // followed by a number of waiting threads, for benchmarks
	forker  = "forker"  // for a line of input, as work, but a new child does it and ends
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == work:
		worker()
	case len(os.Args) > 1 && os.Args[1] == parent:
		leader()
	case len(os.Args) > 1 && os.Args[1] == forker:
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			child := exec.Command(os.Args[0], work)
			child.Stdin = strings.NewReader(in.Text() + "\n")
			if err := child.Run(); err != nil {
				panic(err)
			}
			fmt.Println(rusage(unix.RUSAGE_SELF) + rusage(unix.RUSAGE_CHILDREN))
		}
	case len(os.Args) > 2 && os.Args[1] == threads:
		n, _ := strconv.Atoi(os.Args[2])
		for range n {
			go unix.Pause() // keeps its thread
		}
		fmt.Println("ready")
		time.Sleep(time.Hour)
	default:
		os.Exit(m.Run())
	}
	os.Exit(0)
}

// burnt is the processor time that a worker uses for each line of input, by its own measurement.
const burnt = 20 * time.Millisecond

// Lines of input. Targets burn time only for burn, and report after each line.
const (
	burn   = "burn"
	report = "report"
	end    = "end" // of the child
)

func worker() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		obey(in.Text())
		fmt.Println(rusage(unix.RUSAGE_SELF))
	}
}

// obey burns time if a line says so.
func obey(line string) {
	if line == burn {
		until := rusage(unix.RUSAGE_SELF) + int64(burnt)
		for rusage(unix.RUSAGE_SELF) < until {
		}
	}
}

func leader() {
	child := exec.Command(os.Args[0], work)
	in, _ := child.StdinPipe()
	out, _ := child.StdoutPipe()
	if err := child.Start(); err != nil {
		panic(err)
	}
	answers := bufio.NewScanner(out)
	fmt.Println(child.Process.Pid)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == end {
			in.Close()
			child.Wait() //nolint:errcheck // it ends as it likes
		}
		fmt.Fprintln(in, lines.Text()) // the child may have ended
		used := int64(0)
		if answers.Scan() {
			used, _ = strconv.ParseInt(answers.Text(), 10, 64)
		}
		obey(lines.Text())
		fmt.Println(rusage(unix.RUSAGE_SELF) + rusage(unix.RUSAGE_CHILDREN) + used)
	}
}

// rusage is the processor time of this process or of its ended children, in ns.
func rusage(who int) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(who, &u); err != nil {
		panic(err)
	}
	return unix.TimevalToNsec(u.Utime) + unix.TimevalToNsec(u.Stime)
}

// target is a running process.
type target struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func start(t testing.TB, args ...string) *target {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "GOGC=off") // limits its CPU time to its work
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	err3 := cmd.Start()
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	return &target{t, cmd, in, bufio.NewScanner(out)}
}

func (p *target) line() string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatal("the target has ended")
	}
	return p.out.Text()
}

// tell returns the processor time that the target reports after it obeyed.
func (p *target) tell(text string) (used int64) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, text); err != nil {
		p.t.Fatal(err)
	}
	used, err := strconv.ParseInt(p.line(), 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return used
}

// reaches reads a clock until it has reached a time: it lacks up to a tick of a process that still
// runs, as after a response.
func reaches(t *testing.T, c *Clock, ns int64) (read int64) {
	t.Helper()
	for end := clock.Mono() + 120e9; clock.Mono() < end; time.Sleep(time.Millisecond) {
		if read = c.Read(); read >= ns-int64(rounding) {
			return read
		}
	}
	t.Fatalf("the clock says %d ns, the processes used %d ns", read, ns)
	return 0
}

// rounding is the largest error of a target's report: getrusage(2) counts whole microseconds, of
// user and of system time, of each process.
const rounding = 10 * time.Microsecond

// TestClockCountsChildren compares the clock with two processes' own getrusage(2): a reading lies
// between what they report before it and what they report after it.
func TestClockCountsChildren(t *testing.T) {
	testsets.Live(t)
	p := start(t, parent)
	child, err := strconv.Atoi(p.line())
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{p.cmd.Process.Pid}
	c := New(func() []int { return pids })
	if alive(c) != 1 {
		t.Fatalf("%d processes, want 1", alive(c))
	}
	pids = append(pids, child)
	c.Refresh()
	for range 3 {
		before := c.Read()
		after := reaches(t, c, p.tell(burn))
		if used := p.tell(report); after > used+int64(rounding) {
			t.Errorf("the clock says %d ns, the processes only used %d ns later", after, used)
		}
		if got := after - before; got < int64(2*burnt-rounding) {
			t.Errorf("they used %d ns, want 2 × %v", got, burnt)
		}
	}
	// The time of an ended process stays, before and after the next listing.
	before := c.Read()
	p.tell(end)
	after := c.Read()
	pids = pids[:1]
	c.Refresh()
	listed := c.Read()
	if used := p.tell(report); after < before || listed < after ||
		listed > used+int64(rounding) || alive(c) != 1 {
		t.Errorf("%d ns before an end, %d ns after, %d ns when listed again, %d ns were used; "+
			"%d processes", before, after, listed, used, alive(c))
	}
}

// TestClockReportsUnlistedChildren checks that a sum over processes is not complete if children
// began and ended between two listings, and that it is if all were listed.
func TestClockReportsUnlistedChildren(t *testing.T) {
	testsets.Live(t)
	p := start(t, forker)
	c := New(func() []int { return []int{p.cmd.Process.Pid} })
	if c.Refresh(); !c.Complete() {
		t.Error("not complete before the first child")
	}
	p.tell(burn)
	if c.Refresh(); c.Complete() {
		t.Error("complete without the child's time")
	}
	p = start(t, parent)
	child, err := strconv.Atoi(p.line())
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{p.cmd.Process.Pid, child}
	c = New(func() []int { return pids })
	p.tell(burn)
	c.Refresh()
	p.tell(end)
	pids = pids[:1]
	if c.Refresh(); !c.Complete() {
		t.Errorf("not complete after the end of a listed child: %d ns are missing", c.missing)
	}
}

// TestClockOfAGroup checks that the counter of a control group is read, in both versions, and that
// processes count if there is none.
func TestClockOfAGroup(t *testing.T) {
	testsets.Live(t)
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	none := func() []int { return nil }
	write("cpuacct.usage", "1234567\n")
	write("cpu.stat", "usage_usec 77\nuser_usec 70\n")
	for version, want := range map[int]int64{1: 1234567, 2: 77000} {
		c := New(none, Group{Dir: "/nowhere", Version: version}, Group{Dir: dir, Version: version})
		c.Refresh()
		if got := c.Read(); got != want || !c.Grouped() || !c.Complete() {
			t.Errorf("version %d: %d ns, want %d", version, got, want)
		}
		c.Close()
	}
	write("cpuacct.usage", "")
	c := New(func() []int { return []int{os.Getpid()} }, Group{Dir: dir, Version: 1})
	if c.Grouped() || c.Read() <= 0 {
		t.Errorf("%d ns without a counter", c.Read())
	}
}

// TestClockOfARunningProcess checks that the clock of a running process never goes back, and is
// complete when the process waits.
func TestClockOfARunningProcess(t *testing.T) {
	testsets.Live(t)
	p := start(t, work)
	c := New(func() []int { return []int{p.cmd.Process.Pid} })
	first := c.Read()
	done := make(chan bool)
	go func() { defer close(done); p.tell(burn) }()
	for last, working := first, true; working; {
		select {
		case <-done:
			working = false
		default:
		}
		now := c.Read()
		if now < last {
			t.Fatalf("the clock went back from %d to %d ns", last, now)
		}
		last = now
	}
	reaches(t, c, first+int64(burnt))
}

// TestClockOfNothing checks that the clock is unknown without processes.
func TestClockOfNothing(t *testing.T) {
	testsets.Live(t)
	for _, pids := range [][]int{nil, {1 << 22}, {0, -1}} {
		c := New(func() []int { return pids })
		if got := c.Read(); got != unknown {
			t.Errorf("the clock of %v says %d", pids, got)
		}
	}
}

// TestClockOfAReusedNumber checks that a process with a reused number does not count as the first
// one.
func TestClockOfAReusedNumber(t *testing.T) {
	testsets.Live(t)
	p := start(t, work)
	c := New(func() []int { return []int{p.cmd.Process.Pid} })
	c.rows[0].last = int64(time.Hour)
	if got := c.Read(); got != int64(time.Hour) || alive(c) != 0 {
		t.Errorf("%d ns of %d processes, want an hour of none", got, alive(c))
	}
}

func TestReadingsAllocateNothing(t *testing.T) {
	testsets.Live(t)
	c := New(func() []int { return []int{os.Getpid()} })
	m, err := OpenMachine(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	g := &Clock{group: m.stat, key: "cpu ", unit: 1, text: make([]byte, 1<<14)}
	if n := testing.AllocsPerRun(100, func() { c.Read(); g.Read(); m.Read() }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// BenchmarkClock reads a process with different numbers of threads.
func BenchmarkClock(b *testing.B) {
	for _, n := range []int{0, 40, 200} {
		b.Run(fmt.Sprintf("threads=%d", n), func(b *testing.B) {
			p := start(b, threads, strconv.Itoa(n))
			p.line()
			c := New(func() []int { return []int{p.cmd.Process.Pid} })
			runtime.LockOSThread()
			for b.Loop() {
				c.Read()
			}
		})
	}
}

// BenchmarkGroup reads the counters of this machine's own groups.
func BenchmarkGroup(b *testing.B) {
	for _, g := range []Group{{"/sys/fs/cgroup/cpuacct", 1}, {"/sys/fs/cgroup/unified", 2},
		{"/sys/fs/cgroup", 2}} {
		b.Run(g.Dir, func(b *testing.B) {
			c := New(func() []int { return nil }, g)
			if !c.Grouped() {
				b.Skip("not mounted")
			}
			defer c.Close()
			runtime.LockOSThread()
			for b.Loop() {
				c.Read()
			}
		})
	}
}

func BenchmarkMachine(b *testing.B) {
	m, err := OpenMachine(nil)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	for b.Loop() {
		m.Read()
	}
	b.Log(m.source)
}

// alive returns the number of processes that were alive at the last reading.
func alive(c *Clock) (n int) {
	for _, r := range c.rows {
		if !r.ended {
			n++
		}
	}
	return n
}
