package probe

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// retries bounds the repetition of an interrupted read.
const retries = 3

// file is a text file of the kernel that stays open and is read from its start each time, because
// opening costs more than reading. The kernel creates the text at each read from offset 0. A
// process's file stays bound to that process, so a reused PID cannot be mistaken for it.
type file struct{ fd int }

var noFile = file{-1}

// openFile returns noFile with an error.
func openFile(path string) (file, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return noFile, err
	}
	return file{fd}, nil
}

// optional opens a file that some kernels and hosts lack.
func optional(path string) file {
	f, _ := openFile(path)
	return f
}

// read returns the result of one read from the start, at most buf. It returns nil if the file was
// never opened, or its process or cgroup is gone (ESRCH, ENOENT, ENODEV). It does not allocate.
func (f file) read(buf []byte) []byte {
	return f.readAt(buf, 0)
}

func (f file) readAt(buf []byte, offset int64) []byte {
	if f.fd < 0 {
		return nil
	}
	for range retries {
		n, err := unix.Pread(f.fd, buf, offset)
		if err == nil {
			return buf[:n]
		}
		if err != unix.EINTR {
			return nil
		}
	}
	return nil
}

// readAll reads to the file's or the buffer's end, because the kernel returns files of many records
// in pages.
func (f file) readAll(buf []byte) []byte {
	n := 0
	for n < len(buf) {
		more := f.readAt(buf[n:], int64(n))
		if len(more) == 0 {
			break
		}
		n += len(more)
	}
	return buf[:n]
}

func (f *file) close() {
	if f.fd >= 0 {
		_ = unix.Close(f.fd) // opened for reading, so no data can be lost
	}
	*f = noFile
}

// once opens a file relative to a folder and reads it. It returns nothing if the file does not
// exist, for example because its thread or process has ended.
func once(dir int, path string, buf []byte) []byte {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := file{fd}
	defer f.close()
	return f.readAll(buf)
}

// perProcess keeps one file of each process open, by its name below /proc/PID.
type perProcess struct {
	proc, name string // "/proc", "stat"
	rows       []processRow
}

type processRow struct {
	pid     int
	file    file
	present bool
}

// meet opens the files of new processes and closes those of ended ones. It allocates only for new
// processes.
func (p *perProcess) meet(pids []int) {
	for i := range p.rows {
		p.rows[i].present = false
	}
	for _, pid := range pids {
		i := slices.IndexFunc(p.rows, func(r processRow) bool { return r.pid == pid })
		if i >= 0 {
			p.rows[i].present = true
		} else if f, err := openFile(p.proc + "/" + strconv.Itoa(pid) + "/" + p.name); err == nil {
			p.rows = append(p.rows, processRow{pid, f, true})
		}
	}
	for i := range p.rows {
		if !p.rows[i].present {
			p.rows[i].file.close()
		}
	}
	p.rows = slices.DeleteFunc(p.rows, func(r processRow) bool { return !r.present })
}

func (p *perProcess) close() {
	for i := range p.rows {
		p.rows[i].file.close()
	}
	p.rows = nil
}

// TickNs is USER_HZ in ns, the unit of HostTicks: the kernel's text files count CPU time in
// hundredths of a second on all of Go's architectures (proc(5), sysconf(3) _SC_CLK_TCK).
const TickNs = int64(10 * time.Millisecond)

// cpuClock reads the kernel's CPU clocks. Its fields receive the results of system calls, because
// variables on the stack would escape and cost an allocation per call. It is not safe for
// concurrent use.
type cpuClock struct {
	time  unix.Timespec
	usage unix.Rusage
}

// thread returns the CPU time of the calling OS thread, in ns.
func (c *cpuClock) thread() int64 { return c.get(unix.CLOCK_THREAD_CPUTIME_ID) }

// self returns the CPU time of this process, ended threads included, in ns.
func (c *cpuClock) self() int64 { return c.get(unix.CLOCK_PROCESS_CPUTIME_ID) }

// process returns the CPU time of another process, its ended threads included, in ns, or unknown if
// it has ended. This is clock_getcpuclockid(3): it counts ns, not ticks of 10 ms as /proc/PID/stat,
// lacks what running threads used since the last tick, and needs no permission.
func (c *cpuClock) process(pid int) int64 {
	const perProcessSchedClock = 2 // CPUCLOCK_SCHED of linux/posix-timers_types.h
	return c.get(int32(^pid<<3 | perProcessSchedClock))
}

// endedChildren returns the CPU time of this process's children that ended and were waited for, in
// ns.
func (c *cpuClock) endedChildren() int64 {
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &c.usage); err != nil {
		return 0
	}
	return unix.TimevalToNsec(c.usage.Utime) + unix.TimevalToNsec(c.usage.Stime)
}

func (c *cpuClock) get(id int32) int64 {
	if err := unix.ClockGettime(id, &c.time); err != nil {
		return unknown
	}
	return unix.TimespecToNsec(c.time)
}

// SelfCPUNs returns the CPU time of this process, ended threads included, in ns.
func SelfCPUNs() int64 {
	var c cpuClock
	return c.self()
}

// The scanners below parse the kernel's text in place, because strconv and strings would allocate
// ten times a second. Missing values are unknown.

// unknown stands for a value that the kernel did not provide. Zero would claim that nothing
// happened.
const unknown = -1

// number parses the decimal number after leading blanks, and returns the text after it as tail.
// Numbers too long for an int64 wrap; the kernel writes such numbers only in fields that are not
// used here.
func number(b []byte) (value int64, tail []byte, ok bool) {
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		value = value*10 + int64(b[i]-'0')
		i++
	}
	if negative {
		value = -value
	}
	return value, b[i:], i > start
}

// numbers fills into from the line at b's start and returns how many numbers it found.
func numbers(b []byte, into []int64) int {
	for i := range into {
		var ok bool
		if into[i], b, ok = number(b); !ok {
			return i
		}
	}
	return len(into)
}

// after returns the text after key on the line that begins with it, ignoring leading blanks. It
// compares from the line's start, because one key may end in another (nonvoluntary_ctxt_switches).
func after(b []byte, key string) []byte {
	for len(b) > 0 {
		line := b
		if end := bytes.IndexByte(b, '\n'); end >= 0 {
			line, b = b[:end], b[end+1:]
		} else {
			b = nil
		}
		for len(line) > 0 && line[0] == ' ' {
			line = line[1:]
		}
		if len(line) >= len(key) && string(line[:len(key)]) == key {
			return line[len(key):]
		}
	}
	return nil
}

// keyed returns the number after key on its line, or unknown. The key includes its separator
// ("Rss:", "usage_usec "); otherwise "nr" would match nr_periods.
func keyed(b []byte, key string) int64 {
	return leading(after(b, key))
}

// leading returns the number at the beginning, or unknown.
func leading(b []byte) int64 {
	value, _, ok := number(b)
	if !ok {
		return unknown
	}
	return value
}

// scaled converts value to a smaller unit; unknown stays unknown.
func scaled(value, factor int64) int64 {
	if value < 0 {
		return unknown
	}
	return value * factor
}
