package main

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// Journeys are tasks of users, from the first line that they type to the last one that they read:
// scripts in testdata/journeys, the long ones in a folder below it, each in a checkout of its own,
// $WORK/checkout, and in a mock world. Beside testscript's own commands there are
//
//	[!] prony ARG...             the program; without ! it must end well
//	exits CODE                   how it ended last
//	world FAULT=VALUE...         what goes wrong from here on: lacks, broken, lying, interrupt
//	change RUN HOW...            every record: connections N, invalid BLOCK, slower TARGET FACTOR
func TestJourneys(t *testing.T) { travel(t, "testdata/journeys") }

// Runs that are interrupted and resumed, and what they leave behind.
func TestLongJourneys(t *testing.T) {
	testsets.Once(
		t,
		"long journeys",
		testsets.Needs{Files: []string{"cmd/prony/testdata/journeys/long"}},
	)
	travel(t, "testdata/journeys/long")
}

// travel runs the scripts of a folder.
func travel(t *testing.T, dir string) {
	testscript.RunT(script{t}, testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			j := &journey{t: env.T().(script).T}
			env.Cd = filepath.Join(env.WorkDir, "checkout")
			env.Values["journey"] = j
			err := os.MkdirAll(env.Cd, 0o755)
			furnish(j.t, env.Cd)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"prony": command((*journey).prony), "exits": command((*journey).exits),
			"world": command((*journey).set), "change": command((*journey).change),
		},
	})
}

// script is a test for testscript. Scripts run one after another, because the working directory and
// -x belong to the process.
type script struct{ *testing.T }

func (s script) Parallel()     {}
func (s script) Verbose() bool { return testing.Verbose() }

func (s script) Run(name string, do func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { do(script{t}) })
}

// journey is the state that a script's commands share.
type journey struct {
	t     *testing.T
	world mock
	exit  int
}

func command(do func(*journey, *testscript.TestScript, bool, []string)) func(
	*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		do(ts.Value("journey").(*journey), ts, neg, args)
	}
}

func (j *journey) prony(ts *testscript.TestScript, fails bool, args []string) {
	j.t.Chdir(ts.MkAbs("."))
	stdout, stderr, exit := say(j.t, j.world, args...)
	io.WriteString(ts.Stdout(), stdout) //nolint:errcheck // into memory
	io.WriteString(ts.Stderr(), stderr) //nolint:errcheck // into memory
	if j.exit = exit; fails != (exit != 0) {
		ts.Fatalf("prony exits with %d:\n%s%s", exit, stdout, stderr)
	}
}

func (j *journey) exits(ts *testscript.TestScript, _ bool, args []string) {
	if got := strconv.Itoa(j.exit); len(args) != 1 || args[0] != got {
		ts.Fatalf("prony exited with %s", got)
	}
}

func (j *journey) set(ts *testscript.TestScript, _ bool, args []string) {
	j.world = mock{}
	for _, a := range args {
		fault, value, _ := strings.Cut(a, "=")
		switch fault {
		case "lacks":
			j.world.lacks = value
		case "broken":
			j.world.broken = value
		case "lying":
			j.world.lying = value
		case "interrupt":
			after, err := time.ParseDuration(value)
			ts.Check(err)
			j.world.interrupt = after
		default:
			ts.Fatalf("no world has a fault %q", fault)
		}
	}
}

func (j *journey) change(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("change what?")
	}
	by, err := strconv.ParseFloat(args[len(args)-1], 64)
	ts.Check(err)
	how, ok := map[string]func(*record.Record){
		"connections": func(r *record.Record) { r.Loads[0].Connections = int(by) },
		"slower":      throughputOf(args[2], by),
		"starts": func(r *record.Record) { // side by side with so many others
			r.SideBySide = &record.SideBySide{With: make([]string, int(by)),
				Freeze: record.FreezeSignals}
		},
		"invalid": func(r *record.Record) {
			if r.Block == int(by) {
				r.Verdict.Grade = record.Invalid
			}
		},
	}[args[1]]
	if !ok {
		ts.Fatalf("no change %q", args[1])
	}
	edit(j.t, ts.MkAbs(args[0]), how)
}
