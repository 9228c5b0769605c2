//go:build linux && !portable

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/files"
	"prony.example/internal/base/format"
	"prony.example/internal/server"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/suite/adhoc"
	"prony.example/internal/trial/doctor"
	"prony.example/internal/trial/lab"
	"prony.example/record"
)

// room is the lab of the server: a checkout's or a project's. It reads files again each time, so
// that the browser shows changes of a suite.
type room struct {
	*app
	root    string
	results string
	project bool
	away    *aside

	mu      sync.Mutex
	found   *service.Tools
	foundNs int64 // when they were found
}

// toolsBound is how long found tools and their versions are used again.
const toolsBound = 30 * time.Second

// tools finds the tools of this machine. Each version is read by starting a program, such as a JVM,
// so that a request for each would disturb measurements.
func (r *room) tools(ctx context.Context) *service.Tools {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := clock.Mono(); r.found == nil || now-r.foundNs > int64(toolsBound) {
		r.found, r.foundNs = service.FindTools(context.WithoutCancel(ctx)), now
	}
	return r.found
}

var _ server.Lab = (*room)(nil)

// newRoom returns the lab that run would use.
func (a *app) newRoom() (*room, error) {
	l, project, _, err := a.labOrProject()
	if err != nil {
		return nil, err
	}
	r := &room{app: a, root: l.Root, results: filepath.Join(l.Root, "results")}
	if project != nil {
		r.project, r.results = true, filepath.Join(l.Root, record.Kept, "run")
	}
	return r, nil
}

// projectName is the prefix of the names of a project's experiments.
const projectName = "prony.yaml"

// Suites implements server.Lab.
func (r *room) Suites() (out []server.Suite, err error) {
	l, project, _, err := r.labOrProject()
	if err != nil {
		return nil, err
	}
	if project != nil {
		text, err := files.String(
			filepath.Join(r.root, filepath.Base(project.File)),
			files.Settings,
		)
		if err != nil {
			return nil, err
		}
		for _, name := range project.Experiments() {
			s, err := project.Suite(name)
			one := suiteOf(strings.TrimSuffix(projectName+":"+name, ":"), project.File, text, s,
				err)
			one.Argument = name
			out = append(out, one)
		}
		return out, nil
	}
	for _, path := range files.Glob(l.Root, "suites/*.yaml") {
		text, err := files.String(path, files.Settings)
		if err != nil {
			continue // just removed, or not a file
		}
		s, err := l.Suite(path)
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		one := suiteOf(name, "suites/"+name+".yaml", text, s, err)
		one.Argument, one.Path = one.File, path
		out = append(out, one)
	}
	return out, nil
}

// suiteOf returns a suite for a form, or why it cannot be read.
func suiteOf(name, from, text string, s *suite.Suite, err error) server.Suite {
	out := server.Suite{Name: name, File: from, YAML: text, Targets: []string{},
		Scenarios: []string{}, Loads: []string{}, Launchers: []string{suite.Launchers[0]}}
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	out.Question, out.Blocks, out.Seed = s.Question, s.Blocks, s.Seed
	out.CPUs, out.Memory = s.Limits.CPUs, int64(s.Limits.Memory)
	out.Targets = append(out.Targets, s.Targets...)
	for _, sc := range s.Scenarios {
		out.Scenarios = append(out.Scenarios, sc.Name)
	}
	for _, l := range s.Loads {
		out.Loads = append(out.Loads, l.Name)
		out.MeasureS = max(out.MeasureS, planned(l).Seconds())
	}
	if len(s.Launchers) > 0 {
		out.Launchers = s.Launchers
	}
	return out
}

// servicesIn returns the services of the project, or of the checkout if there is none.
func servicesIn(ctx context.Context, l *lab.Lab, project *suite.Project) (lab.Catalog, error) {
	if project == nil {
		return l.Catalog()
	}
	sources, err := adhoc.Sources(project, l.Root)
	if err != nil {
		return nil, err
	}
	return l.Services(ctx, sources, project.Ready, "", time.Duration(project.Startup))
}

// orEmpty makes JSON of an empty list [], not null.
func orEmpty(list []string) []string { return append([]string{}, list...) }

// Catalog implements server.Lab.
func (r *room) Catalog(ctx context.Context) (out []server.Target, err error) {
	l, project, _, err := r.labOrProject()
	if err != nil {
		return nil, err
	}
	services, err := servicesIn(ctx, l, project)
	if err != nil {
		return nil, err
	}
	tools := r.tools(ctx)
	for _, s := range services {
		for _, t := range s.Targets {
			missing := r.world.Missing(tools, s, t)
			out = append(out, server.Target{Name: s.Full(t), Service: s.Name, Language: s.Language,
				Framework: strings.TrimSpace(s.Framework + " " + s.Version), Runtime: t.Runtime,
				Mode: t.Mode, Contracts: orEmpty(s.Contracts), Aside: t.ExplicitOnly,
				Missing: orEmpty(missing)})
		}
	}
	return out, nil
}

// examine grades the machine by a new process, because this one can use only its own cores.
func (r *room) examine(ctx context.Context) (g record.Grading, err error) {
	if r.away == nil {
		return r.world.Examine(ctx, doctor.Options{CPUs: 1}), nil
	}
	self, err := os.Executable()
	if err != nil {
		return g, err
	}
	cmd := exec.CommandContext(ctx, self, "doctor", "--json")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := r.away.start(cmd); err != nil {
		return g, fmt.Errorf("run prony doctor: %w", err)
	}
	ended := cmd.Wait() // 4 for an unfit machine, which is also a result
	if err := json.Unmarshal(out.Bytes(), &g); err != nil {
		return g, fmt.Errorf("run prony doctor: %w", errors.Join(ended, err))
	}
	return g, nil
}

// Host implements server.Lab.
func (r *room) Host(ctx context.Context) (h server.Host, err error) {
	if h.Doctor, err = r.examine(ctx); err != nil {
		return h, err
	}
	versions := r.tools(ctx).Versions()
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		h.Tools = append(h.Tools, server.Tool{Name: name, Version: versions[name]})
	}
	var text bytes.Buffer
	err = r.world.Docker(ctx, &text, io.Discard, []string{"version", "--format",
		"{{.Server.Version}}"})
	if err != nil {
		h.Docker = format.Clip(err.Error())
		return h, nil
	}
	if r.project { // the stack belongs to a checkout
		return h, nil
	}
	parts, err := r.stackParts(ctx, io.Discard)
	if err != nil {
		h.Stack = []server.Part{{Name: "stack", State: format.Clip(err.Error())}}
		return h, nil
	}
	h.Grafana = grafanaOf(parts)
	for _, p := range parts {
		h.Stack = append(h.Stack, server.Part{Name: p.Service,
			State: strings.TrimSpace(p.State + " " + p.Health)})
	}
	return h, nil
}

// Plan implements server.Lab. It reads the arguments as run does, and plans them as plan does.
func (r *room) Plan(ctx context.Context, args []string) (p server.Plan, err error) {
	var told bytes.Buffer
	a := *r.app
	a.stderr = format.NewScreen(&told)
	l, project, _, err := a.labOrProject()
	if err != nil {
		return p, err
	}
	l.Tools = r.tools(ctx)
	f := &runFlags{}
	c := &cobra.Command{Use: "run"}
	f.suiteFlags(c)
	c.Flags().StringToStringVar(&f.asked.Labels, "label", nil, "")
	if err := c.ParseFlags(args[1:]); err != nil {
		return p, err
	}
	if err := extents(c); err != nil {
		return p, err
	}
	names := c.Flags().Args()
	if project == nil && len(names) > 0 {
		names = []string{filepath.Join(l.Root, names[0])}
	}
	wish, err := f.wish(ctx, c, names, l, project)
	if err != nil {
		return p, err
	}
	plan, err := l.Here(ctx, wish)
	if err != nil {
		return p, err
	}
	least, most := plan.Estimate()
	p.LeastS, p.MostS, p.Repeat = least.Seconds(), most.Seconds(), plan.Repeat()
	if plan.Blockwise != "" && len(plan.Targets()) > 1 {
		p.Notes = append(p.Notes, "blocks are used instead of slices: "+plan.Blockwise)
	}
	for _, t := range plan.Trials {
		if plan.Suite.For > 0 && t.Block > 1 {
			continue // a time budget decides this during the run
		}
		p.Trials = append(p.Trials, server.Planned{Trial: t.ID, Target: t.Target,
			Scenario: t.Scenario, Block: t.Block, Role: t.Role})
	}
	for line := range strings.Lines(told.String()) {
		p.Notes = append(p.Notes, strings.TrimSpace(line))
	}
	return p, nil
}

// Start implements server.Lab. It starts this program in a session of its own, so that the run
// survives the end of the server and its terminal.
func (r *room) Start(args []string, said *os.File) (<-chan error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, r.rooted(args)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := r.away.start(cmd); err != nil {
		return nil, fmt.Errorf("start prony run: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, nil
}

// rooted adds --root of the served checkout to a command line.
func (r *room) rooted(args []string) []string {
	if r.rootFlag == "" {
		return args
	}
	return append([]string{"--root=" + r.root}, args...)
}
