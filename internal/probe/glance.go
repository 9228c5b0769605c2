package probe

import "bytes"

// What looks at the host without a Sampler needs only these readings, of the same files by the same
// parsers.

// TickNs is the unit of HostTicks.
const TickNs = tickNs

// SelfCPUNs is the CPU time of this process, ended threads included, in ns.
func SelfCPUNs() int64 {
	var c cpuClock
	return c.self()
}

// Process is what one process has used since its start, children aside.
type Process struct {
	Name  string // of the program, as the kernel cuts it: 15 bytes
	CPUNs int64  // to a tick
}

// ParseProcess reads a /proc/PID/stat (proc(5)).
func ParseProcess(b []byte) (Process, bool) {
	stat, ok := parseStat(b)
	begin, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if !ok || begin < 0 || begin > end {
		return Process{}, false
	}
	ticks := stat.userTicks + stat.systemTicks - stat.childTicks
	return Process{string(b[begin+1 : end]), ticks * tickNs}, true
}
