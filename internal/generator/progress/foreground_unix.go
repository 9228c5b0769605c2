//go:build unix

package progress

import (
	"os"

	"golang.org/x/sys/unix"
)

// foreground says whether the process may read keys: one in the background would be stopped. A
// terminal that is not the process's own stops nobody, and has no foreground to tell of.
func foreground(tty *os.File) bool {
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
