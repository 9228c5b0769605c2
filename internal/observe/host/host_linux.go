//go:build linux && !portable

package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"prony.example/record"
)

// latencyFile is the kernel's interface to the longest time in which an idle core must be able to
// run again (Documentation/power/pm_qos_interface.rst).
const latencyFile = "/dev/cpu_dma_latency"

// Idle returns record.IdlePolls if PollIdle has an effect on the machine that p describes, which is
// a virtual machine whose kernel can poll; otherwise empty.
func Idle(p record.Provenance) string {
	driver := read("/sys/devices/system/cpu/cpuidle/current_driver")
	if !p.Hypervisor || p.Cores < 2 || driver == "" || driver == "none" {
		return ""
	}
	// A container's devices can be refused although root may write.
	release, err := PollIdle(record.IdlePolls)
	if err != nil {
		return ""
	}
	release()
	return record.IdlePolls
}

// PollIdle lets the idle cores of this machine poll for work until release is called or this
// program ends, if idle is record.IdlePolls; otherwise it does nothing. In a virtual machine, a
// core that halts is left to the hypervisor, and the program that wakes it up pays for the
// hypervisor's work; docs/decisions/0062-idle-cores.md has how much.
func PollIdle(idle string) (release func(), err error) {
	if idle != record.IdlePolls {
		return func() {}, nil
	}
	f, err := os.OpenFile(latencyFile, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("keep idle cores awake: %w", err)
	}
	// The request for 0 µs holds as long as the file is open.
	if err := binary.Write(f, binary.NativeEndian, int32(0)); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("keep idle cores awake: %w", err)
	}
	return func() { _ = f.Close() }, nil
}

// Cores returns the processors that this process may run on, in order.
func Cores() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read the cores that this process may use: %w", err)
	}
	var out []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			out = append(out, i)
		}
	}
	return out, nil
}

// Confine moves all threads of this process to the given cores; later threads inherit them. It
// keeps the lab's own work away from the service's cores.
func Confine(cores []int) error {
	if err := ConfineProcess("self", cores); err != nil {
		return fmt.Errorf("confine this process to cores %v: %w", cores, err)
	}
	return nil
}

// ConfineProcess moves all threads of a process, by its name below /proc, to the given cores.
func ConfineProcess(name string, cores []int) error {
	var set unix.CPUSet
	for _, c := range cores {
		set.Set(c)
	}
	return EachThread(name, func(tid int) error { return unix.SchedSetaffinity(tid, &set) })
}

// EachThread sets an attribute of all threads of a process, by its name below /proc. Threads
// inherit such attributes, and one that starts meanwhile may inherit from a thread that is not done
// yet; so EachThread repeats until no new threads appear. It ignores ended threads (ESRCH).
func EachThread(name string, do func(tid int) error) error {
	done := map[int]bool{}
	for fresh := true; fresh; {
		tasks, err := os.ReadDir(filepath.Join("/proc", name, "task"))
		if err != nil {
			return err
		}
		fresh = false
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || done[tid] {
				continue
			}
			done[tid], fresh = true, true
			if err := do(tid); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}

// noGovernor is recorded if the kernel does not control the frequency, as in a virtual machine.
const noGovernor = "none"

// system returns the kernel's name and release.
func system() (name, release string) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "", ""
	}
	return text(u.Sysname[:]), text(u.Release[:])
}

func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}
