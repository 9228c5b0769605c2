package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"prony/internal/launch/kernel"
)

// Journal is the lab's note on disk of what it has running, and the lock that keeps a second lab
// from measuring beside it. A lab that is killed leaves the note behind; the next one acts on it.
//
// A nil Journal remembers nothing; tests of other things use it.
type Journal struct {
	path string
	lock *os.File

	mu   sync.Mutex
	note note
}

type note struct {
	Lab       int               `json:"lab"`
	Processes map[string]record `json:"processes"`
}

// record is one launched target. Born tells the process from a later one with the same number.
type record struct {
	PID    int      `json:"pid,omitempty"`
	Born   string   `json:"born,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// ErrBusy says that another lab is at work on this machine.
var ErrBusy = errors.New("another prony is measuring on this machine")

// DefaultDir is where labs of this user keep their journal.
func DefaultDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "prony")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("prony-%d", os.Getuid()))
}

// OpenJournal takes the lock and ends what a killed lab has left running; reaped names it in words.
// The error is ErrBusy when another lab holds the lock.
func OpenJournal(dir string) (j *Journal, reaped []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("open journal: %w", err)
	}
	if err := private(dir); err != nil {
		return nil, nil, fmt.Errorf("open journal: %w", err)
	}
	path := filepath.Join(dir, "lab.json")
	lock, err := os.OpenFile(filepath.Join(dir, "lab.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open journal: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, nil, fmt.Errorf("open journal %s: %w: process %d; two would spoil each "+
			"other's numbers: wait for it, or end it", path, ErrBusy, readNote(path).Lab)
	}
	reaped, err = reap(readNote(path))
	if err != nil {
		lock.Close()
		return nil, nil, err
	}
	own := note{Lab: os.Getpid(), Processes: map[string]record{}}
	j = &Journal{path: path, lock: lock, note: own}
	if err := j.save(); err != nil {
		lock.Close()
		return nil, nil, err
	}
	return j, reaped, nil
}

// private refuses a folder that somebody else made or everybody may write to: its name can be
// guessed, and what a journal notes is killed.
func private(dir string) error {
	var s unix.Stat_t
	if err := unix.Lstat(dir, &s); err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	if s.Mode&unix.S_IFMT != unix.S_IFDIR || int(s.Uid) != os.Getuid() || s.Mode&0o002 != 0 {
		return fmt.Errorf("%s is not this user's alone: remove it, or set XDG_RUNTIME_DIR to a "+
			"folder that is", dir)
	}
	return nil
}

// readNote reads a note; one that is missing or torn is as good as empty, since a process is noted
// before it is started and the rename that writes it is atomic.
func readNote(path string) (n note) {
	b, err := os.ReadFile(path)
	if err != nil {
		return note{}
	}
	if json.Unmarshal(b, &n) != nil {
		return note{}
	}
	return n
}

// reap ends the processes of a note whose lab is gone.
func reap(n note) (reaped []string, err error) {
	var errs []error
	for name, r := range n.Processes {
		if r.PID > 0 && isOurs(r) && len(groupMembers(r.PID)) > 0 {
			_ = unix.Kill(-r.PID, unix.SIGKILL) // it may end by itself just now
			reaped = append(reaped, fmt.Sprintf("process group %d", r.PID))
		}
		for _, dir := range r.Groups {
			// Only what a lab made, whatever the note says.
			if !strings.HasPrefix(filepath.Base(dir), "prony-") || filepath.Base(dir) != name {
				continue
			}
			if pids := kernel.PIDs(dir); len(pids) > 0 {
				reaped = append(reaped, fmt.Sprintf("processes %v", pids))
			}
			errs = append(errs, killGroup(dir), removeGroup(dir))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return reaped, fmt.Errorf("end what an earlier lab (process %d) left running: %w",
			n.Lab, err)
	}
	return reaped, nil
}

// isOurs tells the group of a noted process from a later one with the same number. While a group
// has members the kernel gives its number to no new process, so it is ours unless a process with
// that number was born at another time.
func isOurs(r record) bool {
	born := kernel.Born(r.PID)
	return born == "" || born == r.Born
}

func (j *Journal) add(name string, pid int, groups []string) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note.Processes[name] = record{PID: pid, Born: kernel.Born(pid), Groups: groups}
	return j.save()
}

func (j *Journal) remove(name string) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.note.Processes, name)
	return j.save()
}

// save replaces the note in one step, so that a kill in the middle leaves the old one or the new
// one.
func (j *Journal) save() error {
	b, err := json.Marshal(j.note)
	if err == nil {
		err = os.WriteFile(j.path+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(j.path+".new", j.path)
	}
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// Close gives the lock back.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	return j.lock.Close()
}
