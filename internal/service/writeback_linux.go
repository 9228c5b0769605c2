//go:build linux && !portable

package service

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeBack has the kernel begin to write a large file to the disk (sync_file_range(2)), so that it
// does not do so in the middle of a measurement. It waits for nothing.
func writeBack(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) // not every disk can
}
