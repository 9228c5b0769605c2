package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"prony.example/internal/dev/tidy"
)

// Help is in short sentences with a subject, without banned constructions. Each flag's description
// begins with a noun or a verb.
func TestHelpIsPlain(t *testing.T) {
	commands, flags := 0, 0
	walk(wholeRoot(t), func(c *cobra.Command) {
		commands++
		var faults []string
		for _, text := range []string{c.Short, c.Long, comments(c.Example)} {
			faults = append(faults, tidy.HelpWording(text)...)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			flags++
			for _, fault := range tidy.FlagWording(f.Usage) {
				faults = append(faults, "--"+f.Name+": "+fault)
			}
		})
		for _, fault := range faults {
			t.Errorf("%s: %s", c.CommandPath(), fault)
		}
	})
	if commands < 30 || flags < 200 {
		t.Errorf("%d commands and %d flags were read, want those of the program", commands, flags)
	}
}

// comments returns the sentences beside or above an example's commands.
func comments(example string) string {
	var all []string
	for line := range strings.Lines(example) {
		if _, comment, ok := strings.Cut(line, "# "); ok {
			all = append(all, strings.TrimSpace(comment))
		}
	}
	return strings.Join(all, "\n\n")
}
