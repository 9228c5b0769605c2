package process

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"prony/internal/launch/kernel"
	"prony/internal/shell"
)

// enterEnv marks a process of this program as one that is about to become a service.
const enterEnv = "PRONY_ENTER"

// entry is what that process must do before it becomes the service.
type entry struct {
	Parent int      `json:"parent"` // the lab; when it is gone, nobody would stop the service
	Groups []string `json:"groups"` // directories of cgroups to join
	Cores  []int    `json:"cores"`
	Data   int64    `json:"data"` // limit on private memory, bytes; 0 for none
	Path   string   `json:"path"`
	Args   []string `json:"args"`
	Env    []string `json:"env"`
}

// Enter must be called first in main of every program that launches processes. In a process that
// was started to become a service it joins the service's cgroups, takes on its limits and executes
// the service's program, so that not one instruction of the service runs outside its limits. In any
// other process it does nothing.
func Enter() {
	text, ok := os.LookupEnv(enterEnv)
	if !ok {
		return
	}
	report := os.NewFile(3, "report")
	fmt.Fprintf(report, "error: %v\n", become(text, report))
	os.Exit(127)
}

// become does not return unless it fails. The report is told the moment of the execution.
func become(text string, report *os.File) error {
	var e entry
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return fmt.Errorf("read entry: %w", err)
	}
	runtime.LockOSThread()
	// The signal is bound to this process and survives the exec (prctl(2)). The parent may have
	// died before it was set.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("set parent-death signal: %w", err)
	}
	if os.Getppid() != e.Parent {
		return fmt.Errorf("the lab has gone")
	}
	for _, dir := range e.Groups {
		if err := write(dir, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	if len(e.Cores) > 0 {
		var set unix.CPUSet
		for _, c := range e.Cores {
			set.Set(c)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("set affinity to cores %v: %w", e.Cores, err)
		}
	}
	if e.Data > 0 {
		l := unix.Rlimit{Cur: uint64(e.Data), Max: uint64(e.Data)}
		if err := unix.Setrlimit(unix.RLIMIT_DATA, &l); err != nil {
			return fmt.Errorf("limit private memory: %w", err)
		}
	}
	unix.CloseOnExec(int(report.Fd()))
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("read clock: %w", err)
	}
	fmt.Fprintf(report, "exec %d\n", now.Nano())
	return fmt.Errorf("execute %s: %w", e.Path, syscall.Exec(e.Path, e.Args, e.Env))
}

// line is what this comes to in a shell. A process that writes 0 into a group's list joins it
// (cgroups(7)).
func (e entry) line(dir string) string {
	var parts []string
	for _, group := range e.Groups {
		parts = append(parts, "echo 0 >", shell.Quote(group+"/cgroup.procs"), "&&")
	}
	parts = append(parts, "exec env -i")
	for _, pair := range e.Env {
		parts = append(parts, shell.Variable(pair))
	}
	if len(e.Cores) > 0 {
		parts = append(parts, "taskset -c", kernel.CoreList(e.Cores))
	}
	if e.Data > 0 {
		parts = append(parts, fmt.Sprintf("prlimit --data=%d", e.Data))
	}
	args := append([]string{e.Path}, e.Args[1:]...)
	return shell.In(dir, append(parts, shell.Join(args))...)
}
