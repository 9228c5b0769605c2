package table

import (
	"cmp"
	"slices"

	"prony.example/record"
	"prony.example/stats"
)

// Study is a run's records grouped and summarized, in base units. CSV, JSON and the page print it,
// and Sheet projects it to tables.
type Study struct {
	Options   Options
	Records   []*record.Record // of the comparison, in the order of their start
	Beside    []*record.Record // of trials outside the comparison
	Scenarios []*Scenario
	Verdicts  []Tally
}

// Scenario has the results of one scenario's requests for every target.
type Scenario struct {
	Name    string
	Loads   []LoadInfo // in the order in which they were offered
	Targets []*Target  // best first; targets without numbers last
	Ranking Ranking
	Method  []Note // how rows differ in method
	// Typical is the ratio of the pair of targets with the median SDLog in the ranking metric, or
	// the next one below; zero if no two targets share two blocks.
	Typical stats.Ratio
	Versus  Versus  // the references of the rows' ratios
	Floors  []Floor // of A/A runs, by target
	Starts  *Starts // nil: no trial ran side by side with others
	// Findings are on all starts together, for example a control that differs from itself.
	Findings []record.Finding
	// Observed are the trials outside the comparison that explain it.
	Observed []*record.Record

	// slicedFree marks the percentiles of slices without the machine's stalls.
	slicedFree map[quantity]bool
}

// LoadInfo is one load of a scenario as all its records agree on it.
type LoadInfo struct {
	Name  string `json:"name"`
	Model string `json:"model"` // closed, open or capacity
	Title string `json:"-"`     // for example "peak (closed, 64 connections)"
}

// Ranking names the metric that put the targets in their tiers.
type Ranking struct {
	Load, Metric string
	Source       Source     // of the values that were compared
	Tiers        [][]string // names, best tier first
}

// Target has the data of one row.
type Target struct {
	Name   string // with " +variant" if an agent or a protocol is attached
	Info   record.Target
	Tier   int // from 1; 0 without a ranking
	Counts Counts
	Trials []*record.Record // all trials

	// stallFree marks the percentiles of windows without the machine's stalls; withStalls has the
	// reasons why others include them.
	stallFree  map[quantity]bool
	withStalls map[quantity]Note
	Used       []*record.Record // trials with a load that counts
	Metrics    []Metric
	Curves     []Curve
	Method     []Note // how its own trials differ in method
	// Reference is the row that its ratios refer to; empty for the baseline or without one.
	Reference string
	Variance  stats.Variance // of the throughput that ranks; NaN if unknown

	blocks  blockOf
	byPoint map[trialInBlock]*record.Record // of Trials
}

// trialInBlock identifies a trial: trials of several runs can have the same name, but not the same
// block.
type trialInBlock struct {
	trial string
	block int
}

// Counts has the number of trials of a target by their grade. A trial with an INVALID load counts
// as INVALID although its other loads are in the numbers.
type Counts struct {
	Valid   int `json:"valid"`
	Suspect int `json:"suspect"`
	Invalid int `json:"invalid"`
	Failed  int `json:"failed"`
	Stopped int `json:"stopped,omitempty"` // its user stopped the run
}

// Metric is one quantity of one target, across its used trials.
type Metric struct {
	Load    string // empty: of the whole trial
	Model   string
	Name    string // for example "throughput", "p99"
	Unit    string // "1/s", "ns", "B", "J" or "1"
	Points  []Point
	Samples int64 // percentiles: requests in all trials together
	Summary stats.Summary
	Ratio   *stats.Ratio // to the baseline, paired within blocks; nil without one
	// Sliced has the values in slices, one per start; empty without slices, or if they do not have
	// this metric. If both targets have values in a common start, the ratio comes from them.
	Sliced []Point
	// StallFree and SlicedFree report whether Points and Sliced are without the machine's stalls.
	StallFree, SlicedFree bool
	// WithStalls is the reason why Points include the machine's stalls although they were recorded;
	// only in some rows if Mixed.
	WithStalls Note
	Mixed      bool
	// Unsliced is the reason why the ratio is unknown although both sides have values: slices have
	// no values for one side, or values without stalls are not comparable. Windows would not be
	// more precise.
	Unsliced Note
	Source   Source // of Ratio
	// RatioDoubt describes what can have moved a ratio from slices by more than its interval; nil:
	// nothing.
	RatioDoubt *Doubt
	Doubt      *Doubt // nil: nothing moved it by more than its interval
	// AtLeast is a lower bound of a withheld capacity, per second; 0: unknown.
	AtLeast float64
	// Withheld is the reason for a missing center and what would give one; empty if there is a
	// center.
	Withheld Note
}

// Known reports whether the metric has a center.
func (m *Metric) Known() bool { return !m.Withheld.Is() }

// Point is a trial's value. Block counts the blocks of all runs in the records, from 1.
type Point struct {
	Trial string  `json:"trial"`
	Block int     `json:"block"`
	Value float64 `json:"value"`
	// Verdict of the load; for metrics of the whole trial, of the load that ranks.
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

// Scenario returns the scenario of that name; nil without one.
func (s *Study) Scenario(name string) *Scenario {
	return firstOf(s.Scenarios, func(sc *Scenario) bool { return sc.Name == name })
}

// Target returns the row of that name; nil without one.
func (sc *Scenario) Target(name string) *Target {
	return firstOf(sc.Targets, func(t *Target) bool { return t.Name == name })
}

// Find returns the row of that name, else the only row of the target of that name, for example of a
// target that is measured only in containers; nil without a row, or if several could be meant.
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

// Load returns the load of that name; an empty LoadInfo without one.
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

// Values returns the values of points, in their order.
func Values(points []Point) []float64 {
	out := make([]float64, len(points))
	for i, p := range points {
		out[i] = p.Value
	}
	return out
}

// Curve returns the target's curve under a load; without quantiles if there is none.
func (t *Target) Curve(load string) *Curve {
	for i := range t.Curves {
		if t.Curves[i].Load == load {
			return &t.Curves[i]
		}
	}
	return &Curve{}
}

// RowName returns the name of a target in tables: its name, its variant, its launcher unless it was
// a plain process, and the load generator unless it was Prony.
func RowName(t record.Target) string { return t.Row() }

// Analyze groups and summarizes records; their order does not matter.
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

// blockOf returns the number of a record's block.
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
	numbers := map[key]int{}
	for i, k := range slices.Compact(keys) {
		numbers[k] = i + 1
	}
	return func(r *record.Record) int { return numbers[key{r.Run, r.Block}] }
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

// target returns a record's row, and adds it if needed.
func (sc *Scenario) target(r *record.Record, blocks blockOf) *Target {
	name := RowName(r.Target)
	t := sc.Target(name)
	if t == nil {
		t = &Target{Name: name, Info: r.Target, blocks: blocks,
			byPoint: map[trialInBlock]*record.Record{}}
		sc.Targets = append(sc.Targets, t)
	}
	return t
}

func (t *Target) add(r *record.Record) {
	t.Trials = append(t.Trials, r)
	if key := (trialInBlock{r.Trial, t.blocks(r)}); t.byPoint[key] == nil {
		t.byPoint[key] = r
	}
	switch Grade(r) {
	case FailedGrade:
		t.Counts.Failed++
	case StoppedGrade:
		t.Counts.Stopped++
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

// ratio returns nil if no block has a positive value of both.
func ratio(fit *stats.Blocks, base, item stats.Item) *stats.Ratio {
	if _, _, combined := stats.Align(base, item); len(combined) == 0 {
		return nil
	}
	r := fit.Ratio(base, item)
	return &r
}

// ByBlock returns the values of points by their blocks; of several in a block, the last.
func ByBlock(points []Point) map[int]float64 {
	m := make(map[int]float64, len(points))
	for _, p := range points {
		m[p.Block] = p.Value
	}
	return m
}
