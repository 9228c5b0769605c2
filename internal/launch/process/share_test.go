package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Labs build at the same time, and none measures meanwhile: neither another one of this user nor,
// by the folder of all users, one of another user.
func TestShare(t *testing.T) {
	t.Setenv(Beside, "")
	dir, folder := filepath.Join(t.TempDir(), "journal"), t.TempDir()
	busy := func(what string, err error, doing string) {
		t.Helper()
		want := fmt.Sprintf("another prony is %s on this machine: process %d of user %d", doing,
			os.Getpid(), os.Geteuid())
		if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	done := func(leave func() error, err error) {
		t.Helper()
		if err == nil {
			err = leave()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	first, err := Share(dir, folder)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Share(dir, folder)
	if err != nil {
		t.Fatalf("a second build waits: %v", err)
	}
	done(first, nil)
	_, _, err = OpenJournal(dir)
	busy("a measurement beside a build", err, "building")
	other := filepath.Join(t.TempDir(), "journal") // of another user
	j, _, err := OpenJournal(other)
	if err != nil {
		t.Fatal(err)
	}
	busy("a measurement of another user", j.Alone(folder), "building")
	done(second, nil)
	if err := j.Alone(folder); err != nil {
		t.Error("builds have ended: ", err)
	}
	_, err = Share(dir, folder)
	busy("a build beside a measurement of another user", err, "measuring")
	t.Setenv(Beside, "1")
	done(Share(dir, folder))
	done(j.Close, nil)
}
