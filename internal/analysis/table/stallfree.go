package table

import (
	"fmt"
	"math"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/stats"
)

// Stalled is why response times without the machine's stalls are unknown.
type Stalled struct {
	Reason string  // one of stats' reasons
	Share  float64 // of arrivals that remain
}

func (s Stalled) String() string {
	if s.Reason == stats.StallsDepend {
		return "unknown without the machine's stalls, which strike more often, or less often, " +
			"while the service pauses (measure on another machine; --stalls keep has all arrivals)"
	}
	if s.Reason == stats.UnrecordedStalls {
		return "unknown without the machine's stalls, many of which are too short to be recorded " +
			"(measure on a quieter machine; --stalls keep has all arrivals)"
	}
	return fmt.Sprintf("unknown without the machine's stalls: %s of arrivals remain, at least %s "+
		"are needed (measure on a quieter machine; --stalls keep has all arrivals)",
		units.Percent(s.Share), units.Percent(stats.LeastShare))
}

// StallsFound say how much of the open slices the machine's stalls took, and what they did to the
// percentile that they moved most.
type StallsFound struct {
	Time, LeftOut float64 // shares of the time, of arrivals
	Target        string
	Quantile      float64
	FreeNs, RawNs float64 // medians over starts
}

func (s StallsFound) String() string {
	return fmt.Sprintf(
		"stalls took %s of the time, and %s of arrivals are left out; with them, p%v "+
			"of %s is %s instead of %s",
		units.Percent(s.Time),
		units.Percent(s.LeftOut),
		math.Round(1e6*s.Quantile)/1e4,
		s.Target,
		units.Duration(s.RawNs),
		units.Duration(s.FreeNs),
	)
}

// stallsNote says once what the machine's stalls took; none if nothing was left out.
func (sc *Scenario) stallsNote(metrics MetricsOf, o Options) []Note {
	var summary StallsFound
	var watched, stalled, remaining, n float64
	for _, t := range sc.Targets {
		free, raw := map[float64][]float64{}, map[float64][]float64{}
		for _, r := range t.Trials {
			if r.SideBySide != nil && r.SideBySide.Open != nil && r.SideBySide.Open.Stalls != nil {
				watched += float64(r.SideBySide.Open.Stalls.TimeNs)
				stalled += float64(r.SideBySide.Open.Stalls.StalledNs)
			}
			for _, x := range stallFree(r) {
				if x.Unknown == "" {
					remaining, n = remaining+x.KeptShare, n+1
					free[x.Quantile] = append(free[x.Quantile], float64(x.Ns))
					raw[x.Quantile] = append(raw[x.Quantile], float64(x.RawNs))
				}
			}
		}
		for q := range free {
			f, r := stats.Median(free[q]), stats.Median(raw[q])
			if summary.FreeNs == 0 || r/f > summary.RawNs/summary.FreeNs ||
				r/f == summary.RawNs/summary.FreeNs && q > summary.Quantile {
				summary.Target, summary.Quantile, summary.FreeNs, summary.RawNs = t.Name, q, f, r
			}
		}
	}
	if o.KeepStalls || watched == 0 || n == 0 || remaining == n || len(metrics) == 0 {
		return nil
	}
	summary.Time, summary.LeftOut = stalled/watched, 1-remaining/n
	return []Note{NoteOf(NoteStalls, metrics, summary)}
}

// stallFree are the percentiles of a trial's open slices without stalls.
func stallFree(r *record.Record) (all []record.StallFree) {
	for i := range r.Loads {
		if s := r.Loads[i].Slices; s != nil {
			all = append(all, s.StallFree...)
		}
	}
	return all
}
