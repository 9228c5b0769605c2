package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/files"
	"prony.example/internal/base/format"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/logs"
	"prony.example/internal/telemetry/traces"
	"prony.example/record"
)

type logsFlags struct {
	logs.Filter    // without its limit
	grep, severity string
	limit          int
	files          bool
	format         string
}

func (a *app) logsCmd() *cobra.Command {
	f := &logsFlags{}
	c := &cobra.Command{
		Use: "logs [RUN]", Short: "Show the log lines of a run",
		Args: cli.Arguments(0, 1),
		Long: `Logs shows the log lines of a run's services. RUN is its folder, the folder's name
below results/ (in a project: .prony/run/), or "latest"; without it, logs reads the newest run that
has any.

Log records that services send by OTLP have a time, a severity and often a trace id. A run stores
their warnings and errors, the records of stored traces, and a uniform sample of the rest. The run's
records have the total count of log records.

If a run has no such records, logs reads the files below its folder logs/, with the standard output
and error of each service. The files are complete, but their lines have no fields: --severity and
--service cannot filter them, and --trace finds lines that contain the id. With --files, logs reads
the files even if there are records.`,
		Example: `  prony logs --severity warn
  prony logs results/2026-11-21T03-40-11Z --trace 4bf92f3577b34da6
  prony logs --target petclinic/jar --grep 'timeout|refused'
  prony logs --files --trial b1-03-go-nethttp`,
		RunE: func(_ *cobra.Command, args []string) error { return a.logs(args, *f) },
	}
	fs := c.Flags()
	fs.StringVar(&f.Trial, "trial", "", "only this trial, such as b1-03-go-nethttp")
	fs.StringVar(&f.Target, "target", "", "only this target")
	fs.StringVar(&f.Service, "service", "", "only this service")
	fs.StringVar(&f.TraceID, "trace", "", "only this trace: its id, or the beginning of its id")
	fs.StringVar(&f.grep, "grep", "", "only lines that match this RE2 regular expression")
	fs.StringVar(&f.severity, "severity", "",
		"lowest severity to show: trace, debug, info, warn, error, fatal")
	fs.IntVar(&f.limit, "limit", 200, "lines; 0: all")
	fs.BoolVar(&f.files, "files", false, "show the files with the services' output instead of "+
		"log records")
	f.format = "text"
	cli.OneOf(c, &f.format, "format", "", "text", "json")
	return c
}

func (f *logsFlags) filter() (logs.Filter, error) {
	out := f.Filter
	if f.limit < 0 {
		return out, cli.Usagef("--limit must be at least 0")
	}
	if f.severity != "" {
		if out.MinSeverity = logs.Level(f.severity); out.MinSeverity < 0 {
			return out, cli.Usagef("--severity %q does not exist; choose one of %s", f.severity,
				strings.Join(logs.Severities[1:], ", "))
		}
	}
	if f.grep != "" {
		re, err := regexp.Compile(f.grep)
		if err != nil {
			return out, cli.Usagef("--grep: %w", err)
		}
		out.Grep = re
	}
	return out, nil
}

func (a *app) logs(args []string, f logsFlags) error {
	filter, err := f.filter()
	if err != nil {
		return err
	}
	dir, err := a.findRun(args, "logs", func(dir string) bool {
		return exists(homeIn(dir), telemetry.LogsFile) || files.IsDir(filepath.Join(dir, "logs"))
	})
	if err != nil {
		return err
	}
	if !f.files {
		some, bad, err := logs.Read(homeIn(dir), logs.Filter{Limit: 1})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(some) > 0 { // an empty file means that there were none
			a.tellBad(bad)
			return a.logRecords(dir, filter, f)
		}
	}
	return a.logLines(dir, filter, f)
}

func (a *app) logRecords(dir string, filter logs.Filter, f logsFlags) error {
	records, _, err := logs.Read(homeIn(dir), filter)
	if err != nil {
		return err
	}
	n := len(records)
	records = first(records, f.limit)
	if f.format == "json" {
		return format.JSON(a.stdout, struct {
			Source  string         `json:"source"`
			Records []*logs.Record `json:"records"`
		}{"otlp", records})
	}
	trial := ""
	for _, r := range records {
		if r.Trial != trial {
			trial = r.Trial
			fmt.Fprintf(a.stdout, "%s (%s)\n", r.Trial, r.Target)
		}
		text := fmt.Sprintf("  %s  %-5s  %s  %s",
			time.Unix(0, r.Ns).UTC().Format("15:04:05.000000"), r.Severity, traces.Line(r.Service),
			traces.Line(r.Body))
		if r.TraceID != "" {
			text += "  trace " + shortID(r.TraceID)
		}
		fmt.Fprintln(a.stdout, text)
	}
	fmt.Fprintf(a.stdout, "\n%d of %d stored log records that match.\n", len(records), n)
	return nil
}

// first returns the first items of a list, or all with a limit of 0.
func first[T any](list []T, limit int) []T {
	if limit > 0 && len(list) > limit {
		return list[:limit]
	}
	return list
}

// logLines prints the lines of the services' own files.
func (a *app) logLines(dir string, filter logs.Filter, f logsFlags) error {
	if f.severity != "" || f.Service != "" {
		fmt.Fprintf(a.stderr, "prony: %s has no log records, and lines in files have no severity "+
			"or service: all lines are shown\n", dir)
	}
	var keep func(string) bool
	if f.Target != "" {
		trials, err := trialsOf(dir, f.Target)
		if err != nil {
			return err
		}
		keep = func(trial string) bool {
			return slices.ContainsFunc(trials, func(id string) bool {
				return trial == id || strings.HasPrefix(trial, id+".")
			})
		}
	}
	filter.Limit = f.limit
	lines, err := logs.ReadFiles(filepath.Join(dir, "logs"), filter, keep)
	if err != nil {
		return err
	}
	if f.format == "json" {
		return format.JSON(a.stdout, struct {
			Source string      `json:"source"`
			Lines  []logs.Line `json:"lines"`
		}{"files", lines})
	}
	file := ""
	for _, l := range lines {
		if l.File != file {
			file = l.File
			fmt.Fprintf(a.stdout, "%s\n", filepath.Join(dir, "logs", l.File))
		}
		fmt.Fprintf(a.stdout, "  %d  %s\n", l.Line, traces.Line(l.Text))
	}
	fmt.Fprintf(a.stdout, "\n%d lines from the output files of the services.\n", len(lines))
	return nil
}

// trialsOf returns the ids of a target's trials in a run.
func trialsOf(dir, target string) (ids []string, err error) {
	_, records, _, err := record.Read(dir)
	for _, r := range records {
		if r.Target.Name == target {
			ids = append(ids, r.Trial)
		}
	}
	return ids, err
}
