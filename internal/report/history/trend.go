// Package history finds changes in the history of many runs: for every scenario, target and metric
// it has the values of the runs in the order of time, and the points at which their level changes.
//
// Find makes a Trend of runs and is pure; Text, Markdown, CSV and JSON print it. Runs that were not
// measured in the same way (table.Method) are never in one series, because a change of method would
// look like one of the service.
//
// Non-goals: it reads no files, compares no two runs (package compare does), and has no statistics
// of its own: levels come from package table, change points from package stats.
package history

import (
	"cmp"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"prony.example/internal/analysis/table"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// Run has the head and the records of one run.
type Run struct {
	Head    record.Run
	Records []*record.Record
	Bad     []*record.BadRecord // lines that were left out
}

// Options select the metrics and targets.
type Options struct {
	Metrics []string // "p99" or "half/p99"; empty: the usual ones; "all": all
	Targets []string // rows' names; empty: all
	// Alpha is the probability that a history without changes shows any change, for all series
	// together; 0 means 0.05.
	Alpha float64
}

// Least is the number of runs that a series needs to detect a change: three on each side.
const Least = 6

const defaultAlpha = 0.05

// Trend has the series of all runs.
type Trend struct {
	Runs   int      `json:"runs"`
	Alpha  float64  `json:"alpha"`
	Series []Series `json:"series"`
	Notes  []string `json:"notes"` // sentences on series that were kept separate or left out
}

// Series is one metric of one target under one scenario and one method, oldest first.
type Series struct {
	Scenario   string `json:"scenario"`
	Target     string `json:"target"`
	ConfigHash string `json:"configHash"` // fingerprint
	Load       string `json:"load"`
	Model      string `json:"model"`
	Metric     string `json:"metric"`
	Unit       string `json:"unit"`
	Label      string `json:"-"` // of the metric, for people
	// WithoutStalls marks a percentile without the machine's stalls. Runs in which it is unknown
	// without them are another series.
	WithoutStalls bool     `json:"withoutStalls,omitempty"`
	Points        []Point  `json:"points"`
	Changes       []Change `json:"changes"`

	method table.Method
}

// Point is a run's value: the center of its trials.
type Point struct {
	Run    string    `json:"run"`
	Commit string    `json:"commit"`
	Time   time.Time `json:"time"` // UTC, whole seconds
	N      int       `json:"n"`    // trials
	Value  float64   `json:"value"`
	Lo     float64   `json:"lo"` // NaN without an interval
	Hi     float64   `json:"hi"`
}

// Change is a point at which the level changes.
type Change struct {
	// index of the first point of the new level; Run and Commit belong to it
	Index  int     `json:"index"`
	Run    string  `json:"run"`
	Commit string  `json:"commit"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	P      float64 `json:"p"`
	Worse  bool    `json:"worse"`
	Text   string  `json:"text"` // "slower"
}

// Ratio returns the new level divided by the old one.
func (c Change) Ratio() float64 { return c.After / c.Before }

// Join joins the series that Of has made of each run, the oldest run first. It lets callers read
// runs one by one, because the records of many runs do not fit into memory together.
func Join(runs [][]Series, o Options) Trend { return JoinAll(slices.Values(runs), o) }

// JoinAll is Join for runs whose series do not fit into memory together either.
func JoinAll(runs iter.Seq[[]Series], o Options) Trend {
	o.Alpha = cmp.Or(o.Alpha, defaultAlpha)
	t := Trend{Alpha: o.Alpha}
	places := map[[6]string]int{}
	var last []Series
	for run := range runs {
		if copies(last, run) {
			continue
		}
		last = run
		t.Runs++
		for _, s := range run {
			key := [6]string{s.Scenario, s.Target, s.Load, s.Metric, s.ConfigHash, s.stalls()}
			i, known := places[key]
			if !known {
				i, places[key] = len(t.Series), len(t.Series)
				empty := s
				empty.Points = nil
				t.Series = append(t.Series, empty)
			}
			t.Series[i].Points = append(t.Series[i].Points, s.Points...)
		}
	}
	slices.SortStableFunc(t.Series, func(a, b Series) int {
		return cmp.Or(cmp.Compare(a.Scenario, b.Scenario), cmp.Compare(a.Target, b.Target))
	})
	long := 0
	for _, s := range t.Series {
		if len(s.Points) >= Least {
			long++
		}
	}
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i := range t.Series {
		all.Go(func() error {
			t.Series[i].find(o.Alpha / float64(max(1, long)))
			return nil
		})
	}
	_ = all.Wait() // none fails
	t.short(len(t.Series) - long)
	t.apart()
	return t
}

// copies reports whether two runs are one in two folders: they began at the same time and have the
// same values. Their names can differ.
func copies(a, b []Series) bool {
	return len(a) > 0 && slices.EqualFunc(a, b, func(x, y Series) bool {
		return x.Scenario == y.Scenario && x.Target == y.Target && x.Load == y.Load &&
			x.Metric == y.Metric && x.ConfigHash == y.ConfigHash &&
			slices.EqualFunc(x.Points, y.Points, func(p, q Point) bool {
				return p.Time.Equal(q.Time) && p.Commit == q.Commit && p.N == q.N &&
					p.Value == q.Value && cmp.Compare(p.Lo, q.Lo) == 0 // NaN without an interval
			})
	})
}

// began returns the start of a run's first trial; a run without one comes first.
func began(r Run) (first time.Time) {
	for i, rec := range r.Records {
		if i == 0 || rec.Time.Before(first) {
			first = rec.Time
		}
	}
	return first
}

// Of makes the series of one run, with a point each, from the study of its records. It leaves out
// rows of another checkout, because they belong to another commit.
func Of(r Run, study table.Study, o Options) (out []Series) {
	for _, sc := range study.Scenarios {
		for _, target := range sc.Targets {
			if target.Info.Origin != "" || len(target.Used) == 0 ||
				len(o.Targets) > 0 && !slices.Contains(o.Targets, target.Name) {
				continue
			}
			method := table.MethodOf(target.Used, r.Head.Requests[sc.Name])
			print := method.Fingerprint()
			for _, m := range target.Metrics {
				if m.Known() && table.Selected(m, sc.Loads, o.Metrics) {
					out = append(out, Series{
						Scenario: sc.Name, Target: target.Name, Load: m.Load, Model: m.Model,
						Metric: m.Name, Unit: m.Unit, Label: metric.Named(m.Name, m.Unit).Label,
						ConfigHash: print, WithoutStalls: m.StallFree, method: method,
						Points: []Point{pointOf(r, target.Used[0], m)},
					})
				}
			}
		}
	}
	return out
}

func pointOf(r Run, first *record.Record, m table.Metric) Point {
	s := m.Summary
	return Point{
		Run: r.Head.ID, Commit: first.Provenance.Commit,
		Time:  began(r).UTC().Truncate(time.Second),
		Value: s.Center, Lo: s.Lo, Hi: s.Hi, N: s.N,
	}
}

// find marks the changes of the level.
func (s *Series) find(alpha float64) {
	if len(s.Points) < Least {
		return
	}
	meaning := metric.Named(s.Metric, s.Unit)
	for _, c := range stats.Changes(s.values(), alpha) {
		place := s.Points[c.At]
		out := Change{
			Index:  c.At,
			Run:    place.Run,
			Commit: place.Commit,
			Before: c.Before,
			After:  c.After,
			P:      c.P,
			Text:   meaning.Better,
		}
		if c.After > c.Before != meaning.Higher {
			out.Worse, out.Text = true, meaning.Worse
		}
		s.Changes = append(s.Changes, out)
	}
}

// Regressed reports whether a series' present level is worse than the one before, and began within
// the latest runs (0: at any time). Older changes are considered known.
func (s *Series) Regressed(latest int) bool {
	if len(s.Changes) == 0 {
		return false
	}
	last := s.Changes[len(s.Changes)-1]
	return last.Worse && (latest == 0 || len(s.Points)-last.Index <= latest)
}

// Regressions returns the series that Regressed.
func (t *Trend) Regressions(latest int) (out []*Series) {
	for i := range t.Series {
		if t.Series[i].Regressed(latest) {
			out = append(out, &t.Series[i])
		}
	}
	return out
}

// short adds a note that some series are too short to detect a change: only one, because in a young
// history hundreds of series are.
func (t *Trend) short(n int) {
	if n == 0 {
		return
	}
	verb := "have"
	if n == 1 {
		verb = "has"
	}
	t.Notes = append(t.Notes, fmt.Sprintf("%d of %d series %s fewer than %d runs with one "+
		"configuration, so no change can be detected in them.", n, len(t.Series), verb, Least))
}

// apart notes which series of one target were not joined, and how their methods differ.
func (t *Trend) apart() {
	type pair struct{ scenario, target, a, b string }
	noted := map[pair]bool{} // many metrics have the same two configurations
	for i := range t.Series {
		a := &t.Series[i]
		for j := i + 1; j < len(t.Series); j++ {
			b := &t.Series[j]
			if a.Scenario != b.Scenario || a.Target != b.Target {
				break // they are in this order
			}
			hashes := pair{a.Scenario, a.Target, min(a.ConfigHash, b.ConfigHash),
				max(a.ConfigHash, b.ConfigHash)}
			switch {
			case a.ConfigHash != b.ConfigHash:
				if !noted[hashes] {
					t.note(a, b)
				}
				noted[hashes] = true
			case a.Load == b.Load && a.Metric == b.Metric && a.WithoutStalls != b.WithoutStalls:
				t.Notes = table.AddNew(t.Notes, fmt.Sprintf("%s, %s: runs whose %s %s includes "+
					"the machine's stalls are a separate series.", a.Scenario, a.Target, a.Load,
					a.Label))
			}
		}
	}
	if len(t.Series) == 0 && t.Runs > 0 {
		t.Notes = append(t.Notes, "No run has a usable value of the requested metrics.")
	}
}

func (t *Trend) note(a, b *Series) {
	binding, reported := a.method.Differences(b.method)
	subject := "a setting that only one of these runs recorded"
	if len(binding) > 0 {
		subject = binding[0].String()
	} else if len(reported) > 0 {
		subject = reported[0].String()
	}
	if n := len(binding); n > 1 {
		subject += fmt.Sprintf(" and %d more", n-1)
	}
	note := fmt.Sprintf("%s, %s: runs with configurations %s and %s are separate series, "+
		"because they differ in %s.", a.Scenario,
		a.Target, a.ConfigHash, b.ConfigHash, subject)
	t.Notes = table.AddNew(t.Notes, note)
}
