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

// inner is the variable that enables the inner tests, which other tests run in a separate process.
const inner = "PRONY_TEST_INNER"

func TestInner(t *testing.T) {
	if os.Getenv(inner) == "" {
		return
	}
	t.Run("whole", func(t *testing.T) { Whole(t, "everything") })
	t.Run("measured", func(t *testing.T) {
		Measured(t)
		Measured(t)
		t.Run("below", func(t *testing.T) { Measured(t) })
	})
	t.Run("more", func(t *testing.T) {
		Once(t, "some verbs", Needs{})
		t.Logf("more: %v", More(t, Needs{}))
	})
	t.Run("long", func(t *testing.T) { Long(t, "clusters", Needs{}) })
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

// innerSays returns the output of the inner tests with variables of the environment.
func innerSays(cache string, env ...string) string {
	cmd := exec.Command(os.Args[0], "-test.run=^TestInner$", "-test.v")
	cmd.Env = append(os.Environ(), append([]string{inner + "=1", Set + "=", Fresh + "=",
		"XDG_CACHE_HOME=" + cache}, env...)...)
	out, _ := cmd.CombinedOutput() //nolint:errcheck // the text contains the failure
	return string(out)
}

// outcome returns how the inner test ended, and why.
func outcome(t *testing.T, test, cache string, env ...string) string {
	t.Helper()
	text := innerSays(cache, env...)
	for _, how := range []string{"SKIP", "FAIL", "PASS"} {
		if strings.Contains(text, "--- "+how+": TestInner/"+test+" ") {
			_, line, _ := strings.Cut(text, "=== RUN   TestInner/"+test+"\n")
			line, _, _ = strings.Cut(line, "=== ")
			line, _, _ = strings.Cut(line, "--- ")
			for _, why := range []string{Before, Elsewhere, Longer, "no such tool"} {
				if how == "SKIP" && strings.Contains(line, why) {
					return how + " " + why
				}
			}
			return how
		}
	}
	t.Fatalf("it says\n%s", text)
	return ""
}

// Each set runs its own tests. The third set forgets nothing of the second, and also remembers.
func TestSets(t *testing.T) {
	if os.Getenv(inner) != "" {
		return
	}
	cache := t.TempDir()
	check := func(set, test, want string) {
		t.Helper()
		if got := outcome(t, test, cache, Set+"="+set); got != want {
			t.Errorf("%s in the set %q: %s, want %s", test, set, got, want)
		}
	}
	check("", "whole", "SKIP "+Elsewhere)
	check(All, "whole", "PASS")
	check(Later, "whole", "PASS")
	check("", "long", "SKIP "+Longer)
	check(All, "long", "SKIP "+Longer)
	check(Later, "long", "SKIP "+Before)
	check(Later, "once", "PASS")
	check(All, "once", "SKIP "+Before)
}

// The rows of the third set run only there, whatever passed in the second.
func TestMore(t *testing.T) {
	if os.Getenv(inner) != "" {
		return
	}
	cache := t.TempDir()
	check := func(set, want string) {
		t.Helper()
		if got := outcome(t, "more", cache, Set+"="+set); got != want {
			t.Errorf("in the set %q: %s, want %s", set, got, want)
		}
	}
	check("", "SKIP "+Elsewhere)
	check(All, "PASS")
	check(All, "SKIP "+Before)
	check(Later, "PASS")
	check(Later, "SKIP "+Before)
	for set, want := range map[string]string{All: "more: false", Later: "more: true"} {
		if said := innerSays(t.TempDir(), Set+"="+set); !strings.Contains(said, want) {
			t.Errorf("in the set %q it says\n%s", set, said)
		}
	}
}

// A measured test reports its host once, with its own subtests.
func TestReportsHost(t *testing.T) {
	if os.Getenv(inner) != "" {
		return
	}
	said := innerSays(t.TempDir(), Set+"="+All)
	if strings.Count(said, Figures+`{"seconds":`) != 1 {
		t.Errorf("it says\n%s", said)
	}
}

func TestOnce(t *testing.T) {
	if testing.Short() || os.Getenv(inner) != "" {
		return
	}
	cache := t.TempDir()
	all := Set + "=" + All
	check := func(want string, env ...string) {
		t.Helper()
		if got := outcome(t, "once", cache, env...); got != want {
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
	check("PASS", all) // one sum is stored
	check("SKIP "+Before, all)
	check("FAIL", all, Fresh+"=1", "FAIL=1")
	check("PASS", all)
	if err := os.Chmod(filepath.Join(cache, "prony", "tests"), 0o770); err != nil {
		t.Fatal(err)
	}
	check("PASS", all) // not trusted, so it runs
}

// Measured tests run one after another; a test below a measured one does not wait.
func TestMeasured(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(Set, All)
	got := make(chan error, 1)
	t.Run("first", func(t *testing.T) {
		Measured(t)
		Measured(t)
		t.Run("below", func(t *testing.T) { Measured(t) })
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
		case <-time.After(150 * time.Millisecond): // three times the polling interval
		}
	})
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// Reads reads the metadata of each folder and file for another program, so that go test detects
// changes.
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
