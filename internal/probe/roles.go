package probe

import (
	"encoding/binary"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"prony/internal/result"
	"prony/internal/runtimes"
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
	proc string

	mu    sync.Mutex
	tasks []tasks
	all   map[int]*thread // live ones, by TID
	named []*thread       // of them, those with a role
	ended Roles           // what threads had used that are no more
	total Roles           // at the last reading
	text  [statBytes]byte
	names [32 << 10]byte // of directory entries
}

// tasks is the open directory of a process's threads.
type tasks struct {
	pid  int
	fd   int
	seen bool
}

type thread struct {
	role          runtimes.Role
	looked        int
	seen          bool
	file          file // its schedstat, where it has a role
	runNs, waitNs int64
}

func newRoles(proc string) *roles { return &roles{proc: proc, all: map[int]*thread{}} }

// list finds the threads that there are now. It allocates for new ones only.
func (r *roles) list(pids []int) {
	for _, t := range r.all {
		t.seen = false
	}
	r.open(pids)
	for i := range r.tasks {
		r.walk(r.tasks[i])
	}
	for tid, t := range r.all {
		if !t.seen {
			r.end(t)
			delete(r.all, tid)
		}
	}
}

// open opens the directories of new processes, and closes those of old ones.
func (r *roles) open(pids []int) {
	for i := range r.tasks {
		r.tasks[i].seen = false
	}
	for _, pid := range pids {
		known := false
		for i := range r.tasks {
			if r.tasks[i].pid == pid {
				r.tasks[i].seen, known = true, true
			}
		}
		if known {
			continue
		}
		fd, err := unix.Open(r.proc+"/"+strconv.Itoa(pid)+"/task",
			unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			r.tasks = append(r.tasks, tasks{pid, fd, true})
		}
	}
	kept := r.tasks[:0]
	for _, t := range r.tasks {
		if t.seen {
			kept = append(kept, t)
		} else {
			_ = unix.Close(t.fd) // opened for reading: nothing can be lost
		}
	}
	r.tasks = kept
}

// walk meets the threads of a process; none when it has ended.
func (r *roles) walk(of tasks) {
	if _, err := unix.Seek(of.fd, 0, 0); err != nil {
		return
	}
	for {
		n, err := unix.ReadDirent(of.fd, r.names[:])
		if err != nil || n <= 0 {
			return
		}
		// linux_dirent64 of getdents64(2): inode and offset, the record's length, a type, a name.
		const lengthAt, nameAt = 16, 19
		for b := r.names[:n]; len(b) > nameAt; {
			length := int(binary.NativeEndian.Uint16(b[lengthAt:]))
			if tid, _, ok := number(b[nameAt:length]); ok {
				r.meet(of.fd, int(tid))
			}
			b = b[length:]
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
	t.seen = true
	if t.role != runtimes.Serves || t.looked == looks {
		return
	}
	t.looked++
	path := strconv.Itoa(tid)
	name := r.once(dir, path+"/comm")
	if len(name) > 0 && name[len(name)-1] == '\n' {
		name = name[:len(name)-1]
	}
	role := runtimes.RoleOf(name)
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

func (r *roles) once(dir int, path string) []byte {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := file{fd}
	defer f.close()
	return f.read(r.text[:])
}

// end keeps what a thread had used.
func (r *roles) end(t *thread) {
	if t.file == noFile {
		return
	}
	r.ended.add(t.role, t.runNs, t.waitNs)
	t.file.close()
	for i, other := range r.named {
		if other == t {
			last := len(r.named) - 1
			r.named[i] = r.named[last]
			r.named = r.named[:last]
			return
		}
	}
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
	for _, t := range r.tasks {
		_ = unix.Close(t.fd) // as above
	}
	r.named, r.tasks = nil, nil
}

// between is what was used from a to b, nil where nothing is known.
func (a Roles) between(b Roles) *result.Roles {
	if !b.Named {
		return nil
	}
	return &result.Roles{
		CompilerNs:     delta(a.CompilerNs, b.CompilerNs),
		CompilerWaitNs: delta(a.CompilerWaitNs, b.CompilerWaitNs),
		CollectorNs:    delta(a.CollectorNs, b.CollectorNs),
		EitherNs:       delta(a.EitherNs, b.EitherNs),
	}
}
