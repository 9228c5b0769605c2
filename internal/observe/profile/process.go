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

// Handles says whether a process handles a signal. One that does not would be ended by it.
func Handles(pid int, s syscall.Signal) bool {
	mask, err := strconv.ParseUint(status(pid, "SigCgt"), 16, 64)
	return err == nil && mask&(1<<(s-1)) != 0
}

// Inner is a process's id as it knows it itself, in a container.
func Inner(pid int) string {
	if ids := strings.Fields(status(pid, "NSpid")); len(ids) > 0 {
		return ids[len(ids)-1]
	}
	return strconv.Itoa(pid) // it has ended
}

func status(pid int, field string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return ""
	}
	return host.Field(string(text), field)
}

// Confine keeps a helper, all its threads, to the cores that it may run on; none: to any. One that
// has ended needs none.
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
