//go:build linux && !portable

package main

import (
	"context"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"prony.example/internal/launch/docker"
	"prony.example/internal/launch/kubernetes"
	"prony.example/internal/service"
	"prony.example/internal/trial/lab"
	"prony.example/internal/trial/machine"
)

// world is what trials are run with: the real machine, or what tests have instead.
type world = lab.World

// begin is what comes before all else.
func begin() world {
	docker.Guard()
	kubernetes.Guard()
	signal.Ignore(syscall.SIGXFSZ) // beyond ulimit -f a write fails, with a sentence
	return machine.World{}
}

// parquet stores a table as Parquet, by way of the home's program: what writes that format takes
// longer to compile than most of what measures.
func (a *app) parquet(ctx context.Context, w io.Writer, rows io.Reader) error {
	root, _ := a.root() // without one the program may be there all the same
	return machine.Parquet(ctx, root, rows, w, a.say)
}

// addTrials adds the verbs that start services, or look at what Linux alone tells of them.
func (a *app) addTrials(root *cobra.Command) {
	root.AddCommand(a.runCmd(), a.planCmd(), a.servicesCmd(), a.verifyCmd(),
		a.buildCmd(), a.truthCmd(), a.selftestCmd(), a.nullCmd(), a.doctorCmd(), a.telemetryCmd(),
		a.queryCmd(), a.storeCmd(), a.agentsCmd(), a.stackCmd(), a.newCmd(), a.versusCmd(),
		a.serveCmd(), a.startCmd())
	for _, c := range root.Commands() {
		switch c.Name() {
		case "build", "verify":
			c.ValidArgsFunction = a.completeServices
		case "doctor", "services":
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
		if c.Flags().Lookup("targets") != nil {
			if err := c.RegisterFlagCompletionFunc("targets", a.completeTargets); err != nil {
				panic("prony: a flag has two completions: " + err.Error())
			}
		}
	}
}

// lab is the checkout's, and tells how it gets on.
func (a *app) lab() (*lab.Lab, *progressLine, error) {
	root, err := a.root()
	tell := &progressLine{w: a.stderr}
	return &lab.Lab{Root: root, World: a.world, Tell: tell}, tell, err
}

// catalog reads the services, all or those that are named.
func (a *app) catalog(names ...string) (lab.Catalog, error) {
	l, _, err := a.lab()
	if err != nil {
		return nil, err
	}
	services, err := l.Catalog()
	if err != nil {
		return nil, err
	}
	return services.Pick(names)
}

// completeServices offers the services that are not named yet.
func (a *app) completeServices(_ *cobra.Command, args []string, _ string) ([]string,
	cobra.ShellCompDirective) {
	var names []string
	for _, s := range a.known() {
		if !slices.Contains(args, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeTargets offers targets for a list of them, whose last word is not finished.
func (a *app) completeTargets(_ *cobra.Command, _ []string, typed string) ([]string,
	cobra.ShellCompDirective) {
	done := typed[:strings.LastIndex(typed, ",")+1]
	var out []string
	for _, name := range lab.Catalog(a.known()).Names() {
		if !slices.Contains(strings.Split(done, ","), name) {
			out = append(out, done+name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// known are the services of the catalog that can be read.
func (a *app) known() []*service.Service {
	root, err := a.root()
	if err != nil {
		return nil
	}
	services, _ := service.Catalog(root) // what is broken there is no business of a shell's
	return services
}
