//go:build unix

package load

import (
	"os"

	"golang.org/x/sys/unix"
)

// RaiseFiles raises the soft limit on open files to the hard limit, which allows more connections.
// It returns the limit in force.
func RaiseFiles() (uint64, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, os.NewSyscallError("getrlimit", err)
	}
	l.Cur = l.Max
	return l.Cur, os.NewSyscallError("setrlimit", unix.Setrlimit(unix.RLIMIT_NOFILE, &l))
}

// goneErrors are the errors after the peer has closed a connection.
var goneErrors = []error{unix.ECONNRESET, unix.EPIPE}

// filesMost returns the soft limit on open files; 0: unknown.
func filesMost() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return l.Cur
}

// wholeUsage returns a function that reads the CPU time of the whole process.
func wholeUsage() func() threadUsage {
	var ru unix.Rusage
	return func() (u threadUsage) {
		if unix.Getrusage(unix.RUSAGE_SELF, &ru) == nil {
			u.take(&ru)
		}
		return u
	}
}

func (u *threadUsage) take(ru *unix.Rusage) {
	u.cpuNs, u.switches = ru.Utime.Nano()+ru.Stime.Nano(), ru.Nivcsw
}
