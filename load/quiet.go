package load

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// quiet is the state of the Go runtime while loads run. It belongs to the process, and two loads
// can run at once, so the first load sets it and the last one restores it. Otherwise the load that
// ends first would switch the garbage collector on beside the other.
var quiet struct {
	mu      sync.Mutex
	loads   int
	threads int // of all loads that run

	percent int
	limit   int64
	procs   int
}

// hush keeps the Go runtime from disturbing load threads until the returned function is called. The
// garbage collector would run beside the threads and take their time, and a load's garbage is
// small. Each load thread occupies a processor of the Go scheduler permanently; other goroutines
// need more.
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

// makeRoom raises the memory limit, so that garbageMax of garbage fits beside what a load has
// allocated before it begins. The books of a long load on several threads alone exceed garbageMax.
func makeRoom() {
	quiet.mu.Lock()
	defer quiet.mu.Unlock()
	debug.SetMemoryLimit(max(debug.SetMemoryLimit(-1), footprint()+garbageMax))
}

// footprint returns the memory that the Go runtime uses, in bytes.
func footprint() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}
