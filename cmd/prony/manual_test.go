package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manualRoot is the program with its manual, and the completion verb that cobra adds when it runs.
func manualRoot(t *testing.T) *cobra.Command {
	t.Helper()
	a := &app{world: mock{}, stdout: io.Discard, stderr: io.Discard, rootFlag: checkout(t)}
	root := newRoot(a)
	if !slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool {
		return c.Name() == "man"
	}) {
		a.addManual(root)
	}
	root.InitDefaultCompletionCmd()
	return root
}

// walk visits every verb that people see, the program first.
func walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range verbs(c) {
		walk(sub, visit)
	}
}

// read is a page as man shows it, near enough: escapes undone.
func read(text []byte) string {
	return strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(ga`, "`", `\(dq`, `"`, `\(ha`, "^",
		`\(ti`, "~", `\&`, "", `\e`, `\`).Replace(string(text))
}

// Every verb, every flag, every usage, every example is in the pages, to the letter.
func TestManualHasEverything(t *testing.T) {
	root := manualRoot(t)
	pages := map[string]string{}
	for _, p := range manual(root) {
		pages[p.name] = read(p.text)
	}
	visited := 0
	walk(root, func(c *cobra.Command) {
		visited++
		text, ok := pages[dashed(c)+".1"]
		if !ok {
			t.Errorf("%s has no page", c.CommandPath())
		}
		want := []string{c.Short, c.UseLine(), strings.TrimSpace(c.Example)}
		want = append(want, strings.Split(strings.TrimSpace(c.Long), "\n\n")...)
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				_, usage := pflag.UnquoteUsage(f)
				want = append(want, "--"+f.Name, usage)
			}
		})
		for _, sub := range verbs(c) {
			want = append(want, ".BR "+dashed(sub)+" (1)")
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("the page of %s lacks %q:\n%s", c.CommandPath(), w, text)
			}
		}
	})
	if visited != len(pages) || visited < 12 {
		t.Errorf("%d pages for %d verbs", len(pages), visited)
	}
	if _, ok := pages["prony-null.1"]; ok {
		t.Error("a hidden verb has a page")
	}
}

// What the texts hold is text: no line of a page is a request that the program did not mean, and
// groff has nothing to complain about.
func TestManualIsRoff(t *testing.T) {
	c := &cobra.Command{Use: "odd", Short: "'a' \\ b", Run: func(*cobra.Command, []string) {},
		Long:    ".so /etc/passwd\n'br\nend \\fB of `it` ^ ~ \"q\"\n\n  set\n   .as it is",
		Example: "  .B x\n\\n(.z"}
	c.Flags().String("a-flag", "x\\y", ".usage with `ARG-1` and 100 %\n.br")
	known := regexp.MustCompile(`^\.(TH|SH|TP|PP|B|BR|EX|EE)( |$)`)
	pages := append(manual(manualRoot(t)), manual(c)...)
	for _, p := range pages {
		for i, line := range strings.Split(string(p.text), "\n") {
			if (strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'")) &&
				!known.MatchString(line) {
				t.Errorf("%s:%d: %q is a request", p.name, i+1, line)
			}
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("needs groff for the rest: ", err)
	}
	for _, p := range pages {
		cmd := exec.Command(groff, "-man", "-Kutf8", "-Tutf8", "-P-cbou", "-ww", "-rLL=500n")
		cmd.Stdin = bytes.NewReader(p.text)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil || errs.Len() > 0 {
			t.Errorf("%s: %v\n%s", p.name, err, &errs)
		}
		if p.name != "odd.1" {
			continue
		}
		// What people copy must be a hyphen, not what a typographer takes for one.
		has(t, "the odd page's source", string(p.text), `\-\-a\-flag`)
		has(t, "the odd page", out.String(), `'a' \ b`, ".so /etc/passwd 'br",
			"end \\fB of `it` ^ ~", "   .as it is", ".B x\n", `\n(.z`, "--a-flag ARG-1",
			".usage with ARG-1 and 100 %", `(default x\y)`)
	}
}

func TestManWritesPages(t *testing.T) {
	root := manualRoot(t)
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: io.Discard}
	man := a.manCmd()
	root.AddCommand(man) // its own root's pages are written
	dir := filepath.Join(t.TempDir(), "share", "man1")
	if err := man.RunE(man, []string{dir}); err != nil {
		t.Fatal(err)
	}
	pages := manual(root)
	for _, p := range pages {
		got, err := os.ReadFile(filepath.Join(dir, p.name))
		if err != nil || !bytes.Equal(got, p.text) {
			t.Errorf("%s: %d bytes, error %v; want %d", p.name, len(got), err, len(p.text))
		}
	}
	if err := man.RunE(man, nil); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n.TH ") + 1; n != len(pages) {
		t.Errorf("%d pages were printed, want %d", n, len(pages))
	}
	err := man.RunE(man, []string{filepath.Join(dir, "prony.1", "below")})
	if err == nil || !strings.HasPrefix(err.Error(), "write manual: ") {
		t.Errorf("error is %v", err)
	}
}

// offered are a shell's completions of a command line, as its script asks for them.
func offered(t *testing.T, args ...string) (words []string, directive string) {
	t.Helper()
	root := manualRoot(t)
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
	check("completion load man verify", noFiles, "")
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

// What is named already is not offered again.
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

// Suites and runs are offered as they are reached from here.
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

// A flag that has few values offers them.
func TestFlagsOfFewWordsAreCompleted(t *testing.T) {
	offered := map[string]bool{}
	walk(manualRoot(t), func(c *cobra.Command) {
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
