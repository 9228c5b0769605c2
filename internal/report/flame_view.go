package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"prony/internal/profile"
	"prony/internal/table"
	"prony/internal/unit"
)

// flameView is a scenario's profiles without scripts: findings in words, functions in tables.
type flameView struct {
	plotView
	Number  int      // of the scenario
	Drawn   bool     // whether there is a profile to draw
	Least   string   // the share below which frames are merged
	Notes   []string // what to know of how profiles were taken
	Missing []string
}

// flameViewOf is nil where nobody asked for a profile.
func flameViewOf(s table.Study, sc *table.Scenario, o HTMLOptions, d pageData,
	number int,
) *flameView {
	v := &flameView{Number: number}
	notes := map[string][]string{}
	tables := map[string]*dataTable{}
	var order []string
	var says []string
	for _, p := range ordered(s.Scenarios, o.Profiles) {
		if p.Scenario != sc.Name {
			continue
		}
		v.Drawn = true
		for _, n := range p.Notes {
			notes[n] = append(notes[n], p.what())
		}
		if tables[p.Target] == nil {
			order = append(order, p.Target)
			tables[p.Target] = &dataTable{Caption: fmt.Sprintf(
				"%s: the %d functions that hold most themselves", p.Target, topRows),
				Columns: []string{"function", "of", "itself", "share", "with what it calls"}}
			if len(says) < saidTiers && len(p.Top) > 0 {
				says = append(says, fmt.Sprintf("%s: %s itself, %s", p.what(),
					profile.Short(p.Top[0].Name), unit.Percent(p.Top[0].FlatShare)))
			}
		}
		tables[p.Target].Rows = append(tables[p.Target].Rows, topOf(p)...)
	}
	for _, p := range o.Profiles {
		for _, why := range p.Missing {
			if p.Scenario == sc.Name {
				v.Missing = append(v.Missing, p.what()+": "+why)
			}
		}
	}
	if !v.Drawn && len(v.Missing) == 0 {
		return nil
	}
	for _, name := range order {
		v.Data = append(v.Data, *tables[name])
	}
	for _, n := range slices.Sorted(maps.Keys(notes)) {
		v.Notes = append(v.Notes, n+" ("+strings.Join(notes[n], "; ")+")")
	}
	if d.Flames != nil {
		v.Least = unit.Percent(d.Flames.Least)
	}
	if len(says) > 0 {
		v.Says = "Most is held by: " + strings.Join(says, "; ") + "."
	}
	return v
}

// topOf are a profile's rows in the table of its target.
func topOf(p Profiled) (out [][]string) {
	of := fmt.Sprintf("%s at %s", kindName(p.Kind), p.Load)
	if p.Process != "" {
		of = p.Process + ", " + of
	}
	for _, r := range p.Top {
		out = append(out, []string{r.Name, of, profile.Amount(float64(r.Flat), p.Unit),
			unit.Percent(r.FlatShare), unit.Percent(r.CumShare)})
	}
	return out
}
