package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/tidy"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/logs"
	"prony.example/internal/telemetry/traces"
	"prony.example/record"
)

// placeTelemetry puts traces, span metrics and log records of a small system into a run's folder:
// the stores of prony-home after 40 requests through a gateway and a service to a database, one per
// second, of which one failed.
func placeTelemetry(t *testing.T, dir string) {
	t.Helper()
	root, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	sample := os.DirFS(filepath.Join(root, "internal/telemetry/testdata/sample"))
	if err := os.CopyFS(filepath.Join(dir, telemetry.Dir), sample); err != nil {
		t.Fatal(err)
	}
}

// The traces of the sample's slowest request, which is the last, and of the failed one.
const (
	slowestTrace = "ce6a57a6e3ccdeecdf88318c88cc5fe2"
	failedTrace  = "63cbe1e459320dd7e637bb4c9e7d0985"
)

// toldRun returns a run with telemetry below results/ of a checkout.
func toldRun(t *testing.T) (root, dir string) {
	t.Helper()
	root = checkout(t)
	dir = filepath.Join(root, "results", "RUN")
	if _, stderr, exit := say(t, mock{}, "run", "--root", root, "--out", dir); exit != cli.Fine {
		t.Fatal(stderr)
	}
	placeTelemetry(t, dir)
	return root, dir
}

// checker returns a function that runs a verb in a checkout and checks that its output contains the
// parts separated by bars, and not another text.
func checker(t *testing.T, root string) func(exit int, has, not string, args ...string) {
	return func(exit int, has, not string, args ...string) {
		t.Helper()
		stdout, stderr, got := say(t, mock{}, append(args, "--root", root)...)
		all := stdout + stderr
		lacks := slices.ContainsFunc(strings.Split(has, "|"), func(part string) bool {
			return !strings.Contains(all, part)
		})
		if got != exit || lacks || not != "" && strings.Contains(all, not) {
			t.Errorf("%q exits %d and says\n%.3000s\nwant %d with %q without %q", args, got, all,
				exit, has, not)
		}
	}
}

func TestTraces(t *testing.T) {
	root, dir := toldRun(t)
	const slowest = slowestTrace
	check := checker(t, root)
	// The slowest is the last: 2 ms and 39² times 10 µs more.
	check(cli.Fine, "17.2 ms|half|asked,slow,uniform|gateway GET /api/visits|20 of 40 traces", "",
		"traces", dir)
	check(cli.Fine, "using the newest run, "+dir, "", "traces")
	check(cli.Fine, "20 of 40", "the newest", "traces", "RUN")
	check(cli.Fine, "40 of 40", "", "traces", "RUN", "--limit", "0")
	check(cli.Fine, "1 of 1 traces|error,slow,uniform  gateway GET /api/visits  2.49 ms", "",
		"traces", "RUN", "--errors") // 2 ms and 49 times 10 µs
	check(cli.Fine, "2 of 2 traces|17.2 ms|5.61 ms", "", "traces", "RUN", "--asked")
	check(cli.Fine, "3 of 3 traces|16.4 ms", "2.00 ms", "traces", "RUN", "--slowest", "3")
	check(cli.Fine, "3 of 3 traces", "", "traces", "RUN", "--min", "15.6ms") // 37² and more
	check(cli.Fine, "No stored trace", "", "traces", "RUN", "--target", "other")
	check(cli.Fine, "No stored trace", "", "traces", "RUN", "--load", "peak")
	check(cli.Fine, "trace  "+slowest+"|█|visits SELECT petclinic (client)|CRITICAL PATH|"+
		// the database has 0.4 of 17.21 ms, visits 15.21
		"visits   2      16.1 ms  16.1 ms|log info found the visits", "files", "traces", "RUN",
		"--id", slowest[:9])
	check(cli.Fine, "event exception SQLTransientException no connection was free|✗|"+
		"log error no connection was free within 30 ms", "", "traces", "RUN", "--id",
		failedTrace)
	check(cli.Failed, "trace zz was not stored", "", "traces", "RUN", "--id", "zz")
	check(cli.Fine, "From span metrics|visits   GET /visits       server  40     1.0      1 ", "",
		"traces", "RUN", "--services") // 40 calls in 40 s
	check(cli.Fine,
		"From the uniform sample|visits   GET /visits       server  40     –        1",
		"gateway", "traces", "RUN", "--services", "--load", "half", "--service", "visits")
	check(cli.Misused, `--format "xml": there are text, json, otlp`, "", "traces", "--format",
		"xml")
	check(cli.Misused, "choose one", "", "traces", "--errors", "--uniform")
	check(cli.Misused, "which has only traces", "", "traces", "--services", "--format", "otlp")
	check(cli.Misused, "must be at least 0", "", "traces", "--limit", "-1")
	check(cli.Failed, "run absent was not found", "", "traces", "absent")
}

func TestTracesAsJSON(t *testing.T) {
	root, _ := toldRun(t)
	for _, row := range []struct {
		args string
		into any
		want func(any) bool
	}{
		{"traces RUN --format json --errors", &struct{ Traces []traces.Trace }{}, func(v any) bool {
			list := v.(*struct{ Traces []traces.Trace }).Traces
			return len(list) == 1 && len(list[0].Spans) == 4
		}},
		{"traces RUN --services --format json", &struct{ Operations []traces.Operation }{},
			func(v any) bool {
				return len(v.(*struct{ Operations []traces.Operation }).Operations) == 4
			}},
		{"logs RUN --format json --severity warn", &struct{ Records []logs.Record }{},
			func(v any) bool { return len(v.(*struct{ Records []logs.Record }).Records) == 1 }},
	} {
		out, stderr, _ := say(t, mock{}, append(strings.Fields(row.args), "--root", root)...)
		if err := json.Unmarshal([]byte(out), row.into); err != nil || !row.want(row.into) {
			t.Errorf("%s: %v, %s\n%.2000s", row.args, err, stderr, out)
		}
	}
	out, _, _ := say(t, mock{}, "traces", "RUN", "--format", "otlp", "--root", root)
	const want = 40 * 4
	if spans := strings.Count(out, `"spanId"`); !json.Valid([]byte(out)) || spans != want {
		t.Errorf("%d spans in\n%.2000s", spans, out)
	}
}

func TestLogs(t *testing.T) {
	root, _ := toldRun(t)
	check := checker(t, root)
	check(cli.Fine, "40 of 40 stored log records|error  visits  no connection", "", "logs", "RUN")
	check(cli.Fine, "1 of 1 stored log records|trace "+failedTrace[:16], "found", "logs", "RUN",
		"--severity", "warn")
	check(cli.Fine, "1 of 1 stored log records", "", "logs", "RUN", "--grep", "within 30 ms$")
	check(
		cli.Fine,
		"1 of 1 stored log records|found the visits",
		"",
		"logs",
		"RUN",
		"--trace",
		slowestTrace,
	)
	check(cli.Fine, "0 of 0 stored log records", "", "logs", "RUN", "--trial", "other")
	check(cli.Misused, `--severity "loud" does not exist; choose one of trace, debug`, "", "logs",
		"--severity",
		"loud")
	check(cli.Misused, "--grep", "", "logs", "--grep", "(")
	check(cli.Misused, "there are text, json", "", "logs", "--format", "csv")
}

// A run without log records has the services' own files; without telemetry it has no traces, which
// is reported.
func TestLogsOfFiles(t *testing.T) {
	root := checkout(t)
	dir := filepath.Join(root, "results", "RUN")
	if _, stderr, exit := say(t, mock{}, "run", "--root", root, "--out", dir); exit != cli.Fine {
		t.Fatal(stderr)
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, records, _, err := record.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records[:2] {
		text := []string{"listening\nsaw abc\n", "up\n"}[i]
		err := os.WriteFile(filepath.Join(dir, "logs", r.Trial+".log"), []byte(text), 0o600)
		if err != nil {
			t.Fatal(err)
		}
	}
	stdout, stderr, exit := say(t, mock{}, "logs", dir, "--severity", "warn")
	has(t, "logs", stdout, "  1  listening", "  2  saw abc", "  1  up",
		"3 lines from the output files of the services")
	has(t, "stderr", stderr, "lines in files have no severity")
	if exit != cli.Fine {
		t.Errorf("exit %d", exit)
	}
	stdout, _, _ = say(t, mock{}, "logs", dir, "--target", records[1].Target.Name)
	has(t, "logs", stdout, "  1  up")
	if strings.Contains(stdout, "abc") != (records[0].Target.Name == records[1].Target.Name) {
		t.Errorf("lines of another target:\n%s", stdout)
	}
	stdout, _, _ = say(t, mock{}, "logs", dir, "--trace", "abc", "--format", "json")
	has(t, "logs", stdout, `"source": "files"`, `"text": "saw abc"`, `"line": 2`)
	_, stderr, exit = say(t, mock{}, "traces", dir)
	has(t, "stderr", stderr, "has no stored traces; record traces with prony run --telemetry")
	if exit != cli.Failed {
		t.Errorf("exit %d", exit)
	}
	_, stderr, _ = say(t, mock{}, "traces", "--root", root)
	has(t, "stderr", stderr, "no run below "+filepath.Join(root, "results")+" has traces")

	// Outside of a checkout, the newest run is one of the project.
	project := t.TempDir()
	run := filepath.Join(project, ".prony", "run", "2026-11-29T20-00-00Z")
	below := filepath.Join(project, "src")
	if err := errors.Join(os.CopyFS(run, os.DirFS(dir)), os.Mkdir(below, 0o755)); err != nil {
		t.Fatal(err)
	}
	placeTelemetry(t, run)
	t.Chdir(t.TempDir())
	_, stderr, exit = say(t, mock{}, "traces")
	has(t, "stderr", stderr, "is neither in a checkout of Prony nor in a project with .prony/run")
	if exit != cli.Failed {
		t.Errorf("exit %d", exit)
	}
	t.Chdir(below)
	for _, args := range [][]string{{"traces"}, {"traces", filepath.Base(run)}} {
		if stdout, stderr, exit = say(t, mock{}, args...); exit != cli.Fine {
			t.Errorf("exit %d: %s", exit, stderr)
		}
		has(t, "traces", stdout, slowestTrace[:16])
	}
}

func TestRequestText(t *testing.T) {
	q := record.Traced{Class: "slowest", ScheduledNs: 1.5e9, LagNs: 12_000, FirstByteNs: 3e6,
		ResponseNs: 4e6}
	want := "slowest request of load half: due 1.5 s after the window began, sent 12.0 µs " +
		"later, first byte 3.00 ms after sending, complete 4.00 ms after it was due"
	if got := requestText("half", q); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	q.Failed = true
	want = "slowest request of load half: due 1.5 s after the window began, sent 12.0 µs " +
		"later, failed 4.00 ms after it was due"
	if got := requestText("half", q); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// The page shows the program's output, line by line; an ellipsis leaves lines out.
func TestTracesPageShowsWhatIsSaid(t *testing.T) {
	repo, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	commands, err := tidy.Commands(repo)
	if err != nil {
		t.Fatal(err)
	}
	root, _ := toldRun(t)
	t.Setenv("PRONY_ROOT", root)
	t.Chdir(root)
	shown := 0
	for _, c := range commands {
		if c.File != "docs/traces.md" {
			continue
		}
		shown++
		out, errs, _ := say(t, mock{}, c.Args...)
		said := strings.Split(out, "\n")
		for i, line := range c.Output {
			if line != "…" && !slices.Contains(said, line) {
				t.Errorf("%s:%d: it does not say %q\n%s%s", c.File, c.Line+1+i, line, out, errs)
			}
		}
		if len(c.Output) < 3 {
			t.Errorf("%s:%d: shows %d lines", c.File, c.Line, len(c.Output))
		}
	}
	if shown < 4 {
		t.Errorf("the page shows %d commands", shown)
	}
}
