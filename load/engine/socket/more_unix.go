//go:build unix

package socket

import (
	"fmt"
	_ "os" // its initialization raises the limit on open files

	"golang.org/x/sys/unix"
)

// more returns advice on the limit on open files. Go has raised it to the hard limit.
func more() string {
	var limit unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) // it supports every limit
	return fmt.Sprintf(": this process may have %d open files; raise the limit (ulimit -n)",
		limit.Cur)
}
