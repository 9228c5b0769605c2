// Command split divides its processor time, or its sleep, three to one between two functions, as
// the kernel counts it. For time asleep it prints the time and the sums of both functions so far,
// in ns. It ends with its standard input.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

const part = 2_000_000 // ns

func main() {
	go func() {
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			panic(err)
		}
		os.Exit(0)
	}()
	runtime.LockOSThread() // whose clock is read
	for {
		if os.Args[1] == "wait" {
			waitThree()
			waitOne()
			fmt.Println(now(unix.CLOCK_MONOTONIC), waited[0], waited[1])
		} else {
			spinThree()
			spinOne()
		}
	}
}

//go:noinline
func spinThree() { spin(3 * part) }

//go:noinline
func spinOne() { spin(part) }

//go:noinline
func waitThree() { wait(3*part, &waited[0]) }

//go:noinline
func waitOne() { wait(part, &waited[1]) }

//go:noinline
func spin(ns int64) {
	for end := now(unix.CLOCK_THREAD_CPUTIME_ID) + ns; now(unix.CLOCK_THREAD_CPUTIME_ID) < end; {
		for range 10_000 {
			sink++
		}
	}
}

var sink int

// wait sleeps in the kernel, because time.Sleep would put the goroutine aside and leave the thread
// to others.
func wait(ns int64, total *int64) {
	from := now(unix.CLOCK_MONOTONIC)
	ts := unix.NsecToTimespec(ns)
	if err := unix.Nanosleep(&ts, nil); err != nil && err != unix.EINTR {
		panic(err)
	}
	*total += now(unix.CLOCK_MONOTONIC) - from
}

var waited [2]int64

func now(which int32) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(which, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}
