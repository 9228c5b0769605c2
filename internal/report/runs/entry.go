package runs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unique"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/format"
	"prony.example/internal/report/history"
	"prony.example/record"
)

// States of a run.
const (
	Running = "running" // it is being measured
	Done    = "done"    // every trial of its plan has a record, or its time was over
	Stopped = "stopped" // it ended before that
)

// Entry describes a run in an index: enough to list, to filter and to draw its ranking.
type Entry struct {
	ID       string `json:"id"` // the folder's name
	Suite    string `json:"suite"`
	Question string `json:"question"`
	// Answer describes how targets differ from the baseline; empty: the run is a ranking.
	Answer  string            `json:"answer,omitempty"`
	Time    time.Time         `json:"time"` // its start
	Labels  map[string]string `json:"labels"`
	Machine Machine           `json:"machine"`
	Blocks  int               `json:"blocks"` // blocks or starts, including planned ones
	// Repeat is what the run repeats over all targets: "start" if they run side by side, else
	// "block"; empty: unknown without records.
	Repeat  string        `json:"repeat,omitempty"`
	Trials  Trials        `json:"trials"`
	Numbers table.Numbers `json:"numbers"` // in its tables, by their grade
	Targets []string      `json:"targets"` // rows of its tables, by name
	Ranking []Ranking     `json:"ranking"` // one per scenario
	State   string        `json:"state"`
	// Unfinished marks a run with a time budget that ended before its time: its plan has no trials
	// that could be missing.
	Unfinished bool `json:"unfinished,omitempty"`
	// Damaged counts lines of the records that were left out.
	Damaged int `json:"damaged,omitempty"`
	// Seconds is the duration of the measurement, from the first trial's start to the last one's
	// end.
	Seconds float64 `json:"seconds"`
	// Ended is the end of its last trial, including those outside the comparison; zero: none ended.
	Ended time.Time `json:"ended,omitzero"`
}

// Machine describes the machine of a run.
type Machine struct {
	CPUModel string `json:"cpuModel"`
	Cores    int    `json:"cores"`
	Kernel   string `json:"kernel"`
	// Key is equal for runs on comparable machines: same processor, cores, memory, governor, idle
	// cores that poll or halt, hypervisor or none, and a kernel of the same release. Empty: unknown
	// without records.
	Key string `json:"key"`
}

// Trials counts the trials of the comparison by how they ended, and those without a record.
type Trials struct {
	Planned int `json:"planned"`
	Valid   int `json:"valid"`
	Suspect int `json:"suspect"`
	Invalid int `json:"invalid"`
	Failed  int `json:"failed"`
	Missing int `json:"missing"`
}

// Ranking compares a scenario's targets by the metric of their tiers.
type Ranking struct {
	Scenario string `json:"scenario"`
	Load     string `json:"load"`
	Metric   string `json:"metric"`
	Unit     string `json:"unit"` // base: 1/s, ns, B or 1
	Rows     []Row  `json:"rows"` // best first
}

// Row is a target's number with its interval, null without one.
type Row struct {
	Target string   `json:"target"`
	Tier   int      `json:"tier"`
	Center *float64 `json:"center"`
	Low    *float64 `json:"lo"`
	High   *float64 `json:"hi"`
	// Doubted marks a number that findings may have moved by more than its interval.
	Doubted bool `json:"doubted,omitempty"`
}

// brief returns an entry without its answer and ranking, which filters do not need. Equal texts of
// several entries are in memory once.
func (e Entry) brief() Entry {
	e.Answer, e.Ranking = "", nil
	for _, text := range []*string{&e.Suite, &e.Question, &e.Repeat, &e.State, &e.Machine.CPUModel,
		&e.Machine.Kernel, &e.Machine.Key} {
		*text = unique.Make(*text).Value()
	}
	targets := make([]string, len(e.Targets))
	for i, name := range e.Targets {
		targets[i] = unique.Make(name).Value()
	}
	e.Targets = targets
	return e
}

// Place returns a text whose order is the reverse of the index.
func (e Entry) Place() string {
	return e.Time.UTC().Format(placeTime) + " " + e.ID
}

const placeTime = "2006-01-02T15:04:05.000000000Z"

// IsPlace reports whether a text has the form of a Place.
func IsPlace(text string) bool {
	moment, id, _ := strings.Cut(text, " ")
	_, err := time.Parse(placeTime, moment)
	return err == nil && id != ""
}

// entryOf reads a run's entry and its part of the history, with the shapes of that.
func entryOf(dir string) (e Entry, past history.Past, shapes history.Shapes, err error) {
	if err := plain(dir); err != nil {
		return e, past, nil, err
	}
	r, err := Read(dir)
	if err != nil {
		return e, past, nil, err
	}
	run := history.Run{Head: r.Head, Records: record.Compared(r.Records), Bad: r.Bad}
	series := history.Of(run, table.Analyze(run.Records, table.Options{}), history.Options{})
	past, shapes, err = history.Pack(run, series)
	return r.Entry(), past, shapes, err
}

// Entry returns the run's entry without its state, which is not in the records.
func (r *Run) Entry() Entry {
	study := r.Study(r.Options())
	e := Entry{ID: filepath.Base(r.Dir), Suite: r.Head.Suite, Question: r.Head.Question,
		Time: r.began(), Labels: r.Head.Labels, Machine: r.machine(),
		Numbers: study.Sheet().Numbers, Damaged: len(r.Bad), Unfinished: r.Unfinished,
		Ranking: []Ranking{},
		Targets: []string{}}
	if e.Labels == nil {
		e.Labels = map[string]string{}
	}
	if len(study.Records) > 0 {
		last := study.Records[len(study.Records)-1]
		e.Seconds = max(0, last.End().Sub(study.Records[0].Time).Seconds())
	}
	for _, rec := range r.Records {
		if end := rec.End().UTC(); end.After(e.Ended) {
			e.Ended = end
		}
	}
	_, e.Blocks = study.Extent()
	if len(study.Records) > 0 {
		e.Repeat = table.RepeatOf(study.Records...)
	}
	e.Trials = r.trials(study)
	e.Answer = strings.Join(r.AnswerTexts(&study), " ")
	for _, sc := range study.Scenarios {
		for _, t := range sc.Targets {
			e.Targets = append(e.Targets, t.Name)
		}
		e.Ranking = append(e.Ranking, ranking(sc))
	}
	for _, p := range r.Missing { // a target without a trial yet
		if p.Row != "" && p.Role == "" {
			e.Targets = append(e.Targets, p.Row)
		}
	}
	slices.Sort(e.Targets)
	e.Targets = slices.Compact(e.Targets)
	return e
}

func (r *Run) trials(study table.Study) (t Trials) {
	for _, rec := range study.Records {
		switch grade := table.Grade(rec); {
		case rec.Failure != nil && rec.Failure.Interrupted: // its user stopped the run
			t.Missing++
		case grade == table.FailedGrade:
			t.Failed++
		case grade == record.Invalid:
			t.Invalid++
		case grade == record.Suspect:
			t.Suspect++
		default:
			t.Valid++
		}
	}
	for _, p := range r.Missing {
		if p.Role == "" {
			t.Missing++
		}
	}
	t.Planned = t.Valid + t.Suspect + t.Invalid + t.Failed + t.Missing
	return t
}

func ranking(sc *table.Scenario) Ranking {
	out := Ranking{Scenario: sc.Name, Load: sc.Ranking.Load, Metric: sc.Ranking.Metric,
		Rows: []Row{}}
	for _, t := range sc.Targets {
		row := Row{Target: t.Name, Tier: t.Tier}
		if m, ok := t.Metric(sc.Ranking.Load, sc.Ranking.Metric); ok {
			out.Unit = m.Unit
			if m.Known() {
				s := m.Summary
				row.Center, row.Low = format.Finite(s.Center), format.Finite(s.Lo)
				row.High, row.Doubted = format.Finite(s.Hi), m.Doubt != nil
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// began returns the run's start: from its id, which is the time of its start unless somebody chose
// another one, or else from its first record.
func (r *Run) began() (t time.Time) {
	const stamp = "2006-01-02T15-04-05Z"
	if t, err := time.Parse(stamp, r.Head.ID[:min(len(stamp), len(r.Head.ID))]); err == nil {
		return t.UTC()
	}
	for _, rec := range r.Records {
		if t.IsZero() || rec.Time.Before(t) {
			t = rec.Time.UTC()
		}
	}
	return t
}

// machine returns the machine of the run. Records of two machines, which a run has if it was
// resumed elsewhere, make a machine that equals no other run's.
func (r *Run) machine() (m Machine) {
	var all []string
	for _, rec := range r.Records {
		p := rec.Provenance
		if m.CPUModel == "" {
			m.CPUModel, m.Cores, m.Kernel = p.CPUModel, p.Cores, p.Kernel
		}
		all = append(all, fmt.Sprintf("%q %q %q %d %d %q %v %q", p.OS, p.Arch, p.CPUModel, p.Cores,
			(p.MemoryBytes+1<<29)>>30, p.Governor+p.Idle, p.Hypervisor, release(p.Kernel)))
	}
	if len(all) == 0 {
		return m
	}
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(all), "\n")))
	m.Key = hex.EncodeToString(sum[:])[:12]
	return m
}

// release cuts a kernel's version after its second number, as table.MethodOf does.
func release(kernel string) string {
	parts := strings.SplitN(kernel, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// newest orders entries: the latest first, and those of the same second by name.
func newest(a, b Entry) int {
	return cmp.Or(b.Time.Compare(a.Time), strings.Compare(b.ID, a.ID))
}
