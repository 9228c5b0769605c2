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

// How the lateness of wake-ups is measured before a load, and what comes of it.
const (
	wakeups  = 100
	sleepNs  = 100_000 // of each, and up to as much again
	spinLeNs = 20_000  // polling begins so long before a deadline, at least
	spinGeNs = 200_000 // and at most: later wake-ups are too rare to pay for
)

// wakeups lets the thread sleep as it will between arrivals, without any traffic, and books how
// late it wakes: no arrival can be sent in time by a thread that does not. For precise pacing the
// tail of that lateness is how early polling has to begin.
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

// wakeup is the lateness of all threads.
func (r *run) wakeup() *hdrhistogram.Histogram {
	all := newHist()
	for _, w := range r.workers {
		if w.wakeup != nil {
			all.Merge(w.wakeup)
		}
	}
	return all
}

// pacing says how the load waits for the next moment.
func (r *run) pacing() string {
	p := r.spec.Describe.Pacing
	if spin := r.workers[0].spin; spin > 0 {
		return fmt.Sprintf("%s: %s, from %v before that by polling", Precise, p,
			time.Duration(spin).Round(time.Microsecond))
	}
	return Frugal + ": " + p
}

// resident is what the whole process holds of the machine's memory, from /proc/self/statm; 0 where
// there is none.
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

// String says in words how users think.
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
