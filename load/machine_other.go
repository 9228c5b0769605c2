//go:build !linux || portable

package load

import "errors"

// pin keeps the calling thread on a core.
func pin(int) error { return errors.New("threads can be pinned on Linux alone") }

// priority returns how the calling thread is scheduled, which is unknown here.
func priority() string { return "unknown" }

// ownUsage returns the CPU time of the process, because that of a thread is not available.
func ownUsage() (read func() threadUsage, end func()) { return wholeUsage(), nil }

// unread returns 0, because this system has no such counters.
func unread() int64 { return 0 }
