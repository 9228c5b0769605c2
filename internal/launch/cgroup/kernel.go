// Package cgroup reads what the kernel shows about a started target of any launcher: its control
// groups and the limits that they enforce, out-of-memory kills, start time and rights. It writes
// only on a launcher's behalf: limits of groups, and the priority of compiler threads.
package cgroup

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"prony.example/internal/base/cmdlog"
)

// Stat returns the fields of /proc/PID/stat from the third on (proc(5)), since the second may
// contain spaces. It returns nil if the process does not exist.
func Stat(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// Born returns the start time of a process in clock ticks since boot (proc(5), field 22), which
// distinguishes it from a later process with the same number; empty if the process does not exist.
func Born(pid int) string {
	if f := Stat(pid); len(f) > 19 {
		return f[19]
	}
	return ""
}

// Age returns the time since a process began, in ns, rounded to the kernel's tick; ok is false if
// the process does not exist.
func Age(pid int) (ns int64, ok bool) {
	const tick = 1e7 // USER_HZ is 100 (time(7))
	ticks, err := strconv.ParseInt(Born(pid), 10, 64)
	uptime, _, _ := strings.Cut(Value("/proc", "uptime"), " ")
	now, err2 := strconv.ParseFloat(uptime, 64)
	if err != nil || err2 != nil {
		return 0, false
	}
	return int64(now*1e9) - ticks*tick, true
}

// Whose identifies a process of this machine among all that ever had its number.
type Whose struct {
	Process   string // PID-BIRTH
	Boot      string // boot id of the kernel; numbers start again at each boot
	Namespace string // PID namespace of the number
}

// Own identifies this process.
func Own() (Whose, error) {
	boot, err1 := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, err2 := os.Readlink("/proc/self/ns/pid")
	if err := cmp.Or(err1, err2); err != nil {
		return Whose{}, fmt.Errorf("get a unique identity for this process: %w", err)
	}
	pid := os.Getpid()
	return Whose{Process: fmt.Sprintf("%d-%s", pid, Born(pid)),
		Boot: strings.TrimSpace(string(boot)), Namespace: namespace}, nil
}

// Gone reports whether a process of this boot and namespace, in the form PID-BIRTH, has ended. For
// any other form it returns false, since this program did not write it.
func Gone(process string) bool {
	number, birth, ok := strings.Cut(process, "-")
	pid, err := strconv.Atoi(number)
	if !ok || err != nil || pid <= 0 || strings.Contains(birth, "-") {
		return false
	}
	stat := Stat(pid)
	return len(stat) == 0 || stat[0] == "Z" || Born(pid) != birth
}

// DataLimit returns the limit on private memory of a process (RLIMIT_DATA) in bytes; 0: none. It
// needs no rights (proc(5), /proc/PID/limits).
func DataLimit(pid int) int64 {
	for line := range strings.Lines(Value(fmt.Sprintf("/proc/%d", pid), "limits")) {
		if tail, ok := strings.CutPrefix(line, "Max data size"); ok {
			if f := strings.Fields(tail); len(f) > 0 {
				n, _ := strconv.ParseInt(f[0], 10, 64) // "unlimited" leaves 0
				return n
			}
		}
	}
	return 0
}

// Rights describes the user and the privileges of a process, for example "user 1000, no
// capabilities, no new privileges"; empty if the process does not exist.
func Rights(pid int) string {
	return rightsIn(Value(fmt.Sprintf("/proc/%d", pid), "status"))
}

// rightsIn describes the rights of a process by its status (proc_pid_status(5)).
func rightsIn(status string) string {
	var user, may, more string
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		f := strings.Fields(value)
		switch {
		case len(f) == 0:
		case name == "Uid" && len(f) > 1:
			user = "user " + f[1] // the effective one
		case name == "CapEff" && strings.Trim(f[0], "0") == "":
			may = ", no capabilities"
		case name == "CapEff":
			may = ", capabilities " + f[0]
		case name == "NoNewPrivs" && f[0] == "1":
			more = ", no new privileges"
		}
	}
	return user + may + more
}

// Value returns the content of a file of a control group; empty if it cannot be read.
func Value(dir, file string) string {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Write writes a value into a file of a group, and logs it as a command (see cmdlog).
func Write(dir, file string, value any) error {
	cmdlog.Write(filepath.Join(dir, file), fmt.Sprint(value))
	return os.WriteFile(filepath.Join(dir, file), fmt.Append(nil, value), 0o644)
}

// keyed returns the number after a word at the beginning of a line; ok is false if there is none.
func keyed(text, word string) (value int64, ok bool) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == word {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// CoreList formats cores for the kernel: "0,2,3".
func CoreList(cores []int) string {
	s := make([]string, len(cores))
	for i, c := range cores {
		s[i] = strconv.Itoa(c)
	}
	return strings.Join(s, ",")
}

// maxCores exceeds every processor number: Linux supports at most 8192.
const maxCores = 1 << 13

// ParseCores parses a list of cores or nodes in the kernel's format, "0-3,8" (cpuset(7), "List
// format"). It returns nil for any other text.
func ParseCores(text string) (all []int) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last < first || last >= maxCores {
			return nil
		}
		for i := first; i <= last; i++ {
			all = append(all, i)
		}
	}
	return all
}
