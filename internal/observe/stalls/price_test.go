//go:build linux && !portable

package stalls

import (
	"testing"
	"time"

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
