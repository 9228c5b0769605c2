package guard

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A guard that was told that nothing is left does nothing; one that was left without a word clears
// up, more than once.
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

// Two lines are noted as one, and none where somebody has put a link.
func TestNote(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if err := Note(dir, "log", "one\ntwo"); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil || string(b) != "one; two\none; two\n" {
		t.Errorf("noted is %q, %v", b, err)
	}
	if err := os.Symlink("log", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := Note(dir, "link", "x"); err == nil {
		t.Error("a link was followed")
	}
}
