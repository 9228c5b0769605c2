package table

import (
	"cmp"
	"slices"

	"prony.example/record"
	"prony.example/stats"
)

// Study is a run's records grouped and summarised, in base units: what CSV, JSON and the page
// print, and what a Sheet is projected from.
type Study struct {
	Options   Options
	Records   []*record.Record // of the comparison, in the order of their start
	Beside    []*record.Record // of trials beside it
	Scenarios []*Scenario
	Verdicts  []Tally
}

// Scenario is what was sent, to every target.
type Scenario struct {
	Name    string
	Loads   []LoadInfo // in the order in which they were offered
	Targets []*Target  // best first; those without numbers last
	Ranking Ranking
	Method  []Note // how rows differ in method
	// Typical is the ratio of a usual pair of targets by the ranking metric: the one whose SDLog is
	// in the middle, or next below it; zero when no two targets share two blocks.
	Typical stats.Ratio
	Versus  Versus  // what the rows' ratios refer to
	Floors  []Floor // of A/A runs, by target
	Starts  *Starts // nil: no trial ran side by side with others
	// Findings are those on all starts together, such as a control that differs from itself.
	Findings []record.Finding
	// Observed are the trials beside the comparison that explain it.
	Observed []*record.Record

	// slicedFree are the percentiles of slices that are without the machine's stalls.
	slicedFree map[quantity]bool
}

// LoadInfo is one load of a scenario as all its records agree on it.
type LoadInfo struct {
	Name  string `json:"name"`
	Model string `json:"model"` // closed, open or capacity
	Title string `json:"-"`     // e.g. "peak (closed, 64 connections)"
}

// Ranking says which metric put the targets in their tiers.
type Ranking struct {
	Load, Metric string
	Source       Source     // of the values that were compared
	Tiers        [][]string // names, best tier first
}

// Target is one row's material.
type Target struct {
	Name   string // with " +variant" if an agent or a protocol is attached
	Info   record.Target
	Tier   int // from 1; 0 when there is nothing to rank by
	Counts Counts
	Trials []*record.Record // all of them

	// stallFree are the percentiles of windows that are without the machine's stalls; withStalls is
	// why others are not.
	stallFree  map[quantity]bool
	withStalls map[quantity]Note
	Used       []*record.Record // those with a load that numbers are made of
	Metrics    []Metric
	Curves     []Curve
	Method     []Note // how its own trials differ in method
	// Reference is the row that its ratios refer to; empty: it is one, or there is none.
	Reference string
	Variance  stats.Variance // of the throughput that ranks; NaN where it is not known

	blocks blockOf
}

// Counts is how the trials of a target ended. A trial with an INVALID load counts as INVALID,
// though its other loads are in the numbers.
type Counts struct {
	Valid   int `json:"valid"`
	Suspect int `json:"suspect"`
	Invalid int `json:"invalid"`
	Failed  int `json:"failed"`
}

// Metric is one quantity of one target, across its used trials.
type Metric struct {
	Load    string // empty: of the whole trial
	Model   string
	Name    string // e.g. "throughput", "p99"
	Unit    string // "1/s", "ns", "B", "J" or "1"
	Points  []Point
	Samples int64 // percentiles: requests in all trials together
	Summary stats.Summary
	Ratio   *stats.Ratio // to the baseline, paired within blocks; nil without one
	// Sliced are the values in slices, one a start; none: there are no slices, or they do not tell
	// this metric. A ratio is made of them where both targets have some in a common start.
	Sliced []Point
	// StallFree and SlicedFree report whether Points and Sliced are without the machine's stalls.
	StallFree, SlicedFree bool
	// WithStalls says why Points include the machine's stalls although they were recorded; in some
	// rows only if Mixed.
	WithStalls Note
	Mixed      bool
	// Unsliced says why the ratio is unknown although both sides have values: slices give none of
	// one side, or values without stalls are not comparable. Windows alone would not know it any
	// better.
	Unsliced Note
	Source   Source // of Ratio
	// RatioDoubt is what can have moved a ratio from slices by more than its interval; nil:
	// nothing.
	RatioDoubt *Doubt
	Doubt      *Doubt // nil: it is what it is, within its interval
	// AtLeast is what is known of a capacity where it is withheld, per second; 0: nothing.
	AtLeast float64
	// Withheld says why there is no centre and what would give it; none where there is one.
	Withheld Note
}

// Known tells whether the metric has a centre.
func (m *Metric) Known() bool { return !m.Withheld.Is() }

// Point is a trial's value. Block counts the blocks of all runs in the records, from 1.
type Point struct {
	Trial string  `json:"trial"`
	Block int     `json:"block"`
	Value float64 `json:"value"`
	// Verdict of the load; of the whole trial's metrics, that of the load that ranks.
	Verdict string `json:"verdict"`
}

// Metric returns the target's metric under a load (empty: of the whole trial).
func (t *Target) Metric(load, name string) (Metric, bool) {
	for _, m := range t.Metrics {
		if m.Load == load && m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// Scenario finds one by its name; nil when there is none.
func (s *Study) Scenario(name string) *Scenario {
	return firstOf(s.Scenarios, func(sc *Scenario) bool { return sc.Name == name })
}

// Target finds a row by its name; nil when there is none.
func (sc *Scenario) Target(name string) *Target {
	return firstOf(sc.Targets, func(t *Target) bool { return t.Name == name })
}

// Find is the row of that name, else the only row of the target of that name, as a target that is
// measured in containers alone has; nil when there is none, or when several could be meant.
func (sc *Scenario) Find(name string) *Target {
	if row := sc.Target(name); row != nil {
		return row
	}
	var match *Target
	for _, t := range sc.Targets {
		if t.Info.Name == name && match != nil {
			return nil
		} else if t.Info.Name == name {
			match = t
		}
	}
	return match
}

// Load finds one by its name; without fields when there is none.
func (sc *Scenario) Load(name string) LoadInfo {
	for _, l := range sc.Loads {
		if l.Name == name {
			return l
		}
	}
	return LoadInfo{}
}

func firstOf[T any](all []*T, is func(*T) bool) *T {
	if index := slices.IndexFunc(all, is); index >= 0 {
		return all[index]
	}
	return nil
}

// Values are those of points, in their order.
func Values(points []Point) []float64 {
	out := make([]float64, len(points))
	for i, p := range points {
		out[i] = p.Value
	}
	return out
}

// Curve is the target's under a load; one without quantiles where there is none.
func (t *Target) Curve(load string) *Curve {
	for i := range t.Curves {
		if t.Curves[i].Load == load {
			return &t.Curves[i]
		}
	}
	return &Curve{}
}

// RowName is how a target is called in tables: its name, what rides along, what it was started in
// where it was no plain process, and who offered the loads where it was not Prony.
func RowName(t record.Target) string {
	name := t.Name
	if t.Variant != "" && t.Variant != "none" {
		name += " +" + t.Variant
	}
	if t.Launcher != "" {
		name += " in " + t.Launcher
	}
	if t.Driver != "" {
		name += " by " + t.Driver
	}
	if t.Arm != "" {
		name += " (" + t.Arm + ")"
	}
	return name
}

// Analyze groups and summarises records; their order does not matter.
func Analyze(records []*record.Record, o Options) Study {
	s := Study{Options: o.withDefaults(), Records: record.Compared(records),
		Beside: those(records, func(r *record.Record) bool { return r.Role != "" })}
	slices.SortStableFunc(s.Records, func(a, b *record.Record) int {
		return cmp.Or(
			a.Time.Compare(b.Time), cmp.Compare(a.Run, b.Run),
			cmp.Compare(a.Order, b.Order), cmp.Compare(a.Trial, b.Trial),
		)
	})
	blocks := numberBlocks(s.Records)
	for _, name := range s.scenarioNames() {
		s.Scenarios = append(s.Scenarios, s.scenario(name, blocks))
	}
	s.Verdicts = append(tallies(s.Records), s.missing()...)
	return s
}

// blockOf finds the number of a record's block.
type blockOf func(*record.Record) int

// numberBlocks gives every block of every run its own number, so that trials are paired within a
// block of one run and never across runs.
func numberBlocks(records []*record.Record) blockOf {
	type key struct {
		run   string
		block int
	}
	var keys []key
	for _, r := range records {
		keys = append(keys, key{r.Run, r.Block})
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.run, b.run), cmp.Compare(a.block, b.block))
	})
	keys = slices.Compact(keys)
	return func(r *record.Record) int { return slices.Index(keys, key{r.Run, r.Block}) + 1 }
}

func (s *Study) scenarioNames() []string {
	var names []string
	for _, r := range s.Records {
		names = append(names, r.Scenario)
	}
	for _, p := range s.Options.Missing {
		if p.Row != "" && p.Role == "" {
			names = append(names, p.Scenario)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (s *Study) scenario(name string, blocks blockOf) *Scenario {
	records := poolUnseen(those(s.Records, func(r *record.Record) bool {
		return r.Scenario == name
	}))
	sc := &Scenario{Name: name, Loads: loadInfos(records),
		Observed: those(s.Beside, func(r *record.Record) bool {
			return r.Scenario == name && r.Role == record.Observed
		})}
	for _, r := range records {
		sc.target(r, blocks).add(r)
	}
	sc.withoutStalls(s.Options)
	for _, t := range sc.Targets {
		t.summarize(sc, s.Options.Confidence)
		t.Method = differences(t.Used)
	}
	sc.Starts = sc.starts(blocks)
	if sc.Starts != nil && s.Options.endedEarly(name) {
		sc.Starts.Interrupted = true
	}
	for t, m := range sc.Metrics() {
		m.SlicedFree = sc.slicedFree[quantity{m.Load, m.Name}]
		m.Mixed = sc.partlyStallFree(quantity{m.Load, m.Name})
		m.Sliced, m.Unsliced = t.sliced(m, sc.Starts, s.Options.Confidence)
	}
	sc.Starts.readSlices(sc, s.Options.Slices)
	sc.compareTo(s.Options)
	sc.judgeStarts(s.Options)
	sc.rank(s.Options)
	sc.splitNoise()
	for t, m := range sc.Metrics() {
		t.doubt(m)
	}
	sc.Floors = sc.floors(s.Options)
	sc.Method = sc.unlikeRows()
	return sc
}

// endedEarly reports whether trials of a scenario were planned that the run never reached.
func (o Options) endedEarly(scenario string) bool {
	return o.Unfinished || slices.ContainsFunc(o.Missing, func(p record.Planned) bool {
		return p.Scenario == scenario && p.Role == ""
	})
}

func those(records []*record.Record, are func(*record.Record) bool) (out []*record.Record) {
	for _, r := range records {
		if are(r) {
			out = append(out, r)
		}
	}
	return out
}

// target finds a record's row, or opens it.
func (sc *Scenario) target(r *record.Record, blocks blockOf) *Target {
	name := RowName(r.Target)
	t := sc.Target(name)
	if t == nil {
		t = &Target{Name: name, Info: r.Target, blocks: blocks}
		sc.Targets = append(sc.Targets, t)
	}
	return t
}

func (t *Target) add(r *record.Record) {
	t.Trials = append(t.Trials, r)
	switch Grade(r) {
	case FailedGrade, StoppedGrade:
		t.Counts.Failed++
	case record.Invalid:
		t.Counts.Invalid++
	case record.Suspect:
		t.Counts.Suspect++
	default:
		t.Counts.Valid++
	}
	if usable(r) {
		t.Used = append(t.Used, r)
	}
}

// compareTo adds to every metric its ratio to the reference row's, paired within blocks.
func (sc *Scenario) compareTo(o Options) {
	fits := sc.shareNoise(o.Confidence)
	sc.versus(o)
	for t, m := range sc.Metrics() {
		reference := sc.Target(t.Reference)
		if reference == nil {
			continue
		}
		b, ok := reference.Metric(m.Load, m.Name)
		key := quantity{m.Load, m.Name}
		switch {
		case ok && (b.Unsliced.Is() || m.Unsliced.Is()):
			m.Source = FromSlices
			if !m.Unsliced.Is() {
				m.Unsliced = b.Unsliced
			}
		case ok && ShareStarts(b.Sliced, m.Sliced):
			m.Source = FromSlices
			if m.Unsliced = KeptApart(reference, t, m, FromSlices); m.Unsliced.Is() {
				continue
			}
			r := sc.SlicedRatio(reference, t, m.Load, m.Name, o.Confidence)
			m.Ratio = &r
		case ok && b.Known() && m.Known():
			if m.Unsliced = KeptApart(reference, t, m, FromWindows); m.Unsliced.Is() {
				continue
			}
			m.Ratio = ratio(fits[key], positives(t.Reference, b), positives(t.Name, *m))
		}
	}
}

// ratio is nil when no block has a positive value of both.
func ratio(fit *stats.Blocks, base, item stats.Item) *stats.Ratio {
	if _, _, combined := stats.Align(base, item); len(combined) == 0 {
		return nil
	}
	r := fit.Ratio(base, item)
	return &r
}

// ByBlock are the values of points by their blocks; of a block that has several, the last.
func ByBlock(points []Point) map[int]float64 {
	m := make(map[int]float64, len(points))
	for _, p := range points {
		m[p.Block] = p.Value
	}
	return m
}
