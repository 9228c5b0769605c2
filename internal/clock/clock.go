// Package clock is the only place that reads time. Durations come from the monotonic clock, so a
// step of the wall clock (NTP, an operator) cannot enter a measurement; the wall clock only dates
// records and names runs. Inside a testing/synctest bubble both follow the bubble's time.
package clock

import "time"

var base = time.Now()

// Mono returns nanoseconds on the monotonic clock since an arbitrary point; only differences mean
// anything. It neither allocates nor enters the kernel (vDSO), so the hot loop may call it.
func Mono() int64 { return int64(time.Since(base)) }

// Wall returns the date and time, UTC, for records and names, never for durations.
func Wall() time.Time { return time.Now().UTC() }
