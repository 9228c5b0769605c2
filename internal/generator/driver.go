// Package generator offers a load with a generator that is not ours: wrk, wrk2, hey, k6, h2load
// or JMeter. What such a tool says comes back as the same result that our own generator
// gives, so that two of them can be held against each other.
//
//	load.Spec ─► what can it not? ─► command line and files ─► its process ─► its output ─► result
//	                 │ error                                    │ pinned, ended with the context
//
// A tool is asked for what it can do and never for something near it: a load that it cannot offer
// is an error that says so. What it does not say stays unknown: a field of a record.Dist that is 0
// while Count is not is unknown, and readers print it as "–". A tool whose clock starts when a
// request is really sent has no response time of an open load; then only ServiceTime is filled in.
// Requests are sent with {key} drawn by the tool, so not in our order.
//
// The load's lead is a run of its own before the window, whose output is thrown away; wrk2 alone
// brings its own (see Names). The window is one run of the tool, from its start to its end.
//
// Import reads what such tools have saved.
//
// Non-goals: no installing of tools, no correction of what they say, but for wrk's invented
// samples, which are taken out again.
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

// Driver offers a load. It fails when nothing could be offered, or the load is not for this driver.
// A cancelled context ends it with the context's error.
type Driver interface {
	Offer(ctx context.Context, s load.Spec) (*load.Result, error)
}

// tool is a foreign generator.
type tool struct {
	name        string
	get         string   // how it is had
	request     []string // arguments that make it say its version
	version     *lazyregexp.Pattern
	alternative string // what only another tool of the same name says then
	text        string // what it must say then; empty: anything

	can      ability
	grain    time.Duration            // its runs last a multiple of this
	least    time.Duration            // and this at least
	excluded func(*job) time.Duration // of a run's beginning that it leaves out itself
	status   []int                    // exits that are none of an error
	measures string                   // how its clock runs

	start func(*job) (command, error)
	read  func(*job, *output) (*tally, error)
}

// ability is what a tool can do beside sending one fixed request over and over.
type ability struct {
	closed   bool
	open     bool // equal gaps
	poisson  bool
	shaped   bool // rates and users that change
	users    bool
	complete bool // only whole rates
	counts   bool // ends after so many requests
	keys     bool // draws {key} anew for each
	mix      bool
	renew    bool // a connection for each request
	methods  []string
	waits    bool   // for the body that the head of an answer to a HEAD announces
	checks   string // which answers it takes for good: "exact", "class" or "none"
}

// tools are all that are known, in the order of Names.
var tools = []*tool{wrk, wrk2, hey, k6, h2load, jmeter}

// Names lists the foreign drivers. All but one warm up by a run of their own before the window that
// nobody counts; wrk2 drops the first 10 s and 5 ms a connection of each run from its latency, and
// that is its lead.
func Names() (out []string) {
	for _, t := range tools {
		out = append(out, t.name)
	}
	return out
}

func named(name string) (*tool, error) {
	i := slices.IndexFunc(tools, func(t *tool) bool { return t.name == name })
	if i < 0 {
		return nil, fmt.Errorf("find driver %q: there is none; there are prony, %s", name,
			strings.Join(Names(), ", "))
	}
	return tools[i], nil
}

// Foreign returns the driver of a tool that is installed here.
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

// askFor bounds the time that a tool has to say its version; a Java machine needs some.
const askFor = 20 * time.Second

// find looks the tool up and asks who it is: wrk2 calls itself wrk, so the name alone says little.
func (t *tool) find(ctx context.Context) (path, version string, err error) {
	// What goes by the name of wrk may be wrk2: its makefile calls it so.
	names := []string{t.name}
	if t.name == "wrk2" {
		names = append(names, "wrk")
	}
	why := fmt.Errorf("it is not on the PATH")
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
			why = fmt.Errorf("%s is another tool of that name", path)
		default:
			return path, t.versionIn(path, text), nil
		}
	}
	return "", "", fmt.Errorf("find %s: %w; to get it: %s", t.name, why, t.get)
}

// said is what the tool answers to being asked who it is. Its exit status says nothing: wrk's is 1.
func (t *tool) said(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	dir, err := os.MkdirTemp("", "prony-"+t.name+"-")
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", t.name, err)
	}
	defer os.RemoveAll(dir)
	out, err := run(ctx, command{argv: append([]string{path}, t.request...)}, dir, nil)
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", t.name, err)
	}
	return string(out.text) + string(out.errs), nil
}

func (t *tool) versionIn(path, text string) string {
	if t.version != nil {
		if m := t.version.FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	// A program in Go carries the version of its module, unless a packager built it from a folder.
	if info, err := buildinfo.ReadFile(path); err == nil {
		if v, ok := strings.CutPrefix(info.Main.Version, "v"); ok {
			return v
		}
	}
	return "unknown"
}

// foreign drives an installed tool.
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

// grace is what a tool may take beyond the load itself: start, report, end. A Java machine on a
// busy core needs many seconds.
const grace = time.Minute

// Offer implements Driver.
func (f *foreign) Offer(ctx context.Context, s load.Spec) (*load.Result, error) {
	t := f.tool
	fail := func(err error) (*load.Result, error) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("offer %s with %s: %w", s.Name, t.name, err)
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
	if s.OnWindow != nil {
		s.OnWindow(true)
	}
	out, err := t.once(ctx, j, "window")
	if s.OnWindow != nil {
		s.OnWindow(false)
	}
	if err != nil {
		return fail(err)
	}
	l, err := t.result(j, out)
	if err != nil {
		return fail(err)
	}
	return &load.Result{Load: *l}, nil
}

// upTo rounds up: a tool that counts in seconds is given one more rather than one less.
func (t *tool) upTo(d time.Duration) time.Duration {
	return (max(d, t.least) + t.grain - 1).Truncate(t.grain)
}

// once runs the tool in a folder of its own below the job's, for some add to files that they find,
// and wants it to end well.
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
		return nil, fmt.Errorf("it did not end within %v and was killed; it said: %s", limit,
			out.tail())
	case err != nil:
		return nil, err
	case out.exit != 0 && !slices.Contains(t.status, out.exit):
		text := out.tail()
		if absent.MatchString(text) {
			text += "; is the service running?"
		}
		return nil, fmt.Errorf("it ended with status %d and said: %s", out.exit, text)
	}
	return out, nil
}

// absent matches the words of tools for a service that does not run or does not respond.
var absent = lazyregexp.New(`(?i)refused|reset|timed? ?out`)

// result turns what the tool said into a load.
func (t *tool) result(j *job, out *output) (*record.Load, error) {
	reply, err := t.read(j, out)
	if err != nil {
		return nil, fmt.Errorf("read what it said: %w", err)
	}
	if reply.good+reply.errors.Total() == 0 {
		return nil, fmt.Errorf("it had no answer to any request; it said: %s", out.tail())
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
		l.Generator.EngineReason += "; " + strings.Join(reply.notes, "; ")
	}
	return l, nil
}

// command is a program to run.
type command struct {
	argv []string
	env  []string // beside our own
}

// output is what became of one.
type output struct {
	text, errs []byte // of its two streams
	exit       int
	elapsedNs  int64
	cpuNs      int64 // user and system, of it and of those it waited for (wait4(2))
	rssBytes   int64 // the largest of them
	switches   int64 // forced ones
}

// tailMax bounds what an error quotes of a tool's output.
const tailMax = 400

// tail is the end of what the tool said, on one line.
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

// generator is what the tool's processes took. Their processor time is that of their whole life,
// start and report included, since a tool does not say what its window took.
func (o *output) generator(t *tool, j *job, l *record.Load) record.Gen {
	g := record.Gen{
		Engine:       t.name,
		EngineReason: "foreign driver; its CPU time is that of its whole process, start included",
		Pacing:       t.measures,
		CPUNs:        o.cpuNs, MemoryBytes: o.rssBytes, SwitchesForced: o.switches,
		CPUShare: float64(o.cpuNs) / float64(o.elapsedNs) / float64(max(len(j.spec.Cores), 1)),
		Priority: "unknown",
	}
	if n := l.Done + l.Errors.Total(); n > 0 {
		g.CPUPerRequestNs = float64(o.cpuNs) / float64(n)
	}
	return g
}
