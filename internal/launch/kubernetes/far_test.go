package kubernetes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/observe/probe"
	"prony.example/record"
)

// fakeUID is the UID of the pod whose groups a test makes.
const fakeUID = "0f0f0f0f-1111-2222-3333-444455556666"

// contained runs a program in control groups like those of a kubelet, and returns the folder of its
// container's group.
func contained(t *testing.T, args ...string) (dir string, cmd *exec.Cmd) {
	t.Helper()
	var made []string
	for _, m := range cgroup.OwnMounts() {
		pod := filepath.Join(m.Dir, fmt.Sprintf("prony-test-%d", os.Getpid()), "pod"+fakeUID)
		own := filepath.Join(pod, "c0ffee")
		if err := os.MkdirAll(own, 0o755); err != nil {
			t.Skip("this user may make no control groups here: ", err)
		}
		t.Cleanup(func() {
			for _, d := range []string{own, pod, filepath.Dir(pod)} {
				if err := os.Remove(d); err != nil && !os.IsNotExist(err) {
					t.Error(err)
				}
			}
		})
		for _, d := range []string{filepath.Dir(pod), pod, own} {
			for _, name := range []string{"cpuset.cpus", "cpuset.mems"} { // empty in version 1
				if all := cgroup.Value(m.Dir, name); all != "" {
					_ = os.WriteFile(filepath.Join(d, name), []byte(all), 0o644)
				}
			}
		}
		if made = append(made, own); dir == "" && slices.Contains(m.Controllers, "memory") {
			dir = own
		}
	}
	if len(made) == 0 {
		t.Skip("no control groups are mounted here")
	}
	if dir == "" {
		dir = made[0]
	}
	cmd = exec.Command(args[0], args[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	for _, d := range made {
		err := os.WriteFile(filepath.Join(d, "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid),
			0o644)
		if err != nil {
			t.Skip("this user may move no process: ", err)
		}
	}
	return dir, cmd
}

// child starts a reader as a process of this machine, and returns its number.
func child(t *testing.T) (*far, func() int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pid := make(chan int, 1)
	open := func(ctx context.Context) (*stream, error) {
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), readerEnv+"=1")
		s, err := told(cmd)
		if err == nil {
			pid <- cmd.Process.Pid
		}
		return s, err
	}
	dead := func(context.Context) error { return fmt.Errorf("the reader's pod has ended: killed") }
	f := &far{line: newLine(open, dead)}
	t.Cleanup(f.close)
	if err := f.meet(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f.of(fakeUID), func() int { return <-pid }
}

// A reader reports the same about a container as this program reads itself on one machine.
func TestReaderReads(t *testing.T) {
	testsets.Once(t, "a reader beside a busy container", testsets.Needs{})
	testsets.Measured(t)
	dir, cmd := contained(t, "sh", "-c", "while :; do :; done")
	f, _ := child(t)
	if off := f.clock; max(off.WallNs, -off.WallNs) > off.ErrorNs+1e5 || off.ErrorNs > 5e6 {
		t.Errorf("one machine's clock is off from itself: %+v", off)
	}
	direct, there := (here{}).watch(fakeUID), f.watch(fakeUID)
	defer direct.close()
	defer there.close()
	one, other := <-direct.seen(), <-there.seen()
	if one.Dir != dir || one.PID != cmd.Process.Pid || other.Dir != dir || other.PID != one.PID {
		t.Fatalf("seen are %+v and %+v, want %s and %d", one, other, dir, cmd.Process.Pid)
	}
	if apart := one.BeganNs - other.BeganNs; max(apart, -apart) > int64(200*time.Millisecond) {
		t.Errorf("it began at %d and at %d", one.BeganNs, other.BeganNs)
	}
	if found := there.find("c0ffee"); found.Dir != dir || found.PID != one.PID ||
		found.BeganNs != other.BeganNs {
		t.Errorf("found is %+v, want %+v", found, other)
	}
	asked := limits{Cores: []int{0}, CPUs: 1, MemoryBytes: 64 << 20}
	want, got := (here{}).facts(one, asked), f.facts(other, asked)
	want.AgeNs, got.AgeNs = 0, 0
	if !reflect.DeepEqual(got, want) || len(got.Groups) == 0 || len(got.Cores) == 0 {
		t.Errorf("facts are %+v, want %+v", got, want)
	}
	if pids := f.pids(got.Groups); !slices.Equal(pids, []int{one.PID}) {
		t.Errorf("processes are %v, want %d", pids, one.PID)
	}
	if cores := f.cores(got.Groups); !slices.Equal(cores, got.Cores) {
		t.Errorf("cores are %v, want %v", cores, got.Cores)
	}
	over := f.ending(one.PID, got.Groups) // from then on it does not search for containers
	sameUse(t, &proc{l: &Launcher{}, site: f, sighting: other, groups: got.Groups})
	if err := unix.Kill(one.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-over.Done():
	case <-time.After(testsets.Patience):
		t.Error("the reader did not see the end")
	}
}

// sameUse samples a process through its reader and directly, in parallel.
func sameUse(t *testing.T, p *proc) {
	t.Helper()
	far, err := p.Sample(0)
	if err != nil {
		t.Fatal(err)
	}
	subject := probe.Subject{PIDs: func() []int { return (here{}).pids(p.groups) },
		Network: p.sighting.PID}
	for _, g := range p.groups {
		subject.Groups = append(subject.Groups, probe.Group(g))
	}
	near, err := probe.Start(probe.Config{}, subject)
	if err != nil {
		t.Fatal(err)
	}
	a, b := near.Mark(), far.Mark()
	time.Sleep(3 * time.Second)
	c, d := near.Mark(), far.MarkPSS()
	want, _ := probe.Between(a, c, near.Series(), 1000, 1)
	got, host := probe.Between(b, d, far.Series(), 1000, 1)
	perS := func(ns, window int64) float64 { return float64(ns) / float64(window) }
	x, y := perS(want.CPUNs, want.WindowNs), perS(got.CPUNs, got.WindowNs)
	if diff := y/x - 1; diff > 0.02 || diff < -0.02 || x == 0 {
		t.Errorf("it used %.4f cores by the reader, %.4f directly", y, x)
	}
	if got.Source != want.Source || got.RSSEndBytes <= 0 || got.ThreadsMax != want.ThreadsMax ||
		got.PSSEndBytes <= 0 || got.SwitchesForced < 0 || host.StealShare < 0 {
		t.Errorf("use is %+v, want %+v; host %+v", got, want, host)
	}
	series, cost := far.Stop()
	if n := len(series.TNs); n < 20 || cost.Samples < int64(n) || cost.CPUNs <= 0 {
		t.Errorf("there are %d samples, at a cost of %+v", n, cost)
	}
	t.Logf("%.4f and %.4f cores; the reader took %.3f %% of a core", x, y, 100*cost.CPUShare)
	if cost.CPUShare > 0.01 {
		t.Errorf("the reader took %.2f %% of a core, want less than 1", 100*cost.CPUShare)
	}
	near.Stop()
	r := p.site.(interface {
		record(*Sampling) *record.Reader
	}).record(far)
	if len(r.Lost) > 0 || r.LateMaxNs > int64(markBound) { // on a busy machine
		t.Errorf("the record says %+v", r)
	}
}

// If the reader dies during a window, the window's numbers are unknown, and no call waits for it.
func TestReaderDies(t *testing.T) {
	_, cmd := contained(t, "sleep", "60")
	f, pid := child(t)
	at := f.watch(fakeUID).find("c0ffee")
	if at.PID != cmd.Process.Pid {
		t.Fatalf("found is %+v, want %d", at, cmd.Process.Pid)
	}
	groups := f.facts(at, limits{}).Groups
	s, err := (&proc{l: &Launcher{}, site: f, sighting: at, groups: groups}).Sample(0)
	if err != nil {
		t.Fatal(err)
	}
	a := s.Mark()
	if err := unix.Kill(pid(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.gone():
	case <-time.After(testsets.Patience):
		t.Fatal("nobody noticed")
	}
	began := clock.Mono()
	b := s.Mark()
	if took := clock.Mono() - began; took > int64(markBound) {
		t.Errorf("a reading of nobody took %d ns", took)
	}
	use, host := probe.Between(a, b, s.Series(), 10, 1)
	if a.Lost || !b.Lost || use.CPUNs != -1 || use.CPUPerRequestNs != -1 || use.RunDelayNs != -1 ||
		use.ThrottledNs != -1 || host.OtherCPUShare != -1 {
		t.Errorf("use of a window without its end is %+v, %+v", use, host)
	}
	r := f.record(s)
	if len(r.Lost) != 1 || !strings.Contains(r.Lost[0], "the reader's pod has ended: killed") {
		t.Errorf("the record says %+v", r)
	}
	if pids := f.pids(groups); len(pids) > 0 {
		t.Errorf("a dead reader tells of %v", pids)
	}
}

// The reader skips malformed questions and answers the next one. A repeated question, as after a
// broken stream, is answered twice.
func TestReaderHears(t *testing.T) {
	r := &reader{boot: "b00", pods: map[string]*podRead{}}
	in, ours := io.Pipe()
	theirs, out := io.Pipe()
	go func() { _ = r.serve(in, out) }()
	said := bufio.NewScanner(theirs)
	ask := func(text string) string {
		t.Helper()
		if _, err := io.WriteString(ours, text); err != nil || !said.Scan() {
			t.Fatal(err, said.Err())
		}
		return said.Text()
	}
	before := `{"id": 7, "do": "hel` + "\n" + strings.Repeat("x", 2*maxQuestion) + "\n"
	for range 2 {
		var a answer
		var h hello
		err := strictly([]byte(ask(before+`{"id": 3, "do": "hello"}`+"\n")), &a)
		if err != nil || a.ID != 3 || strictly(a.Is, &h) != nil || h.Boot != "b00" ||
			h.Protocol != protocol {
			t.Errorf("it answers %+v, %v", a, err)
		}
	}
	got := ask(`{"id": 4, "do": "mark", "uid": "none"}` + "\n")
	if !strings.Contains(got, `"error":"pod none is not sampled by this reader"`) {
		t.Errorf("of a pod that nobody samples it says %s", got)
	}
	if err := errors.Join(r.forget("none"), ours.Close()); err != nil {
		t.Error(err)
	}
}

// Sampling a pod that has ended returns an error and no sampler, so that there is nothing to stop.
func TestReaderSamplesNothingThatHasEnded(t *testing.T) {
	r := &reader{boot: "b00", pods: map[string]*podRead{}}
	q := question{Do: "sample", UID: "12345678-0000", Groups: []launch.Group{{Version: 2,
		Dir: "/sys/fs/cgroup/of-a-pod-that-has-ended"}}}
	if _, err := r.answer(q); err == nil || !strings.Contains(err.Error(), "start probe") {
		t.Errorf("sampling it: %v", err)
	}
	for _, do := range []string{"mark", "series", "roles", "stop"} {
		q.Do = do
		if _, err := r.answer(q); err == nil || !strings.Contains(err.Error(), "not sampled") {
			t.Errorf("%s of it: %v", do, err)
		}
	}
	if err := r.forget(q.UID); err != nil {
		t.Error(err)
	}
}

// A time on the node is converted to the lab's clock. A mark that is not later than the previous
// one, or from another source, is lost.
func TestReaderOfThePast(t *testing.T) {
	const script = `n=0; while read -r q; do [ -n "$q" ] || continue; n=$((n+1))
echo '{"id":'$n',"is":{"atNs":5,"mark":{"TNs":100,"Source":"x"}}}'; done`
	open := func(ctx context.Context) (*stream, error) {
		return told(exec.CommandContext(ctx, "sh", "-c", script))
	}
	stands := func(context.Context) error { return nil }
	f := &far{line: newLine(open, stands), clock: record.Clock{OffsetNs: 5}}
	t.Cleanup(f.close)
	testsets.Eventually(t, "the stream", func() bool { return f.lost() == nil })
	for _, row := range []struct {
		last int64
		from string
		lost bool
	}{{99, "x", false}, {100, "x", true}, {99, "y", true}} {
		s := &Sampling{f: f, last: row.last, from: row.from}
		if m := s.Mark(); m.Lost != row.lost || m.TNs <= row.last || len(s.lost) > 0 != row.lost {
			t.Errorf("after %d of %s it is %+v, lost %q", row.last, row.from, m, s.lost)
		}
	}
	if at := f.lab(sighting{PID: 1, BeganNs: 12}); at.BeganNs != 7 {
		t.Errorf("12 there is %d here, want 7", at.BeganNs)
	}
	if at := f.lab(sighting{PID: 1}); at.BeganNs != 0 {
		t.Errorf("what nobody saw begin began at %d", at.BeganNs)
	}
}

// A pod that refuses a connection is reachable, because nothing listens there yet. A silent address
// is not, and the error says what the load needs.
func TestReached(t *testing.T) {
	testsets.Whole(t, "waits")
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port := name.(*unix.SockaddrInet4).Port
	p := &proc{Common: launch.NewCommon(launch.Spec{Port: port})}
	p.addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
	if err := p.reached(t.Context()); err != nil {
		t.Errorf("a refusal is %v", err)
	}
	if err := unix.Listen(fd, 0); err != nil { // its queue of one gets filled
		t.Fatal(err)
	}
	for range 4 {
		conn, err := net.DialTimeout("tcp", p.addr.String(), 50*time.Millisecond)
		if err == nil {
			defer conn.Close()
		}
	}
	if err := p.reached(t.Context()); err == nil || !strings.Contains(err.Error(),
		"this machine cannot connect to "+p.addr.String()) {
		t.Errorf("silence is %v", err)
	}
}
