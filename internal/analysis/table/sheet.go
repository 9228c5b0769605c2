package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"prony.example/internal/base/cmdlog"
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
		tab.OneOfSeveral = len(s.Scenarios) > 1
		sh.Tables = append(sh.Tables, tab)
	}
	sh.Numbers = CountNumbers(sh.Tables)
	sh.skip(s.Options.Skipped)
	if n := len(sh.Tables); n > 0 {
		for _, text := range s.Options.Notes {
			sh.Tables[n-1].Notes = append(sh.Tables[n-1].Notes, NoteOf(NoteVerbatim, text))
		}
	}
	for _, value := range []func(*Scenario, Options) Table{
		(*Scenario).overheadTable, (*Scenario).toldTable, (*Scenario).partsTable,
		(*Scenario).floorTable,
	} {
		for _, sc := range s.Scenarios {
			tab := value(sc, s.Options)
			tab.Scenario, tab.OneOfSeveral = sc.Name, len(s.Scenarios) > 1
			if len(tab.Rows) > 0 {
				sh.Tables = append(sh.Tables, tab)
			}
		}
	}
	return sh
}

// skip adds the services that could not take part to the last table, once, because the reason does
// not depend on the scenario.
func (sh *Sheet) skip(skipped []record.Skipped) {
	if len(skipped) == 0 {
		return
	}
	if len(sh.Tables) == 0 {
		sh.Tables = append(sh.Tables, Table{Columns: nameColumns()})
	}
	last := &sh.Tables[len(sh.Tables)-1]
	for _, k := range skipped {
		last.Rows = append(last.Rows, spanRow(k.Target, NoteOf(NoteSkipped, k.Reason)))
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
				NoteOf(NoteNoGoodTrial, target.endings())))
			continue
		}
		row := Row{Name: target.Name, Tier: target.Tier, Cells: nameCells(target)}
		row.Cells[1].Notes = append(sc.missingOf(o, target.Name), target.nameNotes()...)
		for _, s := range specs {
			c := s.cell(target)
			if s.leads != "" {
				c.Notes = addNotes(target.loadNotes(s.leads), c.Notes...)
			}
			row.Cells = append(row.Cells, c)
		}
		t.Rows = append(t.Rows, row)
	}
	untold := t.narrow()
	texts := make([][]Note, len(t.Rows))
	for i, row := range t.Rows {
		texts[i] = append(row.doubts(t.Columns), row.notes(t.Columns)...)
	}
	common := append(untold, general(texts, sc.stallNotes(o))...)
	var notes noteBook
	for i, item := range texts {
		// A row has one mark, so that all remarks on its numbers share a footnote.
		if len(item) > 0 {
			t.Rows[i].Cells[1].Refs = notes.refs(item...)
		}
	}
	t.Rows = append(t.Rows, sc.unseen(o)...)
	t.Footnotes = notes
	t.Notes = addNotes(slices.Concat(sc.Method, sc.ratioNote(), sc.slicedNote(), sc.stallNotes(o),
		sc.copiesNote(), sc.FindingNotes(), sc.tierNote(o), sc.noiseNote(),
		sc.startNotes(o.Confidence), sc.scatterNote(), sc.assumptionNote()), common...)
	return t
}

// narrow removes the columns of weight Extra in which every ratio is only the word unknown.
func (t *Table) narrow() (notes []Note) {
	for i := len(t.Columns) - 1; i >= 0; i-- {
		c := t.Columns[i]
		known, word := false, false
		for _, r := range t.Rows {
			if !r.Span.Is() && r.Cells[i].N > 0 { // the reference of ratios has none
				word = word || r.Cells[i].State == Unknown
				known = known || r.Cells[i].State != Unknown
			}
		}
		if c.Weight != Extra || known || !word {
			continue
		}
		for k, r := range t.Rows {
			if !r.Span.Is() {
				t.Rows[k].Cells = slices.Delete(r.Cells, i, i+1)
			}
		}
		t.Columns = slices.Delete(t.Columns, i, i+1)
		notes = append(notes, NoteOf(NoteNoneKnown, Columns{c}))
	}
	return notes
}

// general moves notes that several rows share below the table, or that are below it already: the
// meaning of a word in cells, and the reasons for numbers that are missing in several rows. A row
// keeps a note without the reason, if it needs one to name its columns.
func general(rows [][]Note, below []Note) (common []Note) {
	all := below
	for _, notes := range rows {
		for _, n := range notes {
			all = append(all, n.general())
		}
	}
	for i, notes := range rows {
		var remaining []Note
		for _, n := range notes {
			note := n.general()
			times := 0
			for _, candidate := range all {
				if note.Same(candidate) {
					times++
				}
			}
			if !note.Is() || times < 2 && note.Kind != NoteUnknowns {
				remaining = append(remaining, n)
				continue
			}
			common = addNotes(common, note)
			if short := n.withoutReason(); short.Is() {
				remaining = addNotes(remaining, short)
			}
		}
		rows[i] = remaining
	}
	return common
}

// withoutReason returns the note of a row whose reason is below the table, if the row needs one.
func (n Note) withoutReason() Note {
	switch n.Kind {
	case NoteStalled:
		return Note{Kind: NoteStalledBelow, Columns: n.Columns}
	case NoteWithStalls:
		return Note{Kind: NoteWithStallsBelow, Columns: n.Columns}
	}
	return Note{}
}

// general returns the note that can replace this one for all rows, if any.
func (n Note) general() Note {
	missing := len(n.Columns) > 0
	switch {
	case n.Kind == NoteIntervalWide:
		return NoteOf(NoteUnknowns)
	case n.Kind == NoteInSomeTrials && missing:
		return NoteOf(NoteLackInSome, n.Columns, n.Args[1])
	case n.Kind == NoteStalled || n.Kind == NoteWithStalls:
		if s, ok := n.Args[0].(Stalled); ok {
			return NoteOf(NoteStallsReason, s.general())
		}
	case n.Kind == NoteNoRateHeld && missing:
		return NoteOf(NoteNoneHeldInSome, n.Columns, n.Args[1])
	}
	return Note{}
}

// names reports whether the text begins with the load of a group.
func (n Note) names(g Group) bool {
	return n.Load != "" && g.Kind == GroupLoad && g.Load == n.Load
}

// notes returns the notes of a row's cells, each once. If a number is missing, the reason names the
// columns, as in "half p99, p99.9: needs …", unless it names the load itself. So do the reasons for
// values with stalls and for intervals of too few starts.
func (r *Row) notes(columns []Column) (notes []Note) {
	var missing []Columns
	for i, c := range r.Cells {
		for _, n := range c.Notes {
			index := slices.IndexFunc(notes, n.Same)
			if index < 0 {
				index, notes, missing = len(notes), append(notes, n), append(missing, nil)
			}
			named := slices.Contains([]NoteKind{NoteWithStalls, NoteFewStarts, NoteFewLive,
				NoteWideStarts}, n.Kind)
			if (c.missing() || named) && !n.names(columns[i].Group) {
				missing[index] = append(missing[index], columns[i])
			}
		}
	}
	for i := range notes {
		notes[i].Columns = missing[i]
	}
	return notes
}

func nameColumns() []Column {
	return []Column{{Key: "tier", Role: RoleTier}, {Key: "target", Role: RoleName}}
}

func nameCells(t *Target) []Cell {
	tier, name := noValue(Absent), named(t.Name)
	if t.Tier > 0 {
		tier = valued(float64(t.Tier), units.Whole)
	}
	name.N = len(t.Used)
	return []Cell{tier, name}
}

func spanRow(name string, why Note) Row {
	return Row{Name: name, Span: why, Cells: []Cell{noValue(Absent), named(name)}}
}

// Parameters of the plan: the usual power, and no advice beyond a day's worth of blocks.
const (
	planPower  = 0.8
	planBlocks = 1000
)

// tierNote explains tiers and what would make them finer.
func (sc *Scenario) tierNote(o Options) []Note {
	switch {
	case len(sc.Targets) < 2 || len(sc.Ranking.Tiers) == 0:
		return nil
	case sc.Typical.SDLog > 0:
		return []Note{NoteOf(NoteTiersPlan, sc.Starts.Repeat(), sc.plan(o))}
	case sc.Repetitions() < 2:
		return []Note{NoteOf(NoteTiersOfOne, sc.Starts.Repeat())}
	}
	return []Note{NoteOf(NoteTiers, sc.Starts.Repeat())}
}

// plan computes how many blocks a difference between two of these targets needs. The level is
// Holm's worst case among all pairs, the same as for the tiers.
func (sc *Scenario) plan(o Options) Plan {
	k := 0
	for _, names := range sc.Ranking.Tiers {
		k += len(names)
	}
	alpha := (1 - o.Confidence) / float64(max(k*(k-1)/2, 1))
	needed := sc.Typical.Resolves(o.Effect, alpha, planPower)
	return Plan{Effect: o.Effect, Needed: needed, Have: sc.Typical.N,
		Repeat: sc.Starts.Repeat()}
}

// assumptionNote names the assumption of the intervals if they depend on one.
func (sc *Scenario) assumptionNote() []Note {
	for _, t := range sc.Targets {
		m, ok := t.Metric(sc.Ranking.Load, sc.Ranking.Metric)
		if !ok {
			continue
		}
		switch m.Summary.Assumption {
		case stats.LogNormal:
			return []Note{NoteOf(NoteLogNormal)}
		case stats.Moderated:
			return []Note{NoteOf(NoteModerated)}
		}
	}
	return nil
}

// Head describes the targets, repetitions and machine of a study. Versions of tools have a separate
// line, because readers skip a line that wraps.
type Head struct {
	Suites, Contracts, Seeds []string
	Targets, Blocks          int
	Repeat                   string             // the unit of Blocks: block or start
	Host                     *record.Provenance // of the first record; nil without records
}

func (s *Study) head() Head {
	h := Head{Repeat: s.repeat()}
	h.Targets, h.Blocks = s.Extent()
	if len(s.Records) == 0 {
		return h
	}
	h.Host = &s.Records[0].Provenance
	h.Suites = said(s.Records, func(r *record.Record) string { return r.Suite })
	h.Contracts = said(s.Records, func(r *record.Record) string { return r.Contract })
	h.Seeds = said(s.Records, func(r *record.Record) string {
		return fmt.Sprint(r.Provenance.Seed)
	})
	return h
}

// repeat returns what the study repeats: "start" if targets ran side by side, else "block".
func (s *Study) repeat() string {
	for _, sc := range s.Scenarios {
		if sc.Starts != nil {
			return sc.Starts.Repeat()
		}
	}
	return (*Starts)(nil).Repeat()
}

// Under returns the head below a title that already names the suite.
func (h Head) Under(title string) Head {
	if len(h.Suites) == 1 && h.Suites[0] == title {
		h.Suites = nil
	}
	return h
}

// String returns the first line of a report: "canonical · contract hello · 2 targets × 5 blocks ·
// …".
func (h Head) String() string {
	extent := units.Plural(h.Targets, "target") + " × " +
		units.Plural(h.Blocks, cmp.Or(h.Repeat, "block"))
	switch {
	case h.Host == nil && h.Targets == 0:
		return "no records"
	case h.Host == nil:
		return "no records of " + extent
	}
	var parts []string
	if len(h.Suites) > 0 {
		parts = append(parts, strings.Join(h.Suites, " + "))
	}
	if len(h.Contracts) > 0 {
		parts = append(parts, "contract "+strings.Join(h.Contracts, " + "))
	}
	parts = append(parts, extent, "seed "+strings.Join(h.Seeds, " + "), hostLine(*h.Host))
	return strings.Join(parts, " · ")
}

// hostLine describes the machine briefly: "2 cores, Linux 6.18".
func hostLine(p record.Provenance) string {
	words := []string{units.Plural(p.Cores, "core")}
	if p.OS != "" || p.Kernel != "" {
		words = append(words, strings.TrimSpace(units.Capital(p.OS)+" "+p.Kernel))
	}
	return strings.Join(words, ", ")
}

var versionIn = lazyregexp.New(`\d+(\.\d+)+\S*|\d+`)

// moves reports whether another version of a tool could move a target's numbers: a compiler or a
// runtime could, but tools that only fetch and pack (npm, mvn) could not.
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
