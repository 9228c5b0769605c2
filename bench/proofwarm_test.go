package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"prony.example/record"
	"prony.example/stats"
)

// warmResult is the result of trials with a server whose steady state begins at a known moment.
type warmResult struct {
	Warm     proofWarm
	Recorded []seen // by the trial, from warm-up and window together
	Series   []seen // by stats.SteadyState, from the warm-up's rates alone
	// Level is the window's throughput divided by that of the steady server in the same block: it
	// shows whether the steady state was measured, for servers that reach it.
	Level []float64
}

// seen is one result.
type seen struct {
	kind   string
	steady bool  // there is a steady state
	atNs   int64 // its beginning
	endNs  int64 // of the warm-up
}

// proofSteady is the rule by which a trial ends its warm-up.
var proofSteady = stats.SteadyRule{Tail: 12, Same: 0.03}

func analyzeWarm(records []*record.Record, known proofKnown) (out []warmResult) {
	blocks, _ := blocksOf(records)
	for _, w := range known.Warm {
		r := warmResult{Warm: w}
		for _, rec := range records {
			if rec.Target.Name != w.Name || rec.Outcome != record.Measured {
				continue
			}
			warmup := rec.Warmup
			end := warmup.DurationNs
			r.Recorded = append(r.Recorded, seen{warmup.Kind, warmup.Steady, warmup.SteadyAtNs,
				end})
			s := stats.SteadyState(warmup.RatePerS, proofSteady)
			at := int64(s.At) * warmup.IntervalNs
			r.Series = append(r.Series, seen{s.Kind, s.At >= 0, at, end})
		}
		steady, own := pairsOf(blocks, known.Warm[0].Name, w.Name)
		for i := range own {
			r.Level = append(r.Level, own[i]/steady[i])
		}
		out = append(out, r)
	}
	return out
}

func printWarm(w io.Writer, title string, results []warmResult) {
	rows := [][]string{{"server", "truth", "trials", "recorded", "steady at (recorded)",
		"from the rates alone", "steady at (rates)", "warm-up ended at", "level in the window"}}
	for _, r := range results {
		truth := fmt.Sprintf("%s at %.2f s", r.Warm.Kind, float64(r.Warm.AtNs)/1e9)
		level := spread(r.Level, "%.3f")
		if r.Warm.Kind == stats.Unsteady {
			truth, level = r.Warm.Kind, "–"
		}
		var ends []float64
		for _, s := range r.Recorded {
			ends = append(ends, time.Duration(s.endNs).Seconds())
		}
		rows = append(rows, []string{r.Warm.Name, truth, fmt.Sprint(len(r.Recorded)),
			kindsOf(r.Recorded), momentsOf(r.Recorded), kindsOf(r.Series), momentsOf(r.Series),
			spread(ends, "%.2f s"), level})
	}
	printTable(w, title, rows)
}

// kindsOf counts the results, the most frequent first.
func kindsOf(all []seen) string {
	count := map[string]int{}
	for _, s := range all {
		count[s.kind]++
	}
	var out []string
	for _, kind := range append(slices.Clone(stats.Kinds), "") {
		if n := count[kind]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, orText(kind, "not said")))
		}
	}
	return orText(strings.Join(out, ", "), "–")
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// momentsOf returns when the steady state began, for results with one.
func momentsOf(all []seen) string {
	var xs []float64
	for _, s := range all {
		if s.steady {
			xs = append(xs, time.Duration(s.atNs).Seconds())
		}
	}
	return spread(xs, "%.2f s")
}

// spread is the median and the range.
func spread(xs []float64, format string) string {
	m := stats.Median(xs)
	if math.IsNaN(m) {
		return "–"
	}
	text := func(x float64) string { return fmt.Sprintf(format, x) }
	return fmt.Sprintf("%s (%s–%s)", text(m), text(slices.Min(xs)), text(slices.Max(xs)))
}
