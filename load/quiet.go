package load

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// quiet is the state of the Go runtime while loads run. It belongs to the process, and two loads
// may run at once: the first one in sets it, the last one out puts it back. One that ended
// earlier would otherwise switch the collector on beside the other, or leave it off for good.
var quiet struct {
	mu      sync.Mutex
	loads   int
	threads int // of all loads that run

	percent int
	limit   int64
	procs   int
}

// hush keeps the runtime out of the way of so many load threads until the function that it returns
// is called. The collector would run beside the threads and take their time; a load's garbage is
// small. A load thread holds its processor of the Go scheduler for good; others need their own.
func hush(threads int) (leave func()) {
	q := &quiet
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.loads++; q.loads == 1 {
		runtime.GC()
		q.percent = debug.SetGCPercent(-1)
		q.limit = debug.SetMemoryLimit(footprint() + garbageMax)
		q.procs = runtime.GOMAXPROCS(0)
	}
	q.threads += threads
	if want := q.threads + 2; want > runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(want)
	}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.threads -= threads
		if q.loads--; q.loads == 0 {
			runtime.GOMAXPROCS(q.procs)
			debug.SetMemoryLimit(q.limit)
			debug.SetGCPercent(q.percent)
		}
	}
}

// footprint is what the Go runtime holds of the memory, in bytes.
func footprint() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}
