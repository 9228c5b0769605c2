package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"prony.example/internal/base/files"
	"prony.example/internal/base/lazyregexp"
	"prony.example/record"
)

// latestName is the name of the newest run in all verbs that take a run.
const latestName = "latest"

// runFolder returns the folder of the run that a user names: by its folder, by its name below the
// folder of runs, or by latestName. A row after a colon stays. If the name is of no run, runFolder
// returns it unchanged: the caller reports what it expected.
func (a *app) runFolder(name string) (string, error) {
	there := func(path string) bool { return exists(path) }
	if path, _ := addressOf(name, there); name == "" || exists(path) {
		return name, nil
	}
	runs, err := a.runs()
	if word, row, found := strings.Cut(name, ":"); word == latestName {
		if err != nil {
			return "", err
		}
		all := newest(runs)
		if len(all) == 0 {
			return "", fmt.Errorf("there is no %s run: no folder below %s has a %s; make a run "+
				"with prony run", latestName, runs, record.RunFile)
		}
		fmt.Fprintf(a.stderr, "prony: using the newest run, %s\n", all[0])
		if found {
			return all[0] + ":" + row, nil
		}
		return all[0], nil
	}
	if below := filepath.Join(runs, name); err == nil {
		if dir, _ := addressOf(below, isRun); isRun(dir) {
			return below, nil
		}
	}
	return name, nil
}

// runFolders is runFolder for several names.
func (a *app) runFolders(names []string) (dirs []string, err error) {
	for _, name := range names {
		dir, err := a.runFolder(name)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// namedRun returns the folder of a run that was named, or of a collector that ran alone, which has
// detects and which is no run.
func (a *app) namedRun(name string, has func(dir string) bool) (string, error) {
	dir, err := a.runFolder(name)
	if err != nil {
		return "", err
	}
	runs, _ := a.runs() // without one, only the folder itself remains
	for _, dir := range []string{dir, filepath.Join(runs, name)} {
		if isRun(dir) || has(dir) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("run %s was not found: there is no such folder with a %s, here or "+
		"below results/ or .prony/run/", name, record.RunFile)
}

// timed are names of folders that begin with the time at which the run began.
var timed = lazyregexp.New(`^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ`)

// newest lists the folders of runs below a folder of results, the newest first. It leaves out runs
// that ended before their first trial, which have no head.
func newest(results string) (dirs []string) {
	began := map[string]string{}
	for _, head := range files.Glob(results, "*/"+record.RunFile) {
		dir := filepath.Dir(head)
		began[dir] = beganIn(dir)
		dirs = append(dirs, dir)
	}
	slices.SortFunc(dirs, func(a, b string) int { return strings.Compare(began[b], began[a]) })
	return dirs
}

// beganIn returns a text that sorts the run of a folder by its time: the folder's name, or the
// run's id if the user named the folder.
func beganIn(dir string) string {
	name := filepath.Base(dir)
	if timed.MatchString(name) {
		return name
	}
	var head struct{ ID string }
	text, err := files.Text(filepath.Join(dir, record.RunFile), files.Page)
	if err != nil || json.Unmarshal(text, &head) != nil {
		return ""
	}
	return head.ID
}
