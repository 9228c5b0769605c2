//go:build linux && !portable

package stalls

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/observe/host"
)

// BenchmarkPrice measures how much of a core's time each way takes, in percent.
func BenchmarkPrice(b *testing.B) {
	cores, err := host.Cores()
	if err != nil {
		b.Fatal(err)
	}
	for _, way := range ways(Period) {
		b.Run(way.Name, func(b *testing.B) {
			sum := 0.0
			for range b.N {
				w, err := open(way, cores[len(cores)-1:], func(int, int) bool { return true })
				if err != nil {
					b.Skip(err)
				}
				share, err := w.price(500 * time.Millisecond)
				if err != nil {
					b.Fatal(err)
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
				sum += share
			}
			b.ReportMetric(100*sum/float64(b.N), "%core")
		})
	}
}

// BenchmarkSpan measures Begin, End and Read of a core, as between two slices.
func BenchmarkSpan(b *testing.B) {
	cores, err := host.Cores()
	if err != nil {
		b.Fatal(err)
	}
	for _, way := range ways(Period) {
		b.Run(way.Name, func(b *testing.B) {
			w, err := open(way, cores[len(cores)-1:], func(int, int) bool { return true })
			if err != nil {
				b.Skip(err)
			}
			for b.Loop() {
				if err := w.Begin(); err != nil {
					b.Fatal(err)
				}
				if err := w.End(); err != nil {
					b.Fatal(err)
				}
				w.Read()
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkSlowdown measures how much longer the same work takes on a core while its clock ticks,
// in percent: what Price estimates, with all effects. Each turn is the median of 50 pairs of some
// 15 ms.
func BenchmarkSlowdown(b *testing.B) {
	cores, err := host.Cores()
	if err != nil {
		b.Fatal(err)
	}
	core := cores[len(cores)-1]
	for _, name := range []string{PerfAndThread, RealTimeThread, NormalThread} {
		i := slices.IndexFunc(ways(Period), func(w Way) bool { return w.Name == name })
		b.Run(name, func(b *testing.B) {
			w, err := open(ways(Period)[i], []int{core}, func(int, int) bool { return true })
			if err != nil {
				b.Skip(err)
			}
			sum := 0.0
			for range b.N {
				var ratios []float64
				err = onCore(core, func() {
					for range 50 {
						quiet := work()
						err = errors.Join(err, w.Begin())
						ratios = append(ratios, float64(work())/float64(quiet))
						err = errors.Join(err, w.End())
					}
				})
				w.Read()
				slices.Sort(ratios)
				sum += ratios[len(ratios)/2] - 1
			}
			if err := errors.Join(err, w.Close()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(100*sum/float64(b.N), "%core")
		})
	}
}

// work takes some milliseconds, and returns how many ns.
func work() int64 {
	begin := clock.Mono()
	x := uint32(1)
	for range 30_000_000 {
		x = x*1664525 + 1013904223
	}
	result.Store(x)
	return clock.Mono() - begin
}

var result atomic.Uint32
