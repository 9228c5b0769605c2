package freeze

import (
	"os"
	"slices"
	"testing"
	"time"

	"prony.example/internal/base/clock"
)

// BenchmarkFreeze reports how long it takes to stop and resume a process with as many threads as a
// JVM. Ns/op includes the pauses in between, in which the threads wait again.
func BenchmarkFreeze(b *testing.B) {
	for _, way := range ways {
		b.Run(way, func(b *testing.B) {
			p := launched(b, way, 1, os.Args[0], idle, "40")
			f := freezer(b, p, way)
			var stops, thaws []int64
			for b.Loop() {
				began := clock.Mono()
				if err := f.Freeze(); err != nil {
					b.Fatal(err)
				}
				stops = append(stops, clock.Mono()-began)
				began = clock.Mono()
				if err := f.Thaw(); err != nil {
					b.Fatal(err)
				}
				thaws = append(thaws, clock.Mono()-began)
				time.Sleep(2 * time.Millisecond)
			}
			slices.Sort(stops)
			slices.Sort(thaws)
			b.ReportMetric(float64(stops[len(stops)/2]), "median-freeze-ns")
			b.ReportMetric(float64(stops[len(stops)*99/100]), "p99-freeze-ns")
			b.ReportMetric(float64(thaws[len(thaws)/2]), "median-thaw-ns")
		})
	}
}
