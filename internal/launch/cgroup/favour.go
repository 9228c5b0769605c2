package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/runtimes"
)

const (
	// favour is subtracted from a thread's nice value. At −10 a thread weighs nine times as much as
	// others (sched(7)): on one core with 64 other threads, two compilers get a quarter of it
	// instead of a thirtieth, and still leave a twentieth to a single other thread.
	favour = 10
	// unniced minus the nice value is the result of the system call getpriority(2), so that it is
	// never negative.
	unniced = 20
	// favourPasses bounds the search for threads that a favoured thread created meanwhile.
	favourPasses = 100
)

// Favour gives threads that compile, chosen by name, precedence over others, or takes it back from
// all threads that have it. It returns the number of these threads: 0 without the permission
// (setpriority(2)). Processes that have ended are skipped.
func Favour(pids []int, enabled bool) (threads int, err error) {
	usual := priority(0)
	if enabled {
		for _, tid := range Tasks(pids, compiles) {
			err := unix.Setpriority(unix.PRIO_PROCESS, tid, usual-favour)
			switch {
			case err == nil:
				threads++
			case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
				return 0, nil
			case !errors.Is(err, unix.ESRCH):
				return threads, fmt.Errorf("give compilers precedence: %w", err)
			}
		}
		return threads, nil
	}
	favoured := func(_, tid int) bool { return priority(tid) == usual-favour }
	for range favourPasses {
		remaining := Tasks(pids, favoured)
		if len(remaining) == 0 {
			return threads, nil
		}
		for _, tid := range remaining {
			err := unix.Setpriority(unix.PRIO_PROCESS, tid, usual)
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return threads, fmt.Errorf("end the priority of compilers: %w", err)
			}
			threads++
		}
	}
	return threads, fmt.Errorf("end the priority of compilers: after %d passes, some "+
		"threads still have it", favourPasses)
}

// Tasks lists the threads of these processes that picked accepts.
func Tasks(pids []int, picked func(pid, tid int) bool) (out []int) {
	for _, pid := range pids {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			continue // it has ended
		}
		for _, t := range threads {
			tid, _ := strconv.Atoi(t.Name()) // the kernel writes numbers
			if picked(pid, tid) {
				out = append(out, tid)
			}
		}
	}
	return out
}

func compiles(pid, tid int) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", pid, tid))
	role := runtimes.RoleOf(bytes.TrimSuffix(name, []byte("\n")))
	return err == nil && role == runtimes.Compiles
}

// priority returns a thread's nice value; tid 0 is the caller. For a thread that has ended it
// returns 20, which no thread can have.
func priority(tid int) int {
	p, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	if err != nil {
		return unniced
	}
	return unniced - p
}
