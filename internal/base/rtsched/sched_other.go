//go:build !linux || portable

package rtsched

// Ahead is for Linux.
func Ahead(int) (back func(), ok bool) { return nil, false }

// Promote is for Linux.
func Promote(int, int) bool { return false }

// Nice is for Linux.
func Nice(int, int) bool { return false }

// Lowest is for Linux.
const Lowest = -20

// IsAhead is for Linux.
func IsAhead() bool { return false }

// Locked does it as any thread would.
func Locked(_ int, do func()) { do() }

// Breath is for threads that go first: none do.
type Breath struct{}

// Take does nothing.
func (*Breath) Take(int64) {}
