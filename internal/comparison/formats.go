package comparison

import (
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"prony/internal/print"
	"prony/internal/stats"
	"prony/internal/table"
	"prony/internal/unit"
)

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
	for _, p := range c.Pairs {
		for _, r := range p.Rows {
			rows = append(rows, c.csvRow(p, r))
		}
	}
	return print.CSV(w, rows)
}

func (c Comparison) csvRow(p Pair, r Row) []string {
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
func JSON(w io.Writer, c Comparison) error {
	return encode(w, document(c))
}

func encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

type jsonDocument struct {
	Version     int                `json:"version"`
	Title       string             `json:"title"`
	Paired      bool               `json:"paired"`
	Confidence  float64            `json:"confidence"`
	Control     string             `json:"control,omitempty"`
	Tests       int                `json:"tests"`
	Fingerprint string             `json:"fingerprint,omitempty"`
	Unlike      []table.Difference `json:"unlike"`
	Told        []table.Difference `json:"told"`
	Warnings    []string           `json:"warnings"`
	Missing     []string           `json:"missing"`
	Reproduce   []string           `json:"reproduce"`
	Pairs       []jsonPair         `json:"pairs"`
}

type jsonPair struct {
	Scenario string      `json:"scenario"`
	A        jsonSubject `json:"a"`
	B        jsonSubject `json:"b"`
	Rows     []jsonRow   `json:"rows"`
}

type jsonSubject struct {
	Run      string   `json:"run"`
	Suite    string   `json:"suite"`
	Time     string   `json:"time,omitempty"`
	Target   string   `json:"target"`
	Commit   string   `json:"commit,omitempty"`
	Artifact string   `json:"artifact,omitempty"`
	Prony    string   `json:"prony,omitempty"`
	Machine  string   `json:"machine,omitempty"`
	Method   string   `json:"method"`
	Blocks   int      `json:"blocks"`
	Valid    int      `json:"valid"`
	Suspect  int      `json:"suspect"`
	Invalid  int      `json:"invalid"`
	Failed   int      `json:"failed"`
	Excluded []string `json:"excluded"`
}

type jsonRow struct {
	Load       string      `json:"load"`
	Model      string      `json:"model"`
	Metric     string      `json:"metric"`
	Unit       string      `json:"unit"`
	Better     string      `json:"better"`
	A          jsonValue   `json:"a"`
	B          jsonValue   `json:"b"`
	Ratio      *jsonRatio  `json:"ratio"`
	Control    *jsonRatio  `json:"control,omitempty"`
	Blocks     []jsonBlock `json:"blocks,omitempty"`
	PHolm      *float64    `json:"pHolm"`
	Outcome    string      `json:"outcome"`
	Word       string      `json:"word"`
	Detectable *float64    `json:"detectable"`
}

type jsonValue struct {
	N          int         `json:"n"`
	Center     *float64    `json:"centre"`
	Lo         *float64    `json:"lo"`
	Hi         *float64    `json:"hi"`
	Assumption string      `json:"assumption,omitempty"`
	Warning    string      `json:"warning,omitempty"`
	Withheld   string      `json:"withheld,omitempty"`
	Points     []jsonPoint `json:"points"`
}

type jsonPoint struct {
	Trial   string  `json:"trial"`
	Block   int     `json:"block"`
	Value   float64 `json:"value"`
	Verdict string  `json:"verdict"`
}

type jsonBlock struct {
	Block int     `json:"block"`
	Ratio float64 `json:"ratio"`
}

type jsonRatio struct {
	N          int      `json:"n"`
	Center     *float64 `json:"centre"`
	Lo         *float64 `json:"lo"`
	Hi         *float64 `json:"hi"`
	P          *float64 `json:"p"`
	SDLog      *float64 `json:"sdLog"`
	Assumption string   `json:"assumption,omitempty"`
	Warning    string   `json:"warning,omitempty"`
}

// document fills everything; empty lists are [] and not null, so that readers can loop.
func document(c Comparison) jsonDocument {
	d := jsonDocument{
		Version: jsonVersion, Title: c.Title, Paired: c.Paired, Confidence: c.Confidence,
		Control: c.Control, Tests: c.Tests, Fingerprint: c.Fingerprint,
		Unlike: append([]table.Difference{}, c.Unlike...),
		Told:   append([]table.Difference{}, c.Told...), Warnings: list(c.Warnings),
		Missing: list(c.Missing), Reproduce: list(c.Reproduce), Pairs: []jsonPair{},
	}
	for _, p := range c.Pairs {
		out := jsonPair{p.Scenario, jsonSubjectOf(p.A), jsonSubjectOf(p.B), []jsonRow{}}
		for _, r := range p.Rows {
			out.Rows = append(out.Rows, jsonRowOf(r))
		}
		d.Pairs = append(d.Pairs, out)
	}
	return d
}

func jsonSubjectOf(x Subject) jsonSubject {
	return jsonSubject{x.Run, x.Suite, x.Time, x.Target, x.Commit, x.Artifact, x.Prony, x.Machine,
		x.Method, x.Blocks, x.Counts.Valid, x.Counts.Suspect, x.Counts.Invalid, x.Counts.Failed,
		list(x.Excluded)}
}

func jsonRowOf(r Row) jsonRow {
	out := jsonRow{
		Load: r.Load, Model: r.Model, Metric: r.Metric, Unit: r.Unit, Better: r.Better,
		A: jsonValueOf(r.A), B: jsonValueOf(r.B), Ratio: jsonRatioOf(r.Ratio),
		Control: jsonRatioOf(r.Control), PHolm: finite(r.PHolm), Outcome: r.Outcome, Word: r.Word,
		Detectable: finite(r.Detectable),
	}
	for _, b := range r.Blocks {
		out.Blocks = append(out.Blocks, jsonBlock(b))
	}
	return out
}

func jsonValueOf(v Value) jsonValue {
	s := v.Summary
	out := jsonValue{N: len(v.Points), Center: finite(s.Center), Lo: finite(s.Lo), Hi: finite(s.Hi),
		Assumption: s.Assumption, Warning: s.Warning, Withheld: v.Withheld, Points: []jsonPoint{}}
	if v.Withheld != "" {
		out.Center, out.Lo, out.Hi = nil, nil, nil
	}
	for _, p := range v.Points {
		out.Points = append(out.Points, jsonPoint{p.Trial, p.Block, p.Value, p.Verdict})
	}
	return out
}

func jsonRatioOf(r *stats.Ratio) *jsonRatio {
	if r == nil {
		return nil
	}
	return &jsonRatio{r.N, finite(r.Center), finite(r.Lo), finite(r.Hi), finite(r.P),
		finite(r.SDLog), r.Assumption, r.Warning}
}

func list(words []string) []string { return append([]string{}, words...) }

// finite is a pointer to x, or nil (null) when x is no number: JSON has no NaN.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}
