//go:build unix

package socket

import (
	"fmt"
	_ "os" // its initialisation raises the limit on open files

	"golang.org/x/sys/unix"
)

// more says how to have more: the limit in force is told, which Go has raised to the hard one.
func more() string {
	var limit unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) // it knows every limit
	return fmt.Sprintf(": this process may have %d open files; raise the limit (ulimit -n)",
		limit.Cur)
}
