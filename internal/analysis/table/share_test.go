package table

import (
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/record"
	"prony.example/stats"
)

// TestTargetsShareNoise checks that with four targets in three blocks every level, ratio and curve
// uses the trials of all, and that a single target, or one that was measured twice in a block, does
// not.
func TestTargetsShareNoise(t *testing.T) {
	four := slices.Concat(rates("a", 100, 104, 99), rates("b", 210, 205, 202),
		rates("c", 301, 312, 306), rates("d", 402, 410, 391))
	check := func(records []record.Record, level, ratio string) {
		t.Helper()
		study := analyze(records, Options{Baseline: "a"})
		target := study.Scenarios[0].Targets[0] // d, the fastest
		m, _ := target.Metric("peak", "throughput")
		if m.Summary.Assumption != level || m.Ratio != nil && m.Ratio.Assumption != ratio {
			t.Errorf("%s: level assumes %q, ratio %+v; want %q and %q", target.Name,
				m.Summary.Assumption, m.Ratio, level, ratio)
		}
	}
	check(four, stats.Moderated, stats.Moderated)
	check(slices.Concat(four[:3], four[9:]), stats.LogNormal, stats.LogNormal)
	check(four[9:], stats.LogNormal, "")
	again := trial("d", 3, 399)
	again.Trial = "b3-d-again"
	check(append(slices.Clone(four), again), stats.LogNormal, stats.Moderated)
}

// TestCurveAgrees checks that the curve of a load has at its median the interval of the table's
// p50.
func TestCurveAgrees(t *testing.T) {
	var records []record.Record
	for i, name := range []string{"a", "b", "c"} {
		for k, r := range rates(name, 100, 104, 99) {
			ns := int64(1e6 * (i + 1) * (20 + (k*(i+2))%5))
			r = with(r, 100_000, ns)
			h := hdrhistogram.New(1, 60e9, 3)
			if err := h.RecordValues(ns, 100_000); err != nil {
				t.Fatal(err)
			}
			hdr, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
			if err != nil {
				t.Fatal(err)
			}
			r.Loads[1].ResponseTime.HDR = string(hdr)
			records = append(records, r)
		}
	}
	study := analyze(records, Options{})
	for _, target := range study.Scenarios[0].Targets {
		m, _ := target.Metric("half", "p50")
		at := slices.IndexFunc(target.Curves, func(c Curve) bool { return c.Load == "half" })
		if at < 0 || len(target.Curves[at].Quantiles) == 0 {
			t.Fatalf("%s has no curve", target.Name)
		}
		c := target.Curves[at]
		q := slices.Index(c.Quantiles, 0.5)
		if m.Summary.Assumption != stats.Moderated || c.Lo[q] != m.Summary.Lo {
			t.Errorf("%s: p50 %+v, its curve from %v", target.Name, m.Summary, c.Lo)
		}
	}
}
