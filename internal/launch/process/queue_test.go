package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"prony.example/internal/dev/testsets"
)

// Labs take the machine in the order in which they began to wait. A ticket of a killed lab does not
// count and is removed.
func TestQueue(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "prony")
	if err := InTurn(dir); err != nil {
		t.Errorf("nobody waits: %v", err)
	}
	own, err := Join(dir)
	if err != nil {
		t.Fatal(err)
	}
	// Another lab's tickets, before and after this one: locked by another open file.
	other := func(arrived int) (name string, leave func()) {
		t.Helper()
		name = filepath.Join(dir, queueDir, strings.Repeat("0", 18)+strconv.Itoa(arrived)+"-1")
		f, err := os.Create(name)
		if err == nil {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		}
		if err != nil {
			t.Fatal(err)
		}
		return name, func() { f.Close() }
	}
	if err := InTurn(dir); err != nil {
		t.Errorf("it is alone: %v", err)
	}
	name, leave := other(10)
	if err := InTurn(dir); err == nil || !strings.Contains(err.Error(),
		"process 1, which waits in front") {
		t.Errorf("another one is in front: %v", err)
	}
	leave()
	if err := InTurn(dir); err != nil {
		t.Errorf("the one in front was killed: %v", err)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("the ticket of a killed lab is still there")
	}
	if err := own.Leave(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, queueDir)); err != nil || len(entries) > 0 {
		t.Errorf("left %v, error %v", entries, err)
	}
	_, leave = other(20)
	defer leave()
	if err := InTurn(dir); err == nil {
		t.Error("a lab that does not wait passed one that waits")
	}
}

// Other users can create a guessable folder before the first lab: its queue is not read, and
// nothing that it links to is removed or waited for.
func TestQueueOfOthers(t *testing.T) {
	check := func(what string, mode os.FileMode, want string, plant func(queue, victims string)) {
		t.Helper()
		dir, victims := filepath.Join(t.TempDir(), "prony"), t.TempDir()
		victim := filepath.Join(victims, strings.Repeat("0", 20)+"-1")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(victim, nil, 0o600),
			os.Chmod(dir, mode)); err != nil {
			t.Fatal(err)
		}
		plant(filepath.Join(dir, queueDir), victims)
		done := make(chan error, 1)
		go func() { done <- InTurn(dir) }()
		var err error
		testsets.Eventually(t, what+": the queue is read", func() bool {
			select {
			case err = <-done:
				return true
			default:
				return false
			}
		})
		if got := fmt.Sprint(err); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
		if _, err := os.Stat(victim); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	link := func(queue, victims string) {
		if err := os.Symlink(victims, queue); err != nil {
			t.Fatal(err)
		}
	}
	check("a folder of others", 0o755, "must belong to this user", link)
	check("a link", 0o700, "escapes", link)
	check("no tickets", 0o700, "<nil>", func(queue, victims string) {
		if err := errors.Join(os.Mkdir(queue, 0o700),
			os.WriteFile(filepath.Join(queue, "a-b"), nil, 0),
			os.Symlink(victims, filepath.Join(queue, strings.Repeat("0", 19)+"1-1")),
			unix.Mkfifo(filepath.Join(queue, strings.Repeat("0", 19)+"2-1"), 0o600)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if entries, err := os.ReadDir(queue); err != nil || len(entries) != 3 {
				t.Errorf("files that are no tickets: %v remain, error %v", entries, err)
			}
		})
	})
}
