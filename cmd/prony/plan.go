//go:build linux && !portable

package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/internal/suite"
	"prony.example/record"
)

func (a *app) planCmd() *cobra.Command {
	f := &runFlags{}
	var effect, from string
	c := &cobra.Command{
		Use: "plan [SUITE]", Short: "Print the trials of a suite without running them",
		Args: cli.Arguments(0, 1),
		Long: `Plan expands a suite into its trials: targets × scenarios in starts or blocks, each
in an order shuffled from the seed. The same suite, seed and catalog give the same plan, byte for
byte. Targets that need a tool that this machine lacks are left out, as in a run; one line names
them.

With --detect, plan prints how many starts or blocks would detect such a difference on this machine.
The number follows from the noise of an A/A run ("prony run --aa"): the run of --from, or the newest
one of this checkout or of this prony.yaml.`,
		Example: "  prony plan\n  prony plan suites/http.yaml --blocks 2 --seed 7\n" +
			"  prony plan --detect 3%",
		RunE: func(c *cobra.Command, args []string) error {
			err := cmp.Or(misplaced(args), extents(c), refuse(c.Flags().Changed,
				noEffect{effect == "", "from", "needs --detect with a difference, such as 3%"}))
			if err != nil {
				return err
			}
			l, project, _, err := a.labOrProject()
			if err != nil {
				return err
			}
			wish, err := f.wish(c.Context(), c, args, l, project)
			if err != nil {
				return err
			}
			p, err := l.Here(c.Context(), wish)
			if err != nil {
				return err
			}
			if effect != "" {
				results := filepath.Join(l.Root, "results")
				if wish.Own != nil {
					results = wish.Own.Results
				}
				if from, err = a.runFolder(from); err != nil {
					return err
				}
				return a.detect(results, p, effect, from)
			}
			return printPlan(a.stdout, p)
		},
	}
	f.suiteFlags(c)
	c.Flags().StringVar(&effect, "detect", "",
		"print how many starts or blocks detect this difference here, such as 3%, instead of the "+
			"plan")
	c.Flags().StringVar(&from, "from", "", "folder of the A/A run for --detect")
	return c
}

func printPlan(w io.Writer, p *suite.Plan) error {
	fmt.Fprintln(w, strings.TrimSuffix(p.Suite.Name+": "+p.Suite.Question, ": "))
	fmt.Fprintf(w, "plan %s · seed %d · %s · %s\n", p.Hash, p.Suite.Seed, extent(p),
		between(p.Estimate()))
	if few := hurry(p); few != "" {
		fmt.Fprintln(w, few)
	}
	if p.Quick != "" {
		fmt.Fprintln(w, p.Quick)
	}
	if p.Blockwise != "" {
		fmt.Fprintln(w, "blocks are used instead of slices: "+p.Blockwise)
	}
	if p.Grouped != "" {
		fmt.Fprintln(w, p.Grouped)
	}
	if p.Suite.For > 0 {
		fmt.Fprintf(w, "After each %[1]s, Prony leaves out targets whose comparisons are all "+
			"decided. It does not begin a %[1]s\nthat would not end in time. The first "+
			"%[1]s:\n", p.Repeat())
	}
	fmt.Fprintln(w)
	rows := [][]string{{strings.ToUpper(p.Repeat()), "ORDER", "TARGET", "SCENARIO", "LOADS"}}
	for _, x := range p.Trials {
		if p.Suite.For > 0 && x.Block > 1 {
			continue
		}
		var loads []string
		for _, l := range p.Suite.OfTrial(x) {
			loads = append(loads, fmt.Sprintf("%s (%s, %v)", l.Name, loadText(l),
				planned(l)))
		}
		by := x.Target
		if x.Driver != "" && x.Driver != suite.Drivers[0] {
			by += " by " + x.Driver
		}
		if x.Variant != "" && x.Variant != "none" {
			by += " +" + x.Variant
		}
		if x.Role != "" {
			by += ", " + x.Role
		}
		if x.Arm != "" {
			by += " (" + x.Arm + ")"
		}
		scene := x.Scenario
		if by := p.Suite.Scenario(scene).Protocol; by != "" && by != suite.Protocols[0] {
			scene += " in " + by
		}
		if x.Body != 0 {
			scene += fmt.Sprintf(", bodies of %v", x.Body)
		}
		rows = append(rows, []string{strconv.Itoa(x.Block), strconv.Itoa(x.Order), by, scene,
			strings.Join(loads, ", ")})
	}
	_, err := io.WriteString(w, format.Grid("", rows, format.Left))
	return err
}

// extent describes how much a plan runs.
func extent(p *suite.Plan) string {
	if p.Suite.For > 0 {
		return fmt.Sprintf("%ss of %d trials each for %v", p.Repeat(), len(p.Trials)/p.Suite.Blocks,
			time.Duration(p.Suite.For))
	}
	text := units.Plural(len(p.Trials), "trial") + " in " + units.Plural(p.Suite.Blocks, p.Repeat())
	if p.Grouped != "" {
		text += " of each group"
	}
	if x := p.Suite.Precision; x.Within > 0 {
		text += fmt.Sprintf(", then more starts within %v for ± "+
			"%v", time.Duration(x.Within), x.Half)
	} else if x.Half > 0 {
		text += fmt.Sprintf(", then up to %d more starts for ± "+
			"%v", p.Suite.MostStarts()-p.Suite.Blocks,
			x.Half)
	}
	return text
}

// hurry returns a warning if the time budget suffices only for large differences, with the time
// that more starts or blocks would take; empty: no warning.
func hurry(p *suite.Plan) string {
	const enough = 4
	lasts := time.Duration(p.Suite.For)
	least, most := p.Block()
	if lasts == 0 || enough*least <= lasts {
		return ""
	}
	return fmt.Sprintf("%v is enough for about %s, too few for small differences; %d take %s",
		lasts, units.Plural(max(int(lasts/least), 1), "whole "+p.Repeat()), enough,
		between(enough*least, enough*most))
}

// planned returns the length of a load: its window, or the maximum of a search.
func planned(l suite.Load) time.Duration {
	if l.Model == record.Capacity {
		return l.Length()
	}
	return time.Duration(l.Measure)
}

// loadText describes a load's model.
func loadText(l suite.Load) string {
	switch {
	case l.Model == record.Capacity:
		return "capacity at " + l.SLO
	case l.Model == record.Open && l.Trace != "":
		return "open, replay of " + l.Trace
	case l.Model == record.Open:
		return fmt.Sprintf("open, %s, %s", l.Arrivals, l.Rate)
	case !l.Users.IsZero():
		text := fmt.Sprintf("closed, users %s", l.Users)
		if l.Think != (suite.Think{}) {
			text += fmt.Sprintf(" thinking %s", l.Think)
		}
		return text
	}
	return "closed, " + units.Plural(l.Connections, "connection")
}
