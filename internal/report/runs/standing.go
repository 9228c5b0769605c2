package runs

import (
	"fmt"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
)

// mostStanding is the largest number of targets that Standing names in a list.
const mostStanding = 6

// Standing describes the ranking of a scenario in sentences: the targets of the first tier, and the
// ratios of all to the baseline, best first. It returns none if targets have no tiers, and calls a
// target best only if it differs significantly from all others. A single start or block has only a
// sentence on how many a comparison needs.
func Standing(sc *table.Scenario) []string {
	tiers := sc.Ranking.Tiers
	name := metric.Named(sc.Ranking.Metric, "")
	ranked := 0
	for _, names := range tiers {
		ranked += len(names)
	}
	if ranked < 2 {
		return nil
	}
	if sc.Repetitions() < 2 {
		return []string{fmt.Sprintf("%s: a comparison of %s needs at least 2 %ss: raise --blocks.",
			inWords(slices.Concat(tiers...)), name.Label, sc.Starts.Repeat())}
	}
	if len(tiers) == 1 {
		return []string{fmt.Sprintf("No significant difference in %s between %s.", name.Label,
			inWords(tiers[0]))}
	}
	extreme := "lowest "
	if name.Higher {
		extreme = "highest "
	}
	var lead string
	if first := tiers[0]; len(first) == 1 {
		lead = fmt.Sprintf("%s has the %s%s", first[0], extreme, name.Label)
		ratio := ratioTo(sc, first[0], "%[1]s times that of %[2]s (%[3]s CI %[4]s)")
		if ratio != "" {
			lead += ": " + ratio
		}
	} else {
		lead = fmt.Sprintf("%s have the %s%s, with no significant difference between them",
			inWords(first), extreme, name.Label)
	}
	return append([]string{lead + "."}, followers(sc)...)
}

// followers describes the targets after the first one: by their ratios, or in their order.
func followers(sc *table.Scenario) (out []string) {
	tiers := sc.Ranking.Tiers
	first := 0
	if len(tiers[0]) > 1 { // the lead has no ratio of them
		first = -1
	}
	var ratios, ties []string
	for i, name := range slices.Concat(tiers...) {
		if ratio := ratioTo(sc, name, "%[1]s (%[4]s)"); ratio != "" && i > first {
			ratios = append(ratios, name+" "+ratio)
		}
	}
	if more := len(ratios) - mostStanding; more > 0 {
		ratios = append(ratios[:mostStanding], units.Plural(more, "other target")+" below")
	}
	if len(ratios) > 0 {
		out = append(out, fmt.Sprintf("Relative to %s: %s.", sc.Versus.Name,
			strings.Join(ratios, ", ")))
	}
	for _, names := range tiers[1:] {
		if len(names) > 1 {
			ties = append(ties, inWords(names))
		}
	}
	if len(ties) > 0 {
		out = append(out, fmt.Sprintf("No significant difference: between %s.",
			strings.Join(ties, "; between ")))
	}
	return out
}

// ratioTo formats a target's ratio to the baseline: its center, the baseline, the confidence, and
// the interval with a mark if the ratio is SUSPECT. It returns "" for the baseline, and for a ratio
// whose interval is unknown.
func ratioTo(sc *table.Scenario, name, form string) string {
	t := sc.Target(name)
	if t == nil || sc.Versus.Kind != table.VersusBaseline || name == sc.Versus.Name {
		return ""
	}
	m, ok := t.Metric(sc.Ranking.Load, sc.Ranking.Metric)
	if !ok || m.Ratio == nil || table.RatioInterval(*m.Ratio).State != table.Known {
		return ""
	}
	center, interval := table.RatioText(*m.Ratio)
	if m.RatioGrade() == record.Suspect {
		interval += "; SUSPECT"
	}
	return fmt.Sprintf(form, center, sc.Versus.Name, fmt.Sprintf("%g %%", 100*m.Ratio.Confidence),
		interval)
}

// inWords joins names as a sentence does: "a, b and c"; of many it names the first.
func inWords(names []string) string {
	if more := len(names) - mostStanding; more > 0 {
		names = append(slices.Clone(names[:mostStanding]), units.Plural(more, "other target"))
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
