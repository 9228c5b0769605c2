package freeze

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
)

// signals stops a target by SIGSTOP to each of its processes.
type signals struct {
	process launch.Process
	pids    []int    // from the last listing, parents before their later children
	births  []string // start times of pids
	stopped []member // that were sent SIGSTOP, in this order, until thaw
	newest  string   // last process of the machine at the listing; empty: unknown
	text    [1024]byte
	names   [1 << 15]byte // of threads, as returned by getdents64(2)
}

// member is a process of the target. The start time distinguishes it from later ones.
type member struct {
	pid  int
	born string
}

func newSignals(p launch.Process) (*signals, error) {
	pids := p.PIDs()
	if len(pids) == 0 {
		return nil, errors.New("the target has no processes that are visible to Prony")
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return nil, fmt.Errorf("signal process %d: %w", pid, err)
		}
	}
	s := &signals{process: p}
	s.list()
	return s, nil
}

// list updates the processes of the target, and reports whether it found new ones. Their start
// times distinguish them from later processes with the same number.
func (s *signals) list() (more bool) {
	newest := newestPID()
	if newest != "" && newest == s.newest {
		return false // nothing was forked since
	}
	s.newest = newest
	pids := s.process.PIDs()
	more = slices.ContainsFunc(pids, func(pid int) bool { return !slices.Contains(s.pids, pid) })
	s.pids, s.births = pids, s.births[:0]
	for _, pid := range pids {
		s.births = append(s.births, cgroup.Born(pid))
	}
	return more
}

// newestPID returns the number of the process or thread that was created last (proc_loadavg(5),
// fifth field). Reading it takes microseconds, listing all processes milliseconds.
func newestPID() string {
	f := strings.Fields(cgroup.Value("/proc", "loadavg"))
	if len(f) < 5 {
		return ""
	}
	return f[4]
}

// passes bounds the search for processes that were born while others were stopped. A process with a
// pending signal does not fork (fork(2) restarts after it), so two passes find all.
const passes = 100

// freeze stops the known processes until a listing finds no others, and then waits for their
// threads.
func (s *signals) freeze() error {
	began := clock.Mono()
	for pass := 0; pass == 0 || s.list() && pass < passes; pass++ {
		for i, pid := range s.pids {
			m := member{pid, s.births[i]}
			m.send(unix.SIGSTOP)
			if !slices.Contains(s.stopped, m) {
				s.stopped = append(s.stopped, m)
			}
		}
	}
	for _, pid := range s.pids {
		s.await(pid, began)
	}
	for i, pid := range s.pids {
		if s.births[i] != "" && cgroup.Born(pid) == s.births[i] {
			return nil
		}
	}
	return ErrEnded
}

// send signals a process if its start time is still that of the listing.
func (m member) send(signal unix.Signal) {
	if m.born != "" && cgroup.Born(m.pid) == m.born {
		_ = unix.Kill(m.pid, signal) // it may end just now
	}
}

// await returns when no thread of a process runs, or after the bound.
func (s *signals) await(pid int, began int64) {
	path := "/proc/" + strconv.Itoa(pid) + "/task"
	dir, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // it has ended
	}
	defer unix.Close(dir)
	for !s.rests(dir) {
		passed := time.Duration(clock.Mono() - began)
		if passed > bound {
			return
		}
		if passed > spinFor {
			time.Sleep(nap)
		}
	}
}

// rests reports whether no thread in a folder of threads runs. An uninterruptible wait counts as
// stopped: with vfork(2), a thread waits for a process that is itself stopped.
func (s *signals) rests(dir int) bool {
	if _, err := unix.Seek(dir, 0, unix.SEEK_SET); err != nil {
		return true
	}
	for {
		n, err := unix.Getdents(dir, s.names[:])
		if n <= 0 || err != nil {
			return true
		}
		_, _, names := unix.ParseDirent(s.names[:n], -1, nil)
		for _, tid := range names {
			switch s.state(dir, tid) {
			case 'T', 't', 'Z', 'X', 'D', 0: // stopped, traced, ended, gone (proc_pid_stat(5))
			default:
				return false
			}
		}
	}
}

// state returns the letter of a thread's state; 0: the thread has ended.
func (s *signals) state(dir int, tid string) byte {
	fd, err := unix.Openat(dir, tid+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, s.text[:])
	name := bytes.LastIndexByte(s.text[:max(n, 0)], ')') // end of the name
	if err != nil || name < 0 || name+2 >= n {
		return 0
	}
	return s.text[name+2]
}

// thaw resumes the processes, workers before their supervisors, also those that a later listing
// lacks, such as a process that left the target's group.
func (s *signals) thaw() error {
	for _, m := range slices.Backward(s.stopped) {
		m.send(unix.SIGCONT)
	}
	s.stopped = s.stopped[:0]
	return nil
}
