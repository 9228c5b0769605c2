package clock

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// Kernel returns CLOCK_MONOTONIC minus Mono, in ns. Kernel reads Mono first, so that the offset
// errs by the time of a reading, and always upwards: an offset that is too small would make timers
// fire early and the loop spin until the moment has come. The smallest of several offsets is used
// because interrupts enlarge some.
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

// KernelNow returns the time on CLOCK_MONOTONIC, by which other processes also measure, in ns; 0 if
// the kernel returns an error.
func KernelNow() int64 {
	offset, err := Kernel()
	if err != nil {
		return 0
	}
	return Mono() + offset
}
