package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/files"
	"prony.example/record"
)

// manCmd writes the manual from what --help is made of.
func (a *app) manCmd() *cobra.Command {
	return &cobra.Command{
		Use: "man [DIR]", Short: "Write the manual's pages", Args: cli.Arguments(0, 1),
		Long: `Man writes a page for each verb, in the form of man(7), into a folder, which is made
if it is not there. A folder man1 below one of MANPATH makes them known to man. Without a folder it
prints all pages, one after the other.`,
		Example: `  prony man ~/.local/share/man/man1
  prony man | man -l -`,
		RunE: func(c *cobra.Command, args []string) error {
			pages := manual(c.Root())
			if len(args) == 0 {
				for _, p := range pages {
					if _, err := a.stdout.Write(p.text); err != nil {
						return err
					}
				}
				return nil
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("write manual: %w", err)
			}
			for _, p := range pages {
				if err := files.Put(filepath.Join(args[0], p.name), p.text); err != nil {
					return fmt.Errorf("write manual: %w", err)
				}
			}
			fmt.Fprintf(a.stderr, "%d pages in %s\n", len(pages), args[0])
			return nil
		},
	}
}

// manPage is a page of the manual, with its file's name.
type manPage struct {
	name string
	text []byte
}

// manual is a page for a verb and for each below it.
func manual(c *cobra.Command) []manPage {
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	out := []manPage{{dashed(c) + ".1", manText(c)}}
	for _, sub := range verbs(c) {
		out = append(out, manual(sub)...)
	}
	return out
}

// verbs are those that people see.
func verbs(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(c *cobra.Command) bool {
		return !c.IsAvailableCommand() || c.Name() == "help"
	})
}

func dashed(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manText is a manual page in the macros of man(7). It has no date: the same program makes the same
// page.
func manText(c *cobra.Command) []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`.TH "%s" 1 "" "prony %s" "Prony"`, roff(strings.ToUpper(dashed(c))),
		roff(c.Root().Version))
	line(".SH NAME\n%s \\- %s", roff(dashed(c)), roff(c.Short))
	line(".SH SYNOPSIS\n.B %s", roff(c.UseLine()))
	line(".SH DESCRIPTION\n%s", paragraphs(cmp.Or(c.Long, c.Short+".")))
	section := func(title string, flags *pflag.FlagSet) {
		if flags.HasAvailableFlags() {
			line(".SH %s", title)
			flags.VisitAll(func(f *pflag.Flag) { b.WriteString(manOption(f)) })
		}
	}
	section("OPTIONS", c.LocalNonPersistentFlags())
	section("OPTIONS OF ALL VERBS", c.Root().PersistentFlags())
	if subs := verbs(c); len(subs) > 0 {
		line(".SH VERBS")
		for _, sub := range subs {
			line(".TP\n.B %s\n%s", roff(sub.Name()), roff(sub.Short))
		}
	}
	if c.Example != "" {
		line(".SH EXAMPLES\n.EX\n%s\n.EE", roff(c.Example))
	}
	if also := seeAlso(c); len(also) > 0 {
		line(".SH SEE ALSO\n%s", strings.Join(also, ",\n"))
	}
	return b.Bytes()
}

// manOption is a flag with its argument, its usage and its default.
func manOption(f *pflag.Flag) string {
	if f.Hidden || f.Deprecated != "" {
		return ""
	}
	names := "--" + f.Name
	if f.Shorthand != "" {
		names = "-" + f.Shorthand + ", " + names
	}
	argument, usage := pflag.UnquoteUsage(f)
	if argument != "" {
		names += " " + argument
	}
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
	default:
		if !strings.Contains(usage, "(default") {
			usage += " (default " + f.DefValue + ")"
		}
	}
	return fmt.Sprintf(".TP\n.B %s\n%s\n", roff(names), roff(usage))
}

// seeAlso are the pages above and below.
func seeAlso(c *cobra.Command) (out []string) {
	if c.HasParent() {
		out = append(out, ".BR "+roff(dashed(c.Parent()))+" (1)")
	}
	for _, sub := range verbs(c) {
		out = append(out, ".BR "+roff(dashed(sub))+" (1)")
	}
	return out
}

// paragraphs are set apart by empty lines. One whose lines are indented is set as it is.
func paragraphs(text string) string {
	var out []string
	for _, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if set := roff(p); strings.HasPrefix(p, " ") {
			out = append(out, ".EX\n"+set+"\n.EE")
		} else {
			out = append(out, set)
		}
	}
	return strings.Join(out, "\n.PP\n")
}

// roff escapes what roff would take for a request, an escape, or a hyphen that people cannot copy.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, `"`, `\(dq`,
		"^", `\(ha`, "~", `\(ti`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return strings.ReplaceAll(text, "\n.", "\n\\&.")
}

// addManual gives a root that has its other verbs the manual and what shells need.
func (a *app) addManual(root *cobra.Command) {
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(a.manCmd())
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
