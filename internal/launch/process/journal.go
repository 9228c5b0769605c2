package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/service"
)

// Journal is a file in which a lab lists what it has running, and a lock against a second lab on
// this machine. If a lab is killed, the next one ends what the file lists.
//
// A nil Journal records nothing; some tests use it.
type Journal struct {
	dir     *os.Root
	lock    *os.File
	machine *os.File // nil: the machine was not requested

	mu   sync.Mutex
	note note
	stay []string // why copies of an earlier lab could not be removed
}

type note struct {
	Lab       int                 `json:"lab"`
	Boot      string              `json:"boot"` // boot id; Born counts from this boot
	Processes map[string]launched `json:"processes"`
	// Keys is the absolute path of the folder whose subfolders *.tls hold the secret keys of
	// services.
	Keys string `json:"keys,omitempty"`
	// Copies are the absolute paths of folders that hold the copies of starts.
	Copies []string `json:"copies,omitempty"`
}

// launched is one target. Born distinguishes the process from a later one with the same number.
type launched struct {
	PID    int      `json:"pid,omitempty"`
	Born   string   `json:"born,omitempty"`
	Log    string   `json:"log,omitempty"` // absolute, without links
	Groups []string `json:"groups,omitempty"`
}

// Files of a journal.
const (
	noteFile = "lab.json"
	lockFile = "lab.lock"
)

const lockFlags = os.O_CREATE | os.O_RDWR | unix.O_NOFOLLOW

// keys is the suffix of folders with a service's secret key.
const keys = ".tls"

// ErrBusy reports that another lab measures on this machine, or builds.
var ErrBusy = errors.New("another prony is measuring on this machine")

// Busy is ErrBusy with details about the other lab.
type Busy struct {
	Who    string
	builds bool   // it measures later
	next   string // what the user can do
}

// Error implements error.
func (b *Busy) Error() string {
	if b.builds {
		return fmt.Sprintf("another prony is building on this machine: %s; a build would distort "+
			"a measurement: %s", b.Who, b.next)
	}
	return fmt.Sprintf("%v: %s; two measurements at once would distort each other: %s",
		ErrBusy, b.Who, b.next)
}

// Unwrap returns ErrBusy.
func (b *Busy) Unwrap() error { return ErrBusy }

// DefaultDir returns the folder of the journal for labs of this user. It ignores a runtime folder
// of another user, which sudo may pass on.
func DefaultDir() string {
	var s unix.Stat_t
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir != "" && unix.Stat(dir, &s) == nil && int(s.Uid) == os.Geteuid() {
		return filepath.Join(dir, "prony")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("prony-%d", os.Getuid()))
}

// Private opens a folder that only this user can use, and creates it if it is missing. It refuses
// links, and folders that another user made or can read: the path is guessable, and the processes
// in a journal get killed. Replacing the folder later does not affect the open one.
func Private(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	named, err1 := os.Lstat(dir)
	opened, err2 := root.Stat(".")
	if err := errors.Join(err1, err2); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", err), root.Close())
	}
	s, ok := opened.Sys().(*syscall.Stat_t)
	if !os.SameFile(named, opened) || !ok || int(s.Uid) != os.Geteuid() ||
		opened.Mode().Perm()&0o077 != 0 {
		return nil, errors.Join(fmt.Errorf("open journal: folder %s must belong to this user and "+
			"have mode 700: remove it, or set XDG_RUNTIME_DIR to your own folder",
			dir), root.Close())
	}
	return root, nil
}

// OpenJournal takes the lock and ends what a killed lab has left running; reaped describes it. The
// error is ErrBusy if another lab holds the lock.
func OpenJournal(dir string) (j *Journal, reaped []string, err error) {
	root, err := Private(dir)
	if err != nil {
		return nil, nil, err
	}
	ownNote := note{Lab: os.Getpid(), Boot: bootID(), Processes: map[string]launched{}}
	j = &Journal{dir: root, note: ownNote}
	if reaped, err = j.open(); err != nil {
		return nil, reaped, errors.Join(err, j.Close())
	}
	return j, reaped, nil
}

func (j *Journal) open() (reaped []string, err error) {
	if j.lock, err = j.dir.OpenFile(lockFile, lockFlags, 0o600); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := unix.Flock(int(j.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("open journal %s: %w", filepath.Join(j.dir.Name(), noteFile),
			busy(j.lock, "wait for the other process with --wait, or end it"))
	}
	remaining := j.readNote()
	if reaped, err = reap(remaining); err != nil {
		return reaped, err
	}
	if err := remaining.removeKeys(); err != nil {
		return reaped, err
	}
	j.note.Copies, j.stay = remaining.removeCopies()
	return reaped, j.save()
}

// Stay lists the copies of an earlier lab that could not be removed, with reasons. The next lab
// tries again.
func (j *Journal) Stay() []string {
	if j == nil {
		return nil
	}
	return j.stay
}

// readNote reads a note. A missing or damaged note counts as empty: a process is noted before it
// starts, and the note is replaced by an atomic rename.
func (j *Journal) readNote() (n note) {
	b, err := j.dir.ReadFile(noteFile)
	if err != nil || json.Unmarshal(b, &n) != nil {
		return note{}
	}
	return n
}

// bootID identifies this boot of the kernel; empty if it is unknown.
func bootID() string { return cgroup.Value("/proc/sys/kernel/random", "boot_id") }

// reap ends the processes of a note whose lab has ended. After another boot there are none.
func reap(n note) (reaped []string, err error) {
	if n.Boot != bootID() {
		return nil, nil
	}
	var errs []error
	for name, r := range n.Processes {
		groups := slices.DeleteFunc(slices.Clone(r.Groups), func(dir string) bool {
			return !isMade(dir, name)
		})
		for _, dir := range groups {
			errs = append(errs, cgroup.Thaw(dir)) // frozen processes receive no signal
		}
		if isOurs(r) && len(groupMembers(r.PID)) > 0 {
			_ = unix.Kill(-r.PID, unix.SIGKILL) // it may end by itself just now
			reaped = append(reaped, fmt.Sprintf("process group %d", r.PID))
		}
		for _, dir := range groups {
			if pids := cgroup.PIDs(dir); len(pids) > 0 {
				reaped = append(reaped, fmt.Sprintf("processes %v", pids))
			}
			errs = append(errs, endGroup(dir))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return reaped, fmt.Errorf("end processes that an earlier lab (process %d) left running: %w",
			n.Lab, err)
	}
	return reaped, nil
}

// removeKeys removes the keys of a note whose lab has ended, also after another boot.
func (n note) removeKeys() error {
	if n.Keys == "" {
		return nil
	}
	entries, err := os.ReadDir(n.Keys)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() && filepath.Ext(e.Name()) == keys {
			err = errors.Join(err, os.RemoveAll(filepath.Join(n.Keys, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("remove the TLS keys that an earlier lab (process %d) left: %w",
			n.Lab, err)
	}
	return nil
}

// removeCopies removes the copies of a note whose lab has ended, also after another boot, and
// returns those that remain with reasons. Processes in them were ended before.
func (n note) removeCopies() (stay, why []string) {
	for _, dir := range n.Copies {
		if err := service.RemoveCopy(dir); err != nil {
			stay, why = append(stay, dir), append(why, err.Error())
		}
	}
	return stay, why
}

// isOurs distinguishes the group of a noted process from a later one with the same number: the
// leader has the noted start time, or it has gone and a remaining process writes into the log that
// the launcher opened. An environment variable could mark them too, but the service would see it.
func isOurs(r launched) bool {
	if r.PID <= 1 || r.Born == "" {
		return false
	}
	if born := cgroup.Born(r.PID); born != "" {
		return born == r.Born
	}
	return r.Log != "" && slices.ContainsFunc(groupMembers(r.PID), func(pid int) bool {
		return slices.ContainsFunc([]int{1, 2}, func(fd int) bool {
			// Processes that have just ended, and those of other users, have no readable link.
			to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
			return strings.TrimSuffix(to, " (deleted)") == r.Log
		})
	})
}

// isMade reports whether a lab made this group for the target of this name, since the note alone
// could name any folder.
func isMade(dir, name string) bool {
	return strings.HasPrefix(filepath.Base(dir), "prony-") && filepath.Base(dir) == name &&
		isGroup(dir)
}

// isGroup reports whether a folder is a cgroup: in any other folder, the list of processes could be
// forged.
func isGroup(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil &&
		(fs.Type == unix.CGROUP_SUPER_MAGIC || fs.Type == unix.CGROUP2_SUPER_MAGIC)
}

// change applies a function to the note and saves it.
func (j *Journal) change(do func(*note)) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	do(&j.note)
	return j.save()
}

func (j *Journal) add(name string, r launched) error {
	return j.change(func(n *note) { n.Processes[name] = r })
}

func (j *Journal) remove(name string) error {
	return j.change(func(n *note) { delete(n.Processes, name) })
}

// Step notes a build step by the leader of its process group, until forget is called. The log
// identifies processes that it leaves behind.
func (j *Journal) Step(pid int, log string) (forget func() error, err error) {
	name := fmt.Sprintf("step-%d", pid)
	if real, err := filepath.EvalSymlinks(log); err == nil {
		log = real
	}
	err = j.add(name, launched{PID: pid, Born: cgroup.Born(pid), Log: log})
	return func() error { return j.remove(name) }, err
}

// Keys notes the folder whose subfolders *.tls hold secret keys, and replaces the previous one. If
// the lab is killed, the next one removes the keys.
func (j *Journal) Keys(dir string) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return j.change(func(n *note) { n.Keys = dir })
}

// Copy notes the folder for a start's copy, until forget is called. If the lab is killed, the next
// one removes the copy.
func (j *Journal) Copy(dir string) (forget func() error, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("write journal: %w", err)
	}
	forget = func() error {
		return j.change(func(n *note) {
			n.Copies = slices.DeleteFunc(n.Copies, func(known string) bool { return known == dir })
		})
	}
	return forget, j.change(func(n *note) { n.Copies = append(n.Copies, dir) })
}

// save replaces the note atomically, so that a kill leaves either the old or the new one.
func (j *Journal) save() error {
	const next = noteFile + ".new"
	b, err := json.Marshal(j.note)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	_ = j.dir.Remove(next) // left by a kill between both steps
	const flags = os.O_CREATE | os.O_EXCL | os.O_WRONLY | unix.O_NOFOLLOW
	f, err := j.dir.OpenFile(next, flags, 0o600)
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = j.dir.Rename(next, noteFile)
	}
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// Close releases the locks.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	errs := []error{j.dir.Close()}
	for _, lock := range []*os.File{j.lock, j.machine} {
		if lock != nil {
			errs = append(errs, lock.Close())
		}
	}
	return errors.Join(errs...)
}

// Processors is the folder that labs of all users lock: a folder of the kernel, which all users can
// open and nobody can replace, remove or fill. A lock file of our own would need a folder writable
// for all, in which another user could create the file first.
const Processors = "/sys/devices/system/cpu"

// Beside is the variable that lets a lab measure although another user's lab holds the lock. Any
// user can hold the lock for ever: it prevents accidents and is no access control. The records then
// list the neighbour as a strain that the verdict of each trial considers.
const Beside = "PRONY_BESIDE"

// Alone locks the machine, by its Processors, against labs of other users; the journal excludes
// other labs of this user. The error is ErrBusy and names the holder. Without the folder there is
// no lock.
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
	occupant := busy(f, fmt.Sprintf("wait for the other process, or set %s if it does not measure",
		cmdlog.Variable(Beside+"=1")))
	closed := f.Close()
	if !errors.Is(err, unix.EWOULDBLOCK) || os.Getenv(Beside) != "" {
		return closed
	}
	return errors.Join(occupant, closed)
}

// Share holds the locks of Alone and of the journal in dir for builds, until leave is called: other
// labs may share them, and none can measure. The error is ErrBusy if another lab measures.
func Share(dir, folder string) (leave func() error, err error) {
	root, err := Private(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	journal, err := root.OpenFile(lockFile, lockFlags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	locks := []*os.File{journal}
	if processors, err := os.Open(folder); err == nil { // otherwise it is missing, as for Alone
		locks = append(locks, processors)
	}
	leave = func() (err error) {
		for _, f := range locks {
			err = errors.Join(err, f.Close())
		}
		return err
	}
	for i, f := range locks {
		err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if err != nil && (i == 0 || os.Getenv(Beside) == "") {
			return nil, errors.Join(fmt.Errorf("open journal %s: %w", dir,
				busy(f, "wait for the other process")), leave())
		}
	}
	return leave, nil
}

// nobody describes a process that /proc/locks does not list.
const nobody = "an unknown process"

// busy describes the process that holds a file's lock, from /proc/locks (proc(5)).
func busy(f *os.File, next string) *Busy {
	var s, owner unix.Stat_t
	out := &Busy{Who: nobody, next: next}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil || unix.Fstat(int(f.Fd()), &s) != nil {
		return out
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(s.Dev), unix.Minor(s.Dev), s.Ino)
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK  ADVISORY  WRITE 18403 00:16:3562 0 EOF; "->" is one that waits.
		w := strings.Fields(line)
		if len(w) < 6 || w[1] != "FLOCK" || w[5] != file {
			continue
		}
		out.Who, out.builds = "process "+w[4], w[3] == "READ" // that of Share
		if unix.Stat("/proc/"+w[4], &owner) == nil {
			out.Who += fmt.Sprintf(" of user %d", owner.Uid)
		}
		break
	}
	return out
}
