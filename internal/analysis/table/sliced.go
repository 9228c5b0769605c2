package table

import (
	"maps"
	"math"
	"slices"

	"prony.example/internal/analysis/verdict"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// Source says what values a ratio is made of.
type Source string

// Sources of ratios.
const (
	FromWindows Source = ""       // the window of each trial, alone on the machine
	FromSlices  Source = "slices" // slices in turns, within a start
)

// Starts are the starts of a scenario in which targets ran side by side.
type Starts struct {
	Count  int `json:"count"`  // all, the lost ones included
	Rounds int `json:"rounds"` // of the starts that count
	// ElapsedNs is the time that all starts took; the trials of a start share it.
	ElapsedNs int64 `json:"elapsedNs"`
	// Invalid says that too many were lost for any ratio to be made of the others.
	Invalid bool `json:"invalid,omitempty"`
	// Interrupted: its user ended the run before its planned end, perhaps because of what was seen.
	// Intervals are then such that hold whenever a run is ended.
	Interrupted bool `json:"interrupted,omitempty"`
	// Lost are the blocks of starts in which no target was measured, because one failed while
	// slices ran: they count for no ratio.
	Lost []int `json:"lost,omitempty"`
	// LostBy counts the starts in which a target failed, by target. One that failed before slices
	// began is missing in its start, and the others are compared without it.
	LostBy map[string]int `json:"lostBy,omitempty"`
	// Repeated counts the starts that were run because others lost a target.
	Repeated int `json:"repeated,omitempty"`
	// Planned is the number of starts that the first ones plan by their scatter; 0: it was fixed
	// beforehand, or the first ones are enough.
	Planned int `json:"planned,omitempty"` // of all groups together
	// Raw are the slices of the starts that count, by block, where they can be read.
	Raw    []StartSlices `json:"-"`
	unread []unreadSlices

	names []string // of all targets
	// first are the blocks by whose scatter others are planned; none: the number was fixed.
	first []int
	// ran are the blocks in which each target was to run, by its row's name.
	ran map[string][]int
	// groups are the rows of each group of targets, by its number; none: all ran side by side.
	groups map[int][]string
	// begun and planned are the starts of each group, or of all targets (0).
	begun, planned map[int]int
	// missing are the blocks in which each target failed, by its row's name.
	missing map[string][]int
}

// starts collects the starts of a scenario. In a run that has a trial side by side with others each
// block is a start. If one target fails while slices run, the start is excluded for all: later
// rounds of the others lacked a member.
func (sc *Scenario) starts(blocks blockOf) *Starts {
	runs := map[string]bool{}
	for _, t := range sc.Targets {
		for _, r := range t.Trials {
			if r.SideBySide != nil {
				runs[r.Run] = true
			}
		}
	}
	if len(runs) == 0 {
		return nil
	}
	s := &Starts{LostBy: map[string]int{}, missing: map[string][]int{}, ran: map[string][]int{},
		groups: map[int][]string{}, begun: map[int]int{}, planned: map[int]int{}}
	members := map[int][]*record.Record{}
	for _, t := range sc.Targets {
		for _, r := range t.Trials {
			if runs[r.Run] {
				members[blocks(r)] = append(members[blocks(r)], r)
			}
		}
	}
	for _, block := range slices.Sorted(maps.Keys(members)) {
		s.add(block, members[block])
	}
	for group, planned := range s.planned {
		s.Planned += planned
		if s.begun[group] < planned { // the program was killed, perhaps because of what was seen
			s.Interrupted = true
		}
	}
	return s
}

// add counts a start with the records of its trials.
func (s *Starts) add(block int, members []*record.Record) {
	if slices.ContainsFunc(members, func(r *record.Record) bool {
		return r.Failure != nil && r.Failure.Interrupted
	}) {
		s.Interrupted = true
		return
	}
	s.Count++
	rounds, repeats, group := 0, 0, 0
	for _, r := range members {
		name := RowName(r.Target)
		s.ElapsedNs += r.DurationNs
		s.ran[name] = AddNew(s.ran[name], block)
		if r.SideBySide != nil {
			rounds = max(rounds, r.SideBySide.Rounds)
		}
		if x := r.SideBySide; x != nil {
			if x.Repeats {
				repeats = 1
			}
			if x.Stage == 1 {
				s.first = AddNew(s.first, block)
			}
			if group = x.Group; group > 0 {
				s.groups[group] = AddNew(s.groups[group], name)
			}
			if x.Planned > 0 {
				s.planned[group] = max(s.planned[group], x.Planned)
			}
		}
		if r.Outcome == record.Measured {
			continue
		}
		if r.Failure == nil || r.Failure.Step != record.StepPeer {
			s.LostBy[name]++
			s.missing[name] = append(s.missing[name], block)
		}
	}
	s.Repeated += repeats
	s.begun[group] += 1 - repeats // the planned number has no repetitions
	if slices.ContainsFunc(members, func(r *record.Record) bool {
		return r.Outcome == record.Measured
	}) {
		s.Rounds += rounds
	} else {
		s.Lost = append(s.Lost, block)
	}
}

// lacks counts the starts in which at least one of the named targets was not measured.
func (s *Starts) lacks(names ...string) int {
	all := slices.Clone(s.Lost)
	for _, name := range names {
		for _, block := range s.missing[name] {
			all = AddNew(all, block)
		}
	}
	ran := s.together(names...)
	return len(slices.DeleteFunc(all, func(block int) bool { return !slices.Contains(ran, block) }))
}

// together are the blocks in which all of the named targets were to run; of groups that have not
// both, there are none.
func (s *Starts) together(names ...string) (blocks []int) {
	for _, all := range s.ran {
		for _, block := range all {
			if !slices.ContainsFunc(names, func(name string) bool {
				return !slices.Contains(s.ran[name], block)
			}) {
				blocks = AddNew(blocks, block)
			}
		}
	}
	return blocks
}

// Withheld reports whether the named targets lack too many starts for a ratio of them: the starts
// that are left may be the lucky ones. Without a name it is about all targets.
func (s *Starts) Withheld(names ...string) bool {
	return s != nil &&
		float64(s.lacks(names...)) > verdict.LostMost*float64(len(s.together(names...)))
}

// sliced are a metric's values in slices, a point for each start in which its slices count. They
// are all there or none is: the starts that have a value may be the lucky ones.
func (t *Target) sliced(m *Metric, s *Starts, confidence float64) (points []Point, why Note) {
	if s == nil || m.Load == "" {
		return nil, why
	}
	q := metric.Named(m.Name, m.Unit)
	for _, o := range t.inSlices(m.Load) {
		value, unknown := slicedValue(q, o.load.Slices, confidence, m.SlicedFree)
		if unknown.Reason != "" {
			return nil, NoteOf(NoteStalled, unknown)
		}
		if math.IsNaN(value) {
			return nil, why
		}
		points = append(points, o.point(value))
	}
	return points, why
}

// slicedValue is a metric's value in the slices of a load; NaN if they do not have it. Response
// times are those of open slices only, whose rate is the same for all targets. With stallFree they
// are without the machine's stalls; unknown says why that is impossible.
func slicedValue(q metric.Metric, s *record.Sliced, confidence float64, stallFree bool,
) (value float64, unknown Stalled) {
	switch {
	case q.Slices != nil:
		return q.Slices(s), unknown
	case q.Quantile == 0 || s.RatePerS <= 0,
		s.ResponseTime.Count < stats.QuantileNeeds(q.Quantile, confidence):
		return math.NaN(), unknown
	case !stallFree:
		return metric.Positive(
			quantile(s.ResponseTime, decode(s.ResponseTime), q.Quantile),
		), unknown
	}
	i := slices.IndexFunc(s.StallFree, func(x record.StallFree) bool {
		return x.Quantile == q.Quantile
	})
	switch x := s.StallFree[i]; x.Unknown {
	case "":
		return metric.Positive(float64(x.Ns)), unknown
	case stats.TooFewArrivals:
		return math.NaN(), unknown
	default:
		return math.NaN(), Stalled{x.Unknown, x.KeptShare}
	}
}

// slicedGrade is how the slices of a load count: the worst of the findings that are about them.
// What disturbed only the window does not touch them.
func slicedGrade(r *record.Record, load string) string {
	grade := wholeGrade(r)
	if unmeasured(grade) {
		return grade
	}
	for _, f := range r.Verdict.Findings {
		if ofSlices(r, load, f) {
			grade = worse(grade, findingGrade(r, f))
		}
	}
	return grade
}

// CountedSlices returns the results of a load in slices; nil if it has none, or if their grade
// excludes them from ratios.
func CountedSlices(r *record.Record, l *record.Load) *record.Sliced {
	if l.Slices == nil || !good(slicedGrade(r, l.Name)) {
		return nil
	}
	return l.Slices
}

// inSlices returns the trials of a load whose slices count, with their grades.
func (t *Target) inSlices(load string) (out []offer) {
	for _, r := range t.Trials {
		if l := loadOf(r, load); l != nil && CountedSlices(r, l) != nil {
			out = append(out, offer{r, l, t.blocks(r), slicedGrade(r, load)})
		}
	}
	return out
}

// AnswerGrade is how a trial counts for what its run compares: its slices, if it has some, whose
// ratios stand when a window alone is INVALID; otherwise all of it.
func AnswerGrade(r *record.Record) string {
	if r.Outcome != record.Measured ||
		!slices.ContainsFunc(r.Loads, func(l record.Load) bool { return l.Slices != nil }) {
		return Grade(r)
	}
	grade := record.Valid
	for i := range r.Loads {
		if l := &r.Loads[i]; l.Slices != nil {
			grade = worse(grade, slicedGrade(r, l.Name))
		} else { // its ratio comes from the window
			grade = worse(grade, LoadGrade(r, l.Name))
		}
	}
	return grade
}

// ofSlices tells whether a finding is about the slices of a load: on the whole trial, or on the
// load and not on its window alone.
func ofSlices(r *record.Record, load string, f record.Finding) bool {
	return ofWhole(r, f) || f.Load == load && f.Phase != record.PhaseWindow
}

// ShareStarts tells whether two targets have values in slices of one start, so that their ratio is
// made of slices.
func ShareStarts(a, b []Point) bool {
	return slices.ContainsFunc(a, func(x Point) bool {
		return slices.ContainsFunc(b, func(y Point) bool { return x.Block == y.Block })
	})
}

// slicedItem has a metric's values in slices by start.
func slicedItem(m *Metric) stats.Item {
	return stats.Item{Values: ByBlock(m.Sliced)}
}

// rankingSource is FromSlices where all targets that have a value of what ranks have one in slices.
func (sc *Scenario) rankingSource() Source {
	source := FromWindows
	for _, t := range sc.Targets {
		m, ok := t.Metric(sc.Ranking.Load, sc.Ranking.Metric)
		switch {
		case ok && len(m.Sliced) > 0:
			source = FromSlices
		case ok && m.Known():
			return FromWindows
		}
	}
	return source
}

// ranks tells whether a metric has the values that rank.
func (r Ranking) ranks(m *Metric, name string, s *Starts) bool {
	if r.Source == FromSlices {
		return len(m.Sliced) > 0 && !s.Withheld(name)
	}
	return m.Known()
}

// slicedNote says which ratios are made of slices, once.
func (sc *Scenario) slicedNote() []Note {
	if sc.Starts == nil {
		return nil
	}
	var metrics MetricsOf
	for _, m := range sc.Metrics() {
		known := slices.ContainsFunc(metrics, func(x Metric) bool {
			return x.Load == m.Load && x.Name == m.Name
		})
		if len(m.Sliced) > 0 && !known && ShownByDefault(*m, sc.Loads) {
			metrics = append(metrics, *m)
		}
	}
	if len(metrics) == 0 {
		return nil
	}
	times := slices.DeleteFunc(slices.Clone(metrics), func(m Metric) bool {
		return metric.Named(m.Name, m.Unit).Quantile == 0
	})
	notes := []Note{NoteOf(NoteSliced, metrics, sc.Starts)}
	if s := sc.Starts; s.Planned > 0 && !s.Interrupted {
		first := slices.DeleteFunc(slices.Clone(s.first), func(block int) bool {
			return slices.Contains(s.Lost, block)
		})
		notes = append(notes, NoteOf(NotePlanned, s.Planned, len(first)))
	}
	notes = append(notes, sc.Starts.unreadNote()...)
	notes = append(notes, sc.Starts.groupsNote(sc.Versus.Name)...)
	return append(notes, sc.equalRate(times)...)
}

// equalRate says at which rate open slices were offered, if ratios come from them.
func (sc *Scenario) equalRate(metrics MetricsOf) []Note {
	least, most := math.Inf(1), 0.0
	for _, t := range sc.Targets {
		for _, m := range metrics {
			for _, o := range t.inSlices(m.Load) {
				if perS := o.load.Slices.RatePerS; perS > 0 {
					least, most = min(least, perS), max(most, perS)
				}
			}
		}
	}
	if most == 0 || len(metrics) == 0 {
		return nil
	}
	return []Note{NoteOf(NoteEqualRate, metrics, Rate(least), Rate(most))}
}
