//go:build linux && !portable

package service

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeBack makes the kernel start to write a large file to disk (sync_file_range(2)), so that it
// does not do so during a measurement. It does not wait.
func writeBack(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) // some disks cannot
}
