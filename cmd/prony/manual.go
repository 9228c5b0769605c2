//go:build manual

package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"prony.example/internal/base/cli"
)

// A program built with the tag manual writes its own manual pages. internal/dev/release builds and
// runs it; prony itself does not link cobra's generator and the Markdown parser below it.
func init() { furtherCmds = append(furtherCmds, manualCmd) }

func manualCmd() *cobra.Command {
	return &cobra.Command{
		Use: "manual DIR", Short: "Write the manual pages", Args: cli.Arguments(1, 1), Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			root.InitDefaultCompletionCmd()
			markDown(root)
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("write manual: %w", err)
			}
			date := committed()
			return doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{
				Path: args[0], CommandSeparator: "-", Header: &doc.GenManHeader{
					Date: &date, Source: "prony " + root.Version, Manual: "Prony"},
			})
		},
	}
}

// committed returns the time of the program's commit, so that the same sources make the same pages.
func committed() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if at, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
				return at
			}
		}
	}
	return time.Unix(0, 0).UTC()
}

// markDown converts the texts of a verb, and of its subcommands, to the Markdown that the generator
// expects.
func markDown(c *cobra.Command) {
	c.DisableAutoGenTag = true
	name, rest, _ := strings.Cut(c.Use, " ")
	c.Use = strings.TrimSpace(name + " " + literal(rest))
	c.Short = literal(c.Short)
	var out []string
	for _, p := range strings.Split(strings.TrimRight(c.Long, "\n"), "\n\n") {
		if strings.HasPrefix(p, " ") || strings.HasPrefix(p, "\t") { // verbatim
			out = append(out, "    "+strings.ReplaceAll(p, "\n", "\n    "))
		} else {
			out = append(out, literal(p))
		}
	}
	c.Long = strings.Join(out, "\n\n")
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if c.InheritedFlags().Lookup(f.Name) == nil {
			_, usage := pflag.UnquoteUsage(f)
			f.Usage, f.DefValue = literal(usage), literal(f.DefValue)
		}
	})
	for _, sub := range c.Commands() {
		markDown(sub)
	}
}

// literal escapes the markup characters of Markdown.
func literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`,
		"[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`, "&", `\&`, "#", `\#`, "~", `\~`, "|", `\|`).
		Replace(text)
}
