//go:build !windows

package clock

import "time"

var base = time.Now()

// Mono returns nanoseconds on the monotonic clock since an arbitrary point; only differences have a
// meaning. It neither allocates nor enters the kernel (vDSO), so the hot loop may call it.
func Mono() int64 { return int64(time.Since(base)) }
