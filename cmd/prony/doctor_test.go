package main

import (
	"context"
	"encoding/json"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/trial/doctor"
	"prony.example/record"
)

// graded is a host with one check of each grade up to the given one.
func graded(grade string) mock {
	checks := []record.Check{
		{Name: "memory", Grade: record.Fit, Observed: "8.0 GiB", Expected: "2 GiB",
			Impact: "it swaps",
			Source: "proc(5)"},
		{Name: "turbo", Grade: record.Unknown, Observed: "the kernel does not report it",
			Expected: "off"},
	}
	if grade != record.Fit {
		checks = append(checks, record.Check{Name: "huge pages", Grade: record.Doubtful,
			Observed: "always", Expected: "madvise", Impact: "heaps grow",
			Fix: "echo madvise > /x"})
	}
	if grade == record.Unfit {
		checks = append(checks, record.Check{Name: "clock source", Grade: record.Unfit,
			Observed: "hpet", Expected: "tsc", Impact: "it is slow", Fix: "echo tsc > /y"})
	}
	return mock{host: record.Grading{Grade: grade, Checks: checks}}
}

func TestDoctorExits(t *testing.T) {
	check := func(grade string, want int, args ...string) {
		t.Helper()
		stdout, stderr, exit := say(t, graded(grade), append([]string{"doctor"}, args...)...)
		if exit != want || stderr != "" {
			t.Errorf("%s %v: exit %d, want %d; stderr %q", grade, args, exit, want, stderr)
		}
		if len(args) < 2 {
			has(t, "stdout", stdout, "This host is "+grade)
		}
	}
	check(record.Fit, cli.Fine)
	check(record.Doubtful, cli.Fine)
	check(record.Unfit, cli.Invalid)
	check(record.Fit, cli.Fine, "--strict")
	check(record.Doubtful, cli.Invalid, "--strict")
	check(record.Unfit, cli.Invalid, "--strict")
	check(record.Unfit, cli.Invalid, "--json", "--all") // the output format does not matter
	_, stderr, exit := say(t, mock{}, "doctor", "--cpus", "0")
	if exit != cli.Misused {
		t.Errorf("exit %d, %q; want a usage error", exit, stderr)
	}
	has(t, "stderr", stderr, "--cpus must be greater than 0, such as 1 or 0.5, got 0")
}

func TestDoctorPrints(t *testing.T) {
	stdout, _, _ := say(t, graded(record.Unfit), "doctor")
	want := `This host is unfit for measurements: 1 unfit, 1 doubtful, 1 unknown, 1 fit.

  ✗  clock source  hpet; expected: tsc
  !  huge pages    always; expected: madvise
  ?  turbo         the kernel does not report it
  OK fine: memory

What to do:
  ✗  clock source: echo tsc > /y
       why: it is slow
  !  huge pages: echo madvise > /x
       why: heaps grow
`
	if stdout != want {
		t.Errorf("it prints\n%s\nwant\n%s", stdout, want)
	}
	stdout, _, _ = say(t, graded(record.Fit), "doctor", "--all")
	has(t, "all", stdout, "OK memory  8.0 GiB\n", "expected: 2 GiB", "it swaps (proc(5))")
}

func TestDoctorJSON(t *testing.T) {
	m := graded(record.Doubtful)
	stdout, _, _ := say(t, m, "doctor", "--json")
	has(t, "JSON", stdout, `"fix": "echo madvise > /x"`)
	var g record.Grading
	if err := json.Unmarshal([]byte(stdout), &g); err != nil {
		t.Fatal(err)
	}
	if g.Grade != m.host.Grade || len(g.Checks) != 3 || g.Checks[2] != m.host.Checks[2] {
		t.Errorf("it is %+v, want %+v", g, m.host)
	}
}

// The number of cores of a service reaches the examination.
func TestDoctorAsksForCPUs(t *testing.T) {
	w := &asked{}
	args := []string{"doctor", "--cpus", "2.5"}
	if err := run(t.Context(), w, args, t.Output(), t.Output()); err != nil {
		t.Fatal(err)
	}
	if w.options.CPUs != 2.5 {
		t.Errorf("asked for %g CPUs, want 2.5", w.options.CPUs)
	}
}

type asked struct {
	mock
	options doctor.Options
}

func (a *asked) Examine(_ context.Context, o doctor.Options) record.Grading {
	a.options = o
	return record.Grading{Grade: record.Fit}
}

func TestDoctorHelpTeaches(t *testing.T) {
	stdout, _, exit := say(t, mock{}, "doctor", "--help")
	if exit != cli.Fine {
		t.Errorf("exit %d", exit)
	}
	has(t, "help", stdout, "Examples:\n  prony doctor", "Exit codes: 0 fit or doubtful, 4 unfit")
}
