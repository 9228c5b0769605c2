package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"prony/internal/driver"
	"prony/internal/result"
	"prony/internal/unit"
)

// disagreements say where two generators read different things from the same target in the same
// block, and what about the tools explains it. A sentence comes once for each target and load, with
// its first block's numbers and how many blocks it is true of.
func disagreements(records []*result.Record) []string {
	type spot struct{ target, scenario, load, driver, says string }
	type finding struct {
		spot
		example string
	}
	var order []finding
	blocks := map[spot]int{}
	for _, r := range records {
		if r.Target.Driver == "" {
			continue
		}
		ours := slices.IndexFunc(records, func(o *result.Record) bool {
			return o.Target.Driver == "" && o.Target.Name == r.Target.Name &&
				o.Target.Variant == r.Target.Variant && o.Scenario == r.Scenario &&
				o.Block == r.Block
		})
		if ours < 0 {
			continue
		}
		for _, l := range r.Loads {
			for _, own := range records[ours].Loads {
				if own.Name != l.Name {
					continue
				}
				for _, says := range driver.Disagree(&own, &l) {
					s := spot{r.Target.Name, r.Scenario, l.Name, r.Target.Driver,
						numbers.ReplaceAllString(says, "#")}
					if blocks[s]++; blocks[s] == 1 {
						order = append(order, finding{s, says})
					}
				}
			}
		}
	}
	var out []string
	at := spot{}
	for _, s := range order {
		if head := (spot{s.target, s.scenario, s.load, s.driver, ""}); head != at {
			at = head
			out = append(out, fmt.Sprintf("%s, %s, %s: prony and %s", s.target, s.scenario, s.load,
				s.driver))
		}
		out = append(out, fmt.Sprintf("  %s (in %s)", s.example,
			unit.Plural(blocks[s.spot], "block")))
	}
	return out
}

// numbers differ from block to block and make no other finding.
var numbers = regexp.MustCompile(`[0-9][0-9.,]*`)

func printDisagreements(w io.Writer, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nwhere the generators disagree, and why:\n  %s\n",
		strings.Join(lines, "\n  "))
	return err
}
