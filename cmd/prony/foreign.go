package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/files"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/internal/generator"
	"prony.example/record"
)

// importCmd prints the saved output of other load generators, with the values that it lacks.
func (a *app) importCmd() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "import FILE...", Short: "Read the saved output of another load generator",
		Args: cli.Arguments(1, 1<<10),
		Long: `Import reads the printed or saved output of wrk, wrk2, hey, oha, k6, h2load, JMeter
or vegeta, and detects the format by the content. Import prints the results in prony's terms: the
load model, the definition of an error, and values that the output does not have. A dash stands for
a missing value. Import reads

  ` + strings.Join(generator.Formats(), "\n  ") + ``,
		Example: "  prony import wrk.txt k6-summary.json",
		RunE: func(c *cobra.Command, args []string) error {
			return a.importFiles(args, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON: the load in the form of records, "+
		"and notes")
	return c
}

// imported is a file's load in the JSON output.
type imported struct {
	File  string       `json:"file"`
	Load  *record.Load `json:"load"`
	Notes []string     `json:"notes"`
}

// importFiles reads each file. It reports the others even if one cannot be read.
func (a *app) importFiles(fileList []string, asJSON bool) error {
	all, errs := []imported{}, []error{}
	for _, name := range fileList {
		text, err := files.String(name, files.Results)
		if err != nil {
			errs = append(errs, fmt.Errorf("import: %w", err))
			continue
		}
		l, notes, err := generator.Import(name, text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, imported{name, l, generator.Sentences(notes)})
	}
	if asJSON {
		return errors.Join(append(errs, format.JSON(a.stdout, all))...)
	}
	for i, one := range all {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		printImported(a.stdout, one)
	}
	return errors.Join(errs...)
}

func printImported(w io.Writer, one imported) {
	l := one.Load
	fmt.Fprintf(w, "%s: %s", one.File, l.Driver)
	for _, part := range []struct {
		known bool
		text  string
	}{
		{l.Model != "", ", " + l.Model},
		{l.RatePerS > 0, " at " + units.Rate(l.RatePerS) + "/s"},
		{l.Connections > 0, ", " + units.Plural(l.Connections, "connection")},
		{l.WindowNs > 0, fmt.Sprintf(" for %v", time.Duration(l.WindowNs).Round(time.Millisecond))},
	} {
		if part.known {
			fmt.Fprint(w, part.text)
		}
	}
	e := l.Errors
	perS := units.Absent
	if l.WindowNs > 0 {
		perS = units.Rate(l.ThroughputPerS)
	}
	fmt.Fprintf(w, "\n\n  throughput   %s good responses/s (%d good, %d failed, %d unanswered)\n",
		perS, l.Done, e.Total(), l.Censored)
	printKnown(w, "response", &l.ResponseTime)
	// In a closed load, the two are equal.
	if l.ServiceTime != l.ResponseTime {
		printKnown(w, "service", &l.ServiceTime)
	}
	if e.Total() > 0 {
		fmt.Fprintf(w, "  errors       connect %d, write %d, read %d, timeout %d, parse %d, "+
			"status %d, body %d\n", e.Connect, e.Write, e.Read, e.Timeout, e.Parse, e.Status,
			e.Body)
		fmt.Fprintf(w, "               first: %s\n", cmp.Or(e.Example, units.Absent))
	}
	for _, n := range one.Notes {
		fmt.Fprintf(w, "  - %s\n", n)
	}
}

// printKnown prints a distribution of which only some values are known: 0 is unknown.
func printKnown(w io.Writer, name string, d *record.Dist) {
	if d.Count == 0 {
		return
	}
	fmt.Fprintf(w, "  %-12s", name)
	for _, v := range []struct {
		name string
		ns   float64
	}{
		{"mean", d.MeanNs}, {"p50", float64(d.P50Ns)}, {"p90", float64(d.P90Ns)},
		{"p99", float64(d.P99Ns)}, {"p99.9", float64(d.P999Ns)}, {"max", float64(d.MaxNs)},
	} {
		fmt.Fprintf(w, " %s %s ", v.name, units.KnownDuration(v.ns))
	}
	fmt.Fprintf(w, " of %d\n", d.Count)
}
