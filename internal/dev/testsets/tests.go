// Package testsets has what tests say of themselves. There are two sets: what `make test` runs, in
// minutes, and what `make test-all` adds, every service, agent, profiler, image and system. A test
// of the second set says so in its first line, by Whole, or by Once, which also remembers that it
// has passed. A test of either set that measures, or that a busy neighbour would break, takes the
// cores for itself among such tests, by Cores. What a test starts another program on, which go test
// cannot see, it names by Reads, so that a kept result is of these very files.
//
// It is for tests alone. How the sets are run is internal/dev/testsets/run's to know.
package testsets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/cache"
	"prony.example/internal/base/clock"
)

// What the environment says: which set, that what has passed runs again, and the commit that what
// is here is held against.
const (
	Set   = "PRONY_TEST" // All, or nothing
	All   = "all"
	Fresh = "FRESH"
	Base  = "PRONY_BASE"
)

// What the lines of tests that are left out say, for those who collect them.
const (
	Elsewhere = "make test-all runs this: "
	Before    = "passed before for these very bytes"
	Untouched = "nothing that it depends on differs from "
)

// Whole leaves a test out of make test; what it takes is said in the line.
func Whole(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(Set) != All {
		t.Skip(Elsewhere + what)
	}
}

// Apart has a test of the second set run by a process of its own, beside all the others: one that
// takes many minutes, measures nothing and shares no state with what is beside it. Call it after
// Whole or Once.
func Apart(t testing.TB) { t.Helper() }

// cores are who has the cores in this program.
var cores struct {
	sync.Mutex
	by string
}

// Cores gives the processors to one test at a time, of all that ask for them, in whatever program
// they run: those that measure. Who has them already, itself or by the test above, does not wait.
func Cores(t testing.TB) {
	t.Helper()
	cores.Lock()
	mine := cores.by != "" && strings.HasPrefix(t.Name()+"/", cores.by+"/")
	cores.Unlock()
	if mine {
		return
	}
	unlock, err := take()
	if err != nil {
		t.Fatal(err)
	}
	cores.Lock()
	cores.by = t.Name()
	cores.Unlock()
	t.Cleanup(func() {
		cores.Lock()
		cores.by = ""
		cores.Unlock()
		unlock()
	})
}

// take waits for the cores, however long that takes: go test ends what waits for ever.
func take() (release func(), err error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	return cache.Lock(context.Background(), filepath.Join(dir, "cores.lock"),
		"test that measures", func() {})
}

// Reads looks at files, or all files below folders, that other programs will read for a test: go
// test keeps a result until something changes that the test's own program has looked at.
func Reads(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := lookBelow(path); err != nil {
			t.Fatal(err)
		}
	}
}

// lookBelow looks at a file, or a folder and all below it, and counts what it has looked at.
func lookBelow(path string) (seen int, err error) {
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			_, err = os.Stat(name)
			seen++
		}
		return err
	})
	return seen, err
}

// Version is what a program says when it is asked for its version, or why it says nothing: a fact
// that Needs may hold.
func Version(program string, args ...string) string {
	out, err := exec.Command(program, args...).CombinedOutput()
	return fmt.Sprintf("%s %s %v", program, out, err)
}

// folder is the user's own, for what tests keep: nobody else may write to it or look into it.
func folder() (string, error) {
	above, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the folder of what tests keep: %w", err)
	}
	dir := filepath.Join(above, "prony", "tests")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of what tests keep: %w", err)
	}
	return dir, own(dir)
}

// own wants a folder that is this user's alone. A link is nobody's.
func own(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at what tests keep: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || stat.Uid != uint32(os.Geteuid()) || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("use what tests keep: %s (%s) is not this user's alone, and what it "+
			"holds may be somebody else's; remove it", dir, info.Mode())
	}
	return nil
}

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
