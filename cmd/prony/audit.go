package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/format"
	"prony.example/internal/report/audit"
)

// auditCmd checks published results for contradictions.
func (a *app) auditCmd() *cobra.Command {
	var columns []string
	asJSON := false
	c := &cobra.Command{
		Use: "audit FILE...", Short: "Check published results for numbers that cannot be true",
		Args: cli.Arguments(1, 1<<10),
		Long: `Audit checks published results, yours or others', for numbers that contradict each
other or mislead. Examples are requests that are not rate × time, more requests in flight than
connections, percentiles that fall, and a run shorter than its command says. Others are latency from
a load above capacity, and throughput that follows from think time alone. Each finding shows its
arithmetic:

  CONTRADICTION: asked requests
    README.md:58: Go: 38356/s × 26.071s = 999,979 requests, but the command (line 48) requests
      100,000: 10 times as many
    means: the printed command did not produce these numbers.

Audit measures nothing. A result without findings may still be wrong: the end of the output lists
the rules that had no numbers to work on.

Values with a contradiction cannot be true, whatever was measured. Values with a doubt can be
true, but are misleading. A note is useful to a reader. Audit allows for rounding: 2.6 ms may be
2.5 or 2.7.

It reads

  ` + strings.Join(audit.Kinds(), "\n  ") + `

Audit recognizes column headings by a list of synonyms, with units as in "p99 (ms)". --column
explains other headings, as in "Lat=p99:ms" if no cell has a unit. Meanings are

  ` + meanings() + `

Audit first prints the lines of a table that it cannot read, with the reason. A column that is in
none of the files is an error.

The exit code is 4 if there is a contradiction, and 1 if a file could not be read.`,
		Example: `  prony audit README.md
  prony audit results/RUN wrk.txt k6-summary.json
  prony audit --column 'Speed=rate' --column 'Lat=p99:ms' table.csv
  wrk -t2 -c64 -d30s --latency URL | tee wrk.txt; prony audit wrk.txt`,
		RunE: func(c *cobra.Command, args []string) error {
			cols, err := audit.ParseColumns(columns)
			if err != nil {
				return cli.Usage(err)
			}
			if args, err = a.runFolders(args); err != nil {
				return err
			}
			return a.audit(args, cols, asJSON)
		},
	}
	c.Flags().StringArrayVar(&columns, "column", nil, "`NAME=MEANING` of a column; may be repeated")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON: docs/formats/audit-json.md")
	return c
}

// meanings lists the quantities of --column, several to a line.
func meanings() string {
	var lines []string
	for some := range slices.Chunk(audit.Meanings(), 10) {
		lines = append(lines, strings.Join(some, ", "))
	}
	return strings.Join(lines, ",\n  ")
}

// auditVersion is the version of the JSON output.
const auditVersion = 1

// audited is the JSON output.
type audited struct {
	Version int             `json:"version"`
	Files   []*audit.Result `json:"files"`
}

// audit reads each file. It reports the others even if one cannot be read.
func (a *app) audit(files []string, cols *audit.Columns, asJSON bool) error {
	all, errs, contradictions := audited{auditVersion, []*audit.Result{}}, []error{}, 0
	var documents []*audit.Document
	for _, file := range files {
		d, err := audit.Open(file, cols)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		documents = append(documents, d)
	}
	if err := cols.Unknown(); err != nil {
		return cli.Usage(errors.Join(append(errs, err)...))
	}
	for _, d := range documents {
		r := audit.Audit(d)
		contradictions += r.Count(audit.Contradiction)
		all.Files = append(all.Files, r)
	}
	if err := a.printAudit(&all, asJSON); err != nil {
		return err
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if contradictions > 0 {
		return cli.End(cli.Invalid, "the published results contradict each other")
	}
	return nil
}

func (a *app) printAudit(all *audited, asJSON bool) error {
	if asJSON {
		return format.JSON(a.stdout, all)
	}
	for i, r := range all.Files {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		if err := r.Write(a.stdout); err != nil {
			return err
		}
	}
	return nil
}
