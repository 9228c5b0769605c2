//go:build linux && !portable

package stalls

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/rtsched"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/observe/stalls/heartbeat"
)

func startBeats(t *testing.T) *heartbeats {
	t.Helper()
	testsets.Live(t)
	h, err := startHeartbeats([]int{lastCore(t)}, int64(Period))
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("this user may not: %v", err)
	}
	ok(t, err)
	return h
}

// TestHeartbeatIsFirst checks that all threads of the process have the priority from their start,
// and that the kernel limits their run time.
func TestHeartbeatIsFirst(t *testing.T) {
	h := startBeats(t)
	defer func() { ok(t, h.close()) }()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", h.cmd.Process.Pid))
	if err != nil || len(threads) < 2 {
		t.Fatalf("threads %v, %v", threads, err)
	}
	for _, path := range threads {
		id, err := strconv.Atoi(filepath.Base(path))
		ok(t, err)
		a, err := unix.SchedGetAttr(id, 0)
		ok(t, err)
		if a.Policy != unix.SCHED_FIFO || a.Priority != rtsched.Heartbeat {
			t.Errorf("thread %d has policy %d and priority %d", id, a.Policy, a.Priority)
		}
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", h.cmd.Process.Pid))
	ok(t, err)
	const want = "Max realtime timeout      200000               200000"
	if !strings.Contains(string(limits), want) {
		t.Errorf("limits without %q:\n%s", want, limits)
	}
}

// TestHeartbeatWaits checks that a heartbeat without a command takes no time. The kernel would end
// one that runs for 0.2 s.
func TestHeartbeatWaits(t *testing.T) {
	h := startBeats(t)
	defer func() { ok(t, h.close()) }()
	c := &beatClock{heartbeats: h}
	used := func() (ns int64) {
		t.Helper()
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", h.cmd.Process.Pid))
		ok(t, err)
		for _, path := range tasks {
			text, err := os.ReadFile(path)
			ok(t, err)
			var thread int64
			_, err = fmt.Sscan(string(text), &thread)
			ok(t, err)
			ns += thread
		}
		return ns
	}
	for range 2 {
		before := used()
		time.Sleep(300 * time.Millisecond)
		if ns := used() - before; ns > 30e6 {
			t.Errorf("it took %d ns in 300 ms", ns)
		}
		ok(t, c.begin())
		ok(t, c.end())
	}
}

// TestHeartbeatEnds checks that the next command returns an error if the heartbeat has ended.
func TestHeartbeatEnds(t *testing.T) {
	w, _ := openWay(t, isSelf, openBoth)
	ok(t, w.Begin(), w.End())
	c, isBeat := w.cores[0].all.(*beatClock)
	if !isBeat {
		t.Fatalf("the clock is %T", w.cores[0].all)
	}
	ok(t, c.cmd.Process.Kill())
	<-c.ended
	if err := w.Begin(); err == nil || !strings.Contains(err.Error(),
		"the heartbeat process ended") {
		t.Errorf("it begins with %v", err)
	}
}

// opensVariable makes this program open a watch, write the heartbeat's process id, and wait.
const opensVariable = "PRONY_STALLS_OPENS"

func openAndWait() error {
	h, err := startHeartbeats([]int{0}, int64(Period))
	if err != nil {
		return err
	}
	c := &beatClock{heartbeats: h}
	if err := c.begin(); err != nil {
		return err
	}
	fmt.Println(h.cmd.Process.Pid)
	time.Sleep(time.Minute)
	return nil
}

// TestHeartbeatEndsWithItsParent checks a parent that is killed and so cannot close its heartbeat.
func TestHeartbeatEndsWithItsParent(t *testing.T) {
	ok(t, startBeats(t).close()) // permitted
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), opensVariable+"=1")
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	var pid int
	_, err = fmt.Fscan(out, &pid)
	ok(t, err)
	ok(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if !runs(pid) {
			return
		}
		if time.Now().After(until) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("heartbeat %d outlives its parent", pid)
		}
	}
}

// runs reports whether a process is alive. Its exit status must not have been collected.
func runs(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}

func TestHeartbeatIsRefused(t *testing.T) {
	testsets.Live(t)
	_, err := startHeartbeats([]int{1 << 15}, int64(Period))
	if errors.Is(err, fs.ErrPermission) {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), "the machine has no core 32768") {
		t.Errorf("no such core: %v", err)
	}
	h := &heartbeats{cmd: exec.Command("sh", "-c", "exit 1"), output: &bytes.Buffer{}}
	_ = h.cmd.Run() // EPERM
	if err := h.failure(); !errors.Is(err, fs.ErrPermission) ||
		!strings.HasSuffix(err.Error(), "run as root, or give the program CAP_SYS_NICE") {
		t.Errorf("without the right: %v", err)
	}
}

// TestLostBeats checks that ticks that were not fetched in time are counted, and reported as a gap.
func TestLostBeats(t *testing.T) {
	h := &heartbeats{beats: make([]heartbeat.Beat, 1), offset: 5}
	b := &h.beats[0]
	write := func(n int) {
		for range n {
			b.Ticks[b.Head%heartbeat.Capacity] = int64(b.Head) + 5
			b.Head++
		}
	}
	c := &beatClock{heartbeats: h}
	drained := func() (all []tick) {
		c.drain(func(t tick) { all = append(all, t) })
		return all
	}
	write(100)
	if all := drained(); len(all) != 100 || all[99].ns != 99 || c.lost() != 0 {
		t.Errorf("%d ticks of 100, %d lost", len(all), c.lost())
	}
	write(heartbeat.Capacity + 50)
	all := drained()
	if n := len(all); n+c.lost() != heartbeat.Capacity+50 || c.lost() < 50 || c.lost() > 51 ||
		!all[0].gap || all[1].gap || all[n-1].ns != int64(heartbeat.Capacity+149) {
		t.Errorf("%d ticks, %d lost, the first is %+v", n, c.lost(), all[0])
	}
}
