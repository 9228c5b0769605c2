package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"prony.example/record"
	"prony.example/stats"
)

// The tables, as Markdown.

// printKnown prints what was compared, and under which conditions.
func printKnown(w io.Writer, known proofKnown, records []*record.Record) {
	fmt.Fprintf(w, "%s, seed %d. A request of the first server takes %.1f µs, %.1f µs of that for "+
		"%d rounds.\n", model(), known.Seed, known.Cost.of(proofRounds)/1e3,
		known.Cost.RoundNs*proofRounds/1e3, proofRounds)
	var busy, steal []float64
	for _, r := range records {
		if r.Outcome == record.Measured && len(r.Loads) > 0 {
			busy = append(busy, 100*r.Loads[0].Service.CPUShare)
			steal = append(steal, 100*r.Loads[0].Host.StealShare)
		}
	}
	fmt.Fprintf(w, "In the windows servers were running for %s of the time; stolen were %s.\n",
		spread(busy, "%.1f %%"), spread(steal, "%.1f %%"))
}

func printComparison(w io.Writer, c comparison) {
	fmt.Fprintf(w, "%d trials, %d of them unusable (INVALID or failed).\n\n", c.Trials, c.Unusable)
	printSame(w, c.Same)
	rows := [][]string{{"made to lose", "truth", "measured, all blocks", "holds it",
		"slower in 5", "10", "15", "20 blocks", "interval of 10 holds it"}}
	for _, a := range c.Arms {
		row := []string{percent(a.Arm.Loss, 0),
			fmt.Sprintf("%.4f (%.4f–%.4f)", a.Arm.Ratio, a.Arm.Lo, a.Arm.Hi),
			fmt.Sprintf("%.4f (%.4f–%.4f)", a.Ratio.Center, a.Ratio.Lo, a.Ratio.Hi), a.holds()}
		for _, s := range a.Found {
			row = append(row, s.String())
		}
		rows = append(rows, append(row, a.Holds[1].String()))
	}
	printTable(w, "Known losses of throughput", rows)

	head := []string{"says slower / faster of what loses"}
	for _, a := range c.Arms {
		head = append(head, percent(a.Arm.Loss, 0))
	}
	rows = [][]string{head}
	for _, r := range c.Rules {
		row := []string{r.Name}
		for _, v := range r.Says {
			row = append(row, v.slower.String()+" / "+v.faster.String())
		}
		rows = append(rows, row)
	}
	printTable(w, "Other rules on the same trials", rows)

	rows = [][]string{{"made to lose", "blocks", "pass", "fail", "inconclusive", "more blocks"}}
	for _, g := range c.Gates {
		more := "–"
		if g.Inconclusive.n > 0 {
			more = fmt.Sprintf("%.0f", g.More)
			if g.More >= stats.Unresolvable/2 {
				more = "no number"
			}
		}
		rows = append(rows, []string{percent(g.Arm.Loss, 0), fmt.Sprint(g.Blocks), g.Pass.String(),
			g.Fail.String(), g.Inconclusive.String(), more})
	}
	printTable(w, "The gate, at most 5 % lost", rows)
}

func printSame(w io.Writer, s sameness) {
	fmt.Fprintf(w, "The same server twice in %d blocks: ratio %.4f (%.4f–%.4f), P = %.2f. "+
		"SD of a paired log ratio %s, of a single trial %s, of an unpaired ratio %s: pairing "+
		"divides the noise by %.1f.\n\n", s.Ratio.N, s.Ratio.Center, s.Ratio.Lo, s.Ratio.Hi,
		s.Ratio.P, percent(s.Ratio.SDLog, 2), percent(s.SingleSD, 2),
		percent(s.SingleSD*math.Sqrt2, 2), s.SingleSD*math.Sqrt2/s.Ratio.SDLog)
	rows := [][]string{{"blocks", "false alarms, neighbours", "runs", "false alarms, swapped",
		"runs", "resolves (80 %)", "resolves (90 %)"}}
	for _, a := range s.Runs {
		rows = append(rows, []string{fmt.Sprint(a.Blocks), a.Neighbours.String(),
			fmt.Sprint(a.Neighbours.of), a.Flipped.String(), fmt.Sprint(a.Flipped.of),
			percent(a.Detect80, 2), percent(a.Detect90, 2)})
	}
	printTable(w, "The same server twice", rows)
}

// holds reports whether the interval of all blocks and that of the truth overlap.
func (a armResult) holds() string {
	switch {
	case !a.Ratio.HasInterval():
		return "–"
	case a.Ratio.Lo <= a.Arm.Hi && a.Arm.Lo <= a.Ratio.Hi:
		return "yes"
	}
	return "NO"
}

func percent(x float64, digits int) string {
	if math.IsNaN(x) {
		return "–"
	}
	return fmt.Sprintf("%.*f %%", digits, 100*x)
}

// printTable prints Markdown that is also aligned as text; the first row is the heading.
func printTable(w io.Writer, title string, rows [][]string) {
	fmt.Fprintf(w, "**%s**\n\n", title)
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for k, row := range rows {
		for i, cell := range row {
			fmt.Fprint(w, "| ", cell, strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+1))
		}
		fmt.Fprintln(w, "|")
		if k == 0 {
			for i := range row {
				fmt.Fprint(w, "|", strings.Repeat("-", width[i]+2))
			}
			fmt.Fprintln(w, "|")
		}
	}
	fmt.Fprintln(w)
}
