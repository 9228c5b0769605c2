package table

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/format"
	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/stats"
)

// Sheet projects the study to printed tables.
func (s *Study) Sheet() Sheet {
	sh := Sheet{
		Head: s.head(), Tools: toolsText(s.Records...), Verdicts: s.Verdicts,
		Reproduce: s.Options.Reproduce, Report: s.Options.Report,
	}
	if sh.Reproduce == "" && len(s.Records) > 0 {
		sh.Reproduce = cmdlog.Join(s.Records[0].Provenance.Command)
	}
	for _, sc := range s.Scenarios {
		tab := sc.table(s.Options)
		sh.Numbers.count(tab.Rows)
		if len(s.Scenarios) > 1 {
			tab.Title = sc.Name
		}
		sh.Tables = append(sh.Tables, tab)
	}
	sh.skip(s.Options.Skipped)
	if n := len(sh.Tables); n > 0 {
		sh.Tables[n-1].Notes = append(sh.Tables[n-1].Notes, s.Options.Notes...)
	}
	for _, of := range []func(*Scenario, Options) Table{
		(*Scenario).overheadTable, (*Scenario).toldTable, (*Scenario).partsTable,
		(*Scenario).floorTable,
	} {
		for _, sc := range s.Scenarios {
			tab := of(sc, s.Options)
			tab.Scenario = sc.Name
			if len(s.Scenarios) > 1 {
				tab.Title += ", " + tab.Scenario
			}
			if len(tab.Rows) > 0 {
				sh.Tables = append(sh.Tables, tab)
			}
		}
	}
	return sh
}

// skip puts the services that could not take part under the last table, once: the reason does not
// depend on the scenario.
func (sh *Sheet) skip(skipped []record.Skipped) {
	if len(skipped) == 0 {
		return
	}
	if len(sh.Tables) == 0 {
		sh.Tables = append(sh.Tables, Table{Columns: nameColumns()})
	}
	last := &sh.Tables[len(sh.Tables)-1]
	for _, k := range skipped {
		last.Rows = append(last.Rows, spanRow(k.Target, "skipped: "+k.Reason))
	}
}

// table builds one scenario's table: columns first, then cells column by column, because the
// printed unit belongs to the column, then footnotes numbered in reading order.
func (sc *Scenario) table(o Options) Table {
	t := Table{Scenario: sc.Name, Columns: nameColumns()}
	specs := sc.specs(o)
	for _, s := range specs {
		t.Columns = append(t.Columns, s.column)
	}
	for _, target := range sc.Targets {
		if len(target.Used) == 0 {
			t.Rows = append(t.Rows, spanRow(target.Name,
				"no good trial: "+strings.Join(target.endings(), "; ")))
			continue
		}
		row := Row{Name: target.Name, Tier: target.Tier, Cells: nameCells(target)}
		row.Cells[1].Notes = append(o.missingOf(sc.Name, target.Name), target.nameNotes()...)
		for _, s := range specs {
			c := s.cell(target)
			if s.leads != "" {
				c.Notes = AddNew(target.loadNotes(s.leads), c.Notes...)
			}
			row.Cells = append(row.Cells, c)
		}
		t.Rows = append(t.Rows, row)
	}
	untold := t.narrow()
	said := make([][]string, len(t.Rows))
	for i, row := range t.Rows {
		said[i] = append(row.doubts(), row.notes(t.Columns)...)
	}
	common := append(untold, general(said)...)
	var notes noteBook
	for i, texts := range said {
		// A row has one mark: what is to be said of its numbers is said together.
		if len(texts) > 0 {
			t.Rows[i].Cells[1].Refs = notes.refs(strings.Join(texts, "; "))
		}
	}
	t.Rows = append(t.Rows, sc.unseen(o)...)
	t.Footnotes = notes
	t.Notes = slices.Concat(sc.Method, sc.ratioNote(), sc.tierNote(o), sc.noiseNote(),
		sc.assumptionNote(), common)
	return t
}

// narrow takes out the columns that give way first and have nothing but a word: of its ratios none
// is known.
func (t *Table) narrow() (notes []string) {
	for i := len(t.Columns) - 1; i >= 0; i-- {
		c := t.Columns[i]
		known, word := false, false
		for _, r := range t.Rows {
			if r.Span == "" && r.Cells[i].N > 0 { // the one that others are over has none
				word = word || r.Cells[i].State == Unknown
				known = known || r.Cells[i].State != Unknown
			}
		}
		if c.Weight != Extra || known || !word {
			continue
		}
		for k, r := range t.Rows {
			if r.Span == "" {
				t.Rows[k].Cells = slices.Delete(r.Cells, i, i+1)
			}
		}
		t.Columns = slices.Delete(t.Columns, i, i+1)
		notes = append(notes, fmt.Sprintf("No %s of %s is known: %s.", c.Heading, c.Short,
			strings.TrimPrefix(unknownNote, notKnown+": ")))
	}
	return notes
}

// general takes out what is no row's own, to be said once for all: what a mere word in the table
// stands for, and why numbers are missing in several rows.
func general(rows [][]string) (common []string) {
	of := map[string]int{}
	spoken := func(text string) string {
		switch {
		case text == unknownNote:
			return "Unknown: " + strings.TrimPrefix(text, notKnown+": ") + "."
		case someTrials.MatchString(text):
			return "No " + someTrials.ReplaceAllString(text, " where in some trial ") + "."
		}
		return ""
	}
	for _, texts := range rows {
		for _, text := range texts {
			of[spoken(text)]++
		}
	}
	for i, texts := range rows {
		rows[i] = slices.DeleteFunc(texts, func(text string) bool {
			as := spoken(text)
			if as == "" || of[as] < 2 && text != unknownNote {
				return false
			}
			common = AddNew(common, as)
			return true
		})
	}
	return common
}

// someTrials are those that ofTrials counts.
var someTrials = regexp.MustCompile(`: in (\d+ of \d+ trials|the only trial) `)

// notes are what the cells of a row say, each thing once. Where a number is missing, the reason has
// the headings before it: "half p99, p99.9: needs …".
func (r *Row) notes(columns []Column) []string {
	var texts []string
	missing := map[string][]string{}
	for i, c := range r.Cells {
		for _, text := range c.Notes {
			texts = AddNew(texts, text)
			if c.missing() && !strings.HasPrefix(text, columns[i].Short+" ") {
				missing[text] = append(missing[text], columns[i].Heading)
			}
		}
	}
	for i, text := range texts {
		if of := missing[text]; len(of) > 0 {
			texts[i] = strings.Join(of, ", ") + ": " + text
		}
	}
	return texts
}

func nameColumns() []Column {
	return []Column{
		{Key: "tier", Heading: "tier", Align: format.Center},
		{Key: "target", Heading: "target", Align: format.Left},
	}
}

func nameCells(t *Target) []Cell {
	tier, name := noValue(Absent), named(t.Name)
	if t.Tier > 0 {
		tier = valued(float64(t.Tier), units.Whole)
	}
	name.N = len(t.Used)
	return []Cell{tier, name}
}

func spanRow(name, text string) Row {
	return Row{Name: name, Span: text, Cells: []Cell{noValue(Absent), named(name)}}
}

// noteBook numbers footnotes by first use; equal texts share a number.
type noteBook []string

func (n *noteBook) refs(text string) []int {
	at := slices.Index(*n, text)
	if at < 0 {
		at, *n = len(*n), append(*n, text)
	}
	return []int{at + 1}
}

// Planning a difference: the usual power, and no advice beyond a day's worth of blocks.
const (
	planPower  = 0.8
	planBlocks = 1000
)

// tierNote says what a tier means and what would make tiers finer.
func (sc *Scenario) tierNote(o Options) []string {
	if len(sc.Targets) < 2 || len(sc.Ranking.Tiers) == 0 {
		return nil
	}
	note := "Targets in one tier cannot be told apart with these blocks"
	if sc.Typical.SDLog > 0 {
		note += "; " + sc.plan(o)
	} else if sc.blocksUsed() < 2 {
		note += "; one block tells nothing apart, two are the least that can"
	}
	return []string{note + "."}
}

// plan says how many blocks would separate two of these targets. The level is Holm's worst case
// among all pairs, the one that the tiers were made with.
func (sc *Scenario) plan(o Options) string {
	k := 0
	for _, names := range sc.Ranking.Tiers {
		k += len(names)
	}
	alpha := (1 - o.Confidence) / float64(max(k*(k-1)/2, 1))
	needed := sc.Typical.Resolves(o.Effect, alpha, planPower)
	effect := fmt.Sprintf("%.3g %%", 100*o.Effect)
	switch more := needed - sc.blocksUsed(); {
	case needed > planBlocks:
		return fmt.Sprintf("at this noise no sensible number of blocks separates a %s difference",
			effect)
	case more > 0:
		return fmt.Sprintf("about %d more would separate a %s difference", more, effect)
	}
	return fmt.Sprintf("they suffice to separate a %s difference", effect)
}

// assumptionNote names what the intervals rest on, where it is more than nothing.
func (sc *Scenario) assumptionNote() []string {
	for _, t := range sc.Targets {
		m, ok := t.Metric(sc.Ranking.Load, sc.Ranking.Metric)
		if !ok {
			continue
		}
		switch m.Summary.Assumption {
		case stats.LogNormal:
			return []string{"Intervals from so few trials assume that trials are log-normal."}
		case stats.Moderated:
			return []string{"Intervals from so few trials assume that trials are log-normal, and " +
				"that targets are as alike in noise as they look; each uses the trials of all."}
		}
	}
	return nil
}

// head is the line over everything: what ran, how often, on what. Versions of tools stand on a line
// of their own, because a line that wraps is not read.
func (s *Study) head() string {
	targets, blocks := s.Extent()
	extent := units.Plural(targets, "target") + " × " + units.Plural(blocks, "block")
	if len(s.Records) == 0 {
		if targets == 0 {
			return "no records"
		}
		return "no records of " + extent
	}
	all := func(of func(*record.Record) string) string {
		return strings.Join(said(s.Records, of), " + ")
	}
	parts := []string{all(func(r *record.Record) string { return r.Suite })}
	if c := all(func(r *record.Record) string { return r.Contract }); c != "" {
		parts = append(parts, "contract "+c)
	}
	seeds := all(func(r *record.Record) string { return fmt.Sprint(r.Provenance.Seed) })
	parts = append(parts, extent, "seed "+seeds, hostLine(s.Records[0].Provenance))
	return strings.Join(parts, " · ")
}

// hostLine is the machine in a few words: "2 cores, Linux 6.18".
func hostLine(p record.Provenance) string {
	words := []string{units.Plural(p.Cores, "core")}
	if p.OS != "" || p.Kernel != "" {
		words = append(words, strings.TrimSpace(osName(p.OS)+" "+p.Kernel))
	}
	return strings.Join(words, ", ")
}

func osName(goos string) string {
	if goos == "" {
		return ""
	}
	return strings.ToUpper(goos[:1]) + goos[1:]
}

var versionIn = lazyregexp.New(`\d+(\.\d+)+\S*|\d+`)

// moves tells whether another version of a tool could move a target's numbers: a compiler or a
// runtime could, what only fetches and packs (npm, mvn) could not.
func moves(tool string, t record.Target) bool {
	language, runtime := strings.ToLower(t.Language), strings.ToLower(t.Runtime)
	switch tool {
	case language, runtime:
		return true
	case "java":
		return runtime == "jvm"
	case "native-image":
		return language == "java" && runtime == "native"
	case "cargo":
		return language == "rust"
	}
	return false
}
