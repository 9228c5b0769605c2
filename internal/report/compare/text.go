package compare

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/stats"
)

// headings has the headings of the table in text and Markdown; cellsOf makes its rows.
var headings = []string{"", "A", "B", "B to A", "p", "B is"}

// Text prints a comparison for a terminal.
func Text(w io.Writer, c Comparison) error {
	p := &format.Page{}
	p.Line("%s", c.Title)
	c.warned(p, "\n")
	for _, pair := range c.Pairs {
		p.Line("")
		if len(c.Pairs) > 1 || pair.Scenario != "" {
			p.Line("%s", pair.heading())
		}
		p.Line("A  %s\nB  %s\n", pair.A.line(), pair.B.line())
		rows := append([][]string{headings}, cellsOf(pair)...)
		p.WriteString(format.Grid("  ", rows, format.Left))
		for _, note := range pair.Notes() {
			p.Line("%s", sentence("  ", note))
		}
	}
	p.Line("")
	for _, note := range c.closing() {
		p.Line("%s", sentence("", note))
	}
	return p.To(w)
}

// warned prints differences in method and warnings.
func (c Comparison) warned(p *format.Page, before string) {
	if banner := c.Banner(); banner != "" {
		p.Line("%s!! %s", before, banner)
		for _, d := range c.Mismatches {
			p.Line("!!   %s", d)
		}
	}
	for _, w := range c.Warnings {
		p.Line("%s", sentence("! ", w))
	}
}

// Banner returns the warning about differences in method; empty if there are none.
func (c Comparison) Banner() string {
	if len(c.Mismatches) == 0 {
		return ""
	}
	return fmt.Sprintf("WARNING: A and B were measured under different conditions (%d "+
		"differences). The results may show these differences instead of those of the targets",
		len(c.Mismatches))
}

func (p Pair) heading() string {
	return strings.TrimPrefix(p.Scenario+" · "+p.Targets(), " · ")
}

// Targets names the targets of both sides, or the one that both have.
func (p Pair) Targets() string {
	if p.A.Target == p.B.Target {
		return p.B.Target
	}
	return p.B.Target + " against " + p.A.Target
}

// line describes a subject and how its trials ended.
func (x Subject) line() string {
	if x.ConfigHash == "" { // published
		return fmt.Sprintf("%s · %s · measured by %s", x.Target, x.Run,
			cmp.Or(x.Tool, "an unnamed tool"))
	}
	words := []string{x.Target, "run " + x.Run}
	if x.Commit != "" {
		commit, modified, _ := strings.Cut(x.Commit, " ")
		words = append(words, strings.TrimSpace("commit "+units.Hash(commit)+" "+modified))
	}
	if x.Artifact != "" {
		words = append(words, "artifact "+x.Artifact)
	}
	return strings.Join(append(words, units.Plural(x.Blocks, x.Repeat()), x.counts()), " · ")
}

func (x Subject) counts() string {
	words := []string{fmt.Sprintf("VALID %d", x.Counts.Valid)}
	for _, g := range []struct {
		name string
		n    int
	}{{"SUSPECT", x.Counts.Suspect}, {"INVALID", x.Counts.Invalid}, {"failed", x.Counts.Failed},
		{"stopped", x.Counts.Stopped}} {
		if g.n > 0 {
			words = append(words, fmt.Sprintf("%s %d", g.name, g.n))
		}
	}
	return strings.Join(words, ", ")
}

// cellsOf returns a pair's rows as texts, in the order of headings.
func cellsOf(p Pair) (out [][]string) {
	for _, r := range p.Rows {
		out = append(out, []string{
			r.Name(), Level(r.A, r.Unit), Level(r.B, r.Unit), changeText(r), units.P(r.PHolm),
			r.OutcomeText(),
		})
	}
	return out
}

// Answers returns three texts for each metric of a comparison: its name, the difference of B, and
// its meaning.
func (c Comparison) Answers() (out [][]string) {
	for _, r := range c.each() {
		out = append(out, []string{r.Name(), changeText(*r), r.OutcomeText()})
	}
	return out
}

// Name returns the name of a row.
func (r Row) Name() string { return strings.TrimSpace(r.Load + " " + r.Label) }

// blind is the smallest detectable difference that is too large to be printed: threefold.
const blind = 2

// OutcomeText returns the outcome, and without a significant difference the smallest detectable
// one.
func (r Row) OutcomeText() string {
	text := r.Text
	switch {
	case r.unsliced.Kind == table.NoteStalled:
		text = table.StalledText // Below has the reason
	case r.Outcome != Indistinguishable || math.IsNaN(r.Detectable):
	case r.Detectable > blind:
		text += " (too noisy)"
	default:
		text = fmt.Sprintf("%s (would detect ≥ %s)", r.Text, units.Percent(r.Detectable))
	}
	return text + r.suspicion()
}

// suspicion names the rules that make a row SUSPECT.
func (r Row) suspicion() string {
	if r.Grade != record.Suspect {
		return ""
	}
	return "; SUSPECT (" + strings.Join(r.Doubt.Rules, ", ") + ")"
}

// Level formats the value that a ratio refers to, else the center, with the larger arm of its
// interval.
func Level(v Value, base string) string {
	s := v.Summary
	if !math.IsNaN(v.Mean) {
		s.Center, s.Lo, s.Hi = v.Mean, min(s.Lo, v.Mean), max(s.Hi, v.Mean)
	}
	if v.Withheld != nil || math.IsNaN(s.Center) {
		return units.Absent
	}
	text := units.Quantity(s.Center, base)
	if !s.HasInterval() || s.Lo == s.Hi || s.Center == 0 {
		return text
	}
	if table.Wide(s.Lo, s.Hi) {
		return text + " ±unknown"
	}
	arm := max(s.Hi-s.Center, s.Center-s.Lo) / s.Center
	return text + " ±" + units.Percent(arm)
}

// changeText formats B to A as a difference, with its interval.
func changeText(r Row) string {
	if r.Outcome == Silent && r.withheld() {
		return units.Absent
	}
	text := units.Change(1 + r.Change())
	if r.HasRatio() {
		text += fmt.Sprintf(" (%s)", Interval(*r.Ratio))
	}
	return text
}

// Interval formats a ratio's interval as differences: "−6.1 % to −4.4 %", or "unknown" if
// table.RatioInterval has it so.
func Interval(r stats.Ratio) string {
	if table.RatioInterval(r).State == table.Unknown {
		return "unknown"
	}
	return units.Change(r.Lo) + " to " + units.Change(r.Hi)
}

// sentence wraps a text after its head, except a command that readers copy.
func sentence(head, text string) string {
	if strings.HasPrefix(text, "reproduce ") || strings.HasPrefix(text, "method ") {
		return text
	}
	return format.Wrap(head, text, format.Width, 2)
}

// Notes returns the reasons for missing numbers, each once, and the effect of the control.
func (p Pair) Notes() (out []string) {
	var reasons []lack
	var names [][]string
	for _, r := range p.Rows {
		for _, l := range lacks(r) {
			index := slices.IndexFunc(reasons, l.same)
			if index < 0 {
				index, reasons, names = len(reasons), append(reasons, l), append(names, nil)
			}
			names[index] = append(names[index], r.Name())
		}
	}
	for i, l := range reasons {
		out = append(out, l.say(names[i]...))
	}
	for _, r := range p.Rows {
		if r.Control != nil && r.Control.HasInterval() {
			out = append(out, fmt.Sprintf("the control's own %s: %s (%s)", r.Name(),
				units.Change(r.Control.Center), Interval(*r.Control)))
		}
	}
	return out
}

// lack names a side without a number, and the reason.
type lack struct {
	owner string
	why   *table.Note
}

func (l lack) same(result lack) bool { return l.owner == result.owner && l.why.Same(*result.why) }

func (l lack) say(names ...string) string {
	return fmt.Sprintf("%s no %s: %s", l.owner, strings.Join(names, ", "), l.why)
}

func lacks(r Row) (out []lack) {
	a, b := r.A.Withheld, r.B.Withheld
	if a != nil && b != nil && a.Same(*b) {
		return []lack{{"both have", a}}
	}
	for _, l := range []lack{{"A has", a}, {"B has", b}} {
		if l.why != nil {
			out = append(out, l)
		}
	}
	return out
}

// closing explains the numbers and the next steps.
func (c Comparison) closing() (out []string) {
	if c.Published && c.Tests == 0 {
		out = append(out, "B to A is the ratio of two single values. Its noise is unknown.")
		return append(out, c.rest()...)
	}
	how := c.How()
	if c.Tests > 1 {
		how += fmt.Sprintf(" p is corrected for %d rows (Holm). With fewer metrics (--metric), "+
			"smaller differences are significant.", c.Tests)
	}
	out = append(out, how)
	if c.some(seesLittle) {
		out = append(out, c.Sees())
	}
	out = append(out, c.Stalled()...)
	return append(out, c.rest()...)
}

// Repeat returns the unit of repetition: "start" if targets ran side by side, else "block".
func (c Comparison) Repeat() string {
	for _, p := range c.Pairs {
		if p.Starts != nil {
			return p.Starts.Repeat()
		}
	}
	return (*table.Starts)(nil).Repeat()
}

// Sees explains the smallest difference of a row without a significant one.
func (c Comparison) Sees() string {
	return fmt.Sprintf("\"would detect ≥ 3 %%\" names the smallest difference that this number of "+
		"%[1]ss detects in 8 of 10 cases. Detecting half of this difference takes about four "+
		"times as many %[1]ss.", c.Repeat())
}

// How explains levels and ratios.
func (c Comparison) How() string {
	how := "Welch's t-test on logarithms, unpaired"
	if c.Paired {
		how = "t-test on logarithms, paired within " + c.Repeat() + "s"
	}
	if c.some(moderated) {
		how += ", noise estimated from all targets of a run"
	}
	if !c.some(fromSlices) {
		return fmt.Sprintf("Columns A and B are geometric means, and B to A is their ratio with "+
			"its %s confidence interval (%s).", units.Percent(c.Confidence), how)
	}
	text := fmt.Sprintf("Columns A and B are geometric means of windows in which each target is "+
		"loaded alone. Column B to A comes from slices, in which the targets take turns, with "+
		"its %s confidence interval (%s)",
		units.Percent(c.Confidence), how)
	var windows []string
	for _, r := range c.each() {
		if r.HasRatio() && !fromSlices(r) {
			windows = table.AddNew(windows, r.Name())
		}
	}
	if len(windows) > 0 {
		text += "; for " + strings.Join(windows, ", ") + " the ratio comes from the windows"
	}
	return text + "."
}

func fromSlices(r *Row) bool { return r.Source == table.FromSlices }

// Below returns the lines below an answer of a comparison side by side: the extent of the
// measurement, and the findings on all starts together.
func (c Comparison) Below() (out []string) {
	if len(c.Mismatches) > 0 && len(c.Pairs) > 0 {
		p := c.Pairs[0]
		out = append(out, fmt.Sprintf("WARNING: %s and %s were measured under different "+
			"conditions: %s. The results may show these differences instead of those of the "+
			"services.", p.A.Target, p.B.Target, differences(c.Mismatches)))
	}
	for _, m := range c.Measured() {
		text := m + "."
		if c.some(fromSlices) {
			text += " Ratios come from slices, and absolute values come from windows."
		}
		out = append(out, text)
	}
	out = append(out, c.Stalled()...)
	for _, f := range c.Findings {
		out = append(out, wording.Sentence(f))
	}
	return out
}

// Stalled returns the reasons why response times are unknown without the machine's stalls.
func (c Comparison) Stalled() (out []string) {
	for _, r := range c.each() {
		if r.unsliced.Kind == table.NoteStalled {
			out = table.AddNew(out, capital(r.unsliced.String())+".")
		}
	}
	return out
}

// Measured returns the extent of each pair that ran side by side, each once: "8 starts, 320 rounds,
// 118 s".
func (c Comparison) Measured() (out []string) {
	for _, p := range c.Pairs {
		if p.Starts != nil {
			out = table.AddNew(out, p.Starts.String())
		}
	}
	return out
}

// rest returns the lines that every comparison has.
func (c Comparison) rest() (out []string) {
	for _, m := range c.Measured() {
		out = append(out, "Measured in "+m+".")
	}
	for _, m := range c.Missing {
		out = append(out, "Not compared: "+m+".")
	}
	if len(c.Differences) > 0 {
		out = append(out, "Also different, but without effect on "+
			"comparability: "+differences(c.Differences)+".")
	}
	if c.ConfigHash != "" {
		out = append(out, "method     "+c.ConfigHash+", the same on both sides")
	}
	for _, r := range c.Reproduce {
		if r != "" {
			out = append(out, "reproduce  "+r)
		}
	}
	return out
}

func (c *Comparison) some(is func(*Row) bool) bool {
	for _, r := range c.each() {
		if is(r) {
			return true
		}
	}
	return false
}

// moderated reports whether a ratio uses more than its own trials.
func moderated(r *Row) bool { return r.Ratio != nil && r.Ratio.Assumption == stats.Moderated }

func seesLittle(r *Row) bool { return r.Outcome == Indistinguishable && !math.IsNaN(r.Detectable) }

func differences(ds []table.Difference) string {
	var out []string
	for _, d := range ds {
		out = append(out, d.String())
	}
	return strings.Join(out, "; ")
}
