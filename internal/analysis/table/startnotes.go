package table

import (
	"fmt"
	"math"

	"prony.example/stats"
)

// startNotes returns notes on the ratios that rank, if they come from slices: what would make their
// intervals narrower, whose scatter the intervals use, and which events are too rare for the
// starts.
func (sc *Scenario) startNotes(confidence float64) (notes []Note) {
	if sc.Ranking.Source != FromSlices {
		return nil
	}
	load, name := sc.Ranking.Load, sc.Ranking.Metric
	var shares []float64
	var byControl Names
	rarest := int64(0)
	unit := ""
	for _, t := range sc.Targets {
		base := sc.Target(t.Reference)
		m, ok := t.Metric(load, name)
		if base == nil || base == t || t.Info.ControlOf != "" || !ok || m.Source != FromSlices {
			continue
		}
		unit = m.Unit
		_, pair := sc.startRatios(base, t, load, name)
		r := sc.compareStarts(base, t, load, name, confidence)
		if total := r.Within*r.Within + r.Between*r.Between; total > 0 && r.N >= stats.LeastStarts {
			shares = append(shares, r.Between*r.Between/total)
		}
		if r.Source == stats.ErrorControl {
			byControl = append(byControl, t.Name)
		}
		for _, start := range pair {
			if ns := start.RarestNs(); ns > 0 && (rarest == 0 || ns < rarest) {
				rarest = ns
			}
		}
	}
	if len(shares) > 0 {
		share := stats.Median(shares)
		notes = append(notes, NoteOf(NoteStartNoise, LoadOf(load), shortName(name, unit),
			Percent(1-share), StartAdvice(share)))
	}
	if len(byControl) > 0 && !sc.Starts.Interrupted { // live intervals have no control
		notes = append(notes, NoteOf(NoteControlScatter, byControl))
	}
	if rarest > 0 {
		notes = append(notes, NoteOf(NoteRarest, math.Round(float64(rarest)/1e7)/100))
	}
	return notes
}

// StartAdvice is the share of the starts' scatter that is between them, printed as advice.
type StartAdvice float64

func (a StartAdvice) String() string {
	switch {
	case a >= mostlyBetween:
		return "more starts would help, longer slices would not"
	case a > mostlyWithin:
		return "more starts would help most, longer slices (--slices) somewhat"
	}
	return "longer slices (--slices) would help as much as more starts"
}

// livePrice describes how much wider intervals are that hold whenever a run is ended.
func livePrice(starts int) string {
	if starts < stats.LeastStarts {
		return "ended early"
	}
	return fmt.Sprintf("ended early, so that intervals are %.1f times as wide",
		stats.LivePrice(starts, DefaultConfidence))
}

// PlanSD returns the SD of a start's log ratio of b to a, from which further starts are planned. It
// is NaN without raw slices or a control, or if the control's scatter makes the interval.
func (sc *Scenario) PlanSD(a, b *Target, load, name string) float64 {
	blocks, pair := sc.startRatios(a, b, load, name)
	control := sc.control(a, b, load, name, blocks)
	if sc.compareStarts(a, b, load, name, DefaultConfidence).Source != stats.ErrorStarts {
		return math.NaN()
	}
	return stats.PlanSD(pair, control)
}
