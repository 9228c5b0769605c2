//go:build !linux || portable

package rtsched

// Ahead is only available on Linux; ok is false.
func Ahead(int) (back func(), ok bool) { return nil, false }

// Promote is only available on Linux; it returns false.
func Promote(int, int) bool { return false }

// Nice is only available on Linux; it returns false.
func Nice(int, int) bool { return false }

// Lowest is the lowest nice value; it is only used on Linux.
const Lowest = -20

// IsAhead is only available on Linux; it returns false.
func IsAhead() bool { return false }

// Locked calls a function with ordinary priority.
func Locked(_ int, do func()) { do() }

// Breath has no effect, because threads have no real-time priority here.
type Breath struct{}

// Take does nothing.
func (*Breath) Take(int64) {}
