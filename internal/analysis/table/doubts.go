package table

import (
	"fmt"
	"slices"
	"strings"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/units"
	"prony.example/record"
)

// doubt collects what made trials of one target SUSPECT, INVALID or failed, for a footnote: either
// whole trials or one of their loads.
type doubt struct {
	load   string // empty: the whole trial
	grade  string
	blocks []int  // of the affected trials
	trials int    // all trials of the target
	repeat string // "block" or "start": the unit of blocks
	events []event
}

// event is one reason in one trial.
type event struct {
	block    int
	rule     string
	observed observed
}

func (d *doubt) add(r *record.Record, events []event) {
	d.blocks = append(d.blocks, r.Block)
	for _, e := range events {
		e.block = r.Block
		d.events = append(d.events, e)
	}
}

// mostRules bounds how many rules one footnote names.
const mostRules = 5

// text formats the doubt: "half INVALID in block 3, not in the numbers: delivered (96.2 % sent <
// 99.0 %)". It names a rule's blocks if they differ from the footnote's.
func (d *doubt) text(fate string) string {
	site := d.where()
	var parts []string
	for _, rule := range d.rules() {
		var snapshot []observed
		var blocks []int
		for _, e := range d.events {
			if e.rule == rule {
				snapshot, blocks = append(snapshot, e.observed), append(blocks, e.block)
			}
		}
		part := rule
		if addr := blocksText(d.repeat, blocks); d.trials > 1 && " in "+addr != site {
			part += " in " + addr
		}
		if subject := several(snapshot); subject != "" {
			part += " (" + subject + ")"
		}
		parts = append(parts, part)
	}
	head := strings.TrimSpace(d.load + " " + d.grade)
	return head + site + fate + ": " + units.Few(parts, mostRules)
}

// notes returns the text as a note, or nil without a reason.
func (d *doubt) notes(fate string) []Note {
	if len(d.events) == 0 {
		return nil
	}
	return []Note{{Kind: NoteTrialsDoubted, Load: d.load, Args: []any{fated{d, fate}}}}
}

// fated is a doubt with the consequence for its trials.
type fated struct {
	*doubt
	fate string
}

func (f fated) String() string { return f.text(f.fate) }

func (d *doubt) where() string {
	if d.trials < 2 {
		return ""
	}
	return " in " + blocksText(d.repeat, d.blocks)
}

// rules returns the different rules in order of appearance.
func (d *doubt) rules() []string {
	return Distinct(d.events, func(e event) string { return e.rule })
}

// wholeDoubt collects the trials that have a grade as a whole.
func (t *Target) wholeDoubt(grade string) *doubt {
	d := &doubt{grade: grade, trials: len(t.Trials), repeat: t.repeat()}
	for _, r := range t.Trials {
		if wholeGrade(r) == grade {
			d.add(r, wholeEvents(r, grade))
		}
	}
	return d
}

func wholeEvents(r *record.Record, grade string) []event {
	if grade == StoppedGrade {
		step, _ := Failure(r)
		return []event{{rule: step}}
	}
	if grade == FailedGrade {
		step, subject := Failure(r)
		return []event{{rule: step, observed: observed{words: subject}}}
	}
	if unexplained(r) {
		return []event{{rule: noFinding}}
	}
	return events(r, grade, func(f record.Finding) bool { return ofWhole(r, f) })
}

// events returns a record's matching findings of one grade. It skips bounded findings if they are
// SUSPECT, because the numbers that they move name them (see Target.doubt).
func events(r *record.Record, grade string, match func(record.Finding) bool) []event {
	var out []event
	for _, f := range r.Verdict.Findings {
		if findingGrade(r, f) == grade && match(f) &&
			(grade != record.Suspect || len(f.PossibleBias) == 0) {
			out = append(out, event{rule: f.Rule, observed: observe(f, grade == record.Suspect)})
		}
	}
	return out
}

// loadDoubt collects the trials in which one load has a grade because of findings on that load, or
// on the load that its rate is a share of.
func (t *Target) loadDoubt(load, grade string) *doubt {
	d := &doubt{load: load, grade: grade, trials: len(t.Trials), repeat: t.repeat()}
	for _, r := range t.Trials {
		if loadOf(r, load) == nil || !good(wholeGrade(r)) || LoadGrade(r, load) != grade {
			continue
		}
		ownEvents := events(r, grade, func(f record.Finding) bool {
			return f.Load == load && f.Phase != record.PhaseSlices
		})
		if grade == record.Invalid {
			ownEvents = append(ownEvents, inherited(r, load)...)
		}
		if len(ownEvents) > 0 {
			d.add(r, ownEvents)
		}
	}
	return d
}

// inherited returns the events that make a load INVALID because of the load that sets its rate.
func inherited(r *record.Record, load string) []event {
	base := baseOf(r, load)
	if base == "" {
		return nil
	}
	var rules []string
	for _, e := range events(r, record.Invalid, func(f record.Finding) bool {
		return f.Load == base && f.Phase != record.PhaseSlices
	}) {
		rules = append(rules, e.rule)
	}
	if len(rules) == 0 {
		return nil
	}
	words := share(loadOf(r, load).RateOf) + ", INVALID by " + strings.Join(rules, ", ")
	return []event{{rule: "rate", observed: observed{words: words}}}
}

// share prints "50% of peak" as "50 % of peak".
func share(rateOf string) string { return strings.Replace(rateOf, "%", " %", 1) }

// Consequences for the trials of a footnote.
const (
	kept     = ", kept"
	excluded = ", excluded from results"
)

// nameNotes returns the footnotes on a target's name, which are about whole trials.
func (t *Target) nameNotes() []Note {
	var notes []Note
	for _, way := range []struct{ grade, fate string }{
		{record.Invalid, excluded}, {FailedGrade, excluded}, {StoppedGrade, excluded},
		{record.Suspect, kept},
	} {
		notes = append(notes, t.wholeDoubt(way.grade).notes(way.fate)...)
	}
	return append(append(notes, t.remarks()...), t.Method...)
}

// remarks returns notes on findings that leave the numbers valid, with the loads in which they were
// found. The text comes from the first trial with the rule.
func (t *Target) remarks() (notes []Note) {
	var rules []string
	for _, r := range t.Trials {
		for _, f := range r.Verdict.Findings {
			if !f.Note || slices.Contains(rules, f.Rule) {
				continue
			}
			rules = append(rules, f.Rule)
			var loads Loads
			for _, g := range r.Verdict.Findings {
				if g.Rule == f.Rule && g.Note {
					loads = append(loads, g.Load)
				}
			}
			w := wording.Finding(f)
			notes = append(notes, NoteOf(NoteRemarked, loads, w.Observed, w.Hint))
		}
	}
	return notes
}

// loadNotes returns the footnotes on the first number of a load.
func (t *Target) loadNotes(load string) []Note {
	var notes []Note
	if len(t.offers(load)) > 0 {
		notes = t.loadDoubt(load, record.Invalid).notes(excluded)
	}
	return append(notes, t.loadDoubt(load, record.Suspect).notes(kept)...)
}

// lost returns the reason why an offered load has no number.
func (t *Target) lost(load string) Note {
	if why := t.loadDoubt(load, record.Invalid).notes(""); len(why) > 0 {
		return why[0]
	}
	return NoteOf(NoteAllInvalid, load)
}

// endings returns the reasons why a target has no number at all.
func (t *Target) endings() Footnote {
	var notes Footnote
	for _, grade := range []string{record.Invalid, FailedGrade, StoppedGrade} {
		notes = append(notes, t.wholeDoubt(grade).notes("")...)
	}
	for _, load := range loadNames(t.Trials) {
		notes = append(notes, t.loadDoubt(load, record.Invalid).notes("")...)
	}
	return notes
}

// repeat returns the name of the target's blocks: "start" or "block".
func (t *Target) repeat() string { return RepeatOf(t.Trials...) }

// RepeatOf returns the name of these trials' blocks: "start" if one of them ran side by side with
// others, else "block".
func RepeatOf(trials ...*record.Record) string {
	if slices.ContainsFunc(trials, func(r *record.Record) bool { return r.SideBySide != nil }) {
		return (&Starts{}).Repeat()
	}
	return (*Starts)(nil).Repeat()
}

// blocksText lists blocks, or starts, with a dash between three or more consecutive numbers:
// "blocks 1–3, 5".
func blocksText(repeat string, blocks []int) string {
	sorted := slices.Clone(blocks)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	if len(sorted) == 1 {
		return fmt.Sprintf("%s %d", repeat, sorted[0])
	}
	var parts []string
	for i := 0; i < len(sorted); {
		end := i
		for end+1 < len(sorted) && sorted[end+1] == sorted[end]+1 {
			end++
		}
		if end-i < 2 {
			parts = append(parts, fmt.Sprint(sorted[i]))
			i++
			continue
		}
		parts = append(parts, fmt.Sprintf("%d–%d", sorted[i], sorted[end]))
		i = end + 1
	}
	return repeat + "s " + strings.Join(parts, ", ")
}

// observed is the value of a finding in few words.
type observed struct {
	words string  // "31.5 %", or the finding's text if it has no printed number
	sign  string  // ">" or "<": the side of the limit; empty if unknown
	limit string  // "2.0 %"; empty if the limit is not a quantity ("steady", "none")
	over  float64 // value/limit or limit/value, at least 1
}

// observe returns the value of a finding. If brief is true, the words are the number alone, which
// is enough for a doubt; a finding that excludes a number gets its full text.
func observe(f record.Finding, brief bool) observed {
	w := wording.Finding(f)
	o := observed{words: w.Observed}
	if !w.Quantity {
		return o
	}
	o.limit = w.Limit
	if w.Amount == "" {
		return o
	}
	if brief {
		o.words = w.Amount
	}
	switch {
	case w.Amount == w.Limit: // beyond the limit by less than is printed
	case f.Value > f.Limit:
		o.sign, o.over = ">", f.Value/f.Limit
	case f.Value < f.Limit:
		o.sign, o.over = "<", f.Limit/f.Value
	}
	return o
}

// text formats the value with its limit, "31.5 % > 2.0 %".
func (o observed) text() string {
	switch {
	case o.limit == "":
		return o.words
	case o.sign == "": // beyond the limit by less than is printed, or no number
		return strings.TrimPrefix(o.words+", limit "+o.limit, ", ")
	}
	return o.words + " " + o.sign + " " + o.limit
}

// several formats what one rule found in several trials: the worst value if values are comparable,
// else the first as an example.
func several(all []observed) string {
	worst := all[0]
	same, comparable := true, true
	for _, o := range all {
		same = same && o.text() == worst.text()
		comparable = comparable && o.sign != "" && o.sign == all[0].sign
	}
	if same {
		return worst.text()
	}
	if !comparable {
		return "e.g. " + all[0].text()
	}
	for _, o := range all {
		if o.over > worst.over {
			worst = o
		}
	}
	return "at worst " + worst.text()
}
