package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// groups are the parts of the help, each with its verbs, the most used first.
var groups = []struct{ title, verbs string }{
	{"Compare", "versus run plan init"},
	{"Load", "load capacity rain generate"},
	{"Analyze", "report compare gate trend serve site audit import"},
	{"Catalog", "services verify build start agents"},
	{"Observe", "profile traces logs query explain telemetry stack"},
	{"Tools", "doctor selftest truth store"},
}

// rootUsage lists the verbs of each group without empty lines between them, so that the whole help
// fits one screen.
const rootUsage = `Usage: prony [VERB] [FLAGS]
{{range $group := .Groups}}
{{$group.Title}}
{{- range $.Commands}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}

{{.PersistentFlags.FlagUsages | trimTrailingWhitespaces}}

"prony VERB --help" explains a verb, "prony completion --help" shell completion.
`

// group assigns the verbs of a root to their groups, in the order of the help.
func group(root *cobra.Command) {
	cobra.EnableCommandSorting = false
	all := root.Commands()
	root.RemoveCommand(all...)
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for name := range strings.FieldsSeq(g.verbs) {
			i := slices.IndexFunc(all, func(c *cobra.Command) bool { return c.Name() == name })
			if i < 0 {
				panic("prony: the help lists a verb that does not exist: " + name)
			}
			all[i].GroupID = g.title
			root.AddCommand(all[i])
		}
	}
	root.AddCommand(slices.DeleteFunc(all, func(c *cobra.Command) bool {
		return c.GroupID != ""
	})...)
	root.SetUsageTemplate("{{if .HasParent}}" + root.UsageTemplate() + "{{else}}" + rootUsage +
		"{{end}}")
}
