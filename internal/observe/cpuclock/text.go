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

// read returns the result of one read from the start, up to the buffer's size; nil if the file is
// closed or unreadable. The read never blocks, so it bypasses the Go scheduler.
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

// number parses the decimal number after leading blanks, and returns the text after it as tail.
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

// after returns the text after a key at the beginning of a line, or nil if no line has the key.
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

// nextLine returns the text from the next line on, or nil after the last line.
func nextLine(b []byte) []byte {
	for i, c := range b {
		if c == '\n' {
			return b[i+1:]
		}
	}
	return nil
}
