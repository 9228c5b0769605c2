//go:build linux && !portable

package stalls

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"prony.example/internal/base/clock"
)

// BenchmarkPrice measures the share of a core's time that the clock takes, in percent.
func BenchmarkPrice(b *testing.B) { eachWay(b, benchmarkPrice) }

func benchmarkPrice(b *testing.B, way opener) {
	w := openBenchmark(b, way)
	sum := 0.0
	for range b.N {
		share, err := w.price(500 * time.Millisecond)
		if err != nil {
			b.Fatal(err)
		}
		w.Read()
		sum += share
	}
	b.ReportMetric(100*sum/float64(b.N), "%core")
}

// BenchmarkSpan measures Begin, End and Read of a core, as between two slices.
func BenchmarkSpan(b *testing.B) { eachWay(b, benchmarkSpan) }

func benchmarkSpan(b *testing.B, way opener) {
	w := openBenchmark(b, way)
	for b.Loop() {
		if err := w.Begin(); err != nil {
			b.Fatal(err)
		}
		if err := w.End(); err != nil {
			b.Fatal(err)
		}
		w.Read()
	}
}

// BenchmarkSlowdown measures how much longer the same work takes on a core while its clock ticks,
// in percent: it includes effects that Price does not. Each result is the median of 50 pairs of
// about 15 ms.
func BenchmarkSlowdown(b *testing.B) { eachWay(b, benchmarkSlowdown) }

func benchmarkSlowdown(b *testing.B, way opener) {
	w := openBenchmark(b, way)
	sum := 0.0
	for range b.N {
		var ratios []float64
		var wrong error
		err := onCore(w.cores[0].core, func() {
			for range 50 {
				quiet := work()
				wrong = errors.Join(wrong, w.Begin())
				ratios = append(ratios, float64(work())/float64(quiet))
				wrong = errors.Join(wrong, w.End())
			}
		})
		if err = errors.Join(err, wrong); err != nil {
			b.Fatal(err)
		}
		w.Read()
		slices.Sort(ratios)
		sum += ratios[len(ratios)/2] - 1
	}
	b.ReportMetric(100*sum/float64(b.N), "%core")
}

func eachWay(b *testing.B, run func(*testing.B, opener)) {
	b.Run("perf event", func(b *testing.B) { run(b, openEvents) })
	b.Run("heartbeat", func(b *testing.B) { run(b, openBoth) })
}

// openBenchmark opens a watch of the last core, which some benchmarks keep busy.
func openBenchmark(b *testing.B, way opener) *Watch {
	b.Helper()
	w, err := open([]int{lastCore(b)}, Period, func(int, int) bool { return true }, way)
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() {
		if err := w.Close(); err != nil {
			b.Error(err)
		}
	})
	return w
}

// work runs for some milliseconds, and returns its duration in ns.
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
