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
	var have, size, flags uint32
	s := windows.Handle(fd)
	err := windows.WSAIoctl(s, fionread, nil, 0, (*byte)(unsafe.Pointer(&have)), 4, &size, nil, 0)
	if err != nil || have == 0 || len(b) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	to := windows.WSABuf{Len: min(have, uint32(len(b))), Buf: &b[0]}
	err = windows.WSARecv(s, &to, 1, &size, &flags, nil, nil)
	return int(size), err
}
