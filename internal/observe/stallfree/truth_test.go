//go:build linux && !portable

package stallfree

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/rtsched"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/observe/host"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
	"prony.example/stats"
)

// Roles of this program, by this variable: a server whose response times are arithmetic, or a hog
// that takes its core.
const roleVariable = "PRONY_STALLFREE_ROLE"

// The server needs 15 µs of processor time for a request, with all its calls of the kernel, and
// 8 ms for each 2,000th.
const (
	perSecond  = 20_000
	serviceNs  = 15_000
	pauseNs    = 8_000_000
	pauseEvery = 2_000
)

// The hogs: one takes a fortieth of the time, in turns that are exponential, the other one takes
// 3 ms whenever the server has paused for 5 ms.
const (
	hogMeanNs   = 2_500_000
	hogShare    = 0.025
	strikeAfter = 5 * time.Millisecond
	strikeNs    = 3_000_000
)

var window = flag.Duration("window", 10*time.Second, "length of the loads of the truth tests")

func TestMain(m *testing.M) {
	role, ok := os.LookupEnv(roleVariable)
	if !ok {
		os.Exit(m.Run())
	}
	runtime.LockOSThread()
	cores, err := host.Cores()
	if err == nil {
		var only unix.CPUSet
		only.Set(cores[len(cores)-1])
		err = unix.SchedSetaffinity(0, &only)
	}
	if err == nil {
		switch role {
		case "server":
			err = serve()
		case "hog":
			err = hog(takeTurns)
		case "strike":
			err = hog(strike)
		}
	}
	fmt.Fprintln(os.Stderr, role, err)
	os.Exit(1)
}

// read is a clock in ns, without a word to Go's scheduler.
func read(clock uintptr) int64 {
	var ts unix.Timespec
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// spin takes some time of a clock.
func spin(clock uintptr, ns int64) { spinUntil(clock, read(clock)+ns) }

// spinUntil returns when a clock shows a time.
func spinUntil(clock uintptr, ns int64) {
	for read(clock) < ns {
	}
}

// serve answers requests one at a time, in the order in which the kernel reports them. It writes
// its port, and then a byte at the begin of each pause.
func serve() error {
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(listener, 1024); err != nil {
		return err
	}
	name, err := unix.Getsockname(listener)
	if err != nil {
		return err
	}
	poll, err := unix.EpollCreate1(0)
	if err != nil {
		return err
	}
	add := func(fd int) error {
		return unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd,
			&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
	}
	if err := add(listener); err != nil {
		return err
	}
	fmt.Println(name.(*unix.SockaddrInet4).Port)
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	var buffer [4096]byte
	var events [128]unix.EpollEvent
	const processor = unix.CLOCK_THREAD_CPUTIME_ID
	last := read(processor) // when the last answer was ready
	for count := 0; ; {
		n, err := unix.EpollWait(poll, events[:], -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		for _, e := range events[:max(n, 0)] {
			if int(e.Fd) == listener {
				fd, _, err := unix.Accept(listener)
				if err != nil {
					return err
				}
				if err := add(fd); err != nil {
					return err
				}
				continue
			}
			if n, err := unix.Read(int(e.Fd), buffer[:]); n <= 0 {
				if err != unix.EINTR {
					_ = unix.Close(int(e.Fd))
				}
				continue
			}
			ns := int64(serviceNs)
			if count++; count%pauseEvery == 0 {
				_, _ = unix.Write(1, []byte{'p'})
				ns = pauseNs
			}
			// All that it did since the last answer belongs to this request.
			spinUntil(processor, last+ns)
			last = read(processor)
			if _, err := unix.Write(int(e.Fd), answer); err != nil {
				return err
			}
		}
	}
}

// hog takes the core, with a priority above all of ours.
func hog(take func()) error {
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO,
		Priority: rtsched.Heartbeat + 8}
	if err := unix.SchedSetAttr(0, &first, 0); err != nil {
		return err
	}
	for {
		take()
	}
}

var random = rand.New(rand.NewPCG(1, 40))

func takeTurns() {
	pause := unix.NsecToTimespec(int64(random.ExpFloat64() * hogMeanNs * (1/hogShare - 1)))
	_ = unix.Nanosleep(&pause, nil)
	spin(unix.CLOCK_MONOTONIC, int64(random.ExpFloat64()*hogMeanNs))
}

func strike() {
	var b [1]byte
	if n, _ := unix.Read(0, b[:]); n == 0 {
		os.Exit(0)
	}
	pause := unix.NsecToTimespec(int64(strikeAfter))
	_ = unix.Nanosleep(&pause, nil)
	spin(unix.CLOCK_MONOTONIC, strikeNs)
}

// limitCPU puts a process under a limit of 5 ms in each 10 ms, by a group that ends with the test.
func limitCPU(t testing.TB, pid int) {
	t.Helper()
	write := func(path, text string) bool {
		return os.WriteFile(path, []byte(text), 0o600) == nil
	}
	name := fmt.Sprintf("prony-stallfree-%d", pid)
	for _, way := range []struct{ root, file, limit string }{
		{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "5000"},
		{"/sys/fs/cgroup", "cpu.max", "5000 10000"},
	} {
		dir := filepath.Join(way.root, name)
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		_ = write(filepath.Join(dir, "cpu.cfs_period_us"), "10000") // version 1 alone has it
		if write(filepath.Join(dir, way.file), way.limit) &&
			write(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid)) {
			return
		}
	}
	t.Skip("no control group may limit processor time here")
}

// role starts this program in a role; pauses of the server go to the hog's input.
func role(t testing.TB, name string, in *os.File) (out *os.File) {
	out, _ = roleOf(t, name, in)
	return out
}

// roleOf is role, and returns the process id.
func roleOf(t testing.TB, name string, in *os.File) (out *os.File, pid int) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVariable+"="+name, "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, w, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close() // the child has it
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = out.Close()
	})
	return out, cmd.Process.Pid
}

// arithmetic are quantiles of response times of that server: those of a queue with these service
// times, of many arrivals at random.
func arithmetic(quantiles ...float64) (ns []float64) {
	r := rand.New(rand.NewPCG(40, 1))
	const n = 4_000_000
	times := make([]float64, 0, n)
	wait := 0.0
	for i := 1; i <= n; i++ {
		service := float64(serviceNs)
		if i%pauseEvery == 0 {
			service = pauseNs
		}
		times = append(times, wait+service)
		wait = max(wait+service-r.ExpFloat64()*1e9/perSecond, 0)
	}
	slices.Sort(times)
	for _, q := range quantiles {
		ns = append(ns, times[int(q*n)])
	}
	return ns
}

// limited is the name of no hog, but of a limit of half a core.
const limited = "limit"

// startServer starts a server, and watches it.
func startServer(t testing.TB, hogName string) (w *Nearby, s load.Spec) {
	t.Helper()
	cores, err := host.Cores()
	if err != nil || len(cores) < 2 {
		t.Skip("needs two cores")
	}
	server, pid := roleOf(t, "server", nil)
	line := make([]byte, 6)
	n, err := server.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(string(line[:n-1]))
	if err != nil {
		t.Fatal(err)
	}
	switch hogName {
	case "":
	case limited:
		limitCPU(t, pid)
	default:
		role(t, hogName, server)
	}
	// As trials do, it keeps its own threads off the service's core.
	if err := host.Confine(cores[:1]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Confine(cores) }) // it was allowed to run there before
	w = WatchNearby(record.Open, "tcp", port, cores[:1])
	if w == nil || !w.stalls.Works() {
		t.Skip("stalls cannot be recorded here")
	}
	t.Cleanup(w.Close)
	return w, load.Spec{
		Address: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)),
		Scenario: load.Scenario{Requests: []load.Request{{Method: "GET", Path: "/", Status: 200,
			WantSize: -1}}},
		Model: record.Open, Connections: 64, Seed: 7, Pacing: load.Precise, Cores: cores[:1],
		Schedule: pace.Schedule{Arrivals: pace.Poisson, Rate: pace.Flat(perSecond)},
		Lead:     time.Second, Window: *window, Timeout: 5 * time.Second, Drain: 5 * time.Second,
		Ahead: true,
	}
}

// offerTo offers the load to a server beside a hog, and returns its result.
func offerTo(t *testing.T, hogName string) record.Load {
	t.Helper()
	w, s := startServer(t, hogName)
	res, err := w.Offer(context.Background(), s, nil, load.Run)
	if err != nil {
		t.Fatal(err)
	}
	if l := res.Load; l.Answered < l.Scheduled*99/100 {
		t.Fatalf("%d of %d requests were answered", l.Answered, l.Scheduled)
	}
	return res.Load
}

// The service's own pauses stay in full, with and without stalls that are independent of them. If
// stalls strike in the pauses, the percentiles are unknown.
func TestPausesOfTheService(t *testing.T) {
	testsets.Once(t, "pauses of a service beside stalls", testsets.Needs{})
	// A core that is slow for a while without a stall, as beside a busy neighbor of the virtual
	// machine, makes percentiles longer, but nothing may make the service's pauses shorter.
	exact := testsets.More(t, testsets.Needs{})
	testsets.Measured(t)
	quantiles := []float64{0.99, 0.999}
	truth := arithmetic(quantiles...)
	tolerance := []float64{0.12, 0.2} // of 100 pauses in 10 s; with stalls, p99.9 is 40 % off
	for _, hogName := range []string{"", "hog"} {
		t.Run("with "+hogName, func(t *testing.T) {
			l := offerTo(t, hogName)
			t.Logf("stalls %+v", l.Stalls)
			for i, q := range quantiles {
				x := record.StallFreeOf(l.StallFree, q)
				if x == nil { // it must not be wrong, but the machine may be too noisy for it
					t.Logf("p%v is unknown: %+v", 100*q, l.StallFree)
					continue
				}
				deviation := float64(x.Ns)/truth[i] - 1
				t.Logf("p%v %.3f ms, by arithmetic %.3f (%+.1f %%), raw %.3f, kept %.1f %%", 100*q,
					float64(x.Ns)/1e6, truth[i]/1e6, 100*deviation, float64(x.RawNs)/1e6,
					100*x.KeptShare)
				if deviation < -tolerance[i] || exact && deviation > tolerance[i] {
					t.Errorf("p%v is %+.1f %% off", 100*q, 100*deviation)
				}
			}
		})
	}
	t.Run("with stalls in pauses", func(t *testing.T) {
		l := offerTo(t, "strike")
		t.Logf("stalls %+v", l.Stalls)
		for _, q := range quantiles {
			if x := record.StallFreeOf(l.StallFree, q); x != nil {
				t.Errorf("p%v is known, but stalls left out the service's pauses: %+v", 100*q, x)
			}
		}
		depend := slices.ContainsFunc(l.StallFree, func(x record.StallFree) bool {
			return x.Unknown == stats.StallsDepend
		})
		t.Logf("stalls depend on the service: %v, %+v", depend, l.StallFree)
	})
}

// A service that reaches the limit of its control group is not stalled: what it then takes longer
// stays.
func TestLimitIsNoStall(t *testing.T) {
	testsets.Once(t, "a limit beside stalls", testsets.Needs{})
	testsets.Measured(t)
	l := offerTo(t, limited)
	t.Logf("stalls %+v", l.Stalls)
	if share := float64(l.Stalls.StalledNs) / float64(l.Stalls.TimeNs); share > 0.1 {
		t.Errorf("stalls take %.1f %% of the time", 100*share)
	}
	for _, x := range l.StallFree {
		switch {
		case x.Quantile != 0.99:
		case x.RawNs < 9e6: // 7.4 ms without a limit
			t.Errorf("p99 of a server that has half of each 10 ms: %+v", x)
		case x.Unknown == "" && float64(x.Ns) < 0.8*float64(x.RawNs):
			t.Errorf("what the limit costs is left out: %+v", x)
		default:
			t.Logf("%+v", x) // unknown, if the machine is too noisy
		}
	}
}

// BenchmarkMedianWhileWatched measures what the record of stalls does to the median response time,
// by pairs of loads of 2 s with it and without it. It reports the medians of both, in µs, and that
// of their ratios, in percent.
func BenchmarkMedianWhileWatched(b *testing.B) {
	for _, rate := range []float64{1000, perSecond} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) {
			w, s := startServer(b, "")
			s.Schedule.Rate, s.Window, s.Lead = pace.Flat(rate), 2*time.Second, 200*time.Millisecond
			median := func(w *Nearby) float64 {
				res, err := w.Offer(context.Background(), s, nil, load.Run)
				if err != nil {
					b.Fatal(err)
				}
				return float64(res.Load.ResponseTime.P50Ns)
			}
			var with, without, ratios []float64
			for range b.N {
				for i := range 10 {
					var x, y float64
					if i%2 == 0 {
						x, y = median(w), median(nil)
					} else {
						y, x = median(nil), median(w)
					}
					with, without, ratios = append(with, x), append(without, y), append(ratios, x/y)
				}
			}
			b.ReportMetric(stats.Median(with)/1e3, "µs/watched")
			b.ReportMetric(stats.Median(without)/1e3, "µs/unwatched")
			b.ReportMetric(100*(stats.Median(ratios)-1), "%change")
		})
	}
}
