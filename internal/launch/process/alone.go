package process

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"prony/internal/shell"
)

// Processors is what labs of all users lock: a folder of the kernel's, which everybody can open and
// nobody can exchange, remove or fill. A lock on a file of our own would need a folder that
// everybody may write to, where another user could put the file first.
const Processors = "/sys/devices/system/cpu"

// Beside is the variable that has a lab measure although another user's holds the lock. Anybody can
// hold it, and for ever: it keeps the peace, and nobody out. Who measures beside another has the
// neighbour in the records, as a strain that each trial is judged by.
const Beside = "PRONY_BESIDE"

// Alone takes the machine, by its Processors, from labs of other users; those of this one are kept
// apart by the journal already. The error is ErrBusy and names the holder. A system without the
// folder has no such lock.
func (j *Journal) Alone(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return nil //nolint:nilerr // as a container without /sys
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		j.machine = f
		return nil
	}
	who := holder(f)
	closed := f.Close()
	if !errors.Is(err, unix.EWOULDBLOCK) || os.Getenv(Beside) != "" {
		return closed
	}
	return errors.Join(&Busy{who, fmt.Sprintf("wait for it, or say %s if that one does not measure",
		shell.Variable(Beside+"=1"))}, closed)
}

// holder names who has a file's lock, as the kernel tells everybody (proc(5), /proc/locks).
func holder(f *os.File) string {
	const nobody = "a process that the kernel does not name"
	var s, owner unix.Stat_t
	locks, err := os.ReadFile("/proc/locks")
	if err != nil || unix.Fstat(int(f.Fd()), &s) != nil {
		return nobody
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(s.Dev), unix.Minor(s.Dev), s.Ino)
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK  ADVISORY  WRITE 18403 00:16:3562 0 EOF; "->" is one that waits.
		w := strings.Fields(line)
		if len(w) < 6 || w[1] != "FLOCK" || w[5] != file {
			continue
		}
		if unix.Stat("/proc/"+w[4], &owner) != nil {
			return "process " + w[4]
		}
		return fmt.Sprintf("process %s of user %d", w[4], owner.Uid)
	}
	return nobody
}
