//go:build !linux || portable

package host

import (
	"errors"
	"runtime"

	"prony.example/record"
)

// Idle returns an empty text, because only Linux is asked to keep idle cores awake.
func Idle(record.Provenance) string { return "" }

// PollIdle returns an error, as Idle says.
func PollIdle(string) (release func(), err error) {
	return nil, errors.New("idle cores can be kept awake only on Linux")
}

// Cores returns an error, because only Linux reports and sets the processors of a process.
func Cores() ([]int, error) {
	return nil, errors.New("threads can be pinned to cores only on Linux")
}

// noGovernor is recorded because the frequency's control is not looked up here.
const noGovernor = "unknown"

// system returns the kernel's name; its release is unknown.
func system() (name, release string) { return runtime.GOOS, "unknown" }
