package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/suite"
)

// TestAttachUnknownAgent checks that an error about an agent says whether the folder has a list of
// agents.
func TestAttachUnknownAgent(t *testing.T) {
	for root, without := range map[string]bool{t.TempDir(): true, "../../..": false} {
		s := &suite.Suite{Variants: []suite.Variant{{Name: "v", Agent: "nosuch"}}}
		err := (&Lab{Root: root}).attach(s)
		if err == nil || strings.Contains(err.Error(), "has no agents.yaml") != without {
			t.Errorf("%s: %v", root, err)
		}
	}
}

// TestCheckoutOf checks the commit of a folder and whether its files differ from it.
func TestCheckoutOf(t *testing.T) {
	testsets.Live(t)
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"},
			args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	check := func(commit string, dirty bool) {
		t.Helper()
		r := &run{checkouts: map[string]checkout{}}
		if got := r.checkoutOf(t.Context(), dir); got != (checkout{commit, dirty}) {
			t.Errorf("%+v, want %s, %v", got, commit, dirty)
		}
	}
	check("unknown", false)
	git("init", "--quiet")
	git("commit", "--quiet", "--allow-empty", "--message=a")
	head := git("rev-parse", "HEAD")
	check(head, false)
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	check(head, true)
}
