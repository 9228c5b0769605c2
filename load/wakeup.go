package load

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/clock"
)

// Parameters for measuring the wake-up latency before a load, and for pacing by it.
const (
	wakeups  = 100
	sleepNs  = 100_000 // of each sleep, and up to twice that
	spinLeNs = 20_000  // minimum time before a deadline at which polling begins
	spinGeNs = 200_000 // maximum: later wake-ups are too rare to be worth the CPU time
)

// wakeups makes the thread sleep as between arrivals, without traffic, and records how late it
// wakes, because no arrival can be sent more punctually than that. Precise pacing begins to poll
// that much earlier, by the 95th percentile.
func (w *worker) wakeups(pacing string) error {
	w.wakeup = newHist()
	for k := range int64(wakeups) {
		atNs := clock.Mono() + sleepNs + k*sleepNs/wakeups
		for clock.Mono() < atNs {
			if err := w.engine.Wait(atNs, w); err != nil {
				return err
			}
		}
		recordNs(w.wakeup, clock.Mono()-atNs)
	}
	if pacing == Precise {
		w.spin = min(max(w.wakeup.ValueAtQuantile(95), spinLeNs), spinGeNs)
	}
	return nil
}

// wakeup returns the wake-up latencies of all threads.
func (r *run) wakeup() *hdrhistogram.Histogram {
	all := newHist()
	for _, w := range r.workers {
		if w.wakeup != nil {
			all.Merge(w.wakeup)
		}
	}
	return all
}

// pacing describes how the load waits for the next moment.
func (r *run) pacing() string {
	p := r.spec.Describe.Pacing
	if spin := r.workers[0].spin; spin > 0 {
		return fmt.Sprintf("%s: %s, from %v before that by polling", Precise, p,
			time.Duration(spin).Round(time.Microsecond))
	}
	return Frugal + ": " + p
}

// resident returns the process's resident memory in bytes, from /proc/self/statm; 0 without such a
// file.
func resident() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// String describes the think time, for example "uniform 1s..2s".
func (t Think) String() string {
	switch t.Kind {
	case "constant":
		return t.Lo.String()
	case "uniform":
		return fmt.Sprintf("uniform %v..%v", t.Lo, t.Hi)
	case "exponential":
		return fmt.Sprintf("exponential %v", t.Lo)
	}
	return "none"
}
