// Package clock is the only place that reads time. Durations come from the monotonic clock, so a
// step of the wall clock (NTP, an operator) cannot enter a measurement; the wall clock only dates
// records and names runs. Inside a testing/synctest bubble both follow the bubble's time.
package clock

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

var base = time.Now()

// Mono returns nanoseconds on the monotonic clock since an arbitrary point; only differences mean
// anything. It neither allocates nor enters the kernel (vDSO), so the hot loop may call it.
func Mono() int64 { return int64(time.Since(base)) }

// Wall returns the date and time, UTC, for records and names, never for durations.
func Wall() time.Time { return time.Now().UTC().Add(time.Duration(ahead.Load())) }

// ahead is how far tests have set the wall clock, in ns.
var ahead atomic.Int64

// SetWall puts the wall clock ahead of the machine's, or behind it, as NTP or an operator does. It
// is for tests alone: no namespace of the kernel has a wall clock of its own.
func SetWall(by time.Duration) { ahead.Store(int64(by)) }

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
