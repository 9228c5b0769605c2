package guard

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A guard does nothing after the word that nothing is left. Without a word it clears up, more than
// once.
func TestStand(t *testing.T) {
	check := func(word string, fails error, times int) {
		t.Helper()
		cleared := 0
		p := Post{Clear: func(orders []byte) error {
			if cleared++; string(orders) != "orders" {
				t.Errorf("orders are %q", orders)
			}
			return fails
		}}
		err := p.stand([]byte("orders"), strings.NewReader(word), 0)
		if cleared != times || !errors.Is(err, fails) {
			t.Errorf("%q: cleared %d times, %v, want %d", word, cleared, err, times)
		}
	}
	check(leave, nil, 0)
	check("", nil, rounds)
	check("leav", nil, rounds)
	check("", errors.New("it is away"), rounds)
}

// A guard that cannot be started leaves no handle.
func TestStart(t *testing.T) {
	// The kernel limits a variable to 128 KiB.
	g, err := Post{Env: "PRONY_TEST_GUARD"}.Start(strings.Repeat("x", 200<<10))
	if err == nil || g != nil {
		t.Errorf("%v, error %v", g, err)
	}
	if err := g.End(true); err != nil {
		t.Error(err)
	}
}

// Two lines are noted as one, and the failure stays an error. Without anything to note, or if the
// file is a link, nothing is noted.
func TestNote(t *testing.T) {
	dir := t.TempDir()
	failed := errors.New("one\ntwo")
	for range 2 {
		if err := Note(dir, "log", "L", []string{"a"}, failed); err == nil ||
			err.Error() != "one\ntwo" {
			t.Fatal(err)
		}
	}
	if err := Note(dir, "log", "L", nil, nil); err != nil {
		t.Error(err)
	}
	if err := Note("", "log", "L", nil, failed); err != failed {
		t.Errorf("without a folder: %v", err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "log"))
	lines := strings.Split(string(b), "\n")
	if err != nil || len(lines) != 3 || lines[2] != "" {
		t.Fatalf("noted is %q, %v", b, err)
	}
	for _, line := range lines[:2] {
		if !strings.HasSuffix(line, ` lab L has ended: removed ["a"]; one; two`) {
			t.Errorf("noted is %q", line)
		}
	}
	if err := os.Symlink("log", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := Note(dir, "link", "L", []string{"a"}, nil); err == nil {
		t.Error("a link was followed")
	}
}
