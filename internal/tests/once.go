package tests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"prony/internal/clock"
)

// Needs are what a test depends on beside its own program: paths from the root, files or folders
// with all that is below, and facts that no file holds, such as the version of a tool.
type Needs struct {
	Files []string
	Facts []string
}

// Once leaves a test out of make test, as Whole does, and in make test-all it leaves it out where
// it has passed before for these very bytes: of the code that its program links, of the files and
// facts it needs, of Go's version and the kernel's. FRESH=1 runs it all the same. Only a test that
// passes is remembered; one that fails, or leaves itself out, is forgotten. Where the environment
// names a base, what nothing has changed for since that commit is left out, too.
func Once(t testing.TB, what string, needs Needs) {
	t.Helper()
	Whole(t, what)
	of, err := self()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := of.sum(t.Name(), needs)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := folder()
	if err != nil {
		t.Logf("nothing is remembered: %v", err)
		return
	}
	path := filepath.Join(dir, name(of.pkg+" "+t.Name()))
	if os.Getenv(Fresh) == "" {
		if when, ok := recall(path, sum); ok {
			t.Skipf("%s, %s (%s=1 runs it again)", Before, when, Fresh)
		}
		if base := os.Getenv(Base); base != "" {
			changed, err := changedSince(context.Background(), of.root, base)
			if err == nil && !of.touched(needs, changed) {
				t.Skipf("%s%.12s (%s=1 runs it again)", Untouched, base, Fresh)
			} else if err != nil {
				t.Logf("it runs because nobody knows what changed: %v", err)
			}
		}
	}
	t.Cleanup(func() {
		if err := settle(path, sum, !t.Failed() && !t.Skipped()); err != nil {
			t.Errorf("%v", err)
		}
	})
}

// self is the program of this test, looked at once.
var self = sync.OnceValues(func() (*program, error) { return look(context.Background(), began) })

// began is where this program was started: go test starts it in its package's folder.
var began, _ = os.Getwd()

// memory is one line: the sum, and when the test passed for it.
const memory = "prony test 1"

// recall says when a test has passed for a sum. What another user could have written is not
// believed.
func recall(path, sum string) (when string, ok bool) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 {
		return "", false
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != uint32(os.Geteuid()) {
		return "", false
	}
	text, err := io.ReadAll(io.LimitReader(file, 1<<10))
	if err != nil {
		return "", false
	}
	when, ok = strings.CutPrefix(string(text), memory+" "+sum+" ")
	return strings.TrimSpace(when), ok
}

// settle remembers that a test has passed for a sum, or that it has not. The file is replaced as a
// whole.
func settle(path, sum string, passed bool) error {
	if !passed {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("forget a test: %w", err)
		}
		return nil
	}
	file, err := os.CreateTemp(filepath.Dir(path), "new-*") // of mode 0600
	if err != nil {
		return fmt.Errorf("remember a test: %w", err)
	}
	when := clock.Wall().UTC().Format(time.RFC3339)
	_, err = fmt.Fprintf(file, "%s %s %s\n", memory, sum, when)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("remember a test: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}
