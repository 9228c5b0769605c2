package nethttp

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// fionread requests the number of bytes that can be read at once (winsock2.h).
const fionread = 0x4004667f

// peek reads available bytes without waiting. Go's sockets block on Windows, so it first requests
// the number of available bytes.
func peek(fd uintptr, b []byte) (int, error) {
	var size, flags uint32
	have := available(fd)
	if have == 0 || len(b) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	to := windows.WSABuf{Len: min(have, uint32(len(b))), Buf: &b[0]}
	err := windows.WSARecv(windows.Handle(fd), &to, 1, &size, &flags, nil, nil)
	return int(size), err
}

// available returns the number of bytes that can be read at once; 0 also after an error.
func available(fd uintptr) (have uint32) {
	var size uint32
	err := windows.WSAIoctl(windows.Handle(fd), fionread, nil, 0, (*byte)(unsafe.Pointer(&have)), 4,
		&size, nil, 0)
	if err != nil {
		return 0
	}
	return have
}

// readable reports whether a read would return bytes at once.
func readable(fd uintptr) bool { return available(fd) > 0 }
