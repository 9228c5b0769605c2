package table

import (
	"math"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/record"
	"prony.example/stats"
)

// tailed returns trials of openRun with windows of 10,000 responses: 9,800 take 1 ms, 150 take
// 5.332 ms, which is p99, and 50 take 9 ms, which is p99.9. Free are p99 and p99.9 without stalls.
func tailed(free [2]float64, unknown [2]string) []record.Record {
	h := hdrhistogram.New(1, 60e9, 3)
	for value, n := range map[int64]int64{1e6: 9800, 5.332e6: 150, 9e6: 50} {
		_ = h.RecordValues(value, n) // in range
	}
	hdr, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err)
	}
	records := openRun(func(*record.Record, *record.Sliced) {})
	for i := range records {
		half := &records[i].Loads[1]
		half.ResponseTime = record.Dist{Count: 10000, P50Ns: 1e6, P90Ns: 1e6, P99Ns: 5.332e6,
			P999Ns: 9e6, HDR: string(hdr)}
		half.Stalls = records[i].SideBySide.Open.Stalls
		half.StallFree = nil
		for _, q := range []float64{0.5, 0.9} {
			half.StallFree = append(half.StallFree, record.StallFree{Quantile: q, Ns: 1e6,
				RawNs: 1e6, KeptShare: 0.9})
		}
		for k, q := range []float64{0.99, 0.999} {
			half.StallFree = append(half.StallFree, record.StallFree{Quantile: q,
				Ns: int64(free[k] * 1e6), KeptShare: 0.9, Unknown: unknown[k]})
		}
	}
	return records
}

// The percentiles of a row are in order. If one would be below a lower one without stalls, it
// includes them, as the percentiles of all arrivals are in order; otherwise it is unknown.
func TestPercentilesAreInOrder(t *testing.T) {
	check := func(free [2]float64, unknown [2]string, p99, p999 float64, notes ...string) {
		t.Helper()
		study := analyze(tailed(free, unknown), Options{Baseline: "a"})
		last := 0.0
		for _, m := range study.Scenarios[0].Target("b").Metrics {
			if m.Load != "half" || m.Unit != "ns" || m.Name[0] != 'p' || !m.Known() {
				continue
			}
			if m.Summary.Center < last {
				t.Errorf("%v, %v: %s is %v, below the percentile before it, %v", free, unknown,
					m.Name, m.Summary.Center, last)
			}
			last = m.Summary.Center
		}
		for name, want := range map[string]float64{"p99": p99, "p99.9": p999} {
			m, _ := study.Scenarios[0].Target("b").Metric("half", name)
			if got := m.Summary.Center / 1e6; math.Abs(got-want) > 0.01 ||
				math.IsNaN(got) != math.IsNaN(want) {
				t.Errorf("%v, %v: %s is %v ms, want %v", free, unknown, name, got, want)
			}
		}
		tab := only(t, study.Sheet())
		text := strings.Join(Texts(tab.Notes), "\n")
		for _, f := range tab.Footnotes {
			text += "\n" + f.String()
		}
		for _, note := range notes {
			if !strings.Contains(text, note) {
				t.Errorf("%v, %v: %q is not in\n%s", free, unknown, note, text)
			}
		}
		if len(notes) == 0 && strings.Contains(text, "lower one") {
			t.Errorf("%v, %v: a note on order:\n%s", free, unknown, text)
		}
	}
	const short, order = stats.UnrecordedStalls, "a higher percentile would be below a lower one"
	nan := math.NaN()
	check([2]float64{2, 4}, [2]string{}, 2, 4)
	check([2]float64{5.332, 5.332}, [2]string{}, 5.332, 5.332)
	check([2]float64{2, 7}, [2]string{short}, 5.332, 7) // p99 includes stalls, and is lower
	check([2]float64{2, 5.087}, [2]string{short}, 5.332, 9, order,
		"half p99.9: includes the machine's stalls")
	check([2]float64{5.332, 5.087}, [2]string{}, 5.332, 9, order,
		"half p99.9: includes the machine's stalls")
	check([2]float64{2, 5.087}, [2]string{short, short}, 5.332, 9)
	check([2]float64{12, 5.087}, [2]string{}, 12, nan, "half p99.9: it would be below p99")
}

// TestBelow checks that a percentile is below a lower one if its median or its geometric mean is,
// and never if it is of other trials.
func TestBelow(t *testing.T) {
	check := func(upper, lower []float64, want bool) {
		t.Helper()
		metric := func(values []float64) *Metric {
			m := Metric{}
			for _, v := range values {
				m.Points = append(m.Points, Point{Value: v})
			}
			return &m
		}
		if got := metric(upper).below(metric(lower)); got != want {
			t.Errorf("%v below %v: %v, want %v", upper, lower, got, want)
		}
	}
	check([]float64{1, 2, 3}, []float64{1, 2, 3}, false)
	check([]float64{2, 3, 4}, []float64{1, 2, 3}, false)
	check([]float64{1, 2, 100}, []float64{1, 3, 4}, true) // the median alone: 2 < 3
	check([]float64{0.1, 5, 6}, []float64{4, 4, 5}, true) // the product alone: 3 < 80
	check([]float64{1, 2, 2.9}, []float64{1, 2, 3}, true) // equal medians
	check([]float64{1, 2.5, 4}, []float64{1, 2.4, 4}, false)
	check([]float64{1, 2}, []float64{1, 2, 3}, false)
}
