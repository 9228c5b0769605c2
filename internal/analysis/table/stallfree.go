package table

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/stats"
)

// outOfOrder is the reason why a percentile includes stalls if, without them, it is below a lower
// one.
const outOfOrder = "below a lower percentile"

// Stalled is why response times without the machine's stalls are unknown.
type Stalled struct {
	Reason string  // one of stats' reasons, or of this package
	Share  float64 // of arrivals that remain
}

func (s Stalled) String() string {
	switch s.Reason {
	case stats.StallsDepend:
		return "stalls occur more often, or less often, while the service pauses (measure on " +
			"another machine; prony report --stalls keep includes all arrivals)"
	case keptApart:
		return fmt.Sprintf("the shares of arrivals that the two targets keep are more than %.0f "+
			"percentage points apart (measure on a quieter machine; prony report --stalls keep "+
			"includes all arrivals)",
			100*mostApart)
	case outOfOrder:
		return "a higher percentile would be below a lower one (measure on a quieter machine; " +
			"prony report --stalls keep includes all arrivals)"
	case notRecorded:
		return "stalls of one side were not recorded (prony compare --stalls keep uses all " +
			"arrivals)"
	case stalledLong:
		return fmt.Sprintf("all cores in use ran for %s of the time, and at least %s are needed "+
			"(measure on a quieter machine)", units.Percent(s.Share),
			units.Percent(stats.LeastShare))
	case stats.TooFewArrivals:
		return "too few arrivals remain after those near stalls are left out (measure for " +
			"longer; prony report --stalls keep includes all arrivals)"
	case stats.UnrecordedStalls:
		return "many stalls are too short to be recorded (measure on a quieter machine; prony " +
			"report --stalls keep includes all arrivals)"
	}
	remaining, needs := "less than "+units.Percent(stats.LeastShare), ""
	if !math.IsNaN(s.Share) {
		remaining = units.Percent(s.Share)
		needs = ", but at least " + units.Percent(stats.LeastShare) + " are needed"
	}
	return fmt.Sprintf("%s of arrivals remain after those near stalls are left out%s (measure on "+
		"a quieter machine; prony report --stalls keep includes all arrivals)", remaining, needs)
}

// general returns the reason without the share of arrivals, which differs between values.
func (s Stalled) general() Stalled { return Stalled{s.Reason, math.NaN()} }

// stalled reports whether a note is on this reason.
func (n Note) stalled(reason string) bool {
	if len(n.Args) == 0 {
		return false
	}
	s, ok := n.Args[0].(Stalled)
	return ok && s.Reason == reason
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

// Discards are rounds of open slices and windows in which the machine stalled for too long. Others
// were measured in their place.
type Discards struct{ Rounds, Windows int }

func (d Discards) String() string {
	var all []string
	if d.Rounds > 0 {
		all = append(all, units.Plural(d.Rounds, "round")+" of slices")
	}
	if d.Windows > 0 {
		all = append(all, units.Plural(d.Windows, "window"))
	}
	return strings.Join(all, " and ")
}

// countDiscards returns how many an open load has. A round belongs to all targets of a start.
func (sc *Scenario) countDiscards(load string) (d Discards) {
	starts := map[string]bool{}
	for _, t := range sc.Targets {
		for _, r := range t.Trials {
			l, side := loadOf(r, load), r.SideBySide
			if l == nil {
				continue
			}
			d.Windows += l.Disturbed
			if l.Slices == nil || side == nil || side.Open == nil {
				continue
			}
			if start := r.Run + "/" + side.File; !starts[start] {
				starts[start] = true
				d.Rounds += side.Open.Disturbed
			}
		}
	}
	return d
}

// withoutStalls finds the percentiles that targets have without the machine's stalls. In windows, a
// target has one without stalls if all its trials do: those that do may be the lucky ones. In
// slices, one that is unknown counts, too, because its ratio is then unknown.
func (sc *Scenario) withoutStalls(o Options) {
	sc.slicedFree = map[quantity]bool{}
	for _, t := range sc.Targets {
		t.stallFree, t.withStalls = map[quantity]bool{}, map[quantity]Note{}
	}
	if o.Stalls == KeepStalls {
		return
	}
	for _, info := range sc.Loads {
		for _, p := range shown {
			key := quantity{info.Name, p.Name}
			for _, t := range sc.Targets {
				why, recorded := t.whyWithStalls(info.Name, p.Quantile)
				t.stallFree[key] = recorded && !why.Is()
				t.withStalls[key] = why
			}
			sc.slicedFree[key] = sc.all(func(t *Target) (known []bool) {
				for _, o := range t.inSlices(info.Name) {
					known = append(known, slices.ContainsFunc(o.load.Slices.StallFree,
						func(x record.StallFree) bool { return x.Quantile == p.Quantile }))
				}
				return known
			})
		}
	}
}

// whyWithStalls returns why a percentile in a target's windows includes the machine's stalls; no
// note if it does not, or if nothing recorded any.
func (t *Target) whyWithStalls(load string, quantile float64) (why Note, recorded bool) {
	known, unknown := 0, Stalled{Share: 1}
	offers := t.offers(load)
	for _, o := range offers {
		i := slices.IndexFunc(o.load.StallFree, func(x record.StallFree) bool {
			return x.Quantile == quantile
		})
		switch {
		case i < 0:
		case o.load.StallFree[i].Unknown == "":
			known++
		case unknown.Reason == "" || o.load.StallFree[i].KeptShare < unknown.Share:
			unknown = Stalled{o.load.StallFree[i].Unknown, o.load.StallFree[i].KeptShare}
		}
	}
	switch {
	case known > 0 && known == len(offers):
		return Note{}, true
	case unknown.Reason == "":
		return Note{}, false
	}
	return NoteOf(NoteWithStalls, unknown), true
}

// partlyStallFree reports whether a percentile is without the machine's stalls in some rows only.
func (sc *Scenario) partlyStallFree(key quantity) bool {
	free := 0
	for _, t := range sc.Targets {
		if t.stallFree[key] {
			free++
		}
	}
	return 0 < free && free < len(sc.Targets)
}

// all reports whether something is known of at least one trial, and of all.
func (sc *Scenario) all(known func(*Target) []bool) bool {
	n := 0
	for _, t := range sc.Targets {
		trials := known(t)
		if slices.Contains(trials, false) {
			return false
		}
		n += len(trials)
	}
	return n > 0
}

// stallsOf sums up what the machine's stalls did to a part of the measurements.
type stallsOf struct {
	watched, stalled, remaining, n float64
	free, raw                      map[string]map[float64][]float64 // by target and quantile
	unknown                        Stalled
	unknownOf                      string
	missing                        bool // nothing recorded them
	sliced                         bool // in slices, which have no value with too few arrivals
}

// add adds what stalls did in a trial to the percentiles that counts is about.
func (x *stallsOf) add(target string, stalls *record.Stalls, all []record.StallFree,
	counts func(quantile float64) bool,
) {
	if stalls != nil {
		x.missing = x.missing || stalls.Missing != ""
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
		switch {
		case q.Unknown == "" && !counts(q.Quantile):
		case q.Unknown == "":
			x.remaining, x.n = x.remaining+q.KeptShare, x.n+1
			x.free[target][q.Quantile] = append(x.free[target][q.Quantile], float64(q.Ns))
			x.raw[target][q.Quantile] = append(x.raw[target][q.Quantile], float64(q.RawNs))
		case q.Unknown == stats.TooFewArrivals && x.sliced:
		default:
			if x.unknownOf == "" || q.KeptShare < x.unknown.Share {
				x.unknown, x.unknownOf = Stalled{q.Unknown, q.KeptShare}, target
			}
		}
	}
}

// summary is what a note says of it; false if nothing was left out.
func (x *stallsOf) summary() (out StallsFound, some bool) {
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
	if o.Stalls == KeepStalls {
		return nil
	}
	for _, info := range sc.Loads {
		if info.Model == record.Closed {
			notes = addNotes(notes, sc.rateNotes(info.Name)...)
			continue
		}
		inSlices, inWindows := stallsOf{sliced: true}, stallsOf{}
		for _, t := range sc.Targets {
			for _, o := range t.offers(info.Name) {
				inWindows.add(t.Name, o.load.Stalls, o.load.StallFree, func(q float64) bool {
					return t.stallFree[quantity{info.Name, percentileName(q)}]
				})
			}
			for _, o := range t.inSlices(info.Name) {
				if x := o.record.SideBySide; x != nil && x.Open != nil {
					inSlices.add(t.Name, x.Open.Stalls, o.load.Slices.StallFree,
						func(float64) bool { return true })
				}
			}
		}
		if d := sc.countDiscards(info.Name); d != (Discards{}) {
			notes = append(notes, NoteOf(NoteDiscards, info.Name, d))
		}
		if x, some := inSlices.summary(); some && inSlices.unknownOf == "" {
			notes = append(notes, NoteOf(NoteStallsInSlices, info.Name, x))
		}
		var free, raw Names
		for _, p := range shown {
			if slices.ContainsFunc(sc.Targets, func(t *Target) bool {
				return t.stallFree[quantity{info.Name, p.Name}]
			}) {
				free = append(free, p.Name)
			} else {
				raw = append(raw, p.Name)
			}
		}
		if x, some := inWindows.summary(); some && len(free) > 0 {
			notes = append(notes, NoteOf(NoteStallsInWindows, free, info.Name, x))
		}
		switch {
		case len(raw) == 0:
		case inWindows.unknownOf != "":
			notes = addNotes(notes, NoteOf(NoteStallsRemain, raw, info.Name, inWindows.unknownOf),
				NoteOf(NoteStallsReason, inWindows.unknown))
		case inWindows.missing:
			notes = append(notes, NoteOf(NoteStallsMissing, info.Name))
		}
	}
	return notes
}

// percentileName is the metric of a quantile that tables show; empty: they do not.
func percentileName(quantile float64) string {
	for _, p := range shown {
		if p.Quantile == quantile {
			return p.Name
		}
	}
	return ""
}
