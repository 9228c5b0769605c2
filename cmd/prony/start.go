//go:build linux && !portable

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/strictyaml"
	"prony.example/internal/base/units"
	"prony.example/internal/observe/host"
	"prony.example/internal/suite"
	"prony.example/internal/trial/lab"
	"prony.example/internal/trial/machine"
)

type startFlags struct {
	cpus   float64
	memory strictyaml.Size
	by     string
}

// Default limits of a target that is started by hand: those of the canonical suite.
const startCPUs, startMemory = 1, 1 << 30

func (a *app) startCmd() *cobra.Command {
	f := &startFlags{cpus: startCPUs, memory: startMemory, by: suite.Launchers[0]}
	c := &cobra.Command{
		Use: "start TARGET", Short: "Start one target under its limits, without load",
		Args: cli.Arguments(1, 1),
		Long: `Start builds a target, starts it on the cores and under the limits that it has in a
run, checks its contract, and keeps it until Ctrl-C. Start prints where the target listens, which
limits are in force, and each second what it uses. Send requests with curl, or load it with prony
load.

Nothing else is measured meanwhile: like a run it has the machine to itself.`,
		Example: "  prony start go-nethttp\n" +
			"  prony start java-jdk/virtual --cpus 1 --memory 1GiB\n" +
			"  prony start go-nethttp --launcher docker",
		RunE: func(c *cobra.Command, args []string) error {
			return a.start(c.Context(), args[0], f)
		},
	}
	c.Flags().Float64Var(&f.cpus, "cpus", f.cpus, "CPU limit in cores")
	c.Flags().TextVar(&f.memory, "memory", f.memory, "memory limit")
	cli.OneOf(c, &f.by, "launcher", "launcher of the target", suite.Launchers...)
	return c
}

func (a *app) start(ctx context.Context, target string, f *startFlags) error {
	if f.cpus <= 0 || f.memory < 1<<20 {
		return cli.Usagef("--cpus must be greater than 0, and --memory at least 1MiB")
	}
	cores, err := host.Cores()
	if err != nil {
		return err
	}
	layout, err := host.Divide(cores, f.cpus)
	if err != nil {
		return err
	}
	l, project, _, err := a.labOrProject()
	if err != nil {
		return err
	}
	services, err := servicesIn(ctx, l, project)
	if err != nil {
		return err
	}
	only, err := services.Only(target)
	if err != nil {
		return err
	}
	h := &starter{app: a, layout: layout}
	why := ""
	err = lab.Visitor{Lab: l, Of: only, Launcher: f.by, Doing: "start", See: h.see,
		Budget: lab.Budget{CPUs: f.cpus, MemoryBytes: int64(f.memory), Cores: layout.Service},
		Skipped: func(name string, missing []string) {
			why = strings.Join(missing, "; ")
		}}.Visit(ctx, nil)
	if err == nil && why != "" {
		err = fmt.Errorf("start %s: %s", target, why)
	}
	return err
}

// starter keeps a target until the user ends it.
type starter struct {
	*app
	layout host.Layout
	lost   error // why the output cannot be written
}

// printf writes output for the user.
func (s *starter) printf(format string, args ...any) {
	_, err := fmt.Fprintf(s.stdout, format, args...)
	s.lost = cmp.Or(s.lost, err)
}

// see implements lab.Sight.
func (s *starter) see(ctx context.Context, t lab.Seen) error {
	inForce, missing := t.System.Limits()
	s.printf("%s listens at http://%s, ready after %s\n", t.Name, t.Base,
		units.Duration(float64(t.ReadyNs)))
	s.printf("  limits  %s\n", cmp.Or(strings.Join(wording.Limits(inForce), ", "), "none"))
	if len(missing) > 0 {
		s.printf("  not     %s\n", strings.Join(wording.Limits(missing), ", "))
	}
	s.printf("  log     %s\n", t.System.LogFile())
	err := s.check(ctx, t)
	if err == nil {
		s.printf("Ctrl-C ends it\n")
		err = s.watch(ctx, t)
	}
	if ctx.Err() != nil {
		return nil // Ctrl-C is the normal end; the caller reports a failed stop
	}
	return err
}

// check checks the contracts. It prints differing responses and keeps the target, so that the user
// can inspect them.
func (s *starter) check(ctx context.Context, t lab.Seen) error {
	only := *t.Service
	only.Contracts = slices.DeleteFunc(slices.Clone(only.Contracts), func(name string) bool {
		return name == "" // the user's own
	})
	t.Service = &only
	_, err := (&verifier{app: s.app}).conform(ctx, t)
	return err
}

// watch prints the target's resource usage each second, until the user ends it or the target ends.
func (s *starter) watch(ctx context.Context, t lab.Seen) error {
	const every = time.Second
	sampler, err := machine.Watch(t.System, s.layout, every, nil)
	if err != nil {
		return err
	}
	defer sampler.Stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	before := sampler.Mark()
	for {
		if s.lost != nil {
			return s.lost
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.System.Exited():
			return errors.New("the service has ended: " + t.System.Exit())
		case <-tick.C:
		}
		now := sampler.Mark()
		cores := 0.0
		if passed := now.TNs - before.TNs; passed > 0 && before.CPUNs >= 0 && now.CPUNs >= 0 {
			cores = float64(now.CPUNs-before.CPUNs) / float64(passed)
		}
		before = now
		if isScreen(s.stdout) {
			s.printf("\r\x1b[K%.2f cores · %s · processes: %d ", cores,
				units.Bytes(float64(now.RSSBytes)), now.Processes)
		}
	}
}
