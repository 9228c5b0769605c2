// Package kernel takes profiles of arbitrary processes by the kernel: the stacks of their threads
// at each tick of a clock, and the time that threads were off a processor.
//
//	Tracing: eBPF, for root; counts stacks in the kernel ─────┬─► names ─► pprof
//	Perf: the program perf, for any user; writes a file ──────┘
//
// Both follow frame pointers, because the kernel does. Code without frame pointers gives stacks of
// a few frames or of wrong callers; the innermost frame is right nevertheless. Go and Node.js keep
// frame pointers, JVMs with -XX:+PreserveFramePointer, Rust and C with -C force-frame-pointers=yes
// and -fno-omit-frame-pointer.
//
// Non-goals: unwinding by .eh_frame, interpreted languages (they have their own profilers), and
// inlined frames.
package kernel

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/observe/profile"
)

// tick is the time between two samples of a processor: 199 per second, a prime, so that samples
// don't synchronize with events every 1 or 10 ms.
const tick = time.Second / 199

// depth is the number of frames kept of each kind, user's and kernel's: the default of
// kernel.perf_event_max_stack. It is DEPTH in stacks.bpf.c.
const depth = 127

// Collectors returns the collectors of this package, better ones first.
func Collectors() []profile.Collector { return []profile.Collector{Tracing{}, Perf{}} }

func running(s profile.Subject) error {
	pids := s.Processes()
	if len(pids) == 0 {
		return errors.New("the profiled target has no process on this machine")
	}
	for _, pid := range pids {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
			return fmt.Errorf("find process %d: %w", pid, err)
		}
	}
	return nil
}

// release returns the kernel's version.
func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "Linux of unknown version" // it fails only for a wrong address
	}
	return "Linux " + unix.ByteSliceToString(u.Release[:])
}

// hints returns notes for readers of these processes' stacks.
func hints(pids []int) (notes []string) {
	for _, pid := range pids {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue // the process has ended; names.refresh reports that
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			env = nil
		}
		all := strings.ReplaceAll(string(line)+"\x00"+string(env), "\x00", " ")
		program, _, _ := strings.Cut(string(line), "\x00")
		switch base := program[strings.LastIndexByte(program, '/')+1:]; {
		case base == "java" && !strings.Contains(all, "-XX:+PreserveFramePointer"):
			notes = append(notes, "the JVM does not keep frame pointers: callers of Java methods "+
				"are missing or wrong; start it with -XX:+PreserveFramePointer")
		case base == "node" && !strings.Contains(all, "--perf-basic-prof"):
			notes = append(notes, "names of JavaScript functions are missing: start Node.js with "+
				"--perf-basic-prof in NODE_OPTIONS")
		}
	}
	slices.Sort(notes)
	return slices.Compact(notes)
}
