package testsets

import "testing"

// told is a test that notes whether it failed.
type told struct {
	testing.TB
	failed bool
}

func (t *told) Helper()               {}
func (t *told) Errorf(string, ...any) { t.failed = true }

func TestAllocates(t *testing.T) {
	var keep []byte
	check := func(most uint64, want bool) {
		t.Helper()
		got := told{}
		Allocates(&got, most, func() { keep = make([]byte, 4<<20) })
		if got.failed != want {
			t.Errorf("%d bytes with a bound of %d: failed %v", len(keep), most, got.failed)
		}
	}
	check(4<<20-1, true)
	check(64<<20, false)
}
