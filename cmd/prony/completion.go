package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"prony.example/internal/base/files"
	"prony.example/record"
)

// addCompletion adds completions of arguments to a root's verbs.
func (a *app) addCompletion(root *cobra.Command) {
	arguments := map[string]cobra.CompletionFunc{
		"run": a.completeSuites, "plan": a.completeSuites, "report": a.completeRuns(1),
		"traces": a.completeRuns(1), "logs": a.completeRuns(1), "query": a.completeRuns(1),
		"profile": a.completeRuns(1), "explain": a.completeRuns(1),
		"compare": a.completeRuns(2), "gate": a.completeRuns(2), "trend": a.completeRuns(anyNumber),
		"site": a.completeRuns(1),
		"load": cobra.NoFileCompletions,
	}
	for _, c := range root.Commands() {
		if f := arguments[c.Name()]; f != nil {
			c.ValidArgsFunction = f
		}
	}
}

// completeSuites completes the catalog's suites, by their paths from here, and files.
func (a *app) completeSuites(_ *cobra.Command, args []string, _ string) ([]string,
	cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.inCatalog("suites/*.yaml"), cobra.ShellCompDirectiveDefault
}

// anyNumber is a number of arguments that no command line reaches.
const anyNumber = 1000

// completeRuns completes the folders of runs, for up to this many arguments.
func (a *app) completeRuns(most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		runs := a.inCatalog("results/*/" + record.RunFile)
		for i, file := range runs {
			runs[i] = filepath.Dir(file)
		}
		return runs, cobra.ShellCompDirectiveFilterDirs
	}
}

// inCatalog lists files below the root, with paths from the working directory if possible. It
// ignores errors, which a shell cannot use.
func (a *app) inCatalog(pattern string) []string {
	root, err := a.root()
	if err != nil {
		return nil
	}
	found := files.Glob(root, pattern)
	if here, err := os.Getwd(); err == nil {
		for i, f := range found {
			if near, err := filepath.Rel(here, f); err == nil {
				found[i] = near
			}
		}
	}
	return found
}
