package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"prony/internal/result"
	"prony/internal/telemetry"
)

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
		return "", fmt.Errorf("find run %s: there is no such folder with a %s, nor one of that "+
			"name below results/", args[0], result.RunFile)
	}
	if err != nil {
		return "", err
	}
	for _, dir := range newest(filepath.Join(root, "results")) {
		if has(dir) {
			fmt.Fprintf(a.stderr, "prony: the newest is %s\n", dir)
			return dir, nil
		}
	}
	return "", fmt.Errorf("find the newest run: none below results/ has %s; make one with "+
		"prony run --telemetry", what)
}

// newest are the folders of runs below one of results, the newest first. A run that ended before
// its first trial has no head.
func newest(results string) (dirs []string) {
	heads, _ := filepath.Glob(filepath.Join(results, "*", result.RunFile))
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
