package table

import (
	"fmt"
	"maps"
	"math"
	"slices"

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

// knownWithoutStalls are the percentiles of loads in windows that all targets have without the
// machine's stalls: rows with stalls and rows without them would not be comparable.
func (sc *Scenario) knownWithoutStalls(o Options) map[quantity]bool {
	all := map[quantity]bool{}
	if o.KeepStalls {
		return all
	}
	for _, info := range sc.Loads {
		for _, p := range shown {
			known := 0
			unknown := slices.ContainsFunc(sc.Targets, func(t *Target) bool {
				return slices.ContainsFunc(t.offers(info.Name), func(o offer) bool {
					known++
					return record.StallFreeOf(o.load.StallFree, p.Quantile) == nil
				})
			})
			all[quantity{info.Name, p.Name}] = known > 0 && !unknown
		}
	}
	return all
}

// stallsOf sums up what the machine's stalls did to a part of the measurements.
type stallsOf struct {
	watched, stalled, remaining, n float64
	free, raw                      map[string]map[float64][]float64 // by target and quantile
	unknown                        Stalled
	unknownOf                      string
}

func (x *stallsOf) add(target string, stalls *record.Stalls, all []record.StallFree) {
	if stalls != nil {
		x.watched += float64(stalls.TimeNs)
		x.stalled += float64(stalls.StalledNs)
	}
	if x.free == nil {
		x.free, x.raw = map[string]map[float64][]float64{}, map[string]map[float64][]float64{}
	}
	if x.free[target] == nil {
		x.free[target], x.raw[target] = map[float64][]float64{}, map[float64][]float64{}
	}
	for _, q := range all {
		switch q.Unknown {
		case "":
			x.remaining, x.n = x.remaining+q.KeptShare, x.n+1
			x.free[target][q.Quantile] = append(x.free[target][q.Quantile], float64(q.Ns))
			x.raw[target][q.Quantile] = append(x.raw[target][q.Quantile], float64(q.RawNs))
		case stats.TooFewArrivals:
		default:
			if x.unknownOf == "" || q.KeptShare < x.unknown.Share {
				x.unknown, x.unknownOf = Stalled{q.Unknown, q.KeptShare}, target
			}
		}
	}
}

// found is its summary; false if nothing was left out.
func (x *stallsOf) found() (out StallsFound, some bool) {
	if x.watched == 0 || x.n == 0 || x.remaining == x.n {
		return out, false
	}
	most := 0.0
	for _, target := range slices.Sorted(maps.Keys(x.free)) {
		for _, q := range slices.Sorted(maps.Keys(x.free[target])) {
			free, raw := stats.Median(x.free[target][q]), stats.Median(x.raw[target][q])
			if raw/free >= most {
				most = raw / free
				out.Target, out.Quantile, out.FreeNs, out.RawNs = target, q, free, raw
			}
		}
	}
	out.Time, out.LeftOut = x.stalled/x.watched, 1-x.remaining/x.n
	return out, true
}

// stallNotes say what the machine's stalls took from slices and windows, and whether response times
// are without them.
func (sc *Scenario) stallNotes(o Options) (notes []Note) {
	if o.KeepStalls {
		return nil
	}
	for _, info := range sc.Loads {
		var inSlices, inWindows stallsOf
		for _, t := range sc.Targets {
			for _, r := range t.Trials {
				l := loadOf(r, info.Name)
				if l == nil {
					continue
				}
				inWindows.add(t.Name, l.Stalls, l.StallFree)
				if l.Slices != nil && r.SideBySide != nil && r.SideBySide.Open != nil {
					inSlices.add(t.Name, r.SideBySide.Open.Stalls, l.Slices.StallFree)
				}
			}
		}
		if x, some := inSlices.found(); some && inSlices.unknownOf == "" {
			notes = append(notes, NoteOf(NoteStallsInSlices, info.Name, x))
		}
		x, some := inWindows.found()
		switch free := sc.stallFree[quantity{info.Name, "p99"}]; {
		case free && some:
			notes = append(notes, NoteOf(NoteStallsInWindows, info.Name, x))
		case !free && inWindows.unknownOf != "":
			notes = append(notes, NoteOf(NoteStallsRemain, info.Name, inWindows.unknownOf,
				inWindows.unknown))
		}
	}
	return notes
}
