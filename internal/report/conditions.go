package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/units"
	"prony.example/record"
)

// The conditions of the numbers: warnings, the host before each trial, and facts that trials share.

// warning has one rule's findings in all trials.
type warning struct {
	Rule, Grade string
	Where       string // "5 of 30 trials, at half"
	Observed    string // the first finding's
	Limit, Hint string
	Trials      []string

	share float64 // the largest effect on a number; 0: unknown
}

// warningsOf groups findings by rule, load and grade: INVALID ones first, then by their largest
// effect on a number, then by the number of trials.
func warningsOf(records []*record.Record) []warning {
	type key struct{ rule, load, grade string }
	groups := map[key]*warning{}
	var keys []key
	for _, r := range records {
		for _, f := range r.Verdict.Findings {
			if f.Grade == record.Valid {
				continue // it moves no number; the trial's own list has it
			}
			words := wording.Finding(f)
			k := key{f.Rule, f.Load, f.Grade}
			w := groups[k]
			if w == nil {
				w = &warning{Rule: f.Rule, Grade: f.Grade, Observed: words.Observed,
					Limit: wording.Against(f), Hint: words.Hint}
				groups[k], keys = w, append(keys, k)
			}
			// The finding with the largest effect represents the group.
			if share := largest(f.PossibleBias); share > w.share {
				w.share, w.Observed, w.Limit = share, words.Observed, wording.Against(f)
				w.Hint = words.Hint
			}
			w.Trials = append(w.Trials, fmt.Sprintf("%s, %s %d: %s", table.RowName(r.Target),
				table.RepeatOf(r), r.Block, words.Observed))
		}
	}
	slices.SortStableFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(gradeRank(a.grade), gradeRank(b.grade)),
			cmp.Compare(groups[b].share, groups[a].share),
			cmp.Compare(len(groups[b].Trials), len(groups[a].Trials)))
	})
	var out []warning
	for _, k := range keys {
		w := groups[k]
		w.Where = fmt.Sprintf("%d of %d trials", len(w.Trials), len(records))
		if k.load != "" {
			w.Where += ", at " + k.load
		}
		w.Trials = units.First(w.Trials, mostListed)
		out = append(out, *w)
	}
	return out
}

// largest returns the largest share by which one of the biases can have moved a number.
func largest(biases []record.Bias) (most float64) {
	for _, b := range biases {
		most = max(most, b.Bound(false))
	}
	return most
}

func gradeRank(grade string) int {
	return map[string]int{record.Invalid: 0, record.Suspect: 1}[grade]
}

// timeline shows the run over time: a bar per trial, whose height is the host's load before it.
type timeline struct {
	Says   string
	Repeat string // the unit of a moment's Block: "block" or "start"
	Bars   []bar
	Shapes []shape // the bars by class, instead of Bars if there are many
	Rows   []moment
	Heat   bool // whether a sensor reported temperatures
	Looks  bool // whether the host was observed before trials
	PerBar int  // trials
	Most   string
}

type bar struct{ X, Width, Y, Height, Class, Title string }

// shape draws all bars of a class in a box of 100 × 100.
type shape struct{ Class, D string }

// shapesOf returns bars as paths, because a page of many elements is slow.
func shapesOf(bars []bar) (shapes []shape) {
	number := func(percent string) string { return strings.TrimSuffix(percent, "%") }
	for _, b := range bars {
		i := slices.IndexFunc(shapes, func(s shape) bool { return s.Class == b.Class })
		if i < 0 {
			i, shapes = len(shapes), append(shapes, shape{Class: b.Class})
		}
		shapes[i].D += fmt.Sprintf("M%s %sh%sv%sh-%sz", number(b.X), number(b.Y), number(b.Width),
			number(b.Height), number(b.Width))
	}
	return shapes
}

type moment struct {
	Order, Clock, Block, Target, Grade string
	Steal, Others, Waited, Heat        string
	Quiet                              string
	Findings                           string
	Anchor                             string
}

func timelineOf(records []*record.Record) timeline {
	t := timeline{Repeat: table.RepeatOf(records...)}
	most := 0.02 // smaller differences mean nothing
	for _, r := range records {
		b := r.HostBefore
		most = max(most, b.StealShare+b.OtherCPUShare)
		t.Looks = t.Looks || b.WindowNs > 0
		t.Heat = t.Heat || b.TemperatureC > 0
	}
	t.Most = units.Percent(most)
	noisy, described := 0, detailed(records)
	for i, r := range records {
		if r.HostBefore.WindowNs > 0 && !r.HostBefore.Quiet {
			noisy++
		}
		if described.includes(r) {
			t.Rows = append(t.Rows, momentOf(r, i))
		}
	}
	t.PerBar = max(1, (len(records)+mostBars-1)/mostBars)
	bars := (len(records) + t.PerBar - 1) / t.PerBar
	for trials := range slices.Chunk(records, t.PerBar) {
		t.Bars = append(t.Bars, barOf(trials, len(t.Bars), bars, most))
	}
	if many(len(t.Bars)) {
		t.Shapes, t.Bars = shapesOf(t.Bars), nil
	}
	switch {
	case !t.Looks:
		t.Says = "The records have no data on the host's load before the trials."
	case noisy == 0:
		t.Says = "The host was quiet before every trial."
	default:
		t.Says = fmt.Sprintf("The host was not quiet before %d of %d trials.", noisy, len(records))
	}
	return t
}

// barOf returns the i-th of n bars: of the trial with the busiest host, in the color of an excluded
// trial if there is one.
func barOf(trials []*record.Record, i, n int, most float64) bar {
	busy := func(r *record.Record) float64 {
		return r.HostBefore.StealShare + r.HostBefore.OtherCPUShare
	}
	r := slices.MaxFunc(trials, func(a, b *record.Record) int {
		return cmp.Compare(busy(a), busy(b))
	})
	class := trialClass(r)
	for _, t := range trials {
		if g := table.Grade(t); g != record.Valid && g != record.Suspect {
			class = trialClass(t)
		}
	}
	wide := 100 / float64(n)
	high := 6 + 90*busy(r)/most // an idle host also has a bar, because it has the trial's color
	return bar{X: place(wide * (float64(i) + 0.1)), Width: place(wide * 0.8),
		Y: place(100 - high), Height: place(high), Class: class,
		Title: fmt.Sprintf("%s, %s %d: %s; the host was %s busy before the trial",
			table.RowName(r.Target), table.RepeatOf(r), r.Block, trialMark(r),
			units.Percent(busy(r)))}
}

// trialAnchor names the i-th trial of a page.
func trialAnchor(i int) string { return fmt.Sprintf("trial-%d", i+1) }

func momentOf(r *record.Record, i int) moment {
	b := r.HostBefore
	m := moment{Order: fmt.Sprint(r.Order), Clock: r.Time.UTC().Format("15:04:05"),
		Block: fmt.Sprint(r.Block), Target: table.RowName(r.Target), Grade: trialMark(r),
		Steal: units.Absent, Others: units.Absent, Waited: units.Absent, Heat: units.Absent,
		Quiet: units.Absent, Anchor: trialAnchor(i)}
	if b.WindowNs > 0 {
		m.Steal, m.Others = units.Percent(b.StealShare), units.Percent(b.OtherCPUShare)
		m.Waited = time.Duration(b.WaitedNs).Round(100 * time.Millisecond).String()
		m.Quiet = "yes"
		if !b.Quiet {
			m.Quiet = "no: " + b.Reason
		}
		if b.TemperatureC > 0 {
			m.Heat = fmt.Sprintf("%.0f °C", b.TemperatureC)
		}
	}
	var rules []string
	for _, f := range r.Verdict.Findings {
		words := f.Rule
		if f.Load != "" {
			words += " at " + f.Load
		}
		if f.Grade != record.Valid {
			rules = table.AddNew(rules, words)
		}
	}
	m.Findings = strings.Join(rules, ", ")
	return m
}

// hostView has the host's grade, the checks that caused it, and the other checks.
type hostView struct {
	Grade            string
	Problems, Passed []record.Check
}

func hostOf(g *record.Grading) *hostView {
	if g == nil {
		return nil
	}
	v := &hostView{Grade: g.Grade}
	for _, c := range g.Checks {
		if c.Grade == record.Doubtful || c.Grade == record.Unfit {
			v.Problems = append(v.Problems, c)
		} else {
			v.Passed = append(v.Passed, c)
		}
	}
	return v
}

// shared splits the facts of trials into those that all share and those that vary.
type shared struct {
	Same    []fact
	Varying []varied
}

// varied is a fact with its values and the number of trials of each.
type varied struct {
	Name   string
	Values []fact // Name: the number of trials
}

// byNature lists facts that must differ between targets; they stay with the trials.
var byNature = []string{"target", "start", "warm-up", "artifact", "service command"}

func sharedOf(records []*record.Record) shared {
	var out shared
	var names []string
	values := map[string][]string{}
	for _, r := range records {
		for _, f := range provenanceFacts(r) {
			if slices.Contains(byNature, f.Name) {
				continue
			}
			if values[f.Name] == nil {
				names = append(names, f.Name)
			}
			values[f.Name] = append(values[f.Name], f.Value)
		}
	}
	for _, name := range names {
		v := varied{Name: name}
		counts := map[string]int{}
		for _, x := range values[name] {
			counts[x]++
		}
		if absent := len(records) - len(values[name]); absent > 0 {
			counts["not said"] = absent
		}
		if len(counts) == 1 {
			out.Same = append(out.Same, fact{name, values[name][0]})
			continue
		}
		for x, n := range counts {
			v.Values = append(v.Values, fact{fmt.Sprintf("%d trials", n), x})
		}
		slices.SortFunc(v.Values, func(a, b fact) int {
			return cmp.Or(cmp.Compare(counts[b.Value], counts[a.Value]),
				cmp.Compare(a.Value, b.Value))
		})
		if more := len(v.Values) - mostListed; more > 0 {
			v.Values = append(v.Values[:mostListed:mostListed], fact{"others", units.Plural(more,
				"further value")})
		}
		out.Varying = append(out.Varying, v)
	}
	return out
}

// without removes the facts that the page shows for the whole run.
func (s shared) without(facts []fact) []fact {
	return slices.DeleteFunc(slices.Clone(facts), func(f fact) bool {
		return slices.Contains(s.Same, f)
	})
}
