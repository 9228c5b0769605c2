//go:build unix

package nethttp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// peek reads available bytes without waiting.
func peek(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }

// readable reports whether a read would return at once.
func readable(fd uintptr) bool {
	var b [1]byte
	_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err != unix.EAGAIN
}
