//go:build linux && !portable

package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"prony.example/internal/observe/host"
)

// Handles reports whether a process handles a signal. The signal would end other processes.
func Handles(pid int, s syscall.Signal) bool {
	mask, err := strconv.ParseUint(status(pid, "SigCgt"), 16, 64)
	return err == nil && mask&(1<<(s-1)) != 0
}

// Inner returns a process's id in its own namespace, which differs in a container.
func Inner(pid int) string {
	if ids := strings.Fields(status(pid, "NSpid")); len(ids) > 0 {
		return ids[len(ids)-1]
	}
	return strconv.Itoa(pid) // the process has ended
}

func status(pid int, field string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return ""
	}
	return host.Field(string(text), field)
}

// Confine moves all threads of a helper process to some cores; without cores it does nothing. An
// ended process is not an error.
func Confine(pid int, cores []int) error {
	if len(cores) == 0 {
		return nil
	}
	err := host.ConfineProcess(strconv.Itoa(pid), cores)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("keep process %d to cores %v: %w", pid, cores, err)
	}
	return nil
}
