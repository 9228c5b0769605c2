package launch

import "testing"

// TestNeedsQuota requires a quota only if the cores alone do not limit the processor time.
func TestNeedsQuota(t *testing.T) {
	check := func(want bool, cpus float64, cores ...int) {
		t.Helper()
		if got := (Spec{CPUs: cpus, Cores: cores}).NeedsQuota(); got != want {
			t.Errorf("%g CPUs on cores %v: a quota %v, want %v", cpus, cores, got, want)
		}
	}
	check(false, 0)
	check(false, 0, 3)
	check(true, 1)
	check(true, 0.5)
	check(true, 0.5, 3)
	check(false, 1, 3)
	check(false, 2, 3)
	check(true, 1, 3, 4)
	check(true, 1.5, 3, 4)
	check(false, 2, 3, 4)
}

// TestAlone is the memory of a process that has no control group with others.
func TestAlone(t *testing.T) {
	for _, row := range [][3]int64{{100, 0, 100}, {100, 40, 40}, {0, 40, 40}, {0, 0, 0}} {
		if got := (Spec{MemoryBytes: row[0], ShareBytes: row[1]}).Alone(); got != row[2] {
			t.Errorf("of %d bytes and a share of %d it is %d", row[0], row[1], got)
		}
	}
}
