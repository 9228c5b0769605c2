package nethttp

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// fionread asks how many bytes can be read at once (winsock2.h).
const fionread = 0x4004667f

// peek reads what a connection has, and waits for nothing: Go's sockets block here, so it is asked
// first whether there is anything.
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
