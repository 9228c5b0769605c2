package testsets

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The tests that other tests run, in a program of their own: how they end is what is asked.
const inner = "PRONY_TEST_INNER"

func TestInner(t *testing.T) {
	if os.Getenv(inner) == "" {
		return
	}
	t.Run("whole", func(t *testing.T) { Whole(t, "everything") })
	t.Run("once", func(t *testing.T) {
		Once(t, "a service", Needs{Facts: []string{os.Getenv("FACT")}})
		if os.Getenv("FAIL") != "" {
			t.Error("it fails")
		}
		if os.Getenv("LEAVE") != "" {
			t.Skip("no such tool")
		}
	})
}

// outcome is how the inner test once ended, and why.
func outcome(t *testing.T, cache string, env ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestInner$", "-test.v")
	cmd.Env = append(os.Environ(), append([]string{inner + "=1", Set + "=", Fresh + "=", Base + "=",
		"XDG_CACHE_HOME=" + cache}, env...)...)
	out, _ := cmd.CombinedOutput() // a failure is in the text
	text := string(out)
	for _, how := range []string{"SKIP", "FAIL", "PASS"} {
		if strings.Contains(text, "--- "+how+": TestInner/once") {
			if how == "SKIP" {
				for _, why := range []string{Before, Elsewhere, Untouched, "no such tool"} {
					if strings.Contains(text, why) {
						return how + " " + why
					}
				}
			}
			return how
		}
	}
	t.Fatalf("it says\n%s", text)
	return ""
}

func TestOnce(t *testing.T) {
	if testing.Short() || os.Getenv(inner) != "" {
		return
	}
	cache := t.TempDir()
	all := Set + "=" + All
	check := func(want string, env ...string) {
		t.Helper()
		if got := outcome(t, cache, env...); got != want {
			t.Errorf("%q: %s, want %s", env, got, want)
		}
	}
	check("SKIP " + Elsewhere)
	check("FAIL", all, "FAIL=1")
	check("SKIP no such tool", all, "LEAVE=1")
	check("PASS", all)
	check("SKIP "+Before, all)
	check("PASS", all, Fresh+"=1")
	check("PASS", all, "FACT=another")
	check("PASS", all) // one sum is kept
	check("SKIP "+Before, all)
	check("FAIL", all, Fresh+"=1", "FAIL=1")
	check("PASS", all)
	check("PASS", all, "FACT=another", Base+"=no-such-commit")
	if err := os.Chmod(filepath.Join(cache, "prony", "tests"), 0o770); err != nil {
		t.Fatal(err)
	}
	check("PASS", all, "FACT=another") // not believed, and it runs
}

// Two that measure have the cores one after the other; a test below one that has them does not wait
// for it.
func TestCores(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	got := make(chan error, 1)
	t.Run("first", func(t *testing.T) {
		Cores(t)
		Cores(t)
		t.Run("below", func(t *testing.T) { Cores(t) })
		go func() {
			release, err := take() // as another program would
			if err == nil {
				release()
			}
			got <- err
		}()
		select {
		case err := <-got:
			t.Errorf("both have them: %v", err)
		case <-time.After(150 * time.Millisecond): // three times as long as between two asks
		}
	})
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// What another program will read is looked at, each folder and file, so that go test sees a change.
func TestReads(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a", "b"), "")
	for path, want := range map[string]int{"": 3, "a": 2, "a/b": 1, "c": 0} {
		seen, err := lookBelow(filepath.Join(dir, path))
		if seen != want || (err == nil) != (want > 0) {
			t.Errorf("%q: looked at %d, %v; want %d", path, seen, err, want)
		}
	}
	Reads(t, dir)
}

func TestVersion(t *testing.T) {
	if got := Version("go", "version"); !strings.Contains(got, runtime.Version()) {
		t.Errorf("go says %q", got)
	}
	if got := Version("no-such-program"); !strings.Contains(got, "not found") {
		t.Errorf("nothing says %q", got)
	}
}
