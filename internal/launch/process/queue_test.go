package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
