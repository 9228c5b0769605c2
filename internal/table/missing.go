package table

import (
	"slices"
	"strings"

	"prony/internal/unit"
)

// mostMissing bounds how many missing trials, or damaged lines, a sentence names.
const mostMissing = 6

// missing is the tally of trials that have no record, with the lines that were left out; none where
// every trial has its line.
func (s *Study) missing() []Tally {
	var ids, why []string
	for _, p := range s.Options.Missing {
		ids = append(ids, p.Trial)
	}
	if len(ids) > 0 {
		why = append(why, "planned, without a record: "+unit.Few(ids, mostMissing))
	}
	if lost := s.Options.Damaged; len(lost) > 0 {
		why = append(why, unit.Plural(len(lost), "line")+" of the records left out: "+
			unit.Few(lost, mostMissing))
	}
	if len(why) == 0 {
		return nil
	}
	return []Tally{{MissingGrade, len(ids), strings.Join(why, "; ")}}
}

// missingOf says which trials of a row have no record; nothing where all have one.
func (o Options) missingOf(scenario, row string) []string {
	var blocks []int
	for _, p := range o.Missing {
		if p.Scenario == scenario && p.Row == row && p.Role == "" {
			blocks = append(blocks, p.Block)
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	return []string{MissingGrade + " in " + blocksText(blocks) + ": planned, without a record"}
}

// unseen are the rows of targets that were planned and of which nothing was recorded.
func (sc *Scenario) unseen(o Options) (rows []Row) {
	for _, p := range o.Missing {
		known := sc.Target(p.Row) != nil ||
			slices.ContainsFunc(rows, func(r Row) bool { return r.Name == p.Row })
		if !known && p.Row != "" && p.Scenario == sc.Name && p.Role == "" {
			rows = append(rows, spanRow(p.Row, o.missingOf(sc.Name, p.Row)[0]))
		}
	}
	return rows
}

// Extent is how many rows and blocks there are, those without a record among them.
func (s *Study) Extent() (targets, blocks int) {
	type block struct {
		run    string
		number int
	}
	rows, passes := map[string]bool{}, map[block]bool{}
	run := ""
	for _, r := range s.Records {
		run = r.Run
		rows[RowName(r.Target)], passes[block{run, r.Block}] = true, true
	}
	for _, p := range s.Options.Missing { // of one run, and then all records are its
		if p.Row != "" && p.Role == "" {
			rows[p.Row], passes[block{run, p.Block}] = true, true
		}
	}
	return len(rows), len(passes)
}
