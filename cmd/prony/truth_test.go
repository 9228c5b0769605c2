package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/selftest"
	"prony.example/internal/generator/truth"
	"prony.example/internal/trial/machine"
)

func TestTruthUsage(t *testing.T) {
	check := func(want string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		err := run(context.Background(), machine.World{}, args, &stdout, &stderr)
		if cli.Code(err) != cli.Misused || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: exit %d, %s; want %d, %q", args, cli.Code(err), &stderr, cli.Misused,
				want)
		}
	}
	check(`there is no truth server "stal"; did you mean "stall"?`, "truth", "stal")
	check(`there is no truth server "x"; there are fixed, md1`, "truth", "x")
	check("n is out of range; it is from 1 to 65536", "truth", "cap", "--n", "0")
	check("unknown flag: --stall", "truth", "cap", "--stall", "1s")
	check("got 1 arguments", "truth", "cap", "now")
	check(`there is no case "x"; there are stall, pause`, "selftest", "x")
}

// The help teaches every kind: what it does and what to read of it.
func TestTruthTeaches(t *testing.T) {
	help := func(args ...string) string {
		var stdout, stderr bytes.Buffer
		if err := run(context.Background(), machine.World{}, args, &stdout, &stderr); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return strings.Join(strings.Fields(stdout.String()), " ")
	}
	all := help("truth", "--help")
	for _, k := range truth.Kinds() {
		reads := strings.Join(strings.Fields(k.Reads), " ")
		one := help("truth", k.Name, "--help")
		for _, text := range []string{all, one} {
			if !strings.Contains(text, k.Does) || !strings.Contains(text, reads) {
				t.Errorf("%s is not taught in: %s", k.Name, text)
			}
		}
		for _, n := range k.Needs {
			if !strings.Contains(one, "--"+n.Name+" ") {
				t.Errorf("%s does not hear --%s", k.Name, n.Name)
			}
		}
	}
}

// A server of kind wrong answers every second request wrongly, until it is told to stop, and says
// how many there were.
func TestTruthServes(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var stdout bytes.Buffer
	says, stderr := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, machine.World{}, []string{"truth", "wrong", "--n", "2", "--json"}, &stdout,
			stderr)
		stderr.Close()
	}()
	line, err := bufio.NewReader(says).ReadString('\n')
	go io.Copy(io.Discard, says) //nolint:errcheck // it says no more
	url := strings.TrimSpace(strings.TrimPrefix(line, "wrong on "))
	if err != nil || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("it says %q where it listens, error %v", line, err)
	}
	for _, want := range []string{"ok", "no", "ok"} {
		if got := ask(t, url); got != want {
			t.Errorf("answer is %q, want %q", got, want)
		}
	}
	var errs bytes.Buffer
	err = run(context.Background(), machine.World{}, []string{"truth", "wrong", "--port",
		url[strings.LastIndex(url, ":")+1 : len(url)-1]}, io.Discard, &errs)
	if err == nil || !strings.Contains(errs.String(), "is the port taken?") {
		t.Errorf("a second one at its port: %v, %s", err, &errs)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	var r truth.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil || r.Requests != 3 {
		t.Errorf("it says %s (%v), want 3 requests", &stdout, err)
	}

	stdout.Reset()
	file := filepath.Join(t.TempDir(), "times.csv")
	err = run(context.Background(), machine.World{}, []string{"truth", "stall", "-d", "1ms",
		"--times", file, "--ahead"},
		&stdout, io.Discard)
	for _, want := range []string{"stall on http://127.0.0.1:", "--after 3s", "--stall 1s",
		"served 0 requests"} {
		if err != nil || !strings.Contains(stdout.String(), want) {
			t.Errorf("%v, want %q in:\n%s", err, want, &stdout)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || string(text) != "came_ns,left_ns,service_ns,processor_ns\n" {
		t.Errorf("the times are %q, %v", text, err)
	}
}

// ask gets a body.
func ask(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestOutcomesArePrinted(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	a.printOutcomes([]selftest.Outcome{
		{Case: "stall", Known: "a freeze", State: selftest.OK, TookNs: 5e9, Lines: []selftest.Line{
			{What: "mean", Formula: "s²/2T", Unit: selftest.Ns, Known: 125e6, Measured: 126e6,
				OffBy: 0.008, Limit: 0.02, OK: true},
			{What: "rate", Formula: "1/d", Unit: selftest.PerS, Known: 500, Measured: 495.04,
				OffBy: -0.00992, Limit: 0.03, OK: true},
		}},
		{Case: "wrong", Known: "1 in 10", State: selftest.Disturbed, Disturbed: "late by 1 ms",
			TookNs: 1e9, Lines: []selftest.Line{
				{What: "errors", Formula: "n/10", Unit: selftest.Plain, Known: 12000,
					Measured: 11999, OffBy: -1.0 / 12000},
				{What: "under way", Formula: "N", Unit: selftest.Plain, Known: 0, Measured: 0.25,
					OffBy: 0.25},
			}},
	}, 1)
	head := strings.Repeat(" ", 64) + "known   measured     off by   limit"
	want := strings.Join([]string{
		"stall: a freeze", head,
		"  mean                       s²/2T                             125 ms     126 ms    " +
			"+0.80 %    ±2 %  ok",
		"  rate                       1/d                              500.0/s    495.0/s    " +
			"-0.99 %    ±3 %  ok",
		"", "wrong: 1 in 10", head,
		"  errors                     n/10                              12,000     11,999    " +
			"-0.01 %    none  disturbed",
		"  under way                  N                                      0       0.25    " +
			"   0.25    none  disturbed",
		"  disturbed: late by 1 ms", "",
		"1 of 2 cases are as they must be; they took 6.00 s", "",
	}, "\n")
	if got := strings.ReplaceAll(out.String(), "  \n", "\n"); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}

// The verdict meets faults that are plainly too much, through the real program and a server of its
// own. What a busy machine may disturb is left to who runs all of them by hand.
func TestSelftestVerdicts(t *testing.T) {
	testsets.Once(t, "faults that the verdict meets", testsets.Needs{})
	testsets.Cores(t)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), machine.World{}, []string{"selftest", "6 connections", "from 40ms"},
		&stdout, &stderr)
	if err != nil || !strings.Contains(stdout.String(), "2 of 2 cases are as they must be") {
		t.Errorf("%v\n%s%s", err, &stdout, &stderr)
	}
	cases, err := chooseCases([]string{"verdicts"})
	if err != nil || len(cases) != len(selftest.Verdicts()) {
		t.Errorf("%d cases, %v", len(cases), err)
	}
}
