package table

import (
	"fmt"

	"prony.example/internal/base/units"
	"prony.example/stats"
)

// stalledLong is the reason why a throughput without stalls is unknown: the cores hardly ran.
const stalledLong = "stalled too long"

// leastStalled is the share of the time from which on tables mention the stalls of closed loads.
const leastStalled = 0.01

// StallsCost says how much of the windows of a closed load the machine's stalls took, and what they
// did to the throughput that they moved most.
type StallsCost struct {
	Time     float64 // share of the time
	Target   string
	With     float64 // requests/s; medians over trials
	Without  float64
	Low, Top float64 // ends of the interval of Without
}

func (s StallsCost) String() string {
	return fmt.Sprintf("%s of the time; with them, throughput of %s is %s/s, and %s/s (%s/s to "+
		"%s/s) in the time in which all cores ran", units.Percent(s.Time), s.Target,
		units.Rate(s.With), units.Rate(s.Without), units.FineRate(s.Low), units.FineRate(s.Top))
}

// rateNotes say what the machine's stalls did to the throughput of a closed load.
func (sc *Scenario) rateNotes(load string) (notes []Note) {
	var most StallsCost
	for _, t := range sc.Targets {
		cost, unknown := t.stallsCost(load)
		switch {
		case unknown.Reason != "" && cost.Time >= leastStalled:
			notes = addNotes(notes, NoteOf(NoteStallsRemain, Names{"req/s"}, load, t.Name),
				NoteOf(NoteStallsReason, unknown))
		case unknown.Reason != "" || cost.With == 0:
		case most.With == 0 || cost.Without/cost.With > most.Without/most.With:
			most = cost
		}
	}
	if most.Time >= leastStalled {
		notes = append(notes, NoteOf(NoteStallsInClosed, load, most))
	}
	return notes
}

// stallsCost sums up the trials of a target. If one is unknown, so is the throughput.
func (t *Target) stallsCost(load string) (cost StallsCost, unknown Stalled) {
	var ran, with, without, low, top []float64
	for _, o := range t.offers(load) {
		x := o.load.WithoutStalls
		if x == nil {
			continue
		}
		ran, with = append(ran, x.RanShare), append(with, o.load.ThroughputPerS)
		without, low = append(without, x.PerS), append(low, x.LowestPerS)
		top = append(top, x.HighestPerS)
		switch x.Unknown {
		case "":
		case stats.TooMuchExcluded:
			unknown = Stalled{stalledLong, x.RanShare}
		default:
			unknown = Stalled{x.Unknown, x.RanShare}
		}
	}
	if len(ran) == 0 {
		return StallsCost{}, Stalled{}
	}
	return StallsCost{1 - stats.Median(ran), t.Name, stats.Median(with), stats.Median(without),
		stats.Median(low), stats.Median(top)}, unknown
}
