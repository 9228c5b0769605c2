package table

import (
	"maps"
	"slices"
	"strings"

	"prony.example/stats"
)

// groupsNote names the groups of targets that ran side by side, if memory did not suffice for all
// of them at once. Each group includes the baseline.
func (s *Starts) groupsNote(baseline string) []Note {
	if len(s.groups) < 2 {
		return nil
	}
	var groups GroupNames
	for _, number := range slices.Sorted(maps.Keys(s.groups)) {
		names := slices.DeleteFunc(slices.Sorted(slices.Values(s.groups[number])),
			func(name string) bool { return s.inAllGroups(name) })
		groups = append(groups, names)
	}
	return []Note{NoteOf(NoteGroups, len(groups), baseline, groups, baseline)}
}

func (s *Starts) inAllGroups(name string) bool {
	for _, names := range s.groups {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

// GroupNames has the targets of each group.
type GroupNames [][]string

func (g GroupNames) String() string {
	var texts []string
	for _, names := range g {
		texts = append(texts, strings.Join(names, ", "))
	}
	return strings.Join(texts, "; ")
}

// levelGroups makes values of targets that ran in groups comparable, for their order: it divides
// each value by the baseline's in the same start.
func (sc *Scenario) levelGroups(items []stats.Item) {
	i := slices.IndexFunc(items, func(x stats.Item) bool { return x.Name == sc.Versus.Name })
	if len(sc.Starts.groups) < 2 || i < 0 {
		return
	}
	base := maps.Clone(items[i].Values)
	for _, item := range items {
		maps.DeleteFunc(item.Values, func(block int, _ float64) bool { return !(base[block] > 0) })
		for block, v := range item.Values {
			item.Values[block] = v / base[block]
		}
	}
}

// throughBase returns the ratio of b to a, of different groups, from the ratios of both to the
// baseline. These come from different starts, so their errors add up. It has no interval that holds
// whenever a run is ended.
func (sc *Scenario) throughBase(a, b *Target, load, name string, confidence float64) stats.Ratio {
	base := sc.Target(a.Reference)
	if base == nil || a.Reference != b.Reference || sc.Starts.Interrupted {
		return stats.LiveRatio(nil, confidence)
	}
	return stats.RatioThrough(sc.compareStarts(base, a, load, name, confidence).Ratio,
		sc.compareStarts(base, b, load, name, confidence).Ratio)
}
