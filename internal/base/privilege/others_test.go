package privilege

import (
	"os"
	"slices"
	"testing"
)

// TestOthers checks the candidates beside root: the caller of sudo, a folder's owner, and nobody.
// Root is none of them, whether it called sudo or owns the folder.
func TestOthers(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		if got := others(dir); len(got) > 0 {
			t.Errorf("candidates without root: %+v", got)
		}
		t.Skip("only root has candidates")
	}
	check := func(caller string, owner int, want ...int) {
		t.Helper()
		t.Setenv("SUDO_UID", caller)
		if err := os.Chown(dir, owner, -1); err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, u := range others(dir) {
			got = append(got, u.UID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("SUDO_UID=%q in a folder of user %d: %v, want %v", caller, owner, got, want)
		}
	}
	check("", 0, nobody)
	check("0", 0, nobody)
	check("-1", 0, nobody)
	check("1234x", 0, nobody)
	check("99999999999999999999", 0, nobody) // Atoi returns the largest number beside its error
	check("1234", 0, 1234, nobody)
	check("", 4321, 4321, nobody)
	check("1234", 4321, 1234, 4321, nobody)
}
