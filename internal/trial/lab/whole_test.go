package lab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/launch"
	"prony.example/internal/launch/fake"
	"prony.example/internal/launch/process"
	"prony.example/internal/observe/host"
	"prony.example/internal/observe/probe"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/internal/trial/doctor"
	"prony.example/internal/trial/trialtest"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// simulated is a world in which nothing is real: services are handlers, loads are arithmetic, and
// time is the bubble's. Its other methods panic: no test expects them.
type simulated struct {
	World
	lacks map[string]string // the missing tool, by service
	ends  string            // a service that ends at once
	grade record.Grading    // of the host; zero: fit
	hash  string            // of all artifacts
	idle  string            // what idle cores do
	has   []string          // launchers of containers and foreign load generators
	after int               // the user interrupts the run after this number of trials; 0: never

	cancel context.CancelFunc // of the run
}

func (simulated) Enter() (*process.Journal, []string, error) { return nil, nil, nil }

func (w simulated) Missing(_ *service.Tools, s *service.Service, _ ...service.Target) []string {
	if tool := w.lacks[s.Name]; tool != "" {
		return []string{"needs " + tool}
	}
	return nil
}

func (w simulated) Driver(name string) (trial.Driver, error) {
	if !slices.Contains(w.has, name) {
		return nil, errors.New("it is not installed")
	}
	return trialtest.Load{Rate: 1000}, nil
}

func (w simulated) Container(_ context.Context, name string, to *Launchers) error {
	if !slices.Contains(w.has, name) {
		return errors.New("no engine responds")
	}
	to.By[name] = w.launcher() // Lab replaces it
	return nil
}

func (w simulated) Build(context.Context, *service.Builder, *service.Service) (*service.Built,
	error) {
	return &service.Built{Dir: "/", Hash: "0", SHA256: w.hash + "0", SizeBytes: 1}, nil
}

func (w simulated) Image(ctx context.Context, b *service.Builder,
	s *service.Service) (*service.Built, error) {
	built, err := w.Build(ctx, b, s)
	built.Images, built.Front = map[string]string{"": "image:0"}, "image:0"
	return built, err
}

func (w simulated) Idle(record.Provenance) string { return w.idle }

func (w simulated) Examine(context.Context, doctor.Options) record.Grading {
	if w.grade.Grade == "" {
		return record.Grading{Grade: record.Fit}
	}
	return w.grade
}

func (w simulated) launcher() *fake.Launcher {
	return &fake.Launcher{Note: func(string) {},
		Start: func(s launch.Spec) (http.Handler, time.Duration, error) {
			if s.Name == w.ends {
				return nil, 0, errors.New("no such program")
			}
			return fake.Hello("virtual"), 20 * time.Millisecond, nil
		}}
}

func (w simulated) Lab(_ *process.Journal, by *Launchers, l host.Layout, dir string,
	observe func(trial.Event)) *trial.Lab {
	f, ended := w.launcher(), 0
	for name := range by.By {
		by.By[name] = f
	}
	return &trial.Lab{Launcher: f, Containers: by.By, Dial: f.Dial, Layout: l, Dir: dir,
		Observe: func(e trial.Event) {
			observe(e)
			if e.Record != nil {
				if ended++; ended == w.after {
					w.cancel()
				}
			}
		},
		Driver: func(string, string, *nethttp.Config) (trial.Driver, error) {
			return trialtest.Load{Rate: 1000}, nil
		},
		Port: func() (int, error) { return 8080, nil },
		Watch: func(launch.Process, time.Duration) (trial.Watcher, error) {
			return &stillWatch{}, nil
		}}
}

func (simulated) Measure(ctx context.Context, lab *trial.Lab, e trial.Experiment, _ []int,
	_ func(string)) error {
	_, err := lab.Run(ctx, e)
	return err
}

// stillWatch watches a service that uses nothing.
type stillWatch struct{ ns int64 }

func (w *stillWatch) Mark() probe.Mark {
	w.ns += 1e9
	return probe.Mark{TNs: w.ns, Source: "proc"}
}
func (w *stillWatch) MarkPSS() probe.Mark               { return w.Mark() }
func (w *stillWatch) Series() probe.Series              { return probe.Series{} }
func (w *stillWatch) Roles() probe.Roles                { return probe.Roles{} }
func (w *stillWatch) Stop() (probe.Series, record.Cost) { return probe.Series{}, record.Cost{} }

// beginner is a listener of whole runs.
type beginner struct {
	listener
	begun int
}

func (b *beginner) Begin(Begun) { b.begun++ }

const wholeSuite = `
name: whole
question: Does a run end?
contract: hello
blocks: 1
timeout: 1s
interleave: blocks
limits: {cpus: 1, memory: 64MiB}
warmup: {connections: 2, min: 1s, max: 5s}
scenarios:
  - name: read
    keys: [1, 50000]
    requests:
      - request: GET /hello/{mode}?key={key}
        expect: {body: "Hello from REST value-{key}"}
loads:
  - {name: peak, model: closed, connections: 2, measure: 1s}
`

// helloServices returns services that keep the contract hello.
func helloServices(names ...string) (c Catalog) {
	for _, name := range names {
		c = append(c, &service.Service{Name: name, Contracts: []string{"hello"},
			Run:     service.Run{Command: []string{name}, Ready: "/ready", Health: "/ready"},
			Targets: []service.Target{{Name: "virtual", Mode: "virtual", Runtime: "native"}}})
	}
	return c
}

// wholeWish requests a run of the suite for services of a user.
func wholeWish(t *testing.T, suiteText string, names ...string) Wish {
	t.Helper()
	s, err := suite.Read("whole.yaml", []byte(suiteText))
	if err != nil {
		t.Fatal(err)
	}
	return Wish{Own: &Own{Suite: s, Services: helloServices(names...),
		Results: filepath.Join(t.TempDir(), "results")}}
}

// wholeRun is the outcome of a run.
type wholeRun struct {
	dir     string
	err     error
	head    *record.Run
	records []*record.Record
	lines   []string
	begun   int
}

func (w simulated) run(t *testing.T, wish Wish) (out wholeRun) {
	t.Helper()
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		heard := &beginner{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w.cancel = cancel
		l := &Lab{Root: root, Cache: filepath.Join(root, "cache"), World: w, Tell: heard}
		out.dir, out.err = l.Run(ctx, wish)
		out.lines, out.begun = heard.lines, heard.begun
	})
	if out.dir != "" {
		head, records, bad, err := record.Read(out.dir)
		if err != nil || len(bad) > 0 {
			t.Fatal(err, bad)
		}
		out.head, out.records = &head, records
	}
	return out
}

// A run measures the targets that can run here, and names the others with the reason.
func TestWholeRun(t *testing.T) {
	check := func(w simulated, measured, skipped string) {
		t.Helper()
		wish := wholeWish(t, wholeSuite, "a", "b")
		got := w.run(t, wish)
		if got.err != nil {
			t.Fatal(got.err)
		}
		var names []string
		for _, r := range got.records {
			if r.Outcome == record.Measured {
				names = append(names, r.Target.Name)
			}
		}
		slices.Sort(names)
		text := ""
		for _, s := range got.head.Skipped {
			text += s.Target + ": " + s.Reason + "\n"
		}
		if strings.Join(names, " ") != measured || text != skipped || got.begun != 1 ||
			filepath.Dir(got.dir) != wish.Own.Results {
			t.Errorf("measured %q, skipped %q, in %s, said %q; want %q, %q", names, text, got.dir,
				got.lines, measured, skipped)
		}
	}
	check(simulated{}, "a b", "")
	check(simulated{lacks: map[string]string{"b": "gleam"}}, "a",
		"b: needs gleam (see services/b/README.md)\n")
}

// A run that cannot begin leaves no folder.
func TestRunThatCannotBegin(t *testing.T) {
	check := func(w simulated, change func(*Wish), want string) {
		t.Helper()
		wish := wholeWish(t, wholeSuite, "a", "b")
		change(&wish)
		got := w.run(t, wish)
		if got.dir != "" || got.err == nil || !strings.Contains(got.err.Error(), want) {
			t.Errorf("run in %q: %v, want %s", got.dir, got.err, want)
		}
		if entries, _ := os.ReadDir(wish.Own.Results); len(entries) > 0 {
			t.Errorf("the refused run left %v", entries)
		}
	}
	same := func(*Wish) {}
	check(simulated{lacks: map[string]string{"a": "gleam", "b": "roc"}}, same,
		"none of the suite's targets can run here; a: needs gleam")
	check(simulated{grade: record.Grading{Grade: record.Unfit}},
		func(w *Wish) { w.Host = record.Fit }, "refused to measure: the host is unfit")
	check(simulated{}, func(w *Wish) { w.Override.Targets = []string{"c"} }, `"c"`)
}

// A suite file that does not exist is an error that names the folder of suites.
func TestPlanOfNoFile(t *testing.T) {
	l := &Lab{Root: t.TempDir(), World: simulated{}, Tell: &listener{}}
	p, err := l.Plan(Wish{Suite: "missing.yaml"})
	if p != nil || err == nil || !strings.Contains(err.Error(), "suite files are in "+l.Root) {
		t.Errorf("plan %v, error %v", p, err)
	}
}

// TestAgents reads the list of agents, which a checkout may lack.
func TestAgents(t *testing.T) {
	root, _, _ := ours(t)
	if c, err := (&Lab{Root: root}).Agents(); err != nil || len(c.Agents) == 0 {
		t.Errorf("the agents of this checkout: %v, error %v", c, err)
	}
	l := &Lab{Root: t.TempDir()}
	if c, err := l.Agents(); err != nil || len(c.Agents) > 0 {
		t.Errorf("without a file: %v, error %v", c, err)
	}
	if err := os.Mkdir(filepath.Join(l.Root, "agents.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Agents(); err == nil || !strings.Contains(err.Error(), "read the list of") {
		t.Errorf("a folder instead of a file: error %v", err)
	}
}

// TestVisit starts the targets one after another. One that fails does not stop the next, and the
// hint follows all errors.
func TestVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simulated{ends: "b"}
		f := w.launcher()
		heard, seen := &listener{}, []string(nil)
		root := t.TempDir()
		v := Visitor{Lab: &Lab{Root: root, Cache: root, World: contained{w, f}, Tell: heard},
			Launcher: "docker", Of: helloServices("a", "b", "c"), Doing: "check", Hint: "the hint",
			Speak: func(*service.Service, netip.AddrPort) service.Speaker {
				return func(service.Dial) service.Asker {
					return pipeAsker{&http.Transport{DialContext: f.Dial, DisableKeepAlives: true}}
				}
			},
			See: func(_ context.Context, s Seen) error {
				seen = append(seen, s.Name)
				if s.Name == "c" {
					return errors.New("c is wrong")
				}
				return nil
			}}
		for _, s := range v.Of {
			s.Made = &service.Built{Images: map[string]string{"": "image:0"}}
		}
		err := fmt.Sprint(v.Visit(t.Context(), nil))
		if !slices.Equal(seen, []string{"a", "c"}) || !strings.HasPrefix(err, "check b: ") ||
			!strings.Contains(err, "no such program\ncheck c: c is wrong\nthe hint") {
			t.Errorf("seen %q, said %q, error %s", seen, heard.lines, err)
		}
	})
}

// TestResume continues an interrupted run, unless something has changed since.
func TestResume(t *testing.T) {
	wish := wholeWish(t, wholeSuite, "a", "b")
	polls := simulated{idle: record.IdlePolls}
	stopped := polls
	stopped.after = 1
	first := stopped.run(t, wish)
	if first.err == nil || len(first.records) != 1 ||
		first.records[0].Provenance.Idle != record.IdlePolls ||
		!strings.HasSuffix(first.err.Error(),
			"interrupted after 1 of 2 trials; continue with prony run --resume "+first.dir) {
		t.Fatalf("%d records, error %v", len(first.records), first.err)
	}
	wish.Resume = first.dir
	refuse := func(w simulated, change func(*Wish), want string) {
		t.Helper()
		other := wish
		change(&other)
		got := w.run(t, other)
		if got.err == nil || !strings.Contains(got.err.Error(), want) {
			t.Errorf("error %v, want %s", got.err, want)
		}
	}
	same := func(*Wish) {}
	refuse(polls, func(w *Wish) { w.Override.Idle = suite.IdleHalts },
		"have changed, so the trials would differ; start a new run with ")
	refuse(polls, func(w *Wish) { w.Override.Seed = new(uint64) },
		"have changed, so the trials would differ; start a new run with ")
	refuse(polls, func(w *Wish) { w.Version = "v2" }, "prony's version differs from that of "+
		"trial "+first.records[0].Trial+"; start a new run")
	rebuilt := polls
	rebuilt.hash = "1"
	refuse(rebuilt, same, "the artifact of "+first.records[0].Target.Name+" differs")
	refuse(simulated{}, same, "what idle cores do differs")
	second := polls.run(t, wish)
	if second.err != nil || len(second.records) != 2 || second.dir != first.dir ||
		len(second.head.Resumed) != 1 || second.head.Resumed[0].Trials != 1 ||
		!slices.Contains(second.lines, "1 of 2 trials are complete: the others run now") {
		t.Errorf("%d records, %+v, said %q, error %v", len(second.records), second.head,
			second.lines, second.err)
	}
	refuse(polls, same, "each of its 2 trials already has a record")
}

// The user's choice of halting cores prevails over what the machine permits.
func TestIdleCoresHalt(t *testing.T) {
	wish := wholeWish(t, wholeSuite, "a")
	wish.Override.Idle = suite.IdleHalts
	got := simulated{idle: record.IdlePolls}.run(t, wish)
	if got.err != nil || len(got.records) == 0 || got.records[0].Provenance.Idle != "" {
		t.Errorf("%d records, %v", len(got.records), got.err)
	}
}

// A run leaves out the launchers and load generators that do not work here.
func TestRunWithoutLaunchers(t *testing.T) {
	check := func(has []string, o suite.Override, measured, skipped, fails string) {
		t.Helper()
		wish := wholeWish(t, wholeSuite, "a")
		wish.Override = o
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		wish.Own.Services[0].Dir = dir
		got := simulated{has: has}.run(t, wish)
		if (got.err == nil) != (fails == "") ||
			got.err != nil && !strings.Contains(got.err.Error(), fails) {
			t.Errorf("%v, %+v: error %v, want %s", has, o, got.err, fails)
		}
		if got.err != nil {
			return
		}
		var rows []string
		for _, r := range got.records {
			rows = append(rows, table.RowName(r.Target))
		}
		slices.Sort(rows)
		text := ""
		for _, s := range got.head.Skipped {
			text += s.Target + ": " + s.Reason
		}
		if strings.Join(rows, ", ") != measured || text != skipped {
			t.Errorf("%v, %+v: measured %q, skipped %q; want %q, %q", has, o, rows, text, measured,
				skipped)
		}
	}
	both := suite.Override{Launchers: []string{"process", "docker"}}
	check([]string{"docker"}, both, "a, a in docker", "", "")
	check(nil, both, "a", "launcher docker: no engine responds", "")
	check(nil, suite.Override{Launchers: []string{"docker"}}, "", "",
		"none of the suite's launchers works here; launcher docker: no engine responds")
	tools := suite.Override{Drivers: []string{"prony", "wrk"}}
	check([]string{"wrk"}, tools, "a, a by wrk", "", "")
	check(nil, tools, "a", "driver wrk: it is not installed", "")
	check(nil, suite.Override{Drivers: []string{"wrk"}}, "", "",
		"none of the suite's load generators is installed; driver wrk: it is not installed")
}

// TestHere plans the targets that can run here, and all of them if there are none.
func TestHere(t *testing.T) {
	check := func(lacks map[string]string, want, said string) {
		t.Helper()
		heard := &listener{}
		l := &Lab{Root: t.TempDir(), World: simulated{lacks: lacks}, Tell: heard}
		p, err := l.Here(t.Context(), wholeWish(t, wholeSuite, "a", "b"))
		if err != nil {
			t.Fatal(err)
		}
		targets := p.Targets()
		slices.Sort(targets)
		if got := strings.Join(targets, " "); got != want || strings.Join(heard.lines, "") != said {
			t.Errorf("without %v: %s, said %q; want %s, %q", lacks, got, heard.lines, want, said)
		}
	}
	const missing = "targets left out because a tool is missing here: "
	check(nil, "a b", "")
	check(map[string]string{"a": "gleam"}, "b", missing+"a; the first one needs gleam (see "+
		"services/a/README.md)")
	check(map[string]string{"a": "gleam", "b": "roc"}, "a b", missing+"a, b; the first one needs "+
		"gleam (see services/a/README.md)")
}

// pipeAsker asks a service through pipes.
type pipeAsker struct{ *http.Transport }

func (a pipeAsker) Connect(ctx context.Context) error {
	c, err := a.DialContext(ctx, "tcp", "")
	if err == nil {
		err = c.Close()
	}
	return err
}

// contained is a simulated world with a launcher of containers.
type contained struct {
	simulated
	launcher launch.Launcher
}

func (c contained) Container(_ context.Context, name string, to *Launchers) error {
	to.By[name] = c.launcher
	return nil
}
