package clock

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// Kernel returns CLOCK_MONOTONIC minus Mono, in ns. The process's clock is read first, so that
// the offset is too large by what a reading takes, never too small: a timer that fires early would
// make the loop turn until the moment has come, every time. Of several readings the closest is
// taken, in case the thread was interrupted in between.
func Kernel() (int64, error) {
	const readings = 16
	offset := int64(math.MaxInt64)
	for range readings {
		var ts unix.Timespec
		before := Mono()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			return 0, fmt.Errorf("read CLOCK_MONOTONIC: %w", err)
		}
		offset = min(offset, ts.Nano()-before)
	}
	return offset, nil
}

// KernelNow is the present on CLOCK_MONOTONIC, by which other processes measure, too; 0 where the
// kernel does not say.
func KernelNow() int64 {
	offset, err := Kernel()
	if err != nil {
		return 0
	}
	return Mono() + offset
}
