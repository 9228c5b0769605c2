package doctor

import (
	"fmt"
	"math/rand/v2"
	"time"
	"unsafe"

	"prony/internal/clock"
)

// What is read: more than a core has for itself, and a small part of what cores share, so that what
// others do there is felt. Half of the reads' time is that of looking, a fifth of a second.
const (
	walks     = 20
	walkTime  = 10 * time.Millisecond
	walkBytes = 4 << 20
)

// evenMax is how much of the median may lie between a tenth of the walks and nine: a service on a
// machine of its own answers that evenly.
const evenMax = 0.1

func sharedCache(m *machine) finding {
	n := len(m.readNs)
	if n == 0 {
		return unknown("not measured")
	}
	// Nearest ranks.
	rank := func(percent int) float64 { return m.readNs[(percent*n+99)/100-1] }
	p10, p50, p90 := rank(10), rank(50), rank(90)
	return doubtfulIf(p90-p10 > evenMax*p50, fmt.Sprintf("%.1f ns a read at p10, %.1f at p50, "+
		"%.1f at p90", p10, p50, p90), "end what else runs; in a virtual machine come back in a "+
		"quieter hour, or take more blocks")
}

// wander says what a read of memory takes, in ns, in n walks of about d each, in their order. No
// read begins before the last one has ended, and none is foreseen.
func wander(n int, d time.Duration, bytes int) []float64 {
	next := round(bytes / int(unsafe.Sizeof(uint32(0))))
	at := uint32(0)
	walk := func(steps int) int64 {
		began := clock.Mono()
		for range steps {
			at = next[at]
		}
		return clock.Mono() - began
	}
	steps := len(next) // the first round fills the caches
	steps = max(1, int(float64(steps)*float64(d)/float64(max(1, walk(steps)))))
	took := make([]float64, n)
	for i := range took {
		took[i] = float64(walk(steps)) / float64(steps)
	}
	if at >= uint32(len(next)) { // never; without it the reads could be left out
		return nil
	}
	return took
}

// round leads from each of n places to another, through all of them and back (Sattolo 1986). It is
// the same each time.
func round(n int) []uint32 {
	next := make([]uint32, n)
	for i := range next {
		next[i] = uint32(i)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := n - 1; i > 0; i-- {
		j := random.IntN(i)
		next[i], next[j] = next[j], next[i]
	}
	return next
}
