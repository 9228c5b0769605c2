package cpuclock

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's text files are kept open and read from their start into a fixed buffer: opening
// costs more than reading. The readers below allocate nothing.

func openFile(path string) (fd int, err error) {
	return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// read returns what one read from the start gives, at most the buffer; nil where there is nothing.
// Such a read never waits, so the Go scheduler need not hear of it.
func read(fd int, buf []byte) []byte {
	if fd < 0 {
		return nil
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])),
		uintptr(len(buf)), 0, 0, 0)
	if errno != 0 {
		return nil
	}
	return buf[:n]
}

// number reads the decimal number after leading blanks, and returns what follows it.
func number(b []byte) (value int64, tail []byte, ok bool) {
	i := 0
	for i < len(b) && b[i] == ' ' {
		i++
	}
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		value = value*10 + int64(b[i]-'0')
		i++
	}
	return value, b[i:], i > start
}

// after returns what follows a key at the beginning of a line; nil: no line has it.
func after(b []byte, key string) []byte {
	for len(b) >= len(key) {
		if string(b[:len(key)]) == key {
			return b[len(key):]
		}
		if b = nextLine(b); b == nil {
			return nil
		}
	}
	return nil
}

// nextLine returns the text from the next line on; nil: there is none.
func nextLine(b []byte) []byte {
	for i, c := range b {
		if c == '\n' {
			return b[i+1:]
		}
	}
	return nil
}
