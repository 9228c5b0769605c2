package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
)

// queueDir is the folder of a journal with a ticket for each waiting lab: a file whose name begins
// with the time of its arrival and ends with its process. The lab locks its ticket, so a ticket
// without a lock is that of a lab that was killed.
const queueDir = "queue"

// Ticket is a place in the queue of labs of this user that wait for the machine.
type Ticket struct{ file *os.File }

// Join takes a place at the end of the queue in a journal's folder.
func Join(dir string) (*Ticket, error) {
	root, err := Private(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	queue := filepath.Join(dir, queueDir)
	if err := os.MkdirAll(queue, 0o700); err != nil {
		return nil, fmt.Errorf("join the queue: %w", err)
	}
	// It gets its name when it is locked: without a lock, others would remove it.
	file, err := os.CreateTemp(queue, ".new-")
	if err != nil {
		return nil, fmt.Errorf("join the queue: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	name := filepath.Join(queue, fmt.Sprintf("%020d-%d", clock.Wall().UnixNano(), os.Getpid()))
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return nil, fmt.Errorf("join the queue: %w", errors.Join(err, os.Remove(file.Name()),
			file.Close()))
	}
	return &Ticket{file}, nil
}

// Leave gives the place up.
func (t *Ticket) Leave() error {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", t.file.Fd()))
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		err = fmt.Errorf("leave the queue: %w", err)
	}
	return errors.Join(err, t.file.Close())
}

// InTurn returns a *Busy if labs wait in a journal's folder that came before this program; nil: it
// may take the machine. A program without a ticket comes after all that wait.
func InTurn(dir string) error {
	queue := filepath.Join(dir, queueDir)
	entries, err := os.ReadDir(queue) // sorted by name, so by arrival
	if err != nil {
		return nil //nolint:nilerr // nobody has waited yet
	}
	var ahead []string
	for _, e := range entries {
		_, pid, ok := strings.Cut(e.Name(), "-")
		if !ok || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if pid == strconv.Itoa(os.Getpid()) {
			break
		}
		if isWaiting(filepath.Join(queue, e.Name())) {
			ahead = append(ahead, pid)
		}
	}
	if len(ahead) == 0 {
		return nil
	}
	holders := fmt.Sprintf("process %s, which waits in front", ahead[0])
	if n := len(ahead) - 1; n > 0 {
		holders = fmt.Sprintf("process %s and %d more, which wait in front", ahead[0], n)
	}
	return &Busy{Who: holders, next: "wait in the queue with --wait, or end the other processes"}
}

// isWaiting reports whether a lab holds a ticket. It removes a ticket that no lab holds.
func isWaiting(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false // it has just left
	}
	defer file.Close()
	err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return true
	}
	_ = os.Remove(path) // another lab may have removed it
	return false
}
