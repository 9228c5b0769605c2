package probe

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// statBytes hold one /proc/PID/stat: 52 numbers of up to twenty digits and a name of up to 64
// bytes.
const statBytes = 2048

var pageBytes = int64(os.Getpagesize())

// procStat is what the probe takes from /proc/PID/stat (proc(5)): all threads of one process, ended
// ones included.
type procStat struct {
	parent      int64
	group       int64 // of processes
	majorFaults int64 // with those of children that ended and were waited for
	userTicks   int64 // likewise
	systemTicks int64 // likewise
	childTicks  int64 // the part of both that the children had
	threads     int64
	rssBytes    int64
}

// parseStat reads the fields after the program's name, which stands in brackets and may itself hold
// blanks and brackets. Counting ended children keeps sums over a family of processes growing when
// one of them ends: its time moves from its own line to its parent's.
func parseStat(b []byte) (procStat, bool) {
	const state = 3 // number of the first field after the name, as proc(5) counts
	const ppid, pgrp, majflt, cmajflt, utime, stime, cutime, cstime = 4, 5, 12, 13, 14, 15, 16, 17
	const numThreads, rss = 20, 24
	end := bytes.LastIndexByte(b, ')')
	if end < 0 || end+len(") S") > len(b) {
		return procStat{}, false
	}
	var n [rss - state]int64 // field f at f - state - 1
	if numbers(b[end+len(") S"):], n[:]) != len(n) {
		return procStat{}, false
	}
	at := func(field int) int64 { return n[field-state-1] }
	return procStat{
		parent:      at(ppid),
		group:       at(pgrp),
		majorFaults: at(majflt) + at(cmajflt),
		userTicks:   at(utime) + at(cutime),
		systemTicks: at(stime) + at(cstime),
		childTicks:  at(cutime) + at(cstime),
		threads:     at(numThreads),
		rssBytes:    at(rss) * pageBytes,
	}, true
}

// cpuNs is the CPU time of the process and its ended children: exact for the process itself, where
// its clock can be read, to a tick for the children.
func (s procStat) cpuNs(cpu *cpuClock, pid int) int64 {
	own := cpu.process(pid)
	if own < 0 {
		return (s.userTicks + s.systemTicks) * tickNs
	}
	return own + s.childTicks*tickNs
}

// family is the sum over a set of processes.
type family struct {
	processes                                               int
	cpuNs, userNs, systemNs, majorFaults, threads, rssBytes int64
}

func (f *family) add(s procStat, cpuNs int64) {
	f.processes++
	f.cpuNs += cpuNs
	f.userNs += s.userTicks * tickNs
	f.systemNs += s.systemTicks * tickNs
	f.majorFaults += s.majorFaults
	f.threads += s.threads
	f.rssBytes += s.rssBytes
}

// table keeps the stat files of a set of processes open between samples.
type table struct {
	proc  string // "/proc"
	pids  func() []int
	rows  []tableRow
	stale bool // one of them is gone: ask for the list before the next sample

	numbers []int // of rows
}

type tableRow struct {
	pid  int
	file file
	seen bool
}

// refresh asks which processes there are now. It allocates for new processes only.
func (t *table) refresh() {
	t.stale = false
	if t.pids == nil {
		return
	}
	for i := range t.rows {
		t.rows[i].seen = false
	}
	for _, pid := range t.pids() {
		i := slices.IndexFunc(t.rows, func(r tableRow) bool { return r.pid == pid })
		if i >= 0 {
			t.rows[i].seen = true
		} else if f, err := openFile(t.proc + "/" + strconv.Itoa(pid) + "/stat"); err == nil {
			t.rows = append(t.rows, tableRow{pid, f, true})
		}
	}
	for i := range t.rows {
		if !t.rows[i].seen {
			t.rows[i].file.close()
		}
	}
	t.rows = slices.DeleteFunc(t.rows, func(r tableRow) bool { return !r.seen })
}

// list are the processes of the table, until it is asked again.
func (t *table) list() []int {
	t.numbers = t.numbers[:0]
	for i := range t.rows {
		t.numbers = append(t.numbers, t.rows[i].pid)
	}
	return t.numbers
}

// sum reads all processes of the table; those that ended meanwhile count no more, and are closed so
// that a new process of the same number is opened anew.
func (t *table) sum(cpu *cpuClock, buf []byte) family {
	var f family
	for i := range t.rows {
		row := &t.rows[i]
		stat, ok := parseStat(row.file.read(buf))
		if !ok {
			row.file.close()
			row.pid = 0
			t.stale = true
			continue
		}
		f.add(stat, stat.cpuNs(cpu, row.pid))
	}
	return f
}

func (t *table) close() {
	for i := range t.rows {
		t.rows[i].file.close()
	}
	t.rows = nil
}

// Thread is what the scheduler says of one thread since its start. Source: proc(5),
// /proc/PID/task/TID/status and Documentation/scheduler/sched-stats.rst for schedstat.
type Thread struct {
	PID, TID  int
	Voluntary int64 // times it gave up its core to wait
	Forced    int64 // times its core was taken from it
	RunNs     int64
	DelayNs   int64 // runnable and waiting for a core
}

// walker reads the threads of processes. Directory and file names make it allocate, and each thread
// costs two files, so it walks in a Mark only, never ten times a second.
type walker struct {
	proc    string
	text    []byte // one file at a time
	dirents []byte
	names   []string
}

func newWalker(proc string) walker {
	return walker{proc: proc, text: make([]byte, 16<<10), dirents: make([]byte, 32<<10)}
}

// stat reads /proc/PID/stat of a process that may have ended.
func (w *walker) stat(pid int) (procStat, bool) {
	return parseStat(w.once(unix.AT_FDCWD, w.proc+"/"+strconv.Itoa(pid)+"/stat"))
}

// pssBytes is the process's share of the memory it maps, pages shared with others divided among
// them. The kernel walks every page table for it, and holds the lock that page faults need.
func (w *walker) pssBytes(pid int) int64 {
	b := w.once(unix.AT_FDCWD, w.proc+"/"+strconv.Itoa(pid)+"/smaps_rollup")
	return scaled(keyed(b, "Pss:"), 1024)
}

// threads appends the process's live threads.
func (w *walker) threads(pid int, all []Thread) []Thread {
	dir, err := unix.Open(w.proc+"/"+strconv.Itoa(pid)+"/task",
		unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return all
	}
	defer unix.Close(dir)
	w.names = w.names[:0]
	for {
		n, err := unix.ReadDirent(dir, w.dirents)
		if err != nil || n <= 0 {
			break
		}
		_, _, w.names = unix.ParseDirent(w.dirents[:n], -1, w.names)
	}
	for _, name := range w.names {
		tid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if t, ok := w.thread(dir, name); ok {
			t.PID, t.TID = pid, tid
			all = append(all, t)
		}
	}
	return all
}

func (w *walker) thread(dir int, name string) (Thread, bool) {
	b := w.once(dir, name+"/status")
	t := Thread{
		Voluntary: keyed(b, "voluntary_ctxt_switches:"),
		Forced:    keyed(b, "nonvoluntary_ctxt_switches:"),
	}
	var run [2]int64
	if numbers(w.once(dir, name+"/schedstat"), run[:]) == len(run) {
		t.RunNs, t.DelayNs = run[0], run[1]
	}
	return t, t.Voluntary >= 0 && t.Forced >= 0
}

// once opens, reads and closes; empty when the thread or process has ended meanwhile.
func (w *walker) once(dir int, path string) []byte {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := file{fd}
	defer f.close()
	return f.readAll(w.text)
}

// byThread orders threads so that two marks can be laid side by side.
func byThread(a, b Thread) int {
	return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID))
}
