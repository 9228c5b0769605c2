package clock

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Go's monotonic clock advances in steps of half a millisecond or more on Windows
// (runtime·nanotime1 reads the interrupt time), which is longer than most responses take. This
// counter has a resolution of 100 ns or better.
var (
	kernel32 = windows.NewLazySystemDLL("kernel32.dll")
	counter  = kernel32.NewProc("QueryPerformanceCounter").Addr()
	rate     = asked(kernel32.NewProc("QueryPerformanceFrequency").Addr()) // ticks a second
	base     = asked(counter)
)

// asked calls a kernel function that writes a number to the address that it gets. Neither function
// can fail since Windows XP (learn.microsoft.com, QueryPerformanceCounter).
func asked(function uintptr) (n int64) {
	_, _, _ = syscall.SyscallN(function, uintptr(unsafe.Pointer(&n)))
	return n
}

// Mono returns nanoseconds on the monotonic clock since an arbitrary point; only differences have a
// meaning. It does not allocate, so the hot loop may call it.
func Mono() int64 { return nanoseconds(asked(counter)-base, rate) }
