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

// world is the world in which trials run: the real machine, or a fake of tests.
type world = lab.World

// begin runs before all other code.
func begin() world {
	docker.Guard()
	kubernetes.Guard()
	signal.Ignore(syscall.SIGXFSZ) // writes beyond ulimit -f return an error instead of a signal
	return machine.World{}
}

// parquet stores a table as Parquet by the collector's program, because the writer of that format
// takes longer to compile than most of this program.
func (a *app) parquet(ctx context.Context, w io.Writer, rows io.Reader) error {
	root, _ := a.root() // the program may exist even without a checkout
	return machine.Parquet(ctx, root, rows, w, a.say)
}

// addTrials adds the verbs that start services, or read data that only Linux has.
func (a *app) addTrials(root *cobra.Command) {
	root.AddCommand(a.runCmd(), a.planCmd(), a.servicesCmd(), a.verifyCmd(),
		a.buildCmd(), a.truthCmd(), a.selftestCmd(), a.nullCmd(), a.doctorCmd(), a.telemetryCmd(),
		a.queryCmd(), a.storeCmd(), a.agentsCmd(), a.stackCmd(), a.versusCmd(),
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

// lab returns the lab of the checkout, with a progress line as its observer.
func (a *app) lab() (*lab.Lab, *progressLine, error) {
	root, err := a.root()
	tell := &progressLine{w: a.stderr}
	return &lab.Lab{Root: root, World: a.world, Tell: tell}, tell, err
}

// catalog reads the services, all or the named ones.
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

// completeServices completes the services that are not named yet.
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

// completeTargets completes the last item of a list of targets.
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

// known returns the services of the catalog that can be read.
func (a *app) known() []*service.Service {
	root, err := a.root()
	if err != nil {
		return nil
	}
	services, _ := service.Catalog(root) // a shell cannot use the error
	return services
}
