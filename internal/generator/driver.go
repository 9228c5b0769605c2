// Package generator sends a load with a foreign generator: wrk, wrk2, hey, k6, h2load or JMeter. It
// returns the same result type as Prony's own generator, so that results are comparable.
//
//	load.Spec ─► unsupported? ─► command line and files ─► process ─► output ─► result
//	                 │ error                                │ pinned, ended with the context
//
// A load that a tool cannot send exactly is an error. Values that a tool does not report are
// unknown: a field of a record.Dist that is 0 while Count is not is unknown, and readers print it
// as "–". If a tool's clock starts when a request is sent, response times of an open load are
// unknown; then only ServiceTime is filled in. The tool draws {key}, so the order of requests
// differs from Prony's.
//
// The lead-in is a separate run of the tool before the window, whose output is discarded; only wrk2
// has its own (see Names). The window is one run of the tool, from its start to its end.
//
// Import reads saved output of such tools.
//
// Non-goals: it installs no tools, and corrects nothing in their output except for wrk's synthetic
// samples, which it removes.
package generator

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/lazyregexp"
	"prony.example/load"
	"prony.example/record"
)

// Driver sends a load. It returns an error if it could send nothing or does not support the load.
// If the context is canceled, it stops and returns the context's error.
type Driver interface {
	Offer(ctx context.Context, s load.Spec) (*load.Result, error)
}

// tool is a foreign generator.
type tool struct {
	name        string
	get         string   // how to install it
	request     []string // arguments that print its version
	version     *lazyregexp.Pattern
	alternative string // text that only another tool of the same name prints
	text        string // text that the output must contain; empty: any

	can      ability
	grain    time.Duration            // the length of its runs is a multiple of this
	least    time.Duration            // the smallest length
	excluded func(*job) time.Duration // time at a run's begin that it excludes itself
	status   []int                    // exit statuses that are not errors
	measures string                   // how its clock works

	start func(*job) (command, error)
	read  func(*job, *output) (*tally, error)
}

// ability lists what a tool supports besides repeating one fixed request.
type ability struct {
	closed   bool
	open     bool // at equal intervals
	poisson  bool
	shaped   bool // changing rates and numbers of users
	users    bool
	complete bool // only integer rates
	counts   bool // ends after a number of requests
	keys     bool // draws {key} for each request
	mix      bool
	renew    bool // one connection per request
	methods  []string
	waits    bool   // for a body after the response to a HEAD request
	checks   string // which responses it accepts as good: "exact" or "class"
}

// tools lists the supported tools, in the order of Names.
var tools = []*tool{wrk, wrk2, hey, k6, h2load, jmeter}

// Names lists the foreign drivers. They warm up by a separate run before the window. Only wrk2
// excludes the first 10 s and 5 ms per connection of each run from its latency, and uses that time
// as the lead-in.
func Names() (out []string) {
	for _, t := range tools {
		out = append(out, t.name)
	}
	return out
}

func named(name string) (*tool, error) {
	i := slices.IndexFunc(tools, func(t *tool) bool { return t.name == name })
	if i < 0 {
		return nil, fmt.Errorf("driver %q does not exist; choose prony, %s", name,
			strings.Join(Names(), ", "))
	}
	return tools[i], nil
}

// Foreign returns the driver of an installed tool.
func Foreign(name string) (Driver, error) {
	t, err := named(name)
	if err != nil {
		return nil, err
	}
	path, _, err := t.find(context.Background())
	if err != nil {
		return nil, err
	}
	return &foreign{tool: t, path: path}, nil
}

// askFor is the time limit for printing the version; a JVM needs several seconds.
const askFor = 20 * time.Second

// find looks the tool up and checks its output, because wrk2 also calls itself wrk.
func (t *tool) find(ctx context.Context) (path, version string, err error) {
	// A program named wrk may be wrk2, whose makefile uses that name.
	names := []string{t.name}
	if t.name == "wrk2" {
		names = append(names, "wrk")
	}
	why := fmt.Errorf("the program is not on the PATH")
	for _, n := range names {
		path, err := exec.LookPath(n)
		if err != nil {
			continue
		}
		text, err := t.said(ctx, path)
		switch {
		case err != nil:
			return "", "", err
		case t.alternative != "" && strings.Contains(text, t.alternative),
			!strings.Contains(text, t.text):
			why = fmt.Errorf("%s is another program with that name", path)
		default:
			return path, t.versionIn(path, text), nil
		}
	}
	return "", "", fmt.Errorf("find load generator %s: %w; to install it: %s", t.name, why, t.get)
}

// said returns the output of the version request. It ignores the exit status, because wrk's is 1.
func (t *tool) said(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	dir, err := os.MkdirTemp("", "prony-"+t.name+"-")
	if err != nil {
		return "", fmt.Errorf("read the version of %s: %w", t.name, err)
	}
	defer os.RemoveAll(dir)
	out, err := run(ctx, command{argv: append([]string{path}, t.request...)}, dir, nil)
	if err != nil {
		return "", fmt.Errorf("read the version of %s: %w", t.name, err)
	}
	return string(out.text) + string(out.errs), nil
}

func (t *tool) versionIn(path, text string) string {
	if t.version != nil {
		if m := t.version.FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	// A Go program has the version of its module, unless a packager built it from a folder.
	if info, err := buildinfo.ReadFile(path); err == nil {
		if v, ok := strings.CutPrefix(info.Main.Version, "v"); ok {
			return v
		}
	}
	return "unknown"
}

// foreign is a Driver of an installed tool.
type foreign struct {
	tool *tool
	path string
}

// job is one run of a tool.
type job struct {
	spec     *load.Spec
	path     string // of the program
	dir      string // for files of the run
	version  string
	length   time.Duration
	threads  int
	requests []request
}

// grace is the time that a tool may take beyond the load: to start, report and end. A JVM on a busy
// core needs many seconds.
const grace = time.Minute

// Offer implements Driver.
func (f *foreign) Offer(ctx context.Context, s load.Spec) (*load.Result, error) {
	t := f.tool
	fail := func(err error) (*load.Result, error) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("run load %s with %s: %w", s.Name, t.name, err)
	}
	if err := t.cannot(&s); err != nil {
		return fail(err)
	}
	dir, err := os.MkdirTemp("", "prony-"+t.name+"-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	j := &job{spec: &s, path: f.path, dir: dir, threads: min(max(len(s.Cores), 1), s.Connections)}
	if j.requests, err = requests(&s, t.can.keys); err != nil {
		return fail(err)
	}
	_, j.version, err = t.find(ctx)
	if err != nil {
		return fail(err)
	}
	if s.Lead > 0 && t.excluded == nil {
		lead, warm := *j, s
		lead.spec, warm.Requests = &warm, 0
		lead.length = t.upTo(s.Lead)
		if _, err := t.once(ctx, &lead, "lead"); err != nil {
			return fail(err)
		}
	}
	j.length = t.upTo(s.Window)
	if t.excluded != nil {
		j.length = t.upTo(s.Window + t.excluded(j))
	}
	observers := load.Observers{s.Observer}
	observers.Window(true)
	out, err := t.once(ctx, j, "window")
	observers.Window(false)
	if err != nil {
		return fail(err)
	}
	l, err := t.result(j, out)
	if err != nil {
		return fail(err)
	}
	return &load.Result{Load: *l}, nil
}

// upTo rounds a duration up to the tool's grain.
func (t *tool) upTo(d time.Duration) time.Duration {
	return (max(d, t.least) + t.grain - 1).Truncate(t.grain)
}

// once runs the tool in a new folder below the job's, because some tools append to existing files.
// An unexpected exit status is an error.
func (t *tool) once(ctx context.Context, j *job, name string) (*output, error) {
	j.dir = filepath.Join(j.dir, name)
	if err := os.Mkdir(j.dir, 0o700); err != nil {
		return nil, err
	}
	c, err := t.start(j)
	if err != nil {
		return nil, err
	}
	limit := j.length + j.spec.Timeout + j.spec.Drain + grace
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := run(bounded, c, j.dir, j.spec.Cores)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case bounded.Err() != nil:
		return nil, fmt.Errorf("the load generator did not end within %v and was killed; end of "+
			"its output: %s", limit,
			out.tail())
	case err != nil:
		return nil, err
	case out.exit != 0 && !slices.Contains(t.status, out.exit):
		text := out.tail()
		if absent.MatchString(text) {
			text += "; check that the service is running"
		}
		return nil, fmt.Errorf("the load generator exited with status %d; end of its output: %s",
			out.exit, text)
	}
	return out, nil
}

// absent matches the words of tools for a service that does not run or does not respond.
var absent = lazyregexp.New(`(?i)refused|reset|timed? ?out`)

// result converts the tool's output to a load.
func (t *tool) result(j *job, out *output) (*record.Load, error) {
	reply, err := t.read(j, out)
	if err != nil {
		return nil, fmt.Errorf("read the output of the load generator: %w", err)
	}
	if reply.good+reply.errors.Total() == 0 {
		return nil, fmt.Errorf("the load generator received no responses; end of its output: "+
			"%s", out.tail())
	}
	if reply.durationNs <= 0 {
		reply.durationNs = out.elapsedNs
	}
	reply.ordered()
	s := j.spec
	l := reply.load(s)
	l.Name, l.Seed, l.Threads = s.Name, s.Seed, j.threads
	l.Driver = t.name
	if j.version != "unknown" {
		l.Driver += " " + j.version
	}
	l.Connections = cmp.Or(l.Connections, s.Connections)
	if t.excluded == nil {
		l.LeadInNs = int64(t.upTo(s.Lead))
	}
	l.Generator = out.generator(t, j, l)
	if len(reply.notes) > 0 {
		l.Generator.EngineReason += "; " + strings.Join(Sentences(reply.notes), "; ")
	}
	return l, nil
}

// command is a program to run.
type command struct {
	argv []string
	env  []string // besides this program's environment
}

// output is the result of a command.
type output struct {
	text, errs []byte // stdout and stderr
	exit       int
	elapsedNs  int64
	cpuNs      int64 // user and system time of the process and its waited-for children (wait4(2))
	rssBytes   int64 // of the largest process
	switches   int64 // forced context switches
}

// tailMax is the number of bytes of a tool's output that an error quotes.
const tailMax = 400

// tail returns the end of the tool's output on one line.
func (o *output) tail() string {
	s := strings.Join(strings.Fields(string(o.text)+" "+string(o.errs)), " ")
	if s == "" {
		return "nothing"
	}
	if len(s) > tailMax {
		s = "…" + s[len(s)-tailMax:]
	}
	return s
}

// generator returns the resource use of the tool's processes. Processor time includes start and
// report, because tools do not report the window's share.
func (o *output) generator(t *tool, j *job, l *record.Load) record.Gen {
	g := record.Gen{
		Engine: t.name,
		EngineReason: "external load generator; its CPU time is that of its whole process, " +
			"including its start",
		Pacing: t.measures,
		CPUNs:  o.cpuNs, MemoryBytes: o.rssBytes, SwitchesForced: o.switches,
		CPUShare: float64(o.cpuNs) / float64(o.elapsedNs) / float64(max(len(j.spec.Cores), 1)),
		Priority: "unknown",
	}
	if n := l.Done + l.Errors.Total(); n > 0 {
		g.CPUPerRequestNs = float64(o.cpuNs) / float64(n)
	}
	return g
}
