package stalls

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxNames limits the stored names of ended processes.
const maxNames = 10_000

// identities finds names of processes by process id.
type identities struct {
	proc  string // path of /proc
	ours  func(core, pid int) bool
	ended map[int]string // names that the kernel reported when the processes started
	known map[place]identity
}

type place struct{ core, pid int }

type identity struct{ cause, name string }

func newIdentities(ours func(core, pid int) bool) *identities {
	return &identities{"/proc", ours, map[int]string{}, map[place]identity{}}
}

// forget clears the cache, because process ids are reused.
func (i *identities) forget() { clear(i.known) }

// started records the name of a process at its start.
func (i *identities) started(pid int, name string) {
	if len(i.ended) >= maxNames {
		clear(i.ended)
	}
	i.ended[pid] = name
}

// cause returns the cause and name of the stall if a process runs on a core; "" if it is not a
// stall.
func (i *identities) cause(core, pid int) (cause, name string) {
	key := place{core, pid}
	process, ok := i.known[key]
	if !ok {
		process = i.identify(core, pid)
		i.known[key] = process
	}
	return process.cause, process.name
}

func (i *identities) identify(core, pid int) identity {
	if i.ours(core, pid) {
		return identity{}
	}
	name, kernel := i.lookUp(pid)
	switch {
	case kernel:
		return identity{Kernel, name}
	case name == "":
		name = i.ended[pid]
	}
	if name == "" {
		name = fmt.Sprintf("%d, which has ended", pid)
	}
	return identity{Process, name}
}

// kernelThread is PF_KTHREAD, a flag of /proc/PID/stat (include/linux/sched.h).
const kernelThread = 0x00200000

// lookUp returns the name of a process, "" if it has ended, and whether it is a kernel thread.
func (i *identities) lookUp(pid int) (name string, kernel bool) {
	text, err := os.ReadFile(filepath.Join(i.proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", false
	}
	begin, end := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	if begin < 0 || end < begin {
		return "", false
	}
	// After the name are state, four ids, the terminal's group and flags (proc_pid_stat(5)).
	const flagsField = 6
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) > flagsField {
		flags, _ := strconv.ParseUint(fields[flagsField], 10, 64) // 0 if it is not a number
		kernel = flags&kernelThread != 0
	}
	return string(text[begin+1 : end]), kernel
}
