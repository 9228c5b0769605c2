package intake

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// room says whether there is memory for more. It counts what lies on the heap, garbage included, so
// when that is too much it has the garbage collected before it believes it: without that, a heap
// that nobody allocates on any more, because all are refused, would never be looked at again. The
// collector's memory limiter goes about it in the same way.
// https://github.com/open-telemetry/opentelemetry-collector/tree/main/processor/memorylimiterprocessor
type room struct {
	bytes   int64 // 0: no bound
	heap    func() int64
	collect func()
	resting atomic.Bool // it is being collected, or was a moment ago
}

// collectEvery bounds what looking for garbage may cost: collecting a heap of half a GiB takes
// about as long on one core as two tenths of this.
const collectEvery = time.Second

func newRoom(bytes int64) *room {
	return &room{bytes: bytes, heap: heapBytes, collect: runtime.GC}
}

func heapBytes() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// full must not block: it is asked where connections are read.
func (r *room) full() bool {
	if r.bytes <= 0 || r.heap() <= r.bytes {
		return false
	}
	if r.resting.CompareAndSwap(false, true) {
		go func() {
			r.collect()
			time.AfterFunc(collectEvery, func() { r.resting.Store(false) })
		}()
	}
	return true
}
