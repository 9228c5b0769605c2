package probe

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// statBytes fits one /proc/PID/stat: 52 numbers of up to twenty digits and a name of up to 64
// bytes.
const statBytes = 2048

var pageBytes = int64(os.Getpagesize())

// procStat holds fields of /proc/PID/stat (proc(5)): of all threads of a process, ended ones
// included.
type procStat struct {
	parent      int64
	group       int64 // process group
	majorFaults int64 // including children that ended and were waited for
	userTicks   int64 // also including such children
	systemTicks int64 // also including such children
	childTicks  int64 // the children's part of both
	threads     int64
	rssBytes    int64
	cpuNs       int64 // see timed
}

// parseStat parses the fields after the program's name, which is in brackets and may itself contain
// blanks and brackets. It includes ended children, so that sums over a family of processes don't
// fall when one of them ends: its time moves from its own line to its parent's.
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
	valueAt := func(field int) int64 { return n[field-state-1] }
	return procStat{
		parent:      valueAt(ppid),
		group:       valueAt(pgrp),
		majorFaults: valueAt(majflt) + valueAt(cmajflt),
		userTicks:   valueAt(utime) + valueAt(cutime),
		systemTicks: valueAt(stime) + valueAt(cstime),
		childTicks:  valueAt(cutime) + valueAt(cstime),
		threads:     valueAt(numThreads),
		rssBytes:    valueAt(rss) * pageBytes,
	}, true
}

// timed adds the CPU time of the process and its ended children. The process's part is exact if its
// clock can be read; the children's part is in ticks.
func (s procStat) timed(cpu *cpuClock, pid int) procStat {
	s.cpuNs = (s.userTicks + s.systemTicks) * TickNs
	if ownNs := cpu.process(pid); ownNs >= 0 {
		s.cpuNs = ownNs + s.childTicks*TickNs
	}
	return s
}

// Process is the use of one process since its start, without children.
type Process struct {
	Name  string // program's name, which the kernel cuts at 15 bytes
	CPUNs int64  // in steps of ticks
}

// ParseProcess parses a /proc/PID/stat (proc(5)), for callers without a Sampler.
func ParseProcess(b []byte) (Process, bool) {
	stat, ok := parseStat(b)
	begin, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if !ok || begin < 0 || begin > end {
		return Process{}, false
	}
	ticks := stat.userTicks + stat.systemTicks - stat.childTicks
	return Process{string(b[begin+1 : end]), ticks * TickNs}, true
}

// family holds sums over a set of processes.
type family struct {
	processes                                               int
	cpuNs, userNs, systemNs, majorFaults, threads, rssBytes int64
}

func (f *family) add(s procStat) {
	f.processes++
	f.cpuNs += s.cpuNs
	f.userNs += s.userTicks * TickNs
	f.systemNs += s.systemTicks * TickNs
	f.majorFaults += s.majorFaults
	f.threads += s.threads
	f.rssBytes += s.rssBytes
}

// table keeps the stat files of a set of processes open between samples.
type table struct {
	perProcess
	pids  func() []int
	stale bool // a process has ended: list processes before the next sample

	numbers []int // of rows
}

func newTable(proc string, pids func() []int) table {
	return table{perProcess: perProcess{proc: proc, name: "stat"}, pids: pids}
}

// refresh lists the processes again.
func (t *table) refresh() {
	t.stale = false
	if t.pids != nil {
		t.meet(t.pids())
	}
}

// list returns the processes of the table; the next call overwrites the result.
func (t *table) list() []int {
	t.numbers = t.numbers[:0]
	for i := range t.rows {
		t.numbers = append(t.numbers, t.rows[i].pid)
	}
	return t.numbers
}

// sum reads all processes of the table. It leaves out and closes ended processes, so that a new
// process with the same number is opened again.
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
		f.add(stat.timed(cpu, row.pid))
	}
	return f
}

// Thread holds the scheduler's counters of one thread since its start. Source: proc(5),
// /proc/PID/task/TID/status and Documentation/scheduler/sched-stats.rst for schedstat.
type Thread struct {
	PID, TID  int
	Voluntary int64 // times it gave up its core in order to wait
	Forced    int64 // times its core was taken from it
	RunNs     int64
	DelayNs   int64 // runnable but waiting for a core
}

// walker reads the threads of processes. Names of folders and files need allocations, and each
// thread costs two files, so it is used only in a Mark, never ten times a second.
type walker struct {
	proc    string
	text    []byte // content of one file at a time
	dirents []byte
}

func newWalker(proc string) walker {
	return walker{proc: proc, text: make([]byte, 16<<10), dirents: make([]byte, direntBytes)}
}

// of reads a file of a process; it returns nothing if the process has ended.
func (w *walker) of(pid int, name string) []byte {
	return once(unix.AT_FDCWD, w.proc+"/"+strconv.Itoa(pid)+"/"+name, w.text)
}

// pssBytes returns the process's proportional share of its mapped memory, which divides shared
// pages among processes. The kernel walks every page table for it, and holds the lock that page
// faults need.
func (w *walker) pssBytes(pid int) int64 {
	return scaled(keyed(w.of(pid, "smaps_rollup"), "Pss:"), 1024)
}

// threads appends the process's live threads.
func (w *walker) threads(pid int, all []Thread) []Thread {
	tasks, err := openFile(w.proc + "/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return all
	}
	defer tasks.close()
	eachThread(tasks, w.dirents, func(tid int) {
		if t, ok := w.thread(tasks.fd, strconv.Itoa(tid)); ok {
			t.PID, t.TID = pid, tid
			all = append(all, t)
		}
	})
	return all
}

// direntBytes fits about a thousand names of threads.
const direntBytes = 32 << 10

// eachThread lists the threads of a process by its open task folder; none if it has ended.
func eachThread(tasks file, buf []byte, do func(tid int)) {
	if _, err := unix.Seek(tasks.fd, 0, 0); err != nil {
		return
	}
	for {
		n, err := unix.ReadDirent(tasks.fd, buf)
		if err != nil || n <= 0 {
			return
		}
		// linux_dirent64 of getdents64(2): inode and offset, the record's length, a type, a name.
		const lengthAt, nameAt = 16, 19
		for b := buf[:n]; len(b) > nameAt; {
			length := int(binary.NativeEndian.Uint16(b[lengthAt:]))
			if tid, _, ok := number(b[nameAt:length]); ok {
				do(int(tid))
			}
			b = b[length:]
		}
	}
}

func (w *walker) thread(dir int, name string) (Thread, bool) {
	b := once(dir, name+"/status", w.text)
	t := Thread{
		Voluntary: keyed(b, "voluntary_ctxt_switches:"),
		Forced:    keyed(b, "nonvoluntary_ctxt_switches:"),
	}
	var run [2]int64
	if numbers(once(dir, name+"/schedstat", w.text), run[:]) == len(run) {
		t.RunNs, t.DelayNs = run[0], run[1]
	}
	return t, t.Voluntary >= 0 && t.Forced >= 0
}

// byThread orders threads, so that two marks can be merged.
func byThread(a, b Thread) int {
	return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID))
}
