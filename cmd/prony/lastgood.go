package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"prony/internal/cli"
	"prony/internal/file"
	"prony/internal/result"
	"prony/internal/stats"
)

// nameMost bounds a file that names a folder.
const nameMost = 4 << 10

// gateLast is a gate against the last good run, as a lab asks that runs night after night and has
// nobody who names two folders.
func (a *app) gateLast(args []string, f *gateFlags) error {
	if len(args) != 1 || len(f.targets) > 0 {
		return cli.Usagef("--last-good names BASE: name NEW alone, a run's folder")
	}
	dir := args[0]
	text, err := file.String(f.good, nameMost)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read which run was the last good one: %w", err)
	}
	base := strings.TrimSpace(text)
	if base == "" || !isRun(base) { // runs are removed, too
		if base != "" {
			a.say("prony: the last good run, " + base + ", is gone")
		}
		return a.gateFirst(dir, f)
	}
	g, err := a.gate([]string{base, dir}, f)
	// What was let through undecided is no base: from it a next loss would be measured.
	if err != nil || g.Outcome != stats.Pass {
		return err
	}
	return f.isGood(dir)
}

// gateFirst is the gate of a run that is compared with nothing yet.
func (a *app) gateFirst(dir string, f *gateFlags) error {
	side, err := a.side(dir)
	if err != nil {
		return err
	}
	lost, blocks := 0, map[int]bool{}
	for _, r := range side.Records {
		blocks[r.Block] = true
		if r.Outcome != result.Measured || r.Verdict.Grade == result.Invalid {
			lost++
		}
	}
	unfit := ""
	switch {
	case lost > f.invalid:
		unfit = fmt.Sprintf("UNFIT: %d trials were INVALID or failed: no base for later runs", lost)
	case len(blocks) < 2:
		unfit = "UNFIT: fewer than two blocks: no base for later runs"
	}
	if unfit != "" {
		fmt.Fprintln(a.stdout, unfit)
		return cli.End(cli.Invalid, "%s", unfit)
	}
	fmt.Fprintln(a.stdout, "PASS: there was no good run before; later ones are compared with this")
	return f.isGood(dir)
}

func (f *gateFlags) isGood(dir string) error {
	if err := file.Put(f.good, []byte(dir+"\n")); err != nil {
		return fmt.Errorf("keep which run was the last good one: %w", err)
	}
	return nil
}
