package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"prony/internal/clock"
	"prony/internal/host"
	"prony/internal/launch"
	"prony/internal/launch/process"
	"prony/internal/load"
	"prony/internal/load/epoll"
	"prony/internal/probe"
	"prony/internal/result"
	"prony/internal/service"
	"prony/internal/suite"
	"prony/internal/trial"
)

// runFlags change a suite from the command line, or where results go.
type runFlags struct {
	blocks  int
	seed    uint64
	seedSet bool
	measure time.Duration
	warmup  time.Duration
	targets []string
	out     string
	color   string
}

func (f *runFlags) suiteFlags(c *cobra.Command) {
	fs := c.Flags()
	fs.IntVar(&f.blocks, "blocks", 0, "blocks, instead of the suite's")
	fs.Uint64Var(&f.seed, "seed", 0, "seed of order, arrivals and keys, instead of the suite's")
	fs.DurationVar(&f.measure, "measure", 0, "length of every window, instead of the suite's")
	fs.DurationVar(&f.warmup, "warmup", 0, "longest warm-up, instead of the suite's")
	fs.StringSliceVar(&f.targets, "targets", nil, "targets or services, as globs, instead of the suite's")
}

func (f *runFlags) override(c *cobra.Command) suite.Override {
	o := suite.Override{
		Blocks: f.blocks, Measure: suite.Duration(f.measure), Warmup: suite.Duration(f.warmup),
		Targets: f.targets,
	}
	if c.Flags().Changed("seed") {
		o.Seed = &f.seed
	}
	return o
}

func (a *app) runCmd() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use: "run [SUITE]", Short: "Run a suite and report what it found", Args: arguments(0, 1),
		Long: `Run builds the services of a suite that can be built here, puts each target under the suite's loads,
block by block in shuffled order, and reports. Without a suite it runs suites/canonical.yaml.

Each trial is one record in results/RUN/trials.ndjson, saved before the next one starts, so that an
interrupted run keeps all it has. The exit code is 0 when every trial is VALID or SUSPECT, 4 when one
is INVALID or failed, 1 when the run itself went wrong, 2 for a command line that makes no sense.`,
		Example: `  prony run
  prony run suites/http.yaml --targets go-nethttp,java-jdk --blocks 5
  prony run --measure 10s --seed 7`,
		RunE: func(c *cobra.Command, args []string) error { return a.runSuite(c, args, f) },
	}
	f.suiteFlags(c)
	c.Flags().StringVar(&f.out, "out", "", "folder of the results (default: results/TIME below the root)")
	return c
}

func (a *app) planCmd() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use: "plan [SUITE]", Short: "Print what a suite would run, in order", Args: arguments(0, 1),
		Long: `Plan expands a suite into its trials: targets × scenarios in blocks, each block in an order shuffled
from the seed. The same suite, seed and catalog give the same plan, byte for byte.`,
		Example: "  prony plan\n  prony plan suites/http.yaml --blocks 2 --seed 7",
		RunE: func(c *cobra.Command, args []string) error {
			root, err := a.root()
			if err != nil {
				return err
			}
			p, _, err := a.plan(c, root, args, f, nil)
			if err != nil {
				return err
			}
			return printPlan(a.stdout, p)
		},
	}
	f.suiteFlags(c)
	return c
}

// plan reads and expands a suite against the catalog. Targets that keep says no to are left out; nil
// keeps all.
func (a *app) plan(c *cobra.Command, root string, args []string, f *runFlags,
	keep func(*service.Service) bool) (*suite.Plan, []*service.Service, error) {
	s, err := a.readSuite(root, args)
	if err != nil {
		return nil, nil, err
	}
	if err := s.Override(f.override(c)); err != nil {
		return nil, nil, usageError{err}
	}
	services, err := a.catalog(root)
	if err != nil {
		return nil, nil, err
	}
	var kept []*service.Service
	for _, x := range services {
		if keep == nil || keep(x) {
			kept = append(kept, x)
		}
	}
	// Patterns are checked against the whole catalog, so that a missing toolchain is not a typo.
	whole, err := s.Plan(targets(services))
	if err != nil || keep == nil || len(kept) == len(services) {
		return whole, services, err
	}
	narrowed := targetsOf(whole, kept)
	if len(narrowed) == 0 {
		return nil, services, fmt.Errorf("plan %s: none of its targets can run here; "+
			"prony services says what each one needs", s.Name)
	}
	if err := s.Override(suite.Override{Targets: narrowed}); err != nil {
		return nil, nil, err
	}
	p, err := s.Plan(targets(services))
	return p, services, err
}

// targetsOf lists the plan's targets whose service is among those kept.
func targetsOf(p *suite.Plan, kept []*service.Service) (out []string) {
	seen := map[string]bool{}
	for _, t := range p.Trials {
		if _, _, ok := find(kept, t.Target); ok && !seen[t.Target] {
			seen[t.Target] = true
			out = append(out, t.Target)
		}
	}
	return out
}

func (a *app) runSuite(c *cobra.Command, args []string, f *runFlags) error {
	ctx := c.Context()
	root, err := a.root()
	if err != nil {
		return err
	}
	cores, err := host.Cores()
	if err != nil {
		return err
	}
	tools := service.FindTools(ctx)
	var skipped []result.Skipped
	p, services, err := a.plan(c, root, args, f, func(s *service.Service) bool {
		return len(tools.Missing(s)) == 0
	})
	if err != nil {
		return err
	}
	skipped = a.skipped(p, services, tools, f)
	layout, err := host.Divide(cores, p.Suite.Limits.CPUs)
	if err != nil {
		return fmt.Errorf("run %s: %w", p.Suite.Name, err)
	}
	id := clock.Wall().Format("2006-01-02T15-04-05Z")
	dir := f.out
	if dir == "" {
		dir = filepath.Join(root, "results", id)
	}
	journal, reaped, err := process.OpenJournal(process.DefaultDir())
	if err != nil {
		return err
	}
	defer journal.Close()
	show := newProgress(a.stderr, p)
	show.begin(p, layout, reaped)
	e := trial.Experiment{
		Plan: p, Subjects: map[string]trial.Subject{}, Broken: map[string]error{},
		Prov: a.provenance(ctx, root, p, tools),
		Head: result.Run{
			ID: id, Suite: p.Suite.Name, Question: p.Suite.Question, File: p.Suite.File,
			Baseline: p.Baseline, Blocks: p.Suite.Blocks, Seed: p.Suite.Seed, PlanHash: p.Hash,
			Skipped: skipped, Command: append([]string{"prony"}, a.args...),
		},
	}
	for _, t := range p.Trials {
		e.Head.Trials = append(e.Head.Trials, t.ID)
	}
	if err := a.build(ctx, root, p, services, tools, &e, show); err != nil {
		return err
	}
	lab := realLab(journal, layout, dir, show.event)
	err = a.measure(ctx, lab, e, cores, show)
	show.end()
	return a.conclude(dir, err)
}

// build makes the artifacts of the plan. What cannot be built does not stop the others.
func (a *app) build(ctx context.Context, root string, p *suite.Plan, services []*service.Service,
	tools *service.Tools, e *trial.Experiment, show *progress) error {
	builder := &service.Builder{Root: root, Tools: tools, Progress: show.line}
	built := map[string]*service.Built{}
	for _, name := range targetsOf(p, services) {
		s, t, _ := find(services, name)
		if e.Broken[s.Name] == nil && built[s.Name] == nil {
			b, err := builder.Build(ctx, s)
			if ctx.Err() != nil {
				return fmt.Errorf("build %s: interrupted", s.Name)
			}
			if err != nil {
				show.line(err.Error())
				e.Broken[s.Name] = err
			}
			built[s.Name] = b
		}
		e.Subjects[name] = trial.Subject{Service: s, Target: t, Built: built[s.Name]}
		if err := e.Broken[s.Name]; err != nil {
			e.Broken[name] = err
		}
	}
	return nil
}

// measure quiets the lab, finds the generator's ceiling and runs the trials.
func (a *app) measure(ctx context.Context, lab *trial.Lab, e trial.Experiment, cores []int,
	show *progress) error {
	if err := host.Confine(lab.Layout.Load); err != nil {
		return err
	}
	// The lab may have other things to do afterwards; give it its processors back.
	defer host.Confine(cores) //nolint:errcheck // it was allowed to run there before
	self, err := os.Executable()
	if err != nil {
		return err
	}
	show.line("calibrate the generator against a null server")
	if err := lab.Calibrate(ctx, e.Plan, []string{self, "null"}); err != nil {
		return err
	}
	_, err = lab.Run(ctx, e)
	return err
}

// skipped lists the targets that a suite without narrowing would have and that lack a tool.
func (a *app) skipped(p *suite.Plan, services []*service.Service, tools *service.Tools,
	f *runFlags) (out []result.Skipped) {
	for _, s := range services {
		missing := tools.Missing(s)
		if len(missing) == 0 || len(f.targets) > 0 || !contains(s.Contracts, p.Suite.Contract) {
			continue
		}
		for _, t := range s.Targets {
			out = append(out, result.Skipped{Target: s.Full(t), Reason: missing[0] +
				" (see services/" + s.Name + "/README.md)"})
		}
	}
	return out
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// realLab is the lab of this machine: processes, sockets, the kernel's counters.
func realLab(j *process.Journal, layout host.Layout, dir string, observe func(trial.Event)) *trial.Lab {
	return &trial.Lab{
		Launcher: &process.Launcher{Journal: j}, Driver: generator{}, Layout: layout, Dir: dir,
		Observe: observe, Port: freePort,
		Watch: func(p launch.Process) (trial.Watcher, error) {
			subject := probe.Subject{PIDs: p.PIDs}
			for _, g := range p.Groups() {
				subject.Groups = append(subject.Groups, probe.Group(g))
			}
			return probe.Start(probe.Config{Cores: layout.Load}, subject)
		},
	}
}

// generator is the built-in driver.
type generator struct{}

// Offer implements trial.Driver.
func (generator) Offer(ctx context.Context, s load.Spec) (*load.Result, error) {
	s.Engine, s.Describe = newEpoll, epollInfo
	return load.Run(ctx, s)
}

func newEpoll(a netip.AddrPort, slots int) (load.Engine, error) { return epoll.New(a, slots) }

var epollInfo = load.EngineInfo{
	Name: "epoll", Reason: "the only engine so far", Pacing: "timerfd, absolute",
}

// freePort asks the kernel for a port that nobody uses.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// conclude prints what the records say and gives the exit code that fits.
func (a *app) conclude(dir string, runErr error) error {
	rep, err := a.report(dir, reportFlags{save: true})
	if err != nil {
		return errors.Join(runErr, err)
	}
	if runErr != nil {
		return runErr
	}
	if rep.bad > 0 {
		return &exitCode{exitInvalid, fmt.Sprintf("%d trials are INVALID or failed", rep.bad)}
	}
	return nil
}
