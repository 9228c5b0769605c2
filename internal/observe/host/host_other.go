//go:build !linux || portable

package host

import (
	"errors"
	"runtime"
)

// Cores fails: which processors a process may use, and a thread of it, is Linux's to say.
func Cores() ([]int, error) {
	return nil, errors.New("threads can be pinned to cores only on Linux")
}

// noGovernor is said of the frequency of processors, which nobody is asked for.
const noGovernor = "unknown"

// system is the kernel's name; its release is not known.
func system() (name, release string) { return runtime.GOOS, "unknown" }
