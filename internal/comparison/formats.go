package comparison

import (
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"prony/internal/print"
	"prony/internal/unit"
)

// Forms are those of a comparison; its page is package report's.
var Forms = print.Forms[Comparison]{
	{Format: "text", Write: Text}, {Format: "markdown", Write: Markdown},
	{Format: "csv", Write: CSV}, {Format: "json", Write: JSON},
}

// GateForms are those of a gate, likewise.
var GateForms = print.Forms[Gate]{
	{Format: "text", Write: GateText}, {Format: "markdown", Write: GateMarkdown},
	{Format: "csv", Write: GateCSV}, {Format: "json", Write: GateJSON},
}

// Markdown prints a comparison for a pull request or a job's summary.
func Markdown(w io.Writer, c Comparison) error {
	p := &print.Page{}
	p.Line("**%s**", print.Markdown(c.Title))
	c.banner(p)
	for _, pair := range c.Pairs {
		p.Line("\n%s\n", print.Markdown(pair.heading()))
		p.Line("- A: %s\n- B: %s\n", print.Markdown(pair.A.line()), print.Markdown(pair.B.line()))
		p.WriteString(pipes(headings, cellsOf(pair)))
		for _, note := range notes(pair) {
			p.Line("\n%s", print.Markdown(note))
		}
	}
	for _, note := range c.closing() {
		p.Line("\n%s", print.Markdown(note))
	}
	return p.To(w)
}

// banner prints what must not be missed, in Markdown.
func (c Comparison) banner(p *print.Page) {
	if banner := c.Banner(); banner != "" {
		p.Line("\n> **%s**", print.Markdown(banner))
		for _, d := range c.Unlike {
			p.Line("> - %s", print.Markdown(d.String()))
		}
	}
	for _, warning := range c.Warnings {
		p.Line("\n> %s", print.Markdown(warning))
	}
}

// pipes is a Markdown table, its first and last columns to the left.
func pipes(headings []string, rows [][]string) string {
	aligns := slices.Repeat([]print.Align{print.Right}, len(headings))
	aligns[0], aligns[len(aligns)-1] = print.Left, print.Left
	return print.Pipes(headings, rows, aligns...)
}

var csvHeader = []string{
	"scenario", "load", "model", "metric", "unit", "better", "a_run", "a_target", "a_n", "a_centre",
	"a_lo", "a_hi", "b_run", "b_target", "b_n", "b_centre", "b_lo", "b_hi", "ratio", "ratio_lo",
	"ratio_hi", "confidence", "p", "p_holm", "tests", "outcome", "detectable", "paired", "control",
	"unlike", "withheld",
}

// CSV prints a comparison in long form, a line for each row; docs/formats/compare-json.md says what
// the columns are.
func CSV(w io.Writer, c Comparison) error {
	rows := [][]string{csvHeader}
	for p, r := range c.each() {
		rows = append(rows, c.csvRow(p, r))
	}
	return print.CSV(w, rows)
}

func (c Comparison) csvRow(p *Pair, r *Row) []string {
	row := []string{p.Scenario, r.Load, r.Model, r.Metric, r.Unit, r.Better}
	for _, s := range []struct {
		x Subject
		v Value
	}{{p.A, r.A}, {p.B, r.B}} {
		row = append(row, s.x.Run, s.x.Target, strconv.Itoa(len(s.v.Points)),
			unit.Raw(s.v.Summary.Center), unit.Raw(s.v.Summary.Lo), unit.Raw(s.v.Summary.Hi))
	}
	lo, hi, p1 := math.NaN(), math.NaN(), math.NaN()
	if r.HasRatio() {
		lo, hi, p1 = r.Ratio.Lo, r.Ratio.Hi, r.Ratio.P
	}
	withheld := strings.Trim(r.A.Withheld+"; "+r.B.Withheld, "; ")
	return append(row, unit.Raw(1+r.Change()), unit.Raw(lo), unit.Raw(hi), unit.Raw(c.Confidence),
		unit.Raw(p1), unit.Raw(r.PHolm), strconv.Itoa(c.Tests), r.Outcome, unit.Raw(r.Detectable),
		strconv.FormatBool(c.Paired), c.Control, differences(c.Unlike), withheld)
}

const jsonVersion = 1

// JSON prints a comparison for programs; docs/formats/compare-json.md describes it.
func JSON(w io.Writer, c Comparison) error { return print.JSON(w, document{jsonVersion, c}) }

// document is a comparison with the version of its form.
type document struct {
	Version int `json:"version"`
	Comparison
}
