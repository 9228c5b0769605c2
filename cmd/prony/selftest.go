//go:build linux && !portable

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/format"
	"prony.example/internal/base/rtsched"
	"prony.example/internal/generator"
	"prony.example/internal/generator/selftest"
	"prony.example/internal/generator/truth"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/launch/process"
	"prony.example/internal/observe/host"
	"prony.example/internal/observe/stallfree"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/internal/trial/machine"
	"prony.example/internal/trial/processes"
	"prony.example/load"
	"prony.example/record"
)

func (a *app) selftestCmd() *cobra.Command {
	f := &selftestFlags{}
	c := &cobra.Command{
		Use: "selftest [CASE...]", Short: "Test the generator against servers with known answers",
		Args: cobra.ArbitraryArgs,
		Long: `Selftest runs the generator against truth servers (see prony truth --help), each on
cores of its own, for about a minute. Selftest compares the generator's numbers with known ones: the
stall test, queues by formula, capacity, and every kind of failure. A case is

  ok         if every number is within its limit
  wrong      if a number is further off than the machine explains, twice: the generator's fault
  disturbed  if a number is off, and the machine explains it or it is not off again

The machine explains what threads of the load and of the server had to wait for a processor, by the
kernel's counters and the record of stalls. As root, or with CAP_SYS_NICE, both run ahead of other
programs, so hardly any case is disturbed.

"selftest verdicts" tests the verdict instead. "selftest verdicts" provokes faults, each from none
to far too much, such as a neighbor on the generator's core, too few connections, or a service that
is not warm. The value without the fault is known. The verdict must be SUSPECT if a number has moved
by more than its own uncertainty, and must not be if there is no fault.

The exit code is 0 if all cases are ok, 1 if a case is wrong, and 5 if none is wrong but the machine
disturbed some.`,
		Example: "  prony selftest\n  prony selftest stall M/M/1\n  prony selftest verdicts",
		RunE: func(c *cobra.Command, args []string) error {
			return a.selftest(c.Context(), args, f)
		},
	}
	fs := c.Flags()
	addEngine(c, &f.engine, "engine to prove")
	f.pacing = load.Frugal
	cli.OneOf(c, &f.pacing, "pacing", "way to wait for the next arrival", load.Frugal, load.Precise)
	addIdle(c, &f.idle)
	fs.BoolVar(&f.asJSON, "json", false,
		"print all outcomes as JSON")
	return c
}

type selftestFlags struct {
	engine, pacing, idle string
	asJSON               bool
}

func (a *app) selftest(ctx context.Context, names []string, f *selftestFlags) error {
	cases, err := chooseCases(names)
	if err != nil {
		return err
	}
	outcomes, err := a.selftestCases(ctx, cases, f, nil)
	if err != nil {
		return err
	}
	if f.asJSON {
		err = format.JSON(a.stdout, outcomes)
	} else {
		a.printOutcomes(outcomes)
	}
	return errors.Join(err, endOf(outcomes))
}

// selftestCases runs cases on this machine. Function change, if not nil, makes the generator faulty
// for tests.
func (a *app) selftestCases(ctx context.Context, cases []selftest.Case, f *selftestFlags,
	change func(*selftest.Setup)) ([]selftest.Outcome, error) {
	cores, err := host.Cores()
	if err != nil {
		return nil, err
	}
	layout, err := host.Divide(cores, 1)
	if err != nil {
		return nil, fmt.Errorf("selftest: %w", err)
	}
	journal, _, err := a.world.Enter()
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	dir, err := os.MkdirTemp("", "prony-selftest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // only logs and times that were read
	idle, release, err := a.pollIdle(f.idle)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := host.Confine(layout.Load); err != nil {
		return nil, err
	}
	defer host.Confine(cores) //nolint:errcheck // these cores were allowed before
	t := &truthStarter{
		launcher: &process.Launcher{Journal: journal}, dir: dir, layout: layout, idle: idle,
	}
	t.watchStalls()
	defer t.stalls.Close()
	// The kernel's call returns 20 minus the value (getpriority(2)).
	if nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
		defer rtsched.Nice(os.Getpid(), 20-nice)
	}
	setup := selftest.Setup{Start: t.start, Report: a.say, Watch: t.watch,
		Offer: func(ctx context.Context, s load.Spec) (*load.Result, error) {
			s.Cores, s.Pacing, s.Ahead = layout.Load, f.pacing, s.Ahead && !layout.Shared
			return generator.Prony{Engine: f.engine}.Offer(ctx, s)
		}}
	if change != nil {
		change(&setup)
	}
	return setup.Run(ctx, cases)
}

// pollIdle lets idle cores poll until release is called, if they do so during runs. Call it before
// this process is confined to some cores.
func (a *app) pollIdle(wanted string) (idle string, release func(), err error) {
	if wanted != suite.IdleHalts {
		var p record.Provenance
		host.Describe(&p)
		idle = a.world.Idle(p)
	}
	release, err = host.PollIdle(idle)
	return idle, release, err
}

// endOf returns the error of outcomes that are not all ok.
func endOf(outcomes []selftest.Outcome) error {
	states := count(outcomes)
	switch {
	case states[selftest.Wrong] > 0:
		return cli.End(cli.Failed, "%d of %d cases are wrong, and delays of the machine do not "+
			"explain it: please report this with the output of prony selftest "+
			"--json", states[selftest.Wrong],
			len(outcomes))
	case states[selftest.Disturbed] > 0:
		return cli.End(cli.Inconclusive, "no case is wrong, but the machine disturbed %d of %d "+
			"cases: run them again when other programs use less CPU time, or as root or with "+
			"CAP_SYS_NICE", states[selftest.Disturbed], len(outcomes))
	}
	return nil
}

// count returns the number of outcomes by state.
func count(outcomes []selftest.Outcome) map[string]int {
	states := map[string]int{}
	for _, o := range outcomes {
		states[o.State]++
	}
	return states
}

// chooseCases returns the named cases, or all.
func chooseCases(names []string) ([]selftest.Case, error) {
	all, verdicts := selftest.Cases(), selftest.Verdicts()
	switch {
	case len(names) == 0:
		return all, nil
	case slices.Equal(names, []string{"verdicts"}):
		return verdicts, nil
	}
	all = append(all, verdicts...)
	var out []selftest.Case
	for _, n := range names {
		i := slices.IndexFunc(all, func(c selftest.Case) bool { return c.Name == n })
		if i < 0 {
			var known []string
			for _, c := range all {
				known = append(known, c.Name)
			}
			return nil, cli.Usagef("case %q does not exist; choose one of %s", n,
				strings.Join(known, ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// truthStarter starts truth servers as separate processes on the service's cores.
type truthStarter struct {
	launcher launch.Launcher
	dir      string
	layout   host.Layout
	count    int
	server   *truthServer // the latest
	pids     []int        // its processes
	stalls   *stallfree.Watcher
	idle     string // as record.Provenance.Idle
}

// truthWait is the maximum time until a server listens.
const truthWait = 5 * time.Second

func (t *truthStarter) start(ctx context.Context, kind string, p truth.Params, o truth.Options,
) (selftest.Server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	port, err := processes.FreePort()
	if err != nil {
		return nil, err
	}
	k, ok := truth.Find(kind)
	if !ok {
		panic("selftest: a case needs a truth server that does not exist: " + kind)
	}
	args := []string{self, "truth", kind, "--json", "--port", strconv.Itoa(port)}
	for _, n := range k.Needs {
		args = append(args, "--"+n.Name, fieldText(&p, n.Name))
	}
	t.count++
	server := &truthServer{layout: t.layout}
	if o.Times {
		server.times = filepath.Join(t.dir, fmt.Sprintf("%d-%s.csv", t.count, kind))
		args = append(args, "--times", server.times)
	}
	if o.Ahead && !t.layout.Shared {
		args = append(args, "--ahead")
	}
	proc, err := t.launcher.Launch(ctx, launch.Spec{
		Name: "truth", Dir: t.dir, Args: args, Port: port, Cores: t.layout.Service,
		CPUs:    float64(len(t.layout.Service)),
		LogFile: filepath.Join(t.dir, fmt.Sprintf("%d-%s.log", t.count, kind)),
	})
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, truthWait)
	defer cancel()
	// No request is sent: the first one must be the load's.
	if _, _, err := service.WaitReady(bounded, nil, proc.Addr().String(), "", proc.Began(),
		proc.Exited()); err != nil {
		said := append(proc.Log(10), proc.Exit())
		return nil, errors.Join(fmt.Errorf("start truth server: %w\n  %s", err,
			strings.Join(said, "\n  ")), proc.Stop(0))
	}
	server.Process = proc
	t.server = server
	if o.Ahead && !t.layout.Shared {
		promote(proc)
		rtsched.Nice(os.Getpid(), rtsched.Lowest) // for the threads that are not the load's
	}
	return server, nil
}

// promote gives a server's threads priority over others. The launcher removes the right to do so
// from the processes that it starts. If it fails, the server's report shows it.
func promote(p launch.Process) {
	for until := clock.Mono() + int64(time.Second); clock.Mono() < until && !launch.HasExited(p); {
		if !grantTime(p.Groups()) || rtsched.Promote(p.Main(), rtsched.Load) {
			return
		}
		<-time.After(time.Millisecond)
	}
}

// grantTime gives groups time for threads with priority, and reports whether these are possible. In
// kernels with CONFIG_RT_GROUP_SCHED, a new group of the cpu controller, version 1, has no such
// time. All groups together have 0.95 s of each second, and the group of an earlier server returns
// its part some milliseconds after its end: until then the value is invalid.
func grantTime(groups []launch.Group) bool {
	const file, mostUs = "cpu.rt_runtime_us", 950_000
	for _, g := range groups {
		if g.Version == 1 && g.Controller == "cpu" {
			err := cgroup.Write(g.Dir, file, mostUs)
			return err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, os.ErrNotExist)
		}
	}
	return true
}

// truthServer is a truth server in another process.
type truthServer struct {
	launch.Process
	layout host.Layout
	watch  trial.Watcher // nil: CPU was not called yet
	times  string        // file of its requests' times; "": not requested
}

// CPU returns the CPU time that a trial would read.
func (s *truthServer) CPU() (time.Duration, error) {
	if s.watch == nil {
		watch, err := machine.Watch(s.Process, s.layout, 0, nil)
		if err != nil {
			return 0, err
		}
		s.watch = watch
	}
	ns := s.watch.Mark().CPUNs
	if ns < 0 {
		return 0, errors.New("read the server's CPU time: the kernel does not report it")
	}
	return time.Duration(ns), nil
}

// Stop ends the server and reads its last line.
func (s *truthServer) Stop() (out truth.Report, err error) {
	if s.watch != nil {
		s.watch.Stop()
	}
	if err := s.Process.Stop(3 * time.Second); err != nil {
		return out, err
	}
	log := s.Log(1)
	if len(log) == 0 || json.Unmarshal([]byte(log[0]), &out) != nil {
		return out, fmt.Errorf("stop truth server: it did not report the requests that it "+
			"served: %q (%s)", log,
			s.Exit())
	}
	if s.times == "" {
		return out, nil
	}
	file, err := os.Open(s.times)
	if err != nil {
		return out, fmt.Errorf("read the times of requests from a truth server: %w", err)
	}
	defer file.Close()
	if out.Times, err = truth.ReadTimes(file); err != nil {
		return out, err
	}
	offset, err := clock.Kernel()
	truth.Shift(out.Times, -offset)
	return out, err
}
