package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
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

// ticketName matches the name of a ticket.
var ticketName = regexp.MustCompile(`^\d{20}-\d+$`)

// Ticket is a place in the queue of labs of this user that wait for the machine.
type Ticket struct {
	queue *os.Root
	file  *os.File
	name  string
}

// openQueue opens the queue in a journal's folder, which it checks.
func openQueue(dir string, create bool) (*os.Root, error) {
	root, err := Private(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if create {
		if err := root.MkdirAll(queueDir, 0o700); err != nil {
			return nil, err
		}
	}
	return root.OpenRoot(queueDir)
}

// Join takes a place at the end of the queue in a journal's folder.
func Join(dir string) (*Ticket, error) {
	queue, err := openQueue(dir, true)
	if err != nil {
		return nil, fmt.Errorf("join the queue: %w", err)
	}
	name := fmt.Sprintf("%020d-%d", clock.Wall().UnixNano(), os.Getpid())
	// It gets its name when it is locked: without a lock, others would remove it.
	unnamed := ".new-" + name
	file, err := queue.OpenFile(unnamed, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("join the queue: %w", errors.Join(err, queue.Close()))
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = queue.Rename(unnamed, name)
	}
	if err != nil {
		return nil, fmt.Errorf("join the queue: %w", errors.Join(err, queue.Remove(unnamed),
			file.Close(), queue.Close()))
	}
	return &Ticket{queue, file, name}, nil
}

// Leave gives the place up.
func (t *Ticket) Leave() error {
	err := errors.Join(t.queue.Remove(t.name), t.file.Close(), t.queue.Close())
	if err != nil {
		return fmt.Errorf("leave the queue: %w", err)
	}
	return nil
}

// InTurn returns a *Busy if labs wait in a journal's folder that came before this program; nil: it
// may take the machine. A program without a ticket comes after all that wait.
func InTurn(dir string) error {
	queue, err := openQueue(dir, false)
	if errors.Is(err, os.ErrNotExist) {
		return nil // nobody has waited yet
	}
	if err != nil {
		return fmt.Errorf("read the queue: %w", err)
	}
	defer queue.Close()
	entries, err := fs.ReadDir(queue.FS(), ".") // sorted by name, so by arrival
	if err != nil {
		return fmt.Errorf("read the queue: %w", err)
	}
	var ahead []string
	for _, e := range entries {
		if !e.Type().IsRegular() || !ticketName.MatchString(e.Name()) {
			continue
		}
		_, pid, _ := strings.Cut(e.Name(), "-")
		if pid == strconv.Itoa(os.Getpid()) {
			break
		}
		if isWaiting(queue, e.Name()) {
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
func isWaiting(queue *os.Root, name string) bool {
	file, err := queue.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false // it has just left
	}
	defer file.Close()
	err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		_ = queue.Remove(name) // another lab may have removed it
	}
	return errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR)
}
