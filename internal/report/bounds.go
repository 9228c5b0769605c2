package report

import (
	"fmt"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/record"
)

// Bounds of what a page shows one by one. A page with more of it would take seconds to open. The
// numbers of the page are those of all trials, and the page says what it leaves out.
const (
	mostDetailed = 1000 // trials that are described and drawn over time
	mostDots     = 2000 // of one strip figure
	mostBars     = 1000 // of the timeline
	mostListed   = 100  // trials of one finding, values of one fact, columns of a table
)

// spread returns at most so many items, at equal distances.
func spread[T any](items []T, most int) []T {
	if len(items) <= most {
		return items
	}
	out := make([]T, most)
	for i := range out {
		out[i] = items[i*len(items)/most]
	}
	return out
}

// shown are trials by run and id.
type shown map[[2]string]bool

func (s shown) includes(r *record.Record) bool { return s[[2]string{r.Run, r.Trial}] }

// detailed returns the trials that a page describes one by one: INVALID and failed ones first, then
// others at equal distances.
func detailed(records []*record.Record) shown {
	var excluded, usable []*record.Record
	for _, r := range records {
		if grade := table.Grade(r); grade == record.Valid || grade == record.Suspect {
			usable = append(usable, r)
		} else {
			excluded = append(excluded, r)
		}
	}
	excluded = spread(excluded, mostDetailed)
	out := shown{}
	for _, r := range append(excluded, spread(usable, mostDetailed-len(excluded))...) {
		out[[2]string{r.Run, r.Trial}] = true
	}
	return out
}

// undescribed describes the trials that a page does not describe; "" if it describes all.
func undescribed(trials int) string {
	if trials <= mostDetailed {
		return ""
	}
	return fmt.Sprintf("The page describes and draws %s of %s trials: INVALID and failed ones "+
		"first, then others at equal distances. The file %s of the run has all trials.",
		units.Count(mostDetailed), units.Count(int64(trials)), record.TrialsFile)
}

// thin leaves out dots at equal distances if there are too many, and says so.
func (s *strip) thin() {
	var rows []*stripRow
	all, drawn := 0, 0
	for i := range s.Groups {
		for k := range s.Groups[i].Rows {
			rows = append(rows, &s.Groups[i].Rows[k])
			all += len(s.Groups[i].Rows[k].Dots)
		}
	}
	if all <= mostDots {
		return
	}
	for _, row := range rows {
		row.Dots = spread(row.Dots, max(1, len(row.Dots)*mostDots/all))
		drawn += len(row.Dots)
	}
	s.Axis += fmt.Sprintf("; %s of %s dots are drawn", units.Count(int64(drawn)),
		units.Count(int64(all)))
}

// bounded leaves out rows at equal distances if there are too many, and says so.
func (t dataTable) bounded() dataTable {
	if n := len(t.Rows); n > mostDetailed {
		t.Rows = spread(t.Rows, mostDetailed)
		t.Caption += fmt.Sprintf(": %s of %s rows", units.Count(mostDetailed),
			units.Count(int64(n)))
	}
	return t
}
