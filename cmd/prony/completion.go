package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"prony.example/record"
)

// addCompletion tells shells what the arguments of a root's verbs can be.
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

// completeSuites offers the catalog's suites, as they are reached from here, and files.
func (a *app) completeSuites(_ *cobra.Command, args []string, _ string) ([]string,
	cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.inCatalog("suites", "*.yaml"), cobra.ShellCompDirectiveDefault
}

// anyNumber of arguments: a shell's line is shorter.
const anyNumber = 1000

// completeRuns offers the folders of runs, for so many arguments.
func (a *app) completeRuns(most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		runs := a.inCatalog("results", "*", record.RunFile)
		for i, file := range runs {
			runs[i] = filepath.Dir(file)
		}
		return runs, cobra.ShellCompDirectiveFilterDirs
	}
}

// inCatalog finds files below the root, and names them from the working folder where it can. A
// shell has no use for an error.
func (a *app) inCatalog(pattern ...string) []string {
	root, err := a.root()
	if err != nil {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(append([]string{root}, pattern...)...))
	if err != nil {
		return nil
	}
	if here, err := os.Getwd(); err == nil {
		for i, f := range files {
			if near, err := filepath.Rel(here, f); err == nil {
				files[i] = near
			}
		}
	}
	return files
}
