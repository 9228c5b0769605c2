package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// wholeRoot is the program with the completion verb, which cobra adds when it runs.
func wholeRoot(t *testing.T) *cobra.Command {
	t.Helper()
	a := &app{world: mock{}, stdout: io.Discard, stderr: io.Discard, rootFlag: checkout(t)}
	root := newRoot(a)
	root.InitDefaultCompletionCmd()
	return root
}

// verbs returns the visible verbs.
func verbs(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(c *cobra.Command) bool {
		return !c.IsAvailableCommand() || c.Name() == "help"
	})
}

// walk visits every visible verb, the program first.
func walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range verbs(c) {
		walk(sub, visit)
	}
}

// offered returns a shell's completions of a command line, as its script requests them.
func offered(t *testing.T, args ...string) (words []string, directive string) {
	t.Helper()
	root := wholeRoot(t)
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd}, args...))
	if err := root.Execute(); err != nil {
		t.Fatalf("%v: %s", err, &errs)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[:len(lines)-1], lines[len(lines)-1]
}

func TestCompletion(t *testing.T) {
	const noFiles, files, folders = ":4", ":0", ":16"
	t.Setenv("PRONY_ROOT", checkout(t)) // this one may have results
	check := func(want, directive string, args ...string) {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			words, got := offered(t, args...)
			for w := range strings.FieldsSeq(want) {
				if !slices.Contains(words, w) {
					t.Errorf("%q are offered, want %s too", words, w)
				}
			}
			if want == "" && len(words) > 0 {
				t.Errorf("%q are offered, want nothing", words)
			}
			if got != directive {
				t.Errorf("the directive is %s, want %s", got, directive)
			}
		})
	}
	check("completion load verify", noFiles, "")
	check("bash zsh fish powershell", noFiles, "completion", "")
	check("go-nethttp", noFiles, "verify", "go-")
	check("java-jdk", noFiles, "build", "go-nethttp", "j")
	check("go-nethttp java-jdk/virtual", noFiles, "run", "--targets", "")
	check("go-nethttp,java-jdk/platform", noFiles, "plan", "--targets", "go-nethttp,java")
	check("", noFiles, "load", "http")
	check("poisson constant", noFiles, "load", "--arrivals", "")
	check("text markdown html", noFiles, "report", "--format", "")
	check("", files, "report", "--output", "") // a file, where load's is a format
	check("", folders, "report", "")
	check("", noFiles, "run", "a.yaml", "")
}

// Completion leaves out names that are already present.
func TestCompletionLeavesOutWhatIsThere(t *testing.T) {
	words, _ := offered(t, "verify", "go-nethttp", "")
	if slices.Contains(words, "go-nethttp") || len(words) == 0 {
		t.Errorf("%q are offered after go-nethttp", words)
	}
	words, _ = offered(t, "run", "--targets", "go-nethttp,")
	if slices.Contains(words, "go-nethttp,go-nethttp") || len(words) == 0 {
		t.Errorf("%q are offered after go-nethttp,", words)
	}
}

// Suites and runs are completed by their paths from here.
func TestCompletionOfFiles(t *testing.T) {
	root := checkout(t)
	run := filepath.Join(root, "results", "2026-11-21T03-40-11Z")
	for _, dir := range []string{run, filepath.Join(root, "results", "empty")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(run, "run.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(root, "results"))
	a := &app{rootFlag: root}
	suites, _ := a.completeSuites(nil, nil, "")
	if !slices.Contains(suites, "../suites/canonical.yaml") {
		t.Errorf("the suites are %q", suites)
	}
	if runs, _ := a.completeRuns(1)(nil, nil, ""); !slices.Equal(runs, []string{
		"2026-11-21T03-40-11Z"}) {
		t.Errorf("the runs are %q", runs)
	}
	t.Chdir(t.TempDir())
	lost := &app{}
	if words, _ := lost.completeSuites(nil, nil, ""); len(words) > 0 {
		t.Errorf("without a catalog there are %q", words)
	}
	if words, _ := lost.completeTargets(nil, nil, ""); len(words) > 0 {
		t.Errorf("without a catalog there are %q", words)
	}
}

// A flag with few values completes them.
func TestFlagsOfFewWordsAreCompleted(t *testing.T) {
	offered := map[string]bool{}
	walk(wholeRoot(t), func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if _, ok := c.GetFlagCompletionFunc(f.Name); ok {
				offered[f.Name] = true
			}
		})
	})
	for _, name := range []string{"arrivals", "columns", "engine", "format", "host", "inconclusive",
		"kind", "launcher", "output", "pacing", "profile", "table", "targets", "view"} {
		if !offered[name] {
			t.Errorf("no shell is told the words of --%s", name)
		}
	}
}
