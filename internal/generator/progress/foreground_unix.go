//go:build unix

package progress

import (
	"os"

	"golang.org/x/sys/unix"
)

// foreground reports whether the process may read keys; a background process that reads them is
// stopped. A terminal that is not the process's controlling terminal has no foreground group and
// stops no process.
func foreground(tty *os.File) bool {
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
