package probe

import (
	"bufio"
	"fmt"
	"math"
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

	"golang.org/x/sys/unix"

	"prony.example/internal/dev/testsets"
)

// burnNs is the child's CPU time; grain is the kernel's tick, by which sources may differ.
const (
	burnNs   = int64(200 * time.Millisecond)
	grain    = float64(TickNs)
	childEnv = "PRONY_PROBE_TEST_CHILD"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	os.Exit(m.Run())
}

// child burns CPU time for each line of input, and prints its own measurement of it. It waits in
// between, and ends with its input. Some lines request more: a thread with a compiler's name, work
// on it, its end, or many threads.
func child() {
	compiler := make(chan bool)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch order := in.Text(); {
		case order == "name":
			go compile(compiler)
			<-compiler
			fmt.Fprintln(os.Stdout, burnNs)
		case order == "compile":
			compiler <- true
			<-compiler
		case order == "end":
			compiler <- false
			fmt.Fprintln(os.Stdout, burnNs)
		case strings.HasPrefix(order, "crowd "):
			gather(order)
		default:
			burn()
		}
	}
}

func burn() {
	var usage unix.Rusage
	used := func() int64 {
		if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
			panic(err)
		}
		return unix.TimevalToNsec(usage.Utime) + unix.TimevalToNsec(usage.Stime)
	}
	before := used()
	for used()-before < burnNs {
	}
	fmt.Fprintln(os.Stdout, used()-before)
}

// compile runs a thread that burns CPU time on request, and ends with it.
func compile(orders chan bool) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	setName("C2 CompilerThre")
	orders <- true
	for <-orders {
		burn()
		orders <- true
	}
}

// gather starts sleeping threads, some with a compiler's name.
func gather(order string) {
	var named, others int
	if _, err := fmt.Sscanf(order, "crowd %d %d", &named, &others); err != nil {
		panic(err)
	}
	ready := make(chan bool)
	for i := range named + others {
		go func() {
			runtime.LockOSThread()
			if i < named {
				setName("C2 CompilerThre")
			}
			ready <- true
			select {}
		}()
		<-ready
	}
	fmt.Fprintln(os.Stdout, "ready")
}

type burner struct {
	t   *testing.T
	cmd *exec.Cmd
	in  *os.File
	out *bufio.Scanner
}

func startBurner(t *testing.T) *burner {
	t.Helper()
	testsets.Measured(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	in, toChild, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = in
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	b := &burner{t, cmd, toChild, bufio.NewScanner(out)}
	t.Cleanup(b.end)
	b.burn() // unmeasured: the program's start is not its work
	return b
}

func (b *burner) pids() []int { return []int{b.cmd.Process.Pid} }

// burn returns the child's measurement of its CPU time.
func (b *burner) burn() float64 { return b.ask("go") }

// ask returns the child's measurement after an order.
func (b *burner) ask(order string) float64 {
	b.t.Helper()
	if _, err := b.in.WriteString(order + "\n"); err != nil || !b.out.Scan() {
		b.t.Fatalf("child: %v, %v", err, b.out.Err())
	}
	ns, err := strconv.ParseInt(b.out.Text(), 10, 64)
	if err != nil || ns < burnNs {
		b.t.Fatalf("child used %d ns: %v", ns, err)
	}
	return float64(ns)
}

// end may be repeated. It waits for the child, whose CPU time then counts among ended children.
func (b *burner) end() {
	b.in.Close()
	_ = b.cmd.Wait()
}

// live starts a sampler on the child and returns its marks around one burn, and the child's
// measurement.
func live(t *testing.T, b *burner, groups []Group) (before, after Mark, s *Sampler, used float64) {
	t.Helper()
	s, err := Start(Config{Period: 5 * time.Millisecond}, Subject{PIDs: b.pids, Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	before = s.Mark()
	used = b.burn()
	after = s.MarkPSS()
	return before, after, s, used
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s: %v, want %v within %v", what, got, want, tolerance)
	}
}

// checkLive compares the sampler's figures with the child's getrusage(2).
func checkLive(t *testing.T, source string, groups func(*testing.T, *burner) []Group) {
	t.Helper()
	b := startBurner(t)
	before, after, s, used := live(t, b, groups(t, b))
	series, cost := s.Stop()
	u, host := Between(before, after, series, 10, 1)

	near(t, "CPU ns", float64(u.CPUNs), used, grain)
	near(t, "user + system ns", float64(u.UserNs+u.SystemNs), used, 4*grain) // two of each
	near(t, "CPU ns a request", u.CPUPerRequestNs, used/10, grain/10)
	near(t, "covered by live threads", covered(before, after), 1, grain/float64(burnNs))
	whole := 0.0 // the integral of the series is the CPU time
	last := int64(0)
	for i, tNs := range series.TNs {
		whole += series.CPUCores[i] * float64(tNs-last)
		last = tNs
	}
	near(t, "CPU ns of the series", whole, used, 2*grain)

	if u.Source != source || series.Source != source {
		t.Errorf("source %q and %q, want %q", u.Source, series.Source, source)
	}
	if u.SwitchesVoluntary < 1 { // it waited at least once for its input
		t.Errorf("%d voluntary switches", u.SwitchesVoluntary)
	}
	if u.RSSMaxBytes < u.RSSEndBytes || u.RSSEndBytes <= 1<<20 || u.PSSEndBytes <= 0 {
		t.Errorf("RSS %d of %d at most, PSS %d", u.RSSEndBytes, u.RSSMaxBytes, u.PSSEndBytes)
	}
	if u.ThreadsMax < len(before.Threads) || len(before.Threads) < 1 {
		t.Errorf("%d threads at most, %d seen", u.ThreadsMax, len(before.Threads))
	}
	other := host.OtherCPUShare
	if other < 0 || other > 1 || host.StealShare < 0 || u.NetworkBytes < 0 {
		t.Errorf("host %+v, network %d", host, u.NetworkBytes)
	}
	if cost.Samples < 3 || cost.CPUNs <= 0 || cost.CPUShare <= 0 || cost.PeriodNs != 5e6 {
		t.Errorf("cost %+v", cost) // first, one due, last: a burn takes many periods
	}
	if again, sameCost := s.Stop(); len(again.TNs) != len(series.TNs) || sameCost != cost {
		t.Error("a second Stop tells otherwise")
	}
}

func TestLiveProc(t *testing.T) {
	checkLive(t, "proc", func(*testing.T, *burner) []Group { return nil })
}

func TestLiveCgroupV1(t *testing.T) {
	checkLive(t, "cgroup v1", func(t *testing.T, b *burner) []Group {
		return []Group{
			{tempGroup(t, b, "cgroup", "cpuacct"), "cpuacct", 1},
			{tempGroup(t, b, "cgroup", "memory"), "memory", 1},
		}
	})
}

func TestLiveCgroupV2(t *testing.T) {
	checkLive(t, "cgroup v2", func(t *testing.T, b *burner) []Group {
		return []Group{{Dir: tempGroup(t, b, "cgroup2", ""), Version: 2}}
	})
}

// tempGroup moves the child into a new cgroup, if the hierarchy exists and this user may.
func tempGroup(t *testing.T, b *burner, kind, controller string) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		options := strings.Split(f[3], ",")
		if f[2] != kind || controller != "" && !slices.Contains(options, controller) {
			continue
		}
		pid := strconv.Itoa(b.cmd.Process.Pid)
		dir := filepath.Join(f[1], "prony-probe-test-"+pid)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skipf("no cgroup may be made: %v", err)
		}
		t.Cleanup(func() {
			b.end() // only an empty cgroup can be removed
			if err := os.Remove(dir); err != nil {
				t.Errorf("remove cgroup: %v", err)
			}
		})
		err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(pid), 0)
		if err != nil {
			t.Skipf("the child may not be moved: %v", err)
		}
		return dir
	}
	t.Skipf("no %s hierarchy with controller %q is mounted", kind, controller)
	return ""
}

// TestLiveForeignLoad checks that a generator counts as the lab's own while it runs and after its
// end.
func TestLiveForeignLoad(t *testing.T) {
	b := startBurner(t)
	var gone atomic.Bool
	load := func() []int {
		if gone.Load() {
			return nil
		}
		return b.pids()
	}
	s, err := Start(Config{}, Subject{PIDs: func() []int { return nil }, Load: load})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	before := s.Mark()
	used := b.burn()
	running := s.Mark()
	b.end()
	gone.Store(true)
	ended := s.Mark()
	// This process also used CPU time, so the sums have only a lower limit.
	if got := float64(running.LabNs - before.LabNs); got < used-grain {
		t.Errorf("lab used %v ns with a generator that used %v", got, used)
	}
	if got := float64(ended.LabNs - before.LabNs); got < used-2*grain {
		t.Errorf("lab used %v ns with an ended generator that used %v", got, used)
	}
}

// TestLiveServiceDies checks a service that ends between two marks while its number stays on the
// list.
func TestLiveServiceDies(t *testing.T) {
	b := startBurner(t)
	pids := b.pids()
	s := opened(t, Config{}, Subject{PIDs: func() []int { return pids }})
	before := s.Mark()
	alive := s.watch.step(1)
	b.end()
	after := s.Mark()
	dead, later := s.watch.step(2), s.watch.step(3) // ESRCH, and reopening fails
	if alive.rssBytes <= 0 || alive.threads <= 0 || alive.cpuNs <= 0 {
		t.Errorf("alive: %+v", alive)
	}
	for _, r := range []row{dead, later} {
		if r.rssBytes != 0 || r.threads != 0 || r.cpuNs != alive.cpuNs {
			t.Errorf("dead: %+v after %+v", r, alive)
		}
	}
	if after.TNs == before.TNs {
		after.TNs++
	}
	u, _ := Between(before, after, Series{}, 1, 1)
	if u.CPUNs != unknown || u.RSSEndBytes != unknown || u.SwitchesForced != unknown {
		t.Errorf("usage of a dead service: %+v", u)
	}
}

func TestPinsItsThread(t *testing.T) {
	var allowed, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	core := 0
	for !allowed.IsSet(core) {
		core++
	}
	asked := make(chan error, 1)
	pids := func() []int { // the sampling thread calls it first
		select {
		case asked <- unix.SchedGetaffinity(0, &set):
		default:
		}
		return nil
	}
	s, err := Start(Config{Cores: []int{core}}, Subject{PIDs: pids})
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := <-asked; err != nil || set.Count() != 1 || !set.IsSet(core) {
		t.Errorf("affinity %v, %v, want core %d alone", set, err, core)
	}
}

func TestMarkAfterStopPanics(t *testing.T) {
	s, err := Start(Config{}, Subject{})
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	s.Mark()
}
