package history

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
)

// sparks has the heights of a sparkline, and wide is the number of latest runs in it.
const (
	sparks = "▁▂▃▄▅▆▇█"
	wide   = 40
)

// Sparkline draws values from lowest to highest, the latest at the right.
func Sparkline(xs []float64) string {
	xs = xs[max(0, len(xs)-wide):]
	if len(xs) == 0 {
		return ""
	}
	heights := []rune(sparks)
	lo, hi := slices.Min(xs), slices.Max(xs)
	var b strings.Builder
	for _, x := range xs {
		pos := (len(heights) - 1) / 2 // a level line if all values are equal
		if hi > lo {
			pos = int(math.Round((x - lo) / (hi - lo) * float64(len(heights)-1)))
		}
		b.WriteRune(heights[pos])
	}
	return b.String()
}

func (s *Series) values() []float64 {
	xs := make([]float64, len(s.Points))
	for i, p := range s.Points {
		xs[i] = p.Value
	}
	return xs
}

func (s *Series) name() string { return strings.TrimSpace(s.Load + " " + s.Label + s.stalls()) }

// stalls is what the name of a series says about the machine's stalls.
func (s *Series) stalls() string {
	if s.WithoutStalls {
		return " without stalls"
	}
	return ""
}

func (s *Series) head() string {
	return fmt.Sprintf("%s · %s · method %s", s.Scenario, s.Target, s.ConfigHash)
}

// says describes the state of a series.
func (s *Series) says() string {
	switch n := len(s.Points); {
	case n < Least:
		return units.Plural(n, "run") // a note explains this once
	case len(s.Changes) == 0:
		return "no change"
	}
	return units.Plural(len(s.Changes), "change")
}

// tell describes one change in a sentence.
func (s *Series) tell(c Change) string {
	before, after := s.Points[c.Index-1], s.Points[c.Index]
	return fmt.Sprintf("%s: %s, %s → %s, p %s, between %s and %s", c.Text, units.Change(c.Ratio()),
		units.Quantity(c.Before, s.Unit), units.Quantity(c.After, s.Unit), units.P(c.P),
		before.name(), after.name())
}

func (p Point) name() string {
	if p.Commit == "" || p.Commit == table.UnknownValue {
		return p.Run
	}
	return fmt.Sprintf("%s (%s)", p.Run, units.Hash(p.Commit))
}

// Forms lists the formats of a trend.
var Forms = format.Forms[Trend]{
	{Format: "text", Write: Text}, {Format: "markdown", Write: Markdown},
	{Format: "csv", Write: CSV}, {Format: "json", Write: JSON},
}

// Text prints a trend for a terminal.
func Text(w io.Writer, t Trend) error {
	p := &format.Page{}
	p.Line("%s", t.head())
	series := t.listed()
	for i := 0; i < len(series) && t.Runs > 1; {
		head, group := series[i].head(), i
		for ; i < len(series) && series[i].head() == head; i++ {
		}
		p.Line("\n%s", head)
		var rows [][]string
		for k := group; k < i; k++ {
			rows = append(rows, series[k].cells()...)
		}
		p.WriteString(format.Grid("", rows, format.Left))
	}
	if t.Runs == 1 {
		p.Line("\n%s", young)
	}
	if notes := t.notes(); len(notes) > 0 {
		p.Line("\n%s", strings.Join(notes, "\n"))
	}
	return p.To(w)
}

// notes are those of text and Markdown.
func (t Trend) notes() []string {
	if len(t.listed()) == len(t.Series) {
		return t.Notes
	}
	return append(slices.Clone(t.Notes), fmt.Sprintf("Only CSV and JSON list series of fewer than "+
		"%d runs.", Least))
}

// young replaces the series of a single run, whose results are in its report.
const young = "A history needs at least two runs. The results of a single run are in its report."

func (t Trend) head() string {
	text := fmt.Sprintf("%s, %d series; a history without a change shows one in at most %s of "+
		"cases", units.Plural(t.Runs, "run"), len(t.Series), units.Percent(t.Alpha))
	if slices.ContainsFunc(t.Series, func(s Series) bool { return len(s.Points) > wide }) {
		text += fmt.Sprintf("; lines show the latest %d runs", wide)
	}
	return text
}

// cells returns a series' line and one for each change.
func (s *Series) cells() [][]string {
	last := s.Points[len(s.Points)-1]
	rows := [][]string{{"  " + s.name(), Sparkline(s.values()), units.Quantity(last.Value, s.Unit),
		s.says()}}
	for _, c := range s.Changes {
		rows = append(rows, []string{"    " + s.tell(c)})
	}
	return rows
}

// listed returns the series that text and Markdown list. If some are long enough to detect a
// change, the others are only in CSV and JSON.
func (t Trend) listed() []Series {
	long := slices.DeleteFunc(slices.Clone(t.Series), func(s Series) bool {
		return len(s.Points) < Least
	})
	if len(long) == 0 {
		return t.Series
	}
	return long
}

// Markdown prints a trend for a job's summary: changes first, then the series.
func Markdown(w io.Writer, t Trend) error {
	p := &format.Page{}
	p.Line("%s.\n", t.head())
	var rows, changes [][]string
	series := t.listed()
	for i := range series {
		s := &series[i]
		last := s.Points[len(s.Points)-1]
		rows = append(rows, []string{s.head(), s.name(), Sparkline(s.values()),
			units.Quantity(last.Value, s.Unit), s.says()})
		for _, c := range s.Changes {
			changes = append(changes, []string{s.Target, s.name(), s.tell(c)})
		}
	}
	if t.Runs == 1 {
		p.Line("%s", young)
	} else {
		p.WriteString(format.Pipes([]string{"target", "metric", "history", "latest", ""}, rows,
			format.Left, format.Left, format.Left, format.Right, format.Left))
	}
	for _, c := range changes {
		p.Line("\n- %s", format.Markdown(strings.Join(c, ", ")))
	}
	for _, note := range t.notes() {
		p.Line("\n%s", format.Markdown(note))
	}
	return p.To(w)
}

var csvHeader = []string{
	"scenario", "target", "config_hash", "load", "model", "metric", "unit", "run", "commit",
	"time", "n",
	"value", "lo", "hi", "change", "before", "after", "p", "without_stalls",
}

// CSV prints a line for each run of each series; the columns after hi are filled if the level
// changes, and the last one in a series without the machine's stalls.
func CSV(w io.Writer, t Trend) error {
	rows := [][]string{csvHeader}
	for i := range t.Series {
		s := &t.Series[i]
		for k, p := range s.Points {
			row := []string{s.Scenario, s.Target, s.ConfigHash, s.Load, s.Model, s.Metric, s.Unit,
				p.Run, p.Commit, p.Time.UTC().Format(time.RFC3339), strconv.Itoa(p.N),
				units.Raw(p.Value), units.Raw(p.Lo), units.Raw(p.Hi), "", "", "", "", ""}
			if s.WithoutStalls {
				row[len(row)-1] = "true"
			}
			for _, c := range s.Changes {
				if c.Index == k {
					copy(row[len(row)-5:], []string{c.Text, units.Raw(c.Before), units.Raw(c.After),
						units.Raw(c.P)})
				}
			}
			rows = append(rows, row)
		}
	}
	return format.CSV(w, rows)
}

const jsonVersion = 1

// JSON prints a trend for programs; docs/formats/trend-json.md describes the format.
func JSON(w io.Writer, t Trend) error { return format.JSON(w, document{jsonVersion, t}) }

// document is a trend with the version of its format.
type document struct {
	Version int `json:"version"`
	Trend
}
