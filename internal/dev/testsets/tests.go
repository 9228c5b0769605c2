// Package testsets contains the functions by which tests declare their kind and their set.
//
// A test has one of three kinds. An exact test, the default, runs in virtual time or computes: it
// has the same outcome on every host. A live test (Live) uses real processes, sockets or tools, and
// asserts what happened, never how fast. A measured test (Measured) asserts numbers that the host
// influences: it runs alone, and if it fails on an unfit host, it is inconclusive.
//
// A test belongs to one of three sets. `make test` runs the first set, the default, in minutes.
// `make test-all` also runs the second (Whole, Once, Measured): what takes seconds, what measures,
// and one case of each service, agent, image and system. `make test-long` runs the remaining cases
// (Long). Once and Long remember which tests have passed.
//
// Reads names files that another program reads for a test, so that go test notices when they
// change. Package internal/dev/testsets/run runs the sets.
package testsets

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"prony.example/internal/base/cache"
	"prony.example/internal/base/clock"
)

// Environment variables of a test run.
const (
	Set    = "PRONY_TEST"   // All, Later, or empty for the first set
	All    = "all"          // the first and the second set
	Later  = "long"         // the third set
	Fresh  = "FRESH"        // also run tests that passed before
	Strict = "PRONY_STRICT" // fail if a test is often flaky
)

// Reasons of skipped tests, which the runner counts instead of listing each.
const (
	Elsewhere = "make test-all runs this: "
	Longer    = "make test-long runs this: "
	Before    = "passed before for these very bytes"
)

// Live declares a test that uses real processes, sockets or tools. The runner also counts a test as
// live if its package's tests start processes or listen for it, or if it is of a later set.
func Live(t testing.TB) { t.Helper() }

// Patience bounds the waits of live tests. Only what hangs may reach it, on any machine.
const Patience = 2 * time.Minute

// Eventually waits until something has happened that another process or goroutine does, for
// Patience at most.
func Eventually(t testing.TB, subject string, happened func() bool) {
	t.Helper()
	for end := clock.Mono() + int64(Patience); !happened(); <-time.After(5 * time.Millisecond) {
		if clock.Mono() > end {
			t.Fatalf("not within %v: %s", Patience, subject)
		}
	}
}

// Whole moves a test into the second set; subject names what it tests.
func Whole(t testing.TB, subject string) {
	t.Helper()
	if os.Getenv(Set) == "" {
		t.Skip(Elsewhere + subject)
	}
}

// cores is the name of the measured test of this program.
var cores struct {
	sync.Mutex
	source string
}

// Measured declares a test that asserts numbers which the host influences, and moves it into the
// second set. It waits until no other measured test runs, in this or another program, and logs the
// Host's figures when it ends. Below a measured test, it does nothing.
func Measured(t testing.TB) {
	t.Helper()
	Whole(t, "what measures")
	cores.Lock()
	mine := cores.source != "" && strings.HasPrefix(t.Name()+"/", cores.source+"/")
	cores.Unlock()
	if mine {
		return
	}
	unlock, err := take()
	if err != nil {
		t.Fatal(err)
	}
	cores.Lock()
	cores.source = t.Name()
	cores.Unlock()
	t.Cleanup(func() {
		cores.Lock()
		cores.source = ""
		cores.Unlock()
		unlock()
	})
	measureHost(t)
}

// take waits for the cores without a timeout, because go test has one.
func take() (release func(), err error) {
	dir, err := Folder()
	if err != nil {
		return nil, err
	}
	return cache.Lock(context.Background(), filepath.Join(dir, "cores.lock"),
		"test that measures", func() {})
}

// Reads reads the metadata of files, or of all files below folders, that other programs will read
// for a test. go test reuses a result until something changes that the test's own program has read.
func Reads(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := lookBelow(path); err != nil {
			t.Fatal(err)
		}
	}
}

// lookBelow reads the metadata of a file, or of a folder and all below it, and returns their
// number.
func lookBelow(path string) (count int, err error) {
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			_, err = os.Stat(name)
			count++
		}
		return err
	})
	return count, err
}

// Version returns the output of a program that prints its version, or the error: a fact for Needs.
func Version(program string, args ...string) string {
	out, err := exec.Command(program, args...).CombinedOutput()
	return fmt.Sprintf("%s %s %v", program, out, err)
}

// Needs are the dependencies of a test beside its own program: paths from the root, of files or
// whole folders, and facts that are in no file, such as the version of a tool.
type Needs struct {
	Files []string
	Facts []string
}

// Once moves a test into the second set, as Whole does, and skips it if it has passed before for
// the same bytes: of its program, of its files and facts, of the kernel's version. FRESH=1 runs it
// again. Once remembers only a pass; a failure or a skip forgets an earlier pass. In the third set,
// Once does nothing, so that rows below it that call Long run.
func Once(t testing.TB, subject string, needs Needs) {
	t.Helper()
	Whole(t, subject)
	if os.Getenv(Set) != Later {
		remembered(t, "", needs)
	}
}

// Long moves a test, or rows of a table, into the third set, and remembers a pass as Once does.
func Long(t testing.TB, subject string, needs Needs) {
	t.Helper()
	if os.Getenv(Set) != Later {
		t.Skip(Longer + subject)
	}
	remembered(t, "", needs)
}

// More reports whether the rows of a table that belong to the third set run in this test of the
// second. If they passed before, it skips the test, as Long does. Call it after Once.
func More(t testing.TB, needs Needs) bool {
	t.Helper()
	if os.Getenv(Set) != Later {
		return false
	}
	remembered(t, " more", needs)
	return true
}

// remembered skips a part of a test that has passed before, and remembers its result.
func remembered(t testing.TB, part string, needs Needs) {
	t.Helper()
	item, err := self()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := item.sum(t.Name(), needs)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := Folder()
	if err != nil {
		t.Logf("nothing is remembered: %v", err)
		return
	}
	path := filepath.Join(dir, name(item.dir+" "+t.Name()+part))
	if os.Getenv(Fresh) == "" {
		if when, ok := recall(path, sum); ok {
			t.Skipf("%s, %s (%s=1 runs it again)", Before, when, Fresh)
		}
	}
	t.Cleanup(func() {
		if err := settle(path, sum, !t.Failed() && !t.Skipped()); err != nil {
			t.Errorf("%v", err)
		}
	})
}
