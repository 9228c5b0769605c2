//go:build !linux || portable

package load

import "errors"

// pin keeps the calling thread on a core.
func pin(int) error { return errors.New("threads can be pinned on Linux alone") }

// priority is how the calling thread is scheduled.
func priority() string { return "unknown" }

// ownUsage is the process's: no thread is told apart.
func ownUsage() (read func() threadUsage, end func()) { return wholeUsage(), nil }

// unread is nothing where nobody counts.
func unread() int64 { return 0 }
