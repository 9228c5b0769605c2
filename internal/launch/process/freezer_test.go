package process

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"prony.example/internal/launch/cgroup"
	"prony.example/internal/service"
)

// Version 1's freezer withholds even SIGKILL from stopped processes, so the end of a killed lab's
// leftovers must begin with a thaw.
func TestFrozenByVersionOne(t *testing.T) {
	const name = "prony-1-9"
	mounts := cgroup.OwnMounts()
	i := slices.IndexFunc(mounts, func(m cgroup.Mount) bool { return m.Freezer })
	if i < 0 {
		t.Skip("no freezer of version 1 is mounted")
	}
	g := makeFreezerIn(mounts[i].Dir, name, 1)
	if g.Dir == "" {
		t.Skip("no group may be made in " + mounts[i].Dir)
	}
	pgid, born := asleep(t, filepath.Join(t.TempDir(), "log"), false)
	for _, pid := range groupMembers(pgid) {
		if err := cgroup.Write(g.Dir, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cgroup.Write(g.Dir, cgroup.StateFile, "FROZEN"); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "journal")
	text, err := json.Marshal(note{Lab: 1, Boot: bootID(), Processes: map[string]launched{
		name: {PID: pgid, Born: born, Groups: []string{g.Dir}}}})
	if err := errors.Join(err, os.Mkdir(dir, 0o700),
		os.WriteFile(filepath.Join(dir, noteFile), text, 0o600)); err != nil {
		t.Fatal(err)
	}
	j, reaped, err := OpenJournal(dir)
	if err != nil || len(reaped) == 0 {
		t.Fatalf("reaped %v, %v", reaped, err)
	}
	j.Close()
	gone(t, []int{pgid})
	if _, err := os.Stat(g.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its group is still there: %v", err)
	}
}

// If a group cannot be ended, the error says what the user can do.
func TestGroupThatStays(t *testing.T) {
	mounts := cgroup.OwnMounts()
	i := slices.IndexFunc(mounts, func(m cgroup.Mount) bool { return m.Freezer })
	if i < 0 {
		t.Skip("no freezer of version 1 is mounted")
	}
	g := makeFreezerIn(mounts[i].Dir, "prony-1-10", 1)
	if g.Dir == "" {
		t.Skip("no group may be made in " + mounts[i].Dir)
	}
	was := killBound
	defer func() { killBound = was }()
	killBound = 20 * time.Millisecond
	pgid, _ := asleep(t, filepath.Join(t.TempDir(), "log"), false)
	inside := filepath.Join(g.Dir, "inside") // cannot be thawed below a frozen group
	err := os.Mkdir(inside, 0o700)
	if err == nil {
		err = cgroup.Write(inside, "cgroup.procs", strconv.Itoa(pgid))
	}
	if err = errors.Join(err, cgroup.Write(g.Dir, cgroup.StateFile, "FROZEN")); err != nil {
		t.Fatal(err)
	}
	err = endGroup(inside)
	if err == nil || !strings.Contains(err.Error(), "restart the machine") {
		t.Errorf("a frozen group: %v", err)
	}
	killBound = was
	if err := errors.Join(cgroup.Thaw(g.Dir), endGroup(inside), endGroup(g.Dir)); err != nil {
		t.Error(err)
	}
}

// The next lab removes the copies of a killed lab, also after another boot. Forgotten copies and
// other folders stay.
func TestCopiesAreRemoved(t *testing.T) {
	for _, boot := range []string{bootID(), "another"} {
		dir, folder := filepath.Join(t.TempDir(), "journal"), t.TempDir()
		j, _, err := OpenJournal(dir)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{service.CopyPrefix + "1-1", service.CopyPrefix + "1-2", "precious"}
		for i, name := range names {
			copied := filepath.Join(folder, name)
			forget, err := j.Copy(copied)
			if err == nil && i == 1 {
				err = forget()
			}
			if err := errors.Join(err, os.Mkdir(copied, 0o700), os.WriteFile(filepath.Join(copied,
				service.CopyMark), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		j.note.Boot = boot
		if err := errors.Join(j.save(), j.Close()); err != nil {
			t.Fatal(err)
		}
		j, reaped, err := OpenJournal(dir)
		if err != nil {
			t.Fatal(err)
		}
		j.Close()
		stay := j.Stay()
		if len(reaped) > 0 || len(stay) != 1 || !strings.Contains(stay[0], "precious") {
			t.Errorf("boot %s: reaped %q; %q stays, want the folder that is no copy", boot, reaped,
				stay)
		}
		if j, _, err = OpenJournal(dir); err != nil || len(j.Stay()) != 1 {
			t.Fatalf("boot %s: the next lab does not try again: %q, %v", boot, j.Stay(), err)
		}
		j.Close()
		left, err := os.ReadDir(folder)
		if err != nil || len(left) != 2 || left[0].Name() != "precious" ||
			left[1].Name() != names[1] {
			t.Errorf("boot %s: %v is left, %v", boot, left, err)
		}
	}
}
