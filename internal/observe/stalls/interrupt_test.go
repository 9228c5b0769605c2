//go:build linux && !portable

package stalls

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/observe/cpuclock"
)

// TestInterruptUpdatesClocks stops a busy process right after a reading of its clock. A stopped
// process has an exact clock, so the difference is what the reading lacked. Without the interrupt,
// it is uniform between 0 and a tick (1 to 10 ms). Other processes may delay the stop, so the
// median counts.
func TestInterruptUpdatesClocks(t *testing.T) {
	testsets.Live(t)
	core := lastCore(t)
	cores, err := OpenInterrupter([]int{core})
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("this user may not: %v", err)
	}
	ok(t, err)
	defer func() { ok(t, cores.Close()) }()
	busy := exec.Command("sh", "-c", "while :; do :; done")
	ok(t, busy.Start())
	defer func() { _ = busy.Process.Kill(); _ = busy.Wait() }()
	var only unix.CPUSet
	only.Set(core)
	ok(t, unix.SchedSetaffinity(busy.Process.Pid, &only))
	c := cpuclock.New(func() []int { return []int{busy.Process.Pid} })
	defer c.Close()
	lacked := func(before func()) time.Duration {
		var all []int64
		for i := range 21 {
			time.Sleep(10*time.Millisecond + time.Duration(i)*100*time.Microsecond)
			before()
			read := c.Read()
			ok(t, busy.Process.Signal(syscall.SIGSTOP))
			for !stopped(t, busy.Process.Pid) {
				time.Sleep(100 * time.Microsecond)
			}
			all = append(all, c.Read()-read)
			ok(t, busy.Process.Signal(syscall.SIGCONT))
		}
		slices.Sort(all)
		return time.Duration(all[len(all)/2])
	}
	exact, plain := lacked(cores.Interrupt), lacked(func() {})
	t.Logf("readings lack %v, without an interrupt %v", exact, plain)
	if exact > 400*time.Microsecond && exact > plain/2 {
		t.Errorf("readings lack %v after an interrupt", exact)
	}
}

func stopped(t *testing.T, pid int) bool {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	ok(t, err)
	return strings.HasPrefix(string(text[strings.LastIndexByte(string(text), ')')+1:]), " T")
}
