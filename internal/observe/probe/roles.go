package probe

import (
	"bytes"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/runtimes"
	"prony.example/record"
)

// Roles counts the work of threads whose names show their role (package runtimes), since the
// sampler's start or their own, whichever is earlier. The counters are lower bounds. An ended
// thread counts with its last reading, which happens ten times a second. A thread that starts and
// ends between two listings, a second apart, is missing.
type Roles struct {
	Named bool // such a thread exists and its counters move; otherwise nothing is known

	CompilerNs     int64 // processor time of compilers
	CompilerWaitNs int64 // time for which they were runnable and waited for a core
	CollectorNs    int64 // processor time of collectors
	EitherNs       int64 // processor time of threads that do both
}

func (r *Roles) add(role runtimes.Role, runNs, waitNs int64) {
	switch role {
	case runtimes.Compiles:
		r.CompilerNs += runNs
		r.CompilerWaitNs += waitNs
	case runtimes.Collects:
		r.CollectorNs += runNs
	case runtimes.Either:
		r.EitherNs += runNs
	}
	r.Named = r.Named || runNs > 0
}

// looks is how often a thread's name is read: a thread sets its name a moment after its start.
const looks = 2

// roles tracks the threads of a service by role. The sampling thread and marks share it, each for
// some ten microseconds at a time.
type roles struct {
	mu    sync.Mutex
	tasks perProcess      // task folders of the processes
	all   map[int]*thread // live ones, by TID
	named []*thread       // live threads with a role
	ended Roles           // counters of ended threads
	total Roles           // at the last reading
	text  [statBytes]byte
	names [direntBytes]byte
}

type thread struct {
	role          runtimes.Role
	looked        int
	present       bool
	file          file // its schedstat, if it has a role
	runNs, waitNs int64
}

func newRoles(proc string) *roles {
	return &roles{tasks: perProcess{proc: proc, name: "task"}, all: map[int]*thread{}}
}

// list updates the live threads. It allocates only for new threads.
func (r *roles) list(pids []int) {
	for _, t := range r.all {
		t.present = false
	}
	r.tasks.meet(pids)
	for _, t := range r.tasks.rows {
		eachThread(t.file, r.names[:], func(tid int) { r.meet(t.file.fd, tid) })
	}
	for tid, t := range r.all {
		if !t.present {
			r.end(t)
			delete(r.all, tid)
		}
	}
}

// meet reads a thread's name, and opens its counters if the name shows a role.
func (r *roles) meet(dir, tid int) {
	t := r.all[tid]
	if t == nil {
		t = &thread{file: noFile}
		r.all[tid] = t
	}
	t.present = true
	if t.role != runtimes.Serves || t.looked == looks {
		return
	}
	t.looked++
	path := strconv.Itoa(tid)
	name := once(dir, path+"/comm", r.text[:])
	role := runtimes.RoleOf(bytes.TrimSuffix(name, []byte("\n")))
	if role == runtimes.Serves {
		return
	}
	fd, err := unix.Openat(dir, path+"/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // it has ended, or the kernel has no such counters
	}
	t.role, t.file = role, file{fd}
	r.named = append(r.named, t)
}

// end adds an ended thread's counters to the sum.
func (r *roles) end(t *thread) {
	if t.file == noFile {
		return
	}
	r.ended.add(t.role, t.runNs, t.waitNs)
	t.file.close()
	r.named = slices.DeleteFunc(r.named, func(second *thread) bool { return second == t })
}

// count reads the counters of all threads with a role. An ended thread keeps its last counters
// until the next listing finds that it ended.
func (r *roles) count() {
	total := r.ended
	for _, t := range r.named {
		var n [2]int64 // run and run delay, ns (Documentation/scheduler/sched-stats.rst)
		if numbers(t.file.read(r.text[:]), n[:]) == len(n) {
			t.runNs, t.waitNs = n[0], n[1]
		}
		total.add(t.role, t.runNs, t.waitNs)
	}
	r.total = total
}

// read reads the counters of listed threads.
func (r *roles) read() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count()
}

// reread lists the threads and reads their counters.
func (r *roles) reread(pids []int) Roles {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list(pids)
	r.count()
	return r.total
}

// last returns the last reading.
func (r *roles) last() Roles {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

func (r *roles) close() {
	for _, t := range r.named {
		t.file.close()
	}
	r.tasks.close()
	r.named = nil
}

// between returns the difference from a to b, or nil if nothing is known.
func (a Roles) between(b Roles) *record.Roles {
	if !b.Named {
		return nil
	}
	return &record.Roles{
		CompilerNs:     delta(a.CompilerNs, b.CompilerNs),
		CompilerWaitNs: delta(a.CompilerWaitNs, b.CompilerWaitNs),
		GCNs:           delta(a.CollectorNs, b.CollectorNs),
		CompilerOrGCNs: delta(a.EitherNs, b.EitherNs),
	}
}
