package compare

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/stats"
)

// Forms lists the formats of a comparison; package report has its page.
var Forms = format.Forms[Comparison]{
	{Format: "text", Write: Text}, {Format: "markdown", Write: Markdown},
	{Format: "csv", Write: CSV}, {Format: "json", Write: JSON},
}

// GateForms lists the formats of a gate.
var GateForms = format.Forms[Gate]{
	{Format: "text", Write: GateText}, {Format: "markdown", Write: GateMarkdown},
	{Format: "csv", Write: GateCSV}, {Format: "json", Write: GateJSON},
}

// Markdown prints a comparison for a pull request or a job's summary.
func Markdown(w io.Writer, c Comparison) error {
	p := &format.Page{}
	p.Line("**%s**", format.Markdown(c.Title))
	c.banner(p)
	for _, pair := range c.Pairs {
		p.Line("\n%s\n", format.Markdown(pair.heading()))
		p.Line("- A: %s\n- B: %s\n", format.Markdown(pair.A.line()), format.Markdown(pair.B.line()))
		p.WriteString(pipes(headings, cellsOf(pair)))
		for _, note := range pair.Notes() {
			p.Line("\n%s", format.Markdown(note))
		}
	}
	for _, note := range c.closing() {
		p.Line("\n%s", format.Markdown(note))
	}
	return p.To(w)
}

// banner prints differences in method and warnings in Markdown.
func (c Comparison) banner(p *format.Page) {
	if banner := c.Banner(); banner != "" {
		p.Line("\n> **%s**", format.Markdown(banner))
		for _, d := range c.Mismatches {
			p.Line("> - %s", format.Markdown(d.String()))
		}
	}
	for _, warning := range c.Warnings {
		p.Line("\n> %s", format.Markdown(warning))
	}
}

// pipes returns a Markdown table, its first and last columns aligned left.
func pipes(headings []string, rows [][]string) string {
	aligns := slices.Repeat([]format.Align{format.Right}, len(headings))
	aligns[0], aligns[len(aligns)-1] = format.Left, format.Left
	return format.Pipes(headings, rows, aligns...)
}

var csvHeader = []string{
	"scenario", "load", "model", "metric", "unit", "better", "a_run", "a_target", "a_n", "a_center",
	"a_lo", "a_hi", "b_run", "b_target", "b_n", "b_center", "b_lo", "b_hi", "ratio", "ratio_lo",
	"ratio_hi", "confidence", "p", "p_holm", "tests", "outcome", "detectable", "paired", "control",
	"mismatches", "withheld", "source", "grade",
}

// CSV prints a comparison in long form, a line for each row; docs/formats/compare-json.md describes
// the columns.
func CSV(w io.Writer, c Comparison) error {
	rows := [][]string{csvHeader}
	for p, r := range c.each() {
		rows = append(rows, c.csvRow(p, r))
	}
	return format.CSV(w, rows)
}

func (c Comparison) csvRow(p *Pair, r *Row) []string {
	row := []string{p.Scenario, r.Load, r.Model, r.Metric, r.Unit, r.Better}
	for _, s := range []struct {
		x Subject
		v Value
	}{{p.A, r.A}, {p.B, r.B}} {
		row = append(row, s.x.Run, s.x.Target, strconv.Itoa(len(s.v.Points)),
			units.Raw(s.v.Summary.Center), units.Raw(s.v.Summary.Lo), units.Raw(s.v.Summary.Hi))
	}
	lo, hi, p1 := math.NaN(), math.NaN(), math.NaN()
	if r.HasRatio() {
		lo, hi, p1 = r.Ratio.Lo, r.Ratio.Hi, r.Ratio.P
	}
	var withheld table.Footnote
	for _, v := range []Value{r.A, r.B} {
		if v.Withheld != nil {
			withheld = append(withheld, *v.Withheld)
		}
	}
	return append(
		row,
		units.Raw(1+r.Change()),
		units.Raw(lo),
		units.Raw(hi),
		units.Raw(c.Confidence),
		units.Raw(
			p1,
		),
		units.Raw(r.PHolm),
		strconv.Itoa(c.Tests),
		r.Outcome,
		units.Raw(r.Detectable),
		strconv.FormatBool(c.Paired),
		c.Control,
		differences(c.Mismatches),
		withheld.String(),
		string(r.Source),
		r.Grade,
	)
}

const jsonVersion = 1

// JSON prints a comparison for programs; docs/formats/compare-json.md describes the format.
func JSON(w io.Writer, c Comparison) error { return format.JSON(w, document{jsonVersion, c}) }

// document is a comparison with the version of its format.
type document struct {
	Version int `json:"version"`
	Comparison
}

var gateHeadings = []string{"", "A", "B", "B to A", "allowed", "gate"}

func (g Gate) cells() (out [][]string) {
	for _, k := range g.Checks {
		name := k.Row.Name()
		if len(g.Comparison.Pairs) > 1 {
			name = k.Pair.B.Target + " " + name
		}
		out = append(out, []string{
			name, Level(k.Row.A, k.Row.Unit), Level(k.Row.B, k.Row.Unit), changeText(*k.Row),
			allowed(k.Most, k.Row.Better), k.Outcome,
		})
	}
	return out
}

// Sentence summarizes the gate in a sentence.
func (g Gate) Sentence() string {
	return strings.ToUpper(g.Outcome) + ": " + g.Reasons() + "."
}

// Reasons returns the reasons for the outcome, each once.
func (g Gate) Reasons() string {
	var why []string
	named := map[string]bool{}
	for _, k := range g.Checks {
		if k.Outcome == g.Outcome {
			w := k.Why
			if len(g.Comparison.Pairs) > 1 {
				w = k.Pair.B.Target + ": " + w
			}
			if !named[w] {
				why = append(why, w)
			}
			named[w] = true
		}
	}
	return strings.Join(units.First(why, 3), "; ")
}

// GateText prints a gate for a log.
func GateText(w io.Writer, g Gate) error {
	p := &format.Page{}
	c := g.Comparison
	p.Line("%s", c.Title)
	c.warned(p, "")
	p.Line("")
	p.WriteString(format.Grid("  ", append([][]string{gateHeadings}, g.cells()...), format.Left))
	p.Line("\n%s", sentence("", g.Sentence()))
	return p.To(w)
}

// GateMarkdown prints a gate for the summary of a job.
func GateMarkdown(w io.Writer, g Gate) error {
	p := &format.Page{}
	c := g.Comparison
	sign := cmp.Or(map[string]string{stats.Pass: "✅", stats.Fail: "❌"}[g.Outcome], "⚠️")
	p.Line("%s **%s**\n\n%s\n", sign, format.Markdown(c.Title), format.Markdown(g.Sentence()))
	p.WriteString(pipes(gateHeadings, g.cells()))
	c.banner(p)
	for _, r := range c.Reproduce {
		if r != "" {
			p.Line("\n```\n$ %s\n```", r)
		}
	}
	return p.To(w)
}

// gateCheck is one check of a gate, for programs.
type gateCheck struct {
	Scenario string `json:"scenario"`
	Target   string `json:"target"`
	Load     string `json:"load"`
	Metric   string `json:"metric"`
	// the largest allowed change for the worse, as a share
	Allowed float64 `json:"allowedChange"`
	// pass, fail, inconclusive or insufficient data
	Outcome    string `json:"outcome"`
	MoreBlocks int    `json:"moreBlocks,omitempty"` // further blocks that would decide
	Reason     string `json:"reason"`
	// whether it passes, but would fail if stalls of the machine counted
	FailsWithStalls bool `json:"failsWithStalls,omitempty"`
}

// gateDocument is a gate for programs.
type gateDocument struct {
	Version int `json:"version"`
	// pass, fail, inconclusive or insufficient data
	Outcome    string      `json:"outcome"`
	MoreBlocks int         `json:"moreBlocks,omitempty"` // further blocks that would decide
	Text       string      `json:"text"`
	Checks     []gateCheck `json:"checks"`
	Comparison document    `json:"comparison"` // as prony compare prints it
}

// GateJSON prints a gate for programs: its decision, and the comparison.
func GateJSON(w io.Writer, g Gate) error {
	out := gateDocument{jsonVersion, g.Outcome, blocks(g.More), g.Sentence(), []gateCheck{},
		document{jsonVersion, g.Comparison}}
	for _, k := range g.Checks {
		out.Checks = append(out.Checks, gateCheck{k.Pair.Scenario, k.Pair.B.Target, k.Row.Load,
			k.Row.Metric, k.Most, k.Outcome, blocks(k.More), k.Why, k.FailsWithStalls})
	}
	return format.JSON(w, out)
}

// gateHeader has the columns that GateCSV adds to those of a comparison.
var gateHeader = []string{"allowed", "gate", "more_blocks", "reason"}

// GateCSV prints a gate in long form, a line for each check: the columns of CSV, then the largest
// allowed ratio of B to A, the outcome, the number of further blocks that would decide, and the
// reason.
func GateCSV(w io.Writer, g Gate) error {
	rows := [][]string{slices.Concat(csvHeader, gateHeader)}
	for _, k := range g.Checks {
		most, more := k.Most, ""
		if k.Row.Better == Higher {
			most = -most
		}
		if n := blocks(k.More); n > 0 {
			more = strconv.Itoa(n)
		}
		rows = append(rows, append(g.Comparison.csvRow(k.Pair, k.Row), units.Raw(1+most),
			k.Outcome, more, k.Why))
	}
	return format.CSV(w, rows)
}

// blocks returns a number of further blocks, or 0 if no number is known to suffice.
func blocks(n int) int {
	if n == stats.Unresolvable {
		return 0
	}
	return n
}

// Annotations prints workflow commands, which GitHub shows next to the change: an error for a
// failed check, a warning for one that is inconclusive or passes only without the machine's stalls,
// a notice for one that passes.
func Annotations(w io.Writer, g Gate) error {
	for _, k := range g.Checks {
		kind := "warning"
		switch {
		case k.Outcome == stats.Pass && !k.FailsWithStalls:
			kind = "notice"
		case k.Outcome == stats.Fail:
			kind = "error"
		}
		title := fmt.Sprintf("prony gate %s: %s %s", k.Outcome, k.Pair.B.Target, k.Row.Name())
		_, err := fmt.Fprintf(w, "::%s title=%s::%s\n", kind, property.Replace(title),
			command.Replace(k.Why))
		if err != nil {
			return err
		}
	}
	return nil
}

// command and property escape as actions/toolkit does (packages/core/src/command.ts): the runner
// reads one command per line.
var (
	command  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
