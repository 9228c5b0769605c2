package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"prony.example/internal/launch/cgroup"
)

// The folder of a journal has a guessable name, and processes in it get killed: a folder that other
// users may use is refused.
func TestJournalOfOthers(t *testing.T) {
	check := func(what, dir string) {
		t.Helper()
		_, _, err := OpenJournal(dir)
		if err == nil || !strings.Contains(err.Error(),
			"must belong to this user and have mode 700") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, mode := range []os.FileMode{0o777, 0o770, 0o755, 0o711} {
		open := filepath.Join(t.TempDir(), "open")
		if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, mode)); err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprintf("mode %o", mode), open)
	}
	own, link := filepath.Join(t.TempDir(), "own"), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Mkdir(own, 0o700), os.Symlink(own, link)); err != nil {
		t.Fatal(err)
	}
	check("a link", link)
	if os.Getuid() == 0 {
		theirs := filepath.Join(t.TempDir(), "theirs")
		if err := errors.Join(os.Mkdir(theirs, 0o700), os.Chown(theirs, 12345, -1)); err != nil {
			t.Fatal(err)
		}
		check("somebody else's", theirs)
	}
}

// A runtime folder of another user, which sudo -E passes on, is not used.
func TestRuntimeFolderOfOthers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a folder somebody else's")
	}
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if got := DefaultDir(); got != filepath.Join(dir, "prony") {
		t.Errorf("one's own: %s", got)
	}
	if err := os.Chown(dir, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if got := DefaultDir(); got != filepath.Join(os.TempDir(), "prony-0") {
		t.Errorf("somebody else's: %s", got)
	}
}

// No file of the journal is written through a planted link.
func TestPlantedLinks(t *testing.T) {
	const precious = "precious"
	for _, name := range []string{"lab.lock", "lab.json", "lab.json.new"} {
		dir, victim := filepath.Join(t.TempDir(), "journal"), filepath.Join(t.TempDir(), "victim")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(victim, []byte(precious), 0o600),
			os.Symlink(victim, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		j, _, err := OpenJournal(dir)
		if err == nil {
			err = errors.Join(j.add("prony-1-1", launched{}), j.Close())
		}
		if name == "lab.lock" && err == nil {
			t.Errorf("%s: a link was locked", name)
		}
		if name != "lab.lock" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if b, err := os.ReadFile(victim); err != nil || string(b) != precious {
			t.Errorf("%s: the victim says %q, %v", name, b, err)
		}
	}
}

// asleep starts a process group of two that writes into a log, and whose leader ends or not.
func asleep(t *testing.T, log string, leaderEnds bool) (pgid int, born string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "sleep 1000 & read x")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err1 := os.Create(log)
	cmd.Stdout = out
	hold, err2 := cmd.StdinPipe()
	if err := errors.Join(err1, err2, cmd.Start(), out.Close()); err != nil {
		t.Fatal(err)
	}
	pgid = cmd.Process.Pid
	t.Cleanup(func() { _ = syscall.Kill(-pgid, syscall.SIGKILL) }) // if it still exists
	born = cgroup.Born(pgid)
	for len(groupMembers(pgid)) < 2 {
	}
	if leaderEnds {
		hold.Close()
		cmd.Wait() //nolint:errcheck // any end is fine
	} else {
		go cmd.Wait() //nolint:errcheck // it is killed
	}
	return pgid, born
}

// A number in a note counts only with its start time or, if the leader has gone, with the log.
func TestNoPIDIsBelieved(t *testing.T) {
	const name = "prony-1-1"
	ours, theirs := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "log")
	check := func(what, log string, leaderEnds, want bool, alter func(n *note, r *launched)) {
		t.Helper()
		pgid, born := asleep(t, log, leaderEnds)
		n, r := note{Lab: 1, Boot: bootID()}, launched{PID: pgid, Born: born, Log: ours}
		if alter != nil {
			alter(&n, &r)
		}
		n.Processes = map[string]launched{name: r}
		dir := filepath.Join(t.TempDir(), "journal")
		text, err := json.Marshal(n)
		if err := errors.Join(err, os.Mkdir(dir, 0o700),
			os.WriteFile(filepath.Join(dir, noteFile), text, 0o600)); err != nil {
			t.Fatal(err)
		}
		j, reaped, err := OpenJournal(dir)
		if err != nil {
			t.Fatal(err)
		}
		j.Close()
		if got := len(reaped) > 0; got != want {
			t.Errorf("%s: reaped %v, want %v", what, reaped, want)
		}
		if want {
			gone(t, []int{pgid})
		} else if len(groupMembers(pgid)) == 0 {
			t.Errorf("%s: it was killed", what)
		}
	}
	check("as noted", theirs, false, true, nil)
	check("no birth", ours, false, false, func(_ *note, r *launched) { r.Born = "" })
	check("another birth", ours, false, false, func(_ *note, r *launched) { r.Born += "0" })
	check("another boot", ours, false, false, func(n *note, _ *launched) { n.Boot = "before" })
	check("left behind by ours", ours, true, true, nil)
	check("left behind by another", theirs, true, false, nil)
	check("left behind by nobody", theirs, true, false, func(_ *note, r *launched) { r.Log = "" })
	// The list of processes in a folder that is no cgroup may be forged.
	fake := filepath.Join(t.TempDir(), name)
	check("a planted group", theirs, false, false, func(_ *note, r *launched) {
		text := fmt.Append(nil, r.PID)
		if err := errors.Join(os.Mkdir(fake, 0o700),
			os.WriteFile(filepath.Join(fake, "cgroup.procs"), text, 0o600)); err != nil {
			t.Fatal(err)
		}
		*r = launched{Groups: []string{fake}}
	})
}

// Only one lab of all users gets the machine, and the lock is not a file of any user.
func TestAlone(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(Beside, "")
	first, second := journal(t), journal(t)
	if err := first.Alone(folder); err != nil {
		t.Fatal(err)
	}
	err := second.Alone(folder)
	who := fmt.Sprintf("process %d of user %d", os.Getpid(), os.Getuid())
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), who) {
		t.Errorf("a second lab got %v, want ErrBusy and %q", err, who)
	}
	t.Setenv(Beside, "1")
	if err := second.Alone(folder); err != nil {
		t.Errorf("beside it, as asked: %v", err)
	}
	t.Setenv(Beside, "")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.Alone(folder); err != nil {
		t.Errorf("after the first: %v", err)
	}
	var s syscall.Stat_t
	if err := syscall.Stat(Processors, &s); err != nil || s.Uid != 0 || s.Mode&0o022 != 0 {
		t.Errorf("%s: %v, mode %o of user %d: anybody could exchange it", Processors, err, s.Mode,
			s.Uid)
	}
}

// The next lab ends a build step of a killed lab, but not a forgotten step.
func TestStepsAreNoted(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "journal")
		j, _, err := OpenJournal(dir)
		if err != nil {
			t.Fatal(err)
		}
		folder, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(folder, link); err != nil {
			t.Fatal(err)
		}
		pgid, _ := asleep(t, filepath.Join(folder, "build.log"), false)
		forget, err := j.Step(pgid, filepath.Join(link, "build.log"))
		if err == nil && forgotten {
			err = forget()
		}
		if err := errors.Join(err, j.Close()); err != nil {
			t.Fatal(err)
		}
		j, reaped, err := OpenJournal(dir)
		if err != nil {
			t.Fatal(err)
		}
		j.Close()
		if len(reaped) > 0 == forgotten {
			t.Errorf("forgotten %v: reaped %v", forgotten, reaped)
		}
	}
}

// The next lab removes the keys of a killed lab, also after another boot, and nothing else in their
// folder. A lab that has removed its keys leaves nothing to do.
func TestKeysAreRemoved(t *testing.T) {
	for _, boot := range []string{bootID(), "another"} {
		dir, run := filepath.Join(t.TempDir(), "journal"), t.TempDir()
		j, _, err := OpenJournal(dir)
		if err != nil {
			t.Fatal(err)
		}
		key, kept := filepath.Join(run, "t1.tls", "key.pem"), filepath.Join(run, "trials.ndjson")
		err = errors.Join(os.Mkdir(filepath.Dir(key), 0o700), os.WriteFile(key, nil, 0o600),
			os.WriteFile(kept, nil, 0o600), os.WriteFile(run+"/file.tls", nil, 0o600))
		j.note.Boot = boot
		if err = errors.Join(err, j.Keys(run), j.Close()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if j, _, err = OpenJournal(dir); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(j.Keys(run), j.Close()); err != nil {
				t.Fatal(err)
			}
			left, err := os.ReadDir(run)
			if err != nil || len(left) != 2 || left[1].Name() != filepath.Base(kept) {
				t.Errorf("boot %s: %v is left, %v", boot, left, err)
			}
		}
		j, _, err = OpenJournal(dir)
		if err = errors.Join(err, os.RemoveAll(run)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(j.Keys(run), j.Close()); err != nil {
			t.Fatal(err)
		}
		j, _, err = OpenJournal(dir)
		if err := errors.Join(err, j.Close()); err != nil {
			t.Errorf("a folder that has gone: %v", err)
		}
	}
}
