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

// Roles are counters of what the threads of a service did whose names say what they are for, since
// the sampler's start or their own, whichever is earlier; package runtimes knows the names. They
// are lower bounds: of a thread that has ended what was last seen counts, ten times a second, and
// one that came and went between two listings, a second apart, was never seen.
type Roles struct {
	Named bool // there was such a thread, and its counters move; else nothing is known

	CompilerNs     int64 // processor time of compilers
	CompilerWaitNs int64 // in which they could have run and waited for a core
	CollectorNs    int64 // processor time of collectors
	EitherNs       int64 // likewise, of those that do both
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

// looks is how often a thread's name is read: it names itself, a moment after it was born.
const looks = 2

// roles keeps the threads of a service apart. The sampling thread and marks share it, each for some
// ten microseconds at a time.
type roles struct {
	mu    sync.Mutex
	tasks perProcess      // their folders of threads
	all   map[int]*thread // live ones, by TID
	named []*thread       // of them, those with a role
	ended Roles           // what threads had used that are no more
	total Roles           // at the last reading
	text  [statBytes]byte
	names [direntBytes]byte
}

type thread struct {
	role          runtimes.Role
	looked        int
	present       bool
	file          file // its schedstat, where it has a role
	runNs, waitNs int64
}

func newRoles(proc string) *roles {
	return &roles{tasks: perProcess{proc: proc, name: "task"}, all: map[int]*thread{}}
}

// list finds the threads that there are now. It allocates for new ones only.
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

// meet looks at a thread's name, and opens its counters where that tells what it is for.
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

// end keeps what a thread had used.
func (r *roles) end(t *thread) {
	if t.file == noFile {
		return
	}
	r.ended.add(t.role, t.runNs, t.waitNs)
	t.file.close()
	r.named = slices.DeleteFunc(r.named, func(second *thread) bool { return second == t })
}

// count reads the counters of all threads that have a role. One that has ended is found so at the
// next listing, and keeps what it had.
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

// read is a reading of what was listed before.
func (r *roles) read() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count()
}

// reread lists and reads.
func (r *roles) reread(pids []int) Roles {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list(pids)
	r.count()
	return r.total
}

// last is what was read last.
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

// between is what was used from a to b, nil where nothing is known.
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
