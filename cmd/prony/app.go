package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/base/format"
	"prony.example/internal/telemetry"
	"prony.example/record"
)

// app is the state that all verbs share.
type app struct {
	world          world    // in which trials run
	args           []string // without passwords
	stdout, stderr io.Writer
	rootFlag       string
	resumes        string // folder of the run that again continues; empty: none
}

// version returns the version of the module, or the commit it was built from.
func version() string { return telemetry.OwnVersion().Version }

// root returns the folder of the catalog: the flag's, or the nearest folder upwards with services/
// and suites/.
func (a *app) root() (string, error) {
	if a.rootFlag != "" {
		return filepath.Abs(a.rootFlag)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if files.IsDir(filepath.Join(at, "services")) && files.IsDir(filepath.Join(at, "suites")) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("the catalog was not found: neither %s nor a folder above it "+
				"has services/ and suites/; go into a checkout of Prony, or name a checkout with "+
				"--root", dir)
		}
	}
}

// exists reports whether there is a file or folder at a path of these elements.
func exists(path ...string) bool {
	_, err := os.Stat(filepath.Join(path...))
	return err == nil
}

// write prints into a file, or to standard output if the name is empty.
func (a *app) write(name string, print func(io.Writer) error) error {
	// The file may also be a link.
	if real, err := filepath.EvalSymlinks(name); err == nil && isRun(filepath.Dir(real)) &&
		(filepath.Base(real) == record.RunFile || filepath.Base(real) == record.TrialsFile) {
		return fmt.Errorf("write report: %s has the records of a run; choose another file", name)
	}
	return files.Print(a.stdout, name, print)
}

// show prints external actions as shell lines from now on.
func (a *app) show() {
	say := cmdlog.Lines(a.stderr)
	cmdlog.Show(func(line string) { say("+ " + line) })
}

func (a *app) say(line string) { fmt.Fprintln(a.stderr, line) }

// grid prints rows in columns.
func (a *app) grid(rows [][]string) error {
	_, err := io.WriteString(a.stdout, format.Grid("", rows, format.Left))
	return err
}

// runs returns the folder of the checkout's runs, or else of the nearest project upwards.
func (a *app) runs() (string, error) {
	root, err := a.root()
	if err == nil {
		return filepath.Join(root, "results"), nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if runs := filepath.Join(at, ".prony", "run"); files.IsDir(runs) {
			return runs, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no runs were found: %s is neither in a checkout of Prony nor "+
				"in a project with .prony/run; name the folder of a run", dir)
		}
	}
}

// storedRun finds the folder of a run that contains a file or folder of that name: the run in args,
// as a path or below the folder of runs, or the newest one that has it, which it reports.
func (a *app) storedRun(args []string, file string) (string, error) {
	return a.findRun(args, file, func(dir string) bool {
		return exists(dir, file)
	})
}

// findRun is storedRun with a check by has, and what for errors. A named folder may also be of a
// collector that ran alone, which is no run.
func (a *app) findRun(args []string, what string, has func(dir string) bool) (string, error) {
	if len(args) > 0 {
		return a.namedRun(args[0], has)
	}
	runs, err := a.runs()
	if err != nil {
		return "", err
	}
	for _, dir := range newest(runs) {
		if has(dir) {
			fmt.Fprintf(a.stderr, "prony: using the newest run, %s\n", dir)
			return dir, nil
		}
	}
	return "", fmt.Errorf("no run below %s has %s; make one with prony run --telemetry", runs, what)
}

// homeIn returns the folder in which a collector stored its data, of a run or of a collector that
// ran alone.
func homeIn(dir string) string {
	if exists(dir, telemetry.StatsFile) {
		return dir
	}
	return filepath.Join(dir, telemetry.Dir)
}
