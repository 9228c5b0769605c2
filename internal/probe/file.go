package probe

import (
	"golang.org/x/sys/unix"
)

// retries bounds the repetition of an interrupted read.
const retries = 3

// file is one of the kernel's text files, kept open and read from its start each time: opening
// costs more than reading. The kernel makes the text anew at each read from offset 0, and a file of
// a process stays bound to that process, so a reused PID is never mistaken for it.
type file struct{ fd int }

var noFile = file{-1}

// openFile gives noFile with the error when there is none: many of the files are optional.
func openFile(path string) (file, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return noFile, err
	}
	return file{fd}, nil
}

// optional opens what some kernels and hosts do not have.
func optional(path string) file {
	f, _ := openFile(path)
	return f
}

// read gives what one read from the start brings, at most buf; nil when there is nothing: never
// opened, or its process or cgroup is gone (ESRCH, ENOENT, ENODEV). It does not allocate.
func (f file) read(buf []byte) []byte {
	return f.readAt(buf, 0)
}

func (f file) readAt(buf []byte, offset int64) []byte {
	if f.fd < 0 {
		return nil
	}
	for range retries {
		n, err := unix.Pread(f.fd, buf, offset)
		if err == nil {
			return buf[:n]
		}
		if err != unix.EINTR {
			return nil
		}
	}
	return nil
}

// readAll reads on to the file's end or the buffer's: files of many records come in pages.
func (f file) readAll(buf []byte) []byte {
	n := 0
	for n < len(buf) {
		more := f.readAt(buf[n:], int64(n))
		if len(more) == 0 {
			break
		}
		n += len(more)
	}
	return buf[:n]
}

func (f *file) close() {
	if f.fd >= 0 {
		_ = unix.Close(f.fd) // opened for reading: nothing can be lost
	}
	*f = noFile
}
