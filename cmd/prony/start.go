//go:build linux && !portable

package main

import (
	"cmp"
	"context"
	"encoding/json"
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
	"prony.example/internal/server"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial/lab"
	"prony.example/internal/trial/machine"
)

type startFlags struct {
	cpus     float64
	memory   strictyaml.Size
	by       string
	json     bool
	attended bool // until standard input ends
}

// Limits of a target that is started by hand, where none are named: the canonical suite's.
const startCPUs, startMemory = 1, 1 << 30

func (a *app) startCmd() *cobra.Command {
	f := &startFlags{cpus: startCPUs, memory: startMemory, by: suite.Launchers[0]}
	c := &cobra.Command{
		Use: "start TARGET", Short: "Start one target under its limits, without load",
		Args: cli.Arguments(1, 1),
		Long: `Start builds a target, starts it on the cores and under the limits that it has in a
run, checks its contract case by case, and holds it until Ctrl-C: it says where it listens, which
limits are in force, and each second what it takes. Ask it by curl, or load it by prony load.

Nothing else is measured meanwhile: like a run it has the machine to itself. The same is in the
browser: the page Service of prony serve.`,
		Example: "  prony start go-nethttp\n" +
			"  prony start java-jdk/virtual --cpus 1 --memory 1GiB\n" +
			"  prony start go-nethttp --launcher docker --json",
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			if f.attended {
				var stop context.CancelFunc
				ctx, stop = cli.UntilEnd(ctx, c.InOrStdin())
				defer stop()
			}
			return a.start(ctx, args[0], f)
		},
	}
	c.Flags().Float64Var(&f.cpus, "cpus", f.cpus, "processors that it may use")
	c.Flags().TextVar(&f.memory, "memory", f.memory, "memory that it may use")
	cli.OneOf(c, &f.by, "launcher", "how it is started", suite.Launchers...)
	c.Flags().BoolVar(&f.json, "json", false, "a line of JSON for all that is told, for programs")
	c.Flags().BoolVar(&f.attended, "until-stdin-ends", false,
		"end when standard input does, as when the program ends that started it")
	return c
}

func (a *app) start(ctx context.Context, target string, f *startFlags) error {
	if f.cpus <= 0 || f.memory < 1<<20 {
		return cli.Usagef("want --cpus above 0 and --memory of 1MiB or more")
	}
	cores, err := host.Cores()
	if err != nil {
		return err
	}
	layout, err := host.Divide(cores, f.cpus)
	if err != nil {
		return err
	}
	h := &holder{app: a, startFlags: f, layout: layout}
	l, project, tell, err := a.labOrProject()
	if err != nil {
		return err
	}
	if f.json {
		l.Tell = teller{tell, h}
	}
	services, err := servicesIn(ctx, l, project)
	if err != nil {
		return err
	}
	only, err := services.Only(target)
	if err != nil {
		return err
	}
	why := ""
	err = lab.Visitor{Lab: l, Of: only, Launcher: f.by, Doing: "start", See: h.see,
		Budget: lab.Budget{CPUs: f.cpus, MemoryBytes: int64(f.memory), Cores: layout.Service},
		Skipped: func(name string, missing []string) {
			why = strings.Join(missing, "; ")
		}}.Visit(ctx, nil)
	if err == nil && why != "" {
		err = fmt.Errorf("start %s: %s", target, why)
	}
	if f.json {
		end := server.Told{Kind: server.ToldEnd}
		if err != nil {
			end.Text = err.Error()
		}
		h.tell(end)
	}
	return err
}

// holder holds a target while somebody looks at it.
type holder struct {
	*app
	*startFlags
	layout host.Layout
	lost   error // why what is told reaches nobody
}

// teller is an observer whose lines are told as JSON.
type teller struct {
	lab.Observer
	to *holder
}

// Say implements lab.Observer.
func (t teller) Say(line string) { t.to.tell(server.Told{Kind: server.ToldSay, Text: line}) }

// tell writes a line.
func (h *holder) tell(t server.Told) {
	b, err := json.Marshal(t)
	if err == nil {
		_, err = h.stdout.Write(append(b, '\n'))
	}
	h.lost = cmp.Or(h.lost, err)
}

// printf writes what people read.
func (h *holder) printf(format string, args ...any) {
	_, err := fmt.Fprintf(h.stdout, format, args...)
	h.lost = cmp.Or(h.lost, err)
}

// see is a lab.Sight.
func (h *holder) see(ctx context.Context, t lab.Seen) error {
	ready := server.Told{Kind: server.ToldReady, URL: "http://" + t.Base,
		ReadyS: float64(t.ReadyNs) / 1e9, Log: t.System.LogFile(),
		Cores: h.layout.Load}
	inForce, missing := t.System.Limits()
	ready.InForce, ready.Missing = wording.Limits(inForce), wording.Limits(missing)
	if h.json {
		h.tell(ready)
	} else {
		h.show(t.Name, ready)
	}
	err := h.check(ctx, t)
	if err == nil {
		if !h.json {
			h.printf("Ctrl-C ends it\n")
		}
		err = h.watch(ctx, t)
	}
	if ctx.Err() != nil {
		return nil // Ctrl-C is how it ends; that it cannot be stopped is told by who does
	}
	return err
}

func (h *holder) show(name string, r server.Told) {
	h.printf("%s listens at %s, ready after %s\n", name, r.URL,
		units.Duration(r.ReadyS*1e9))
	h.printf("  limits  %s\n", cmp.Or(strings.Join(r.InForce, ", "), "none"))
	if len(r.Missing) > 0 {
		h.printf("  not     %s\n", strings.Join(r.Missing, ", "))
	}
	h.printf("  log     %s\n", r.Log)
}

// check asks for all cases of the contracts. Answers that differ are told, and the target is held
// all the same: to look at them is what it is for.
func (h *holder) check(ctx context.Context, t lab.Seen) error {
	only := *t.Service
	only.Contracts = slices.DeleteFunc(slices.Clone(only.Contracts), func(name string) bool {
		return name == "" // somebody's own
	})
	t.Service = &only
	if !h.json {
		_, err := (&verifier{app: h.app}).conform(ctx, t)
		return err
	}
	for _, contract := range only.Contracts {
		r, err := service.Conform(ctx, t.Checker, contract)
		if err != nil {
			return err
		}
		for _, c := range r.Cases {
			said := server.Checked{Contract: contract, Name: c.Name, Request: c.Request,
				State: server.Passed}
			switch {
			case c.Skipped != "":
				said.State, said.Text = server.Left, c.Skipped
			case len(c.Differences) > 0:
				said.State, said.Text = server.Failed, strings.Join(c.Differences, "; ")
			}
			h.tell(server.Told{Kind: server.ToldCase, Case: &said})
		}
	}
	h.tell(server.Told{Kind: server.ToldAll})
	return nil
}

// watch tells each second what the target takes, until somebody has seen enough or it ends.
func (h *holder) watch(ctx context.Context, t lab.Seen) error {
	const every = time.Second
	sampler, err := machine.Watch(t.System, h.layout, every, nil)
	if err != nil {
		return err
	}
	defer sampler.Stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	before := sampler.Mark()
	for {
		if h.lost != nil {
			return h.lost
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.System.Exited():
			return errors.New("the service ended: " + t.System.Exit())
		case <-tick.C:
		}
		now := sampler.Mark()
		u := server.Usage{TS: float64(now.TNs) / 1e9, Memory: now.RSSBytes, Alive: now.Processes}
		if passed := now.TNs - before.TNs; passed > 0 && before.CPUNs >= 0 && now.CPUNs >= 0 {
			u.Cores = float64(now.CPUNs-before.CPUNs) / float64(passed)
		}
		before = now
		if h.json {
			h.tell(server.Told{Kind: server.ToldUsage, Usage: &u})
		} else if isTerminal(h.stdout) {
			h.printf("\r\x1b[K%.2f cores · %s · processes: %d ", u.Cores,
				units.Bytes(float64(u.Memory)), u.Alive)
		}
	}
}
