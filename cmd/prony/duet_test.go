package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/launch/fake"
	"prony.example/internal/launch/process"
	"prony.example/internal/observe/host"
	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/internal/trial/lab"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// duetMock is the mock world with room for two services at once.
type duetMock struct{ mock }

func (m duetMock) Lab(j *process.Journal, by *lab.Launchers, l host.Layout, dir string,
	observe func(trial.Event)) *trial.Lab {
	h := &hall{one: m.mock, at: map[string]*trial.Lab{}}
	own := m.mock.Lab(j, by, l, dir, observe)
	own.Launcher, own.Dial = h, h.dial
	own.Driver = func(string, string, *nethttp.Config) (trial.Driver, error) { return h, nil }
	ports := 0
	own.Port = func() (int, error) {
		ports++
		return 8000 + ports%10, nil
	}
	return own
}

// hall gives each service a mock lab of its own: found by its port, and by its first core.
type hall struct {
	one mock
	mu  sync.Mutex
	at  map[string]*trial.Lab
}

func (*hall) Listen() string { return "127.0.0.1" }

func (h *hall) Launch(ctx context.Context, s launch.Spec) (launch.Process, error) {
	own := h.one.Lab(nil, &lab.Launchers{}, host.Layout{}, "", nil)
	h.mu.Lock()
	words := strings.Join(append(s.Args, s.Env...), " ")
	h.at[words[strings.Index(words, "80"):][:4]] = own
	h.at[fmt.Sprint("core ", s.Cores[0])] = own
	h.mu.Unlock()
	return own.Launcher.(*fake.Launcher).Launch(ctx, s)
}

func (h *hall) find(name string) *trial.Lab {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at[name]
}

func (h *hall) dial(ctx context.Context, network, address string) (net.Conn, error) {
	own := h.find(address[len(address)-4:])
	if own == nil {
		return nil, fmt.Errorf("dial %s: connection refused", address)
	}
	return own.Dial(ctx, network, address)
}

// Offer implements trial.Driver. The sides share cores with their loads here.
func (h *hall) Offer(ctx context.Context, s load.Spec) (*load.Result, error) {
	start, err := s.Together(ctx)
	if err != nil {
		return nil, err
	}
	time.Sleep(time.Duration(start - clock.Mono()))
	by, err := h.find(fmt.Sprint("core ", s.Cores[0])).Driver("", "", nil)
	if err != nil {
		return nil, err
	}
	res, err := by.Offer(ctx, s)
	if err == nil && s.Watch == nil {
		res.OpenedNs = start + int64(s.Lead)
		n := int64(res.ThroughputPerS / 10)
		res.Series = record.Series{IntervalNs: 100e6, Done: []int64{n, n + n/10, n - n/10}}
	}
	return res, err
}

func TestRunDuets(t *testing.T) {
	if cores, err := host.Cores(); err != nil || len(cores) < 2 {
		t.Skip("skipped: a duet needs two cores")
	}
	root := checkout(t)
	var stdout, stderr string
	exit := 0
	synctest.Test(t, func(t *testing.T) {
		var out, errs bytes.Buffer
		exit = cli.Code(run(context.Background(), duetMock{}, []string{"run", "--root", root,
			"--duet=shared", "--targets", "go-nethttp,java-jdk/virtual", "--blocks", "3"},
			&out, &errs))
		stdout, stderr = out.String(), errs.String()
	})
	if exit != cli.Fine {
		t.Fatalf("exit %d:\n%s", exit, stderr)
	}
	has(t, "progress", stderr, "6 trials in 3", "duets, two targets at a time: left on cores [",
		"an odd number of passes", "--blocks 4 would not", "every trial is SUSPECT",
		"6/6 b3-06-java-jdk.virtual")
	report := strings.Join(strings.Fields(stdout), " ")
	has(t, "report", report, "Duets: trials ran two at a time",
		"java-jdk/virtual against go-nethttp, 3 duets, peak answers, windows of 100 ms",
		"takes 100 % of the noise away", "Left over right: ",
		"0 of 18 numbers VALID · 18 SUSPECT", "cores (e.g. both on core")
	if strings.Contains(report, "varies in limits") {
		t.Errorf("swapped sides are taken for a difference of method:\n%s", report)
	}
	dirs, err := filepath.Glob(filepath.Join(root, "results", "*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("results are %v", dirs)
	}
	head, records, bad, err := record.Read(dirs[0])
	if err != nil || len(bad) > 0 || len(records) != 6 || !head.Duet {
		t.Fatalf("%d records, duet %v, bad %v, error %v", len(records), head.Duet, bad, err)
	}
	for i, r := range records {
		other := records[i^1]
		if r.Duet == nil || r.Duet.With != other.Trial || r.Block != other.Block ||
			r.Duet.Side != []string{suite.Left, suite.Right}[i%2] || !r.Duet.Shared {
			t.Errorf("record %s: duet %+v beside %s", r.Trial, r.Duet, other.Trial)
		}
	}
}

func TestDuetMistakes(t *testing.T) {
	root := checkout(t)
	check := func(exit int, words string, args ...string) {
		t.Helper()
		_, stderr, got := say(t, mock{}, append([]string{"run", "--root", root}, args...)...)
		if got != exit || !strings.Contains(stderr, words) {
			t.Errorf("%q: exit %d, want %d; stderr %q, want %q", args, got, exit, stderr, words)
		}
	}
	check(cli.Misused, "name two targets with --targets", "--duet", "--targets", "rust-axum")
	check(cli.Misused, `"twice" is no way`, "--duet=twice")
}

func TestDuetsInThePlan(t *testing.T) {
	stdout, stderr, exit := say(t, mock{}, "plan", "--root", checkout(t), "--duet", "--targets",
		"go-nethttp,rust-axum", "--blocks", "2")
	if exit != cli.Fine {
		t.Fatalf("exit %d: %s", exit, stderr)
	}
	has(t, "plan", stdout, "4 trials in 2 passes of duets", "go-nethttp, left", "rust-axum, right",
		"rust-axum, left")
}

// What a run would leave out for want of a tool is in no trial and in no time of the plan, which
// says so.
func TestPlanLeavesOutWhatLacksATool(t *testing.T) {
	plan := func(world mock, targets string) (stdout, stderr string) {
		t.Helper()
		stdout, stderr, exit := say(t, world, "plan", "--root", checkout(t), "--targets", targets)
		if exit != cli.Fine {
			t.Errorf("exit %d: %s", exit, stderr)
		}
		return stdout, stderr
	}
	alone, _ := plan(mock{}, "rust-axum")
	got, says := plan(mock{lacks: "go-nethttp"}, "go-nethttp,rust-axum")
	if got != alone {
		t.Errorf("the plan is\n%s\nwant\n%s", got, alone)
	}
	has(t, "what it says", says, "left out, since a tool is missing here: go-nethttp; the first "+
		"needs unobtainium >= 1: not found (see services/go-nethttp/README.md)")
	whole, says := plan(mock{lacks: "go-nethttp"}, "go-nethttp")
	has(t, "the plan of nothing that can run", whole+says, "go-nethttp  cached read", "left out")
}
