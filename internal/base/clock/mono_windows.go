package clock

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Go's own monotonic clock moves in steps of half a millisecond and more here (runtime·nanotime1
// reads the interrupt time), which is longer than most answers take. This one has 100 ns or less.
var (
	kernel32 = windows.NewLazySystemDLL("kernel32.dll")
	counter  = kernel32.NewProc("QueryPerformanceCounter").Addr()
	rate     = asked(kernel32.NewProc("QueryPerformanceFrequency").Addr()) // ticks a second
	base     = asked(counter)
)

// asked is what a function of the kernel writes to where it is pointed; neither of these can fail
// (learn.microsoft.com, QueryPerformanceCounter: since Windows XP).
func asked(function uintptr) (n int64) {
	_, _, _ = syscall.SyscallN(function, uintptr(unsafe.Pointer(&n)))
	return n
}

// Mono returns nanoseconds on the monotonic clock since an arbitrary point; only differences mean
// anything. It does not allocate, so the hot loop may call it.
func Mono() int64 { return nanoseconds(asked(counter)-base, rate) }
