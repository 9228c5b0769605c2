package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"prony.example/internal/launch"
)

// Files of the freezer and their values. Version 2 has it in every group, whatever its controllers
// (Documentation/admin-guide/cgroup-v2.rst, since Linux 5.2). In version 1 it is a controller with
// a tree of its own (admin-guide/cgroup-v1/freezer-subsystem.rst).
const (
	FreezeFile = "cgroup.freeze" // version 2: 1 and 0
	EventsFile = "cgroup.events" // version 2: has a line "frozen 1" once all threads are stopped
	StateFile  = "freezer.state" // version 1: FROZEN, FREEZING while some are not, THAWED
)

// CanFreeze reports whether this user can freeze a group.
func CanFreeze(g launch.Group) bool {
	file := FreezeFile
	if g.Version == 1 {
		file = StateFile
	}
	return g.Dir != "" && unix.Access(filepath.Join(g.Dir, file), unix.W_OK) == nil
}

// FreezerGroup returns the group of a process in the tree of version 1's freezer; the zero value:
// the tree is not mounted here.
func FreezerGroup(mounts []Mount, paths map[string]string) launch.Group {
	for _, m := range mounts {
		if dir, ok := m.Below(paths["freezer"]); m.Freezer && ok {
			return launch.Group{Dir: dir, Controller: "freezer", Version: 1}
		}
	}
	return launch.Group{}
}

// Thaw resumes the processes of a group, of either version, if its freezer stopped them. It ignores
// folders without a freezer. Version 1 delivers no signal to a frozen process, not even SIGKILL.
func Thaw(dir string) error {
	for file, value := range map[string]string{FreezeFile: "0", StateFile: "THAWED"} {
		f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			_, err = f.WriteString(value)
			err = errors.Join(err, f.Close())
		}
		if err != nil && !errors.Is(err, unix.ENODEV) { // the group has gone
			return err
		}
	}
	return nil
}

// Continue resumes the processes that a signal has stopped.
func Continue(pids []int) {
	for _, pid := range pids {
		if f := Stat(pid); len(f) > 0 && f[0] == "T" {
			_ = unix.Kill(pid, unix.SIGCONT) // it may have ended
		}
	}
}
