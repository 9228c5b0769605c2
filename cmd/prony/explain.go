package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/units"
	"prony.example/internal/observe/gclog"
	"prony.example/internal/observe/profile"
	"prony.example/internal/telemetry/logs"
	"prony.example/internal/telemetry/traces"
	"prony.example/record"
)

// explainFlags select the request.
type explainFlags struct{ target, trial, load, id string }

func (a *app) explainCmd() *cobra.Command {
	f := explainFlags{}
	c := &cobra.Command{
		Use: "explain [RUN]", Short: "Show where a slow request spent its time",
		Args: cli.Arguments(0, 1),
		Long: `Explain shows why a request was slow: by default, the slowest request with a trace id
in the run's instrumented trials. Explain combines all data about the request:

  - the times at which it was due, sent and complete
  - its trace, span by span, with the log lines
  - the pauses of the garbage collector during the request
  - the resources that the service used at that moment
  - the CPU time of functions during the load, by the profile

Trials are instrumented with "prony run --telemetry". RUN is a run's folder, its name in results/
(in a project: .prony/run/), or "latest". Without RUN, explain reads the newest run that has
requests with trace ids.`,
		Example: "  prony run --telemetry --targets java-spring/virtual\n  prony explain\n" +
			"  prony explain --target java-spring/virtual --load peak",
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := a.findRun(args, "requests with trace ids", hasTraced)
			if err != nil {
				return err
			}
			s, err := findStory(dir, f)
			if err != nil {
				return err
			}
			return s.print(a.stdout)
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.target, "target", "", "only requests of this target")
	fs.StringVar(&f.trial, "trial", "", "only requests of this trial")
	fs.StringVar(&f.load, "load", "", "only requests of this load")
	fs.StringVar(&f.id, "id", "", "id of the trace, or the first characters of its id")
	return c
}

// hasTraced reports whether a run has requests with a trace id, also if no collector stored traces.
func hasTraced(dir string) bool {
	_, records, _, err := record.Read(dir)
	return err == nil && slices.ContainsFunc(records, func(r *record.Record) bool {
		return slices.ContainsFunc(r.Loads, func(l record.Load) bool { return len(l.Traced) > 0 })
	})
}

// story is the data about one request.
type story struct {
	dir     string
	record  *record.Record
	load    *record.Load
	request record.Traced
	trace   *traces.Trace // nil: it was not stored
	lines   []*logs.Record
	pauses  []gclog.Event
	logged  bool // garbage collections were logged
}

// findStory selects the request and collects its data from the run's folder. It prefers requests
// with a stored trace to all others, even slower ones, because agents may drop traces.
func findStory(dir string, f explainFlags) (*story, error) {
	_, records, _, err := record.Read(dir)
	if err != nil {
		return nil, err
	}
	var found []*story
	for _, r := range records {
		if (f.target != "" && r.Target.Name != f.target) || (f.trial != "" && r.Trial != f.trial) {
			continue
		}
		for i := range r.Loads {
			l := &r.Loads[i]
			for _, t := range l.Traced {
				if (f.load == "" || l.Name == f.load) && strings.HasPrefix(t.TraceID, f.id) {
					found = append(found, &story{dir: dir, record: r, load: l, request: t})
				}
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("explain %s: no request with a trace id was found that matches "+
			"the flags; record trace ids with prony run --telemetry", dir)
	}
	slices.SortStableFunc(found, func(a, b *story) int {
		return cmp.Compare(b.request.ResponseNs, a.request.ResponseNs)
	})
	traceList, _, err := traces.Read(homeIn(dir), traces.Filter{})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	byID := map[string]*traces.Trace{}
	for _, t := range traceList {
		byID[t.TraceID] = t
	}
	at := slices.IndexFunc(found, func(s *story) bool { return byID[s.request.TraceID] != nil })
	s := found[max(at, 0)]
	s.trace = byID[s.request.TraceID]
	return s, s.gather()
}

// gather reads the data beside the trace.
func (s *story) gather() (err error) {
	s.lines, _, err = logs.Read(homeIn(s.dir), logs.Filter{TraceID: s.request.TraceID, Limit: 50})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// The pauses during the request in all processes of the target. They are details, so errors are
	// ignored.
	collections, _ := gclog.ReadTrial(filepath.Join(s.dir, "logs"), s.record.Trial)
	from := s.load.WindowOpenedMonotonicNs + s.request.ScheduledNs
	for _, log := range collections {
		s.logged = true
		s.pauses = append(s.pauses, log.During(from, from+s.request.ResponseNs)...)
	}
	return nil
}

func (s *story) print(w io.Writer) error {
	r, l := s.request, s.load
	fmt.Fprintf(w, "trial %s, load %s, request %s\n", s.record.Trial, l.Name, r.TraceID)
	fmt.Fprintf(w, "  %s; response times of this load: p50 %s, p99 %s, maximum %s\n",
		whyText(r), ms(l.ResponseTime.P50Ns), ms(l.ResponseTime.P99Ns), ms(l.ResponseTime.MaxNs))
	if text := s.conclusion(); text != "" {
		fmt.Fprintf(w, "  %s\n", text)
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "as measured by the load generator")
	fmt.Fprintf(w, "  due         %s after the window began, %s\n", ms(r.ScheduledNs),
		clockText(l.WindowOpenedUnixNs+r.ScheduledNs))
	fmt.Fprintf(w, "  sent        %s later%s\n", ms(r.LagNs), waited(r))
	if r.FirstByteNs > 0 {
		fmt.Fprintf(w, "  first byte  %s after sending\n", ms(r.FirstByteNs))
	}
	fmt.Fprintf(w, "  complete    %s after it was due\n\n", ms(r.ResponseNs))
	if err := s.printTrace(w); err != nil {
		return err
	}
	s.printPauses(w)
	s.printMoment(w)
	s.printProfile(w)
	return nil
}

// conclusion names the part that was more than half of the response time; "" if there is none.
func (s *story) conclusion() string {
	r := s.request
	due := s.load.WindowOpenedMonotonicNs + r.ScheduledNs
	var paused, within, outside int64
	for _, p := range s.pauses {
		paused += max(min(p.StartNs+p.PauseNs, due+r.ResponseNs)-max(p.StartNs, due), 0)
	}
	first := r.FirstByteNs
	if s.trace != nil {
		within, first = s.trace.DurationNs, 0
		outside = r.ResponseNs - r.LagNs - within
	}
	for _, part := range []struct {
		ns   int64
		text string
	}{
		{r.LagNs, "passed before the request was sent"},
		{paused, "was in pauses of the service's runtime"},
		{within, "was within the spans of the trace"},
		{outside, "was outside of the spans: in sockets, in the server before its first span, or " +
			"while the service waited for a CPU"},
		{first, "passed between sending the request and the first byte"},
	} {
		if part.ns > r.ResponseNs/2 {
			return fmt.Sprintf("conclusion: %s of %s %s", ms(part.ns), ms(r.ResponseNs), part.text)
		}
	}
	return ""
}

func whyText(r record.Traced) string {
	switch r.Class {
	case "slowest":
		return "one of the slowest requests with a trace id"
	case "failed":
		return "it failed"
	}
	return "drawn at random"
}

// waited explains a large send delay: the request waited for a free connection, not for the
// generator.
func waited(r record.Traced) string {
	if r.LagNs > r.ResponseNs/2 {
		return " (every connection was busy: most of this time belongs to earlier requests)"
	}
	return ""
}

func (s *story) printTrace(w io.Writer) error {
	if s.trace == nil {
		fmt.Fprint(w, "trace of the request\n  no trace is stored: no agent traced it, the agent "+
			`did not sample this request, or the trace was lost (see "Telemetry volume" in prony `+
			"report)\n\n")
		return nil
	}
	fmt.Fprintln(w, "trace of the request, █ on the critical path")
	var notes []traces.Note
	for _, line := range s.lines {
		notes = append(notes, traces.Note{SpanID: line.SpanID, Ns: line.Ns,
			Text: traces.Line(strings.ToUpper(line.Severity) + " " + line.Body)})
	}
	if err := traces.Waterfall(w, s.trace, traces.Drawing{Notes: notes, Rows: 60}); err != nil {
		return err
	}
	outside := s.request.ResponseNs - s.request.LagNs - s.trace.DurationNs
	fmt.Fprintf(w, "%s of the response time are outside of the spans: sockets, the server before "+
		"its first span, and the way back\n\n", ms(max(outside, 0)))
	return nil
}

func (s *story) printPauses(w io.Writer) {
	switch {
	case !s.logged:
		return
	case len(s.pauses) == 0:
		fmt.Fprint(w, "garbage collections\n  no garbage collection during the request\n\n")
		return
	}
	fmt.Fprintln(w, "pauses during the request")
	due := s.load.WindowOpenedMonotonicNs + s.request.ScheduledNs
	for _, p := range s.pauses {
		why := p.Cause
		if !p.GC {
			why = "no collection"
		}
		if why != "" {
			why = " (" + why + ")"
		}
		fmt.Fprintf(w, "  %s for %s, %s after it was due%s\n", traces.Line(p.Kind), ms(p.PauseNs),
			ms(p.StartNs-due), why)
	}
	fmt.Fprintln(w)
}

// printMoment prints the service's resource usage during the request.
func (s *story) printMoment(w io.Writer) {
	name := "series/" + s.record.Trial + "." + s.load.Name + ".json"
	data, err := fs.ReadFile(os.DirFS(s.dir), name)
	var samples record.Samples
	if err != nil || json.Unmarshal(data, &samples) != nil {
		return // a missing detail is no error
	}
	at := slices.IndexFunc(samples.TimeNs, func(t int64) bool {
		return t >= s.request.ScheduledNs+s.request.ResponseNs
	})
	if at < 0 || at >= min(len(samples.CPUCores), len(samples.RSSBytes), len(samples.Threads)) {
		return
	}
	fmt.Fprintf(w, "resources at that moment\n  the service used %.2f of %g CPUs, %s of memory "+
		"and %d threads\n\n", samples.CPUCores[at], s.record.Limits.CPUs,
		units.Bytes(float64(samples.RSSBytes[at])), samples.Threads[at])
}

// printProfile lists the functions with the most CPU time during the load.
func (s *story) printProfile(w io.Writer) {
	for _, p := range s.record.Profiles {
		if p.Load != s.load.Name || p.Kind != profile.CPU || p.File == "" {
			continue
		}
		seen, err := profile.Open(os.DirFS(s.dir), p.File)
		if err != nil {
			continue // a missing detail is no error
		}
		fmt.Fprintf(w, "CPU time by function during load %s, by %s, for all requests "+
			"together\n", p.Load,
			p.Tool)
		for _, row := range profile.Top(seen, 8) {
			fmt.Fprintf(w, "  %5.1f %%  %s\n", 100*row.FlatShare, traces.Line(row.Name))
		}
		fmt.Fprintf(w, "  draw a flame graph: prony profile %s --trial %s -o flame.html\n",
			cmdlog.Quote(s.dir), s.record.Trial)
	}
}

func clockText(unixNs int64) string {
	return time.Unix(0, unixNs).UTC().Format("15:04:05.000000 UTC")
}

func ms(ns int64) string { return units.Duration(float64(ns)) }
