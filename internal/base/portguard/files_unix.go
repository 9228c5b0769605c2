//go:build unix

package portguard

import "golang.org/x/sys/unix"

// openFiles returns the limit on open files of this process, which Go has raised to the hard limit;
// 0: unknown.
func openFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Cur
}
