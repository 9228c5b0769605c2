package main

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"prony.example/internal/dev/testsets"
)

var updateCommands = flag.Bool("update.commands", false, "write docs/formats/commands.md")

// All commands and flags are on a page of the reference.
func TestCommandsPage(t *testing.T) {
	root := wholeRoot(t)
	var rows []string
	for _, g := range root.Groups() {
		rows = append(rows, "## "+g.Title, "")
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				rows = append(rows, commandRows(c)...)
			}
		}
	}
	rows = append(rows, "## Flags of all commands", "")
	rows = append(rows, flagRows(root.PersistentFlags())...)
	testsets.Table(t, filepath.Join("..", "..", "docs", "formats", "commands.md"),
		"<!-- commands -->", rows[:len(rows)-1], *updateCommands)
}

// commandRows describe a command and those below it.
func commandRows(c *cobra.Command) (rows []string) {
	if c.IsAvailableCommand() {
		rows = append(rows, "### "+c.CommandPath(), "", c.Short, "", "`"+c.UseLine()+"`", "")
		rows = append(rows, flagRows(c.LocalNonPersistentFlags())...)
	}
	for _, sub := range c.Commands() {
		rows = append(rows, commandRows(sub)...)
	}
	return rows
}

// flagRows are a table of the flags that help shows.
func flagRows(flags *pflag.FlagSet) (rows []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "`--" + strings.TrimSpace(f.Name+" "+value) + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		if !strings.Contains(" false 0 0s 0B []  ", " "+f.DefValue+" ") &&
			!strings.Contains(usage, "(default") {
			usage += " (default `" + f.DefValue + "`)"
		}
		rows = append(rows, "| "+name+" | "+strings.NewReplacer("|", "\\|", "\n", " ",
			"<", "&lt;").Replace(usage)+" |")
	})
	if len(rows) == 0 {
		return nil
	}
	return append(append([]string{"| flag | meaning |", "|---|---|"}, rows...), "")
}
