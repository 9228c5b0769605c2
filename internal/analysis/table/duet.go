package table

import (
	"fmt"
	"math"
	"slices"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/stats"
)

// Duet is what the duets of two rows say by the ranking metric, for what the paired ratio of the
// rows does not: what pairing was worth, and the sides' part.
type Duet struct {
	A, B     string          // rows; B is held against A
	By       string          // what is compared, e.g. "peak answers"
	WindowNs int64           // length of a window
	Windows  []stats.Windows // a duet each, b over a, in the order of the records
	OnLeft   []bool          // likewise: whether b was on the left
	Swapped  stats.Swapped   // b over a, higher is better, without the sides' effect
}

// duets finds the records that ran side by side and have a usable load that ranks.
func (sc *Scenario) duets(o Options) (out []Duet) {
	load := sc.anchor().Name
	for _, t := range sc.Targets {
		for _, remaining := range t.Used {
			peer, right := sc.partner(remaining)
			if right == nil || !good(LoadGrade(remaining, load)) || !good(LoadGrade(right, load)) {
				continue
			}
			a, b, first, second := t, peer, remaining, right
			if a.Reference == b.Name || b.Reference != a.Name && b.Name < a.Name {
				a, b, first, second = b, a, right, remaining
			}
			index := slices.IndexFunc(
				out,
				func(d Duet) bool { return d.A == a.Name && d.B == b.Name },
			)
			if index < 0 {
				index = len(out)
				out = append(out, Duet{A: a.Name, B: b.Name, By: by(loadOf(remaining, load))})
			}
			out[index].add(loadOf(first, load), loadOf(second, load), second == remaining)
		}
	}
	out = slices.DeleteFunc(out, func(d Duet) bool { return len(d.Windows) == 0 })
	for i := range out {
		d := &out[i]
		var logs []float64
		for _, w := range d.Windows {
			logs = append(logs, w.LogRatio)
		}
		d.Swapped = stats.SwappedRatio(logs, d.OnLeft, o.Confidence)
	}
	return out
}

// partner is the right side of a left one, and its row.
func (sc *Scenario) partner(left *record.Record) (row *Target, right *record.Record) {
	if left.Duet == nil || left.Duet.Side != "left" {
		return nil, nil
	}
	for _, t := range sc.Targets {
		for _, r := range t.Used {
			if r.Run == left.Run && r.Trial == left.Duet.With {
				return t, r
			}
		}
	}
	return nil, nil
}

// add pairs the windows of a duet. Loads without series, or with unlike ones, say nothing here.
func (d *Duet) add(a, b *record.Load, onLeft bool) {
	if a == nil || b == nil {
		return
	}
	xs, ys := windows(a), windows(b)
	if len(xs) == 0 || len(xs) != len(ys) || a.Series.IntervalNs != b.Series.IntervalNs {
		return
	}
	d.WindowNs = a.Series.IntervalNs
	d.Windows = append(d.Windows, stats.DuetWindows(xs, ys))
	d.OnLeft = append(d.OnLeft, onLeft)
}

// windows are the values of a load by which rows are ranked, window by window, higher is better: of
// a closed load the good answers, of an open one, whose rate is given, the speed of the median.
func windows(l *record.Load) (out []float64) {
	if l.Model == record.Closed {
		for _, n := range l.Series.Done {
			out = append(out, float64(n))
		}
		return out
	}
	for _, ns := range l.Series.P50Ns {
		if ns <= 0 {
			out = append(out, 0) // a window without an answer
			continue
		}
		out = append(out, 1/float64(ns))
	}
	return out
}

func by(l *record.Load) string {
	if l.Model == record.Closed {
		return l.Name + " answers"
	}
	return l.Name + " 1/p50"
}

// pooled are the SDs of all duets together, so that they belong together: the ratio's variance is
// those of the sides less twice their covariance.
func (d *Duet) pooled() stats.Windows {
	var a, b, ratio, n float64
	for _, w := range d.Windows {
		if !math.IsNaN(w.SDA) && !math.IsNaN(w.SDB) && !math.IsNaN(w.SD) {
			a, b, ratio, n = a+w.SDA*w.SDA, b+w.SDB*w.SDB, ratio+w.SD*w.SD, n+1
		}
	}
	return stats.Windows{
		SDA: math.Sqrt(a / n), SDB: math.Sqrt(b / n), SD: math.Sqrt(ratio / n),
		Correlation: (a + b - ratio) / (2 * math.Sqrt(a*b)),
	}
}

// duetNotes say that rows were measured side by side, and what that was worth.
func (sc *Scenario) duetNotes(o Options) (out []Note) {
	duets := sc.duets(o)
	if len(duets) == 0 {
		return nil
	}
	location := "on cores of their own"
	if slices.ContainsFunc(sc.Targets, func(t *Target) bool {
		return slices.ContainsFunc(t.Used, func(r *record.Record) bool {
			return r.Duet != nil && r.Duet.Shared
		})
	}) {
		location = "each service on the cores of its own load"
	}
	out = append(out, NoteOf(NoteDuets, location))
	for i := range duets {
		out = append(out, NoteOf(NoteDuetWorth, &duets[i]))
	}
	return out
}

// String is what pairing was worth, and the sides' part.
func (d *Duet) String() string {
	text := fmt.Sprintf("%s against %s, %d duets, %s, windows of %s", d.B, d.A,
		len(d.Windows), d.By,
		units.Duration(float64(d.WindowNs)))
	w := d.pooled()
	if remaining := w.Left(); !math.IsNaN(remaining) {
		text += fmt.Sprintf(": alone the sides vary by %.1f %% and %.1f %% from window to window, "+
			"their ratio by %.1f %% (correlation %+.2f), so pairing %s", 100*w.SDA, 100*w.SDB,
			100*w.SD, w.Correlation, worth(remaining))
	}
	s := d.Swapped
	if !s.Ratio.HasInterval() {
		return text + ". The sides' effect: " + s.Ratio.Warning + "."
	}
	return text + fmt.Sprintf(". Left over right: %.3f [%.3f, %.3f]; without that, %s is %.3f "+
		"[%.3f, %.3f] of %s.", s.Side, s.SideLo, s.SideHi, d.B, s.Ratio.Center, s.Ratio.Lo,
		s.Ratio.Hi, d.A)
}

// worth says in words what share of the noise pairing has left.
func worth(remaining float64) string {
	if remaining < 1 {
		return fmt.Sprintf("takes %.0f %% of the noise away", 100*(1-remaining))
	}
	return fmt.Sprintf("takes none of the noise away (it adds %.0f %%)", 100*(remaining-1))
}

// inForce are a record's limits in force. In a duet the sides swap, so that which cores it were is
// no difference of method; that there were cores is.
func inForce(r *record.Record) string {
	if r.Duet == nil {
		return list(wording.Limits(r.Limits.InForce))
	}
	var limits []string
	for _, l := range r.Limits.InForce {
		limits = append(limits, wording.LimitOfSide(l))
	}
	return list(limits)
}

// manner is how a record's trial ran, as an aspect of method.
func manner(r *record.Record) string {
	switch {
	case r.Duet == nil:
		return "alone"
	case r.Duet.Shared:
		return "in duets on shared cores"
	}
	return "in duets"
}
