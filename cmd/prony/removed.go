package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/generator/translate"
)

// removedCmds returns the verbs that this release has removed: hidden, with any arguments. Each
// returns an error with the command to run instead, and will be dropped in the next release.
func removedCmds() (out []*cobra.Command) {
	for _, tool := range translate.Tools() {
		out = append(out, &cobra.Command{
			Use: tool, Short: "(removed)", Hidden: true, DisableFlagParsing: true,
			RunE: func(_ *cobra.Command, args []string) error {
				return cli.Usage(translated(tool, args))
			},
		})
	}
	return out
}

// translated returns the error for a command line of another load generator.
func translated(tool string, args []string) error {
	line, err := translate.Translate(tool, args)
	if err != nil {
		return fmt.Errorf("the verb %s was removed, and prony load cannot run these arguments: "+
			"%w; docs/formats/other-tools.md maps each flag", tool, err)
	}
	shown := cmdlog.Hushed(line.Args)
	if !slices.Equal(shown, line.Args) {
		line.Notes = append(line.Notes, "replace … or xxxxx with the secret of your line")
	}
	var notes strings.Builder
	for _, n := range line.Notes {
		fmt.Fprintf(&notes, "\n- %s", n)
	}
	return fmt.Errorf("the verb %s was removed; run this line instead:\n\n  prony %s\n%s", tool,
		cmdlog.Join(shown), &notes)
}
