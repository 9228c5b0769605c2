package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"prony.example/internal/base/format"
	"prony.example/internal/telemetry"
	"prony.example/record"
)

// app is what the verbs share.
type app struct {
	world          world    // what trials are run with
	args           []string // without passwords
	stdout, stderr io.Writer
	rootFlag       string
	repeated       bool // the line is one that again has put together
}

// version is that of the module, or of the commit it was built from.
func version() string { return telemetry.OwnVersion().Version }

// root is the folder of the catalog: the flag's, or the nearest one upwards that has services/ and
// suites/.
func (a *app) root() (string, error) {
	if a.rootFlag != "" {
		return filepath.Abs(a.rootFlag)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if isDir(filepath.Join(at, "services")) && isDir(filepath.Join(at, "suites")) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("the catalog was not found: neither %s nor a folder above it "+
				"has services/ and suites/; go into a checkout of Prony, or name a checkout with "+
				"--root", dir)
		}
	}
}

// exists says whether there is a file or a folder at the end of a path's elements.
func exists(path ...string) bool {
	_, err := os.Stat(filepath.Join(path...))
	return err == nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (a *app) say(line string) { fmt.Fprintln(a.stderr, line) }

// grid prints rows in columns.
func (a *app) grid(rows [][]string) error {
	_, err := io.WriteString(a.stdout, format.Grid("", rows, format.Left))
	return err
}

// storedRun finds the folder of a run that has a file or a folder of that name: the one that args
// name, as it is or below results/, or the newest that has it, which is told.
func (a *app) storedRun(args []string, file string) (string, error) {
	return a.findRun(args, file, func(dir string) bool {
		return exists(dir, file)
	})
}

// findRun is storedRun for what only has can tell; it is called what. A folder that is named may be
// of a home of telemetry that served alone, which is no run and has something all the same.
func (a *app) findRun(args []string, what string, has func(dir string) bool) (string, error) {
	if len(args) > 0 && (isRun(args[0]) || has(args[0])) {
		return args[0], nil
	}
	root, err := a.root()
	if len(args) > 0 {
		dir := filepath.Join(root, "results", args[0])
		if err == nil && (isRun(dir) || has(dir)) {
			return dir, nil
		}
		return "", fmt.Errorf("run %s was not found: there is no such folder with a %s, here or "+
			"below results/", args[0], record.RunFile)
	}
	if err != nil {
		return "", err
	}
	for _, dir := range newest(filepath.Join(root, "results")) {
		if has(dir) {
			fmt.Fprintf(a.stderr, "prony: using the newest run, %s\n", dir)
			return dir, nil
		}
	}
	return "", fmt.Errorf("no run below results/ has %s; make one with prony run --telemetry", what)
}

// newest are the folders of runs below one of results, the newest first. A run that ended before
// its first trial has no head.
func newest(results string) (dirs []string) {
	heads, _ := filepath.Glob(filepath.Join(results, "*", record.RunFile))
	for _, head := range heads {
		dirs = append(dirs, filepath.Dir(head))
	}
	slices.Sort(dirs) // named by their time
	slices.Reverse(dirs)
	return dirs
}

// homeIn is the folder in which a home of telemetry kept what it took in: of a run, or of a home
// that served alone.
func homeIn(dir string) string {
	if exists(dir, telemetry.StatsFile) {
		return dir
	}
	return filepath.Join(dir, telemetry.Dir)
}
