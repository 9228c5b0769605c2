//go:build linux && !portable

package load

import (
	"cmp"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Operations on load threads that only Linux has. See machine_other.go for other systems.

// pin keeps the calling thread on a core.
func pin(core int) error {
	var set unix.CPUSet
	set.Set(core)
	return unix.SchedSetaffinity(0, &set)
}

// policies are the names in sched(7).
var policies = map[uint32]string{
	unix.SCHED_NORMAL: "other", unix.SCHED_BATCH: "batch", unix.SCHED_IDLE: "idle",
	unix.SCHED_FIFO: "fifo", unix.SCHED_RR: "rr", unix.SCHED_DEADLINE: "deadline",
}

// priority describes how the calling thread is scheduled, for example "other nice 0" or "fifo 10".
func priority() string {
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return "unknown"
	}
	name := cmp.Or(policies[a.Policy], "policy "+strconv.Itoa(int(a.Policy)))
	switch a.Policy {
	case unix.SCHED_FIFO, unix.SCHED_RR:
		return name + " " + strconv.Itoa(int(a.Priority))
	case unix.SCHED_DEADLINE:
		return name
	}
	return name + " nice " + strconv.Itoa(int(a.Nice))
}

// ownUsage returns a function that reads the calling thread's CPU time and works only on that
// thread, and a function that releases its resources; nil: no resources to release.
func ownUsage() (read func() threadUsage, end func()) {
	fd, err := unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return usageOf(-1), nil
	}
	return usageOf(fd), func() { _ = unix.Close(fd) } // the file was only read
}

// usageOf reads the calling thread's CPU time; schedstat is the file's descriptor, or -1 for none.
func usageOf(schedstat int) func() threadUsage {
	buf := make([]byte, 128)
	var ru unix.Rusage
	return func() threadUsage {
		var u threadUsage
		if unix.Getrusage(unix.RUSAGE_THREAD, &ru) == nil {
			u.take(&ru)
		}
		if schedstat >= 0 {
			if n, err := unix.Pread(schedstat, buf, 0); err == nil {
				u.delayNs = secondNumber(buf[:n])
			}
		}
		return u
	}
}

// unread returns how many UDP datagrams this network namespace has dropped because a socket's
// buffer or all socket memory was full, over IPv4 and IPv6 (proc_pid_net(5), snmp and snmp6). It
// returns 0 if the kernel has no such counters.
func unread() (n int64) {
	v4, _ := os.ReadFile("/proc/thread-self/net/snmp") // without the file the count is 0
	var names []string
	for line := range strings.Lines(string(v4)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] != "Udp:":
		case names == nil:
			names = fields // the first line of two
		default:
			for i, name := range names[:min(len(names), len(fields))] {
				n += lost(name, fields[i])
			}
		}
	}
	v6, _ := os.ReadFile("/proc/thread-self/net/snmp6") // without the file the count is 0
	for line := range strings.Lines(string(v6)) {
		if fields := strings.Fields(line); len(fields) == 2 {
			name, ok := strings.CutPrefix(fields[0], "Udp6")
			if ok {
				n += lost(name, fields[1])
			}
		}
	}
	return n
}

// lost returns the value of a counter of dropped datagrams; 0 for other counters.
func lost(name, value string) int64 {
	if name != "RcvbufErrors" && name != "MemErrors" {
		return 0
	}
	n, _ := strconv.ParseInt(value, 10, 64) // the kernel writes a valid number
	return n
}

// secondNumber reads the second decimal of a line of numbers.
func secondNumber(b []byte) int64 {
	i := 0
	for i < len(b) && b[i] != ' ' {
		i++
	}
	var n int64
	for i++; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		n = n*10 + int64(b[i]-'0')
	}
	return n
}
