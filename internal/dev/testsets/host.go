package testsets

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/clock"
)

// Host holds figures of the host over the time of one measured test.
type Host struct {
	Failed  bool    `json:"failed,omitempty"` // whether the test failed
	Seconds float64 `json:"seconds"`          // how long it ran
	// Load is the mean number of other tasks that are ready to run, before and after the test.
	Load float64 `json:"load"`
	// Others is the number of processors that other programs used.
	Others float64 `json:"others"`
	// Steal is the share of processor time that the hypervisor withheld.
	Steal float64 `json:"steal"`
	// Delay is the share of its time that the test's process waited for a processor.
	Delay float64 `json:"delay"`
	// Pressure is the share of time in which any task of the host waited (PSI cpu, some).
	Pressure float64 `json:"pressure"`
}

// Figures begins the line in which a measured test reports its Host.
const Figures = "host figures: "

// Limits of a host that is fit to measure on.
const (
	MaxSteal  = 0.02
	MaxLoad   = 1.5 // of the whole measured phase
	maxLoad   = 0.5 // before and after one test
	maxOthers = 0.25
	maxDelay  = 0.2 // if others used a tenth of a processor
	shortest  = 0.5 // seconds; processor time is counted in ticks of 10 ms
)

// Unfit reports whether the host disturbed the test enough to make a failure inconclusive. The load
// counts only if the test is too short to measure CPU time, because it also includes processes that
// the test itself has just ended.
func (h Host) Unfit() bool {
	if h.Steal >= MaxSteal {
		return true
	}
	if h.Seconds < shortest {
		return h.Load >= maxLoad
	}
	return h.Others >= maxOthers || h.Others >= 0.1 && h.Delay >= maxDelay
}

func (h Host) String() string {
	return fmt.Sprintf("load of others %.1f, processors used by others %.2f, steal %.1f %%, "+
		"run delay %.0f %%, pressure %.0f %%", h.Load, h.Others, 100*h.Steal, 100*h.Delay,
		100*h.Pressure)
}

// reading holds the host's counters at one moment, in seconds. A counter that this host lacks is 0.
type reading struct {
	wall         time.Time
	busy, stolen float64 // of all processors
	all          float64 // of all processors, idle or not
	ownShare     float64 // this process and its children that ended
	ran, waited  float64 // this process's threads
	pressure     float64
	load         float64 // other tasks ready to run
}

// measureHost reads the host's counters now and, at the end of the test, logs their differences.
func measureHost(t testing.TB) {
	before := read("/proc")
	t.Cleanup(func() {
		h := between(before, read("/proc"))
		h.Failed = t.Failed()
		text, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s%s", Figures, text)
	})
}

// between computes the figures of the time between two readings.
func between(a, b reading) Host {
	share := func(part, total float64) float64 {
		if total <= 0 || part <= 0 {
			return 0
		}
		return min(part/total, 1)
	}
	seconds := b.wall.Sub(a.wall).Seconds()
	h := Host{Seconds: seconds, Load: (a.load + b.load) / 2}
	h.Steal = share(b.stolen-a.stolen, b.all-a.all)
	if foreign := (b.busy - a.busy) - (b.ownShare - a.ownShare); seconds > 0 && foreign > 0 {
		h.Others = foreign / seconds
	}
	h.Delay = share(b.waited-a.waited, b.waited-a.waited+b.ran-a.ran)
	h.Pressure = share(b.pressure-a.pressure, seconds)
	return h
}

// read reads the counters below a mount of proc.
func read(proc string) reading {
	r := reading{wall: clock.Wall(), load: ready(proc)}
	const tick = 100 // USER_HZ, a constant of the kernel's interface
	var ticks [8]float64
	for i, f := range fields(filepath.Join(proc, "stat"), "cpu") {
		if i < len(ticks) {
			ticks[i] = f / tick
			r.all += ticks[i]
		}
	}
	// Time in interrupts may be for this test's own packets, so it does not count for others.
	r.busy, r.stolen = ticks[0]+ticks[1]+ticks[2], ticks[7]
	for _, owner := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(owner, &u) == nil {
			r.ownShare += time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
		}
	}
	subject := filepath.Join(proc, "self/task/*/schedstat")
	threads, _ := filepath.Glob(subject) //nolint:errcheck // a well-formed pattern
	for _, thread := range threads {
		if f := fields(thread, ""); len(f) >= 2 {
			r.ran, r.waited = r.ran+f[0]/1e9, r.waited+f[1]/1e9
		}
	}
	for _, word := range words(filepath.Join(proc, "pressure/cpu"), "some") {
		if micros, ok := strings.CutPrefix(word, "total="); ok {
			r.pressure, _ = strconv.ParseFloat(micros, 64) //nolint:errcheck // 0 if unknown
			r.pressure /= 1e6
		}
	}
	return r
}

// ready returns the mean number of other tasks that are ready to run, over a few readings.
func ready(proc string) float64 {
	const looks = 8
	sum := 0.0
	for range looks {
		<-time.After(5 * time.Millisecond)
		if w := words(filepath.Join(proc, "loadavg"), ""); len(w) > 3 {
			running, _, _ := strings.Cut(w[3], "/")
			n, _ := strconv.ParseFloat(running, 64) //nolint:errcheck // 0 if unknown
			sum += max(n-1, 0)                      // without this one
		}
	}
	return sum / looks
}

// fields returns the numbers of the first line that begins with the word.
func fields(file, first string) (numbers []float64) {
	for _, word := range words(file, first) {
		if n, err := strconv.ParseFloat(word, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// words returns the words of the first line that begins with the word, without it.
func words(file, first string) []string {
	text, _ := os.ReadFile(file) //nolint:errcheck // missing on this host: no words
	for line := range strings.Lines(string(text)) {
		w := strings.Fields(line)
		if first == "" {
			return w
		}
		if len(w) > 0 && w[0] == first {
			return w[1:]
		}
	}
	return nil
}
