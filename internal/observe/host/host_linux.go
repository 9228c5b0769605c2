//go:build linux && !portable

package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Cores lists the processors that this process may run on, in order.
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

// Confine moves every thread of this process to the given cores; threads made later inherit it. It
// keeps the lab's own work away from the service's cores.
func Confine(cores []int) error {
	if err := ConfineProcess("self", cores); err != nil {
		return fmt.Errorf("confine this process to cores %v: %w", cores, err)
	}
	return nil
}

// ConfineProcess moves every thread of a process, by its name below /proc, to the given cores.
func ConfineProcess(name string, cores []int) error {
	var set unix.CPUSet
	for _, c := range cores {
		set.Set(c)
	}
	return EachThread(name, func(tid int) error { return unix.SchedSetaffinity(tid, &set) })
}

// EachThread does something to every thread of a process, by its name below /proc, that threads
// inherit from whoever begins them. One that is begun meanwhile may have it from a thread that had
// not had its turn: they are listed again until there is none that is new. Those that have ended
// (ESRCH) are none.
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

// noGovernor is said where the kernel leaves the frequency to others, as in a virtual machine.
const noGovernor = "none"

// system is the kernel's name and its release.
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
