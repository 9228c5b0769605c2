//go:build unix

package nethttp

import "syscall"

// peek reads available bytes without waiting.
func peek(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }
