package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"prony.example/internal/launch"
	"prony.example/internal/launch/fake"
	"prony.example/internal/launch/process"
	"prony.example/internal/observe/host"
	"prony.example/internal/observe/probe"
	"prony.example/internal/service"
	"prony.example/internal/suite/agents"
	"prony.example/internal/telemetry"
	"prony.example/internal/trial"
	"prony.example/internal/trial/doctor"
	"prony.example/internal/trial/lab"
	"prony.example/internal/trial/trialtest"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/load/pace"
	"prony.example/record"
)

// mock is a world in which nothing is real: it builds nothing, its services are handlers that keep
// the contract hello, and its load uses the time of the bubble.
type mock struct {
	lacks  string         // a service whose toolchain is missing
	broken string         // a service that cannot be built
	lying  string         // a service that gives wrong responses
	host   record.Grading // fit if empty

	interrupt time.Duration // time of Ctrl-C after the program's start; 0: never

	dockerless bool   // no engine responds
	inspected  string // output of docker inspect

	handed *[]string // receives the checkout and the arguments of the collector's program
}

func (mock) Enter() (*process.Journal, []string, error) { return nil, nil, nil }

func (mock) Share() (func() error, error) { return func() error { return nil }, nil }

func (m mock) Driver(string) (trial.Driver, error) {
	return nil, errors.New("it is not installed")
}

func (m mock) Missing(_ *service.Tools, s *service.Service, _ ...service.Target) []string {
	if s.Name == m.lacks {
		return []string{"needs unobtainium >= 1: not found"}
	}
	return nil
}

func (m mock) Build(_ context.Context, _ *service.Builder,
	s *service.Service) (*service.Built, error) {
	if s.Name == m.broken {
		return nil, fmt.Errorf("build %s: step 1: exit status 1", s.Name)
	}
	tool := service.Tool{Path: "/tool", Version: "1"}
	return &service.Built{
		Dir: "/", Hash: "0", SHA256: "0", SizeBytes: 1 << 20,
		Tools: map[string]service.Tool{"java": tool, "node": tool, "python": tool},
	}, nil
}

func (m mock) Container(_ context.Context, name string, to *lab.Launchers) error {
	if m.dockerless {
		return errors.New("no engine answers")
	}
	to.By[name] = nil // Lab sets it
	return nil
}

func (m mock) Docker(_ context.Context, out, _ io.Writer, args []string) error {
	if m.dockerless {
		return errors.New("the stack needs Docker")
	}
	switch {
	case slices.Contains(args, "--services"):
		fmt.Fprintln(out, "mimir\nalloy\ngrafana")
	case slices.Contains(args, "inspect"):
		fmt.Fprintln(out, m.inspected)
	case slices.Contains(args, "logs"):
		fmt.Fprintln(out, "bad key\nthe end")
	case slices.Contains(args, "ps"):
		fmt.Fprintln(out, `{"Service":"alloy","State":"running","Health":"healthy","Publishers":[`+
			`{"URL":"","PublishedPort":0},{"URL":"127.0.0.1","PublishedPort":4318}]}`)
		fmt.Fprintln(out, `{"Service":"mimir","State":"running","Health":""}`)
		fmt.Fprintln(out, `{"Service":"grafana","State":"running","Health":"healthy",`+
			`"Publishers":[{"URL":"10.0.0.5","PublishedPort":3000}]}`)
	}
	return nil
}

func (m mock) Reach(context.Context, string) error {
	if m.dockerless {
		return errors.New("connection refused")
	}
	return nil
}

func (m mock) Image(_ context.Context, _ *service.Builder, s *service.Service) (*service.Built,
	error) {
	if s.Name == m.broken {
		return nil, fmt.Errorf("build the image of %s: exit status 1", s.Name)
	}
	return &service.Built{Dir: "/", Hash: "0", SHA256: "1", SizeBytes: 1 << 21, ImageBytes: 1 << 21,
		Images: map[string]string{"": "prony/x:0"}, Front: "prony/x:0"}, nil
}

func (world mock) Lab(_ *process.Journal, by *lab.Launchers, l host.Layout, dir string,
	observe func(trial.Event)) *trial.Lab {
	m := &mockLoad{}
	f := &fake.Launcher{Note: func(string) {}}
	f.Start = func(s launch.Spec) (http.Handler, time.Duration, error) {
		m.target = s.Name
		mode := modeOf(s.Name)
		if world.lying != "" && strings.Contains(s.Name, world.lying) {
			mode = "nowhere"
		}
		return fake.Hello(mode), 20 * time.Millisecond, nil
	}
	for name := range by.By {
		by.By[name] = f
	}
	return &trial.Lab{
		Containers: by.By,
		Launcher:   f,
		Driver:     func(string, string, *nethttp.Config) (trial.Driver, error) { return m, nil },
		Dial:       f.Dial, Layout: l, Dir: dir, Observe: observe,
		Port: func() (int, error) { m.port++; return 8080 + m.port, nil },
		Watch: func(launch.Process, time.Duration) (trial.Watcher, error) {
			return &mockWatch{}, nil
		},
	}
}

func (mock) Fetch(context.Context, string, agents.Agent, func(string)) (trial.Ride, error) {
	return trial.Ride{}, nil
}

func (m mock) HandOver(_ context.Context, root string, args []string, _ func(string)) error {
	if m.handed != nil {
		*m.handed = append([]string{root}, args...)
	}
	return nil
}

func (mock) Home(context.Context, string, telemetry.LaunchSpec, func(string)) (trial.Home, []int,
	func() error, error) {
	return quietHome{}, nil, func() error { return nil }, nil
}

// quietHome is a collector that receives nothing.
type quietHome struct{}

func (quietHome) Endpoints() telemetry.Endpoints                { return telemetry.Endpoints{} }
func (quietHome) Begin(context.Context, telemetry.Trial) error  { return nil }
func (quietHome) Scrape(context.Context, telemetry.Trial) error { return nil }
func (quietHome) Mark(telemetry.Mark)                           {}
func (quietHome) End(context.Context) (r telemetry.Report)      { return r }

func (mock) Measure(ctx context.Context, lab *trial.Lab, e trial.Experiment, _ []int,
	_ func(string)) error {
	_, err := lab.Run(ctx, e)
	return err
}

func (mock) Idle(record.Provenance) string { return "" }

func (m mock) Examine(context.Context, doctor.Options) record.Grading {
	if m.host.Grade == "" {
		return record.Grading{Grade: record.Fit}
	}
	return m.host
}

// modeOf returns the mode of the target in a trial's name.
func modeOf(trial string) string {
	trial, _ = ownName(trial)
	switch {
	case strings.Contains(trial, "platform") || strings.Contains(trial, "flask"):
		return "platform"
	case strings.Contains(trial, "virtual") || strings.Contains(trial, "-go-"):
		return "virtual"
	}
	return "reactive"
}

// ownName splits a trial's name into the target and the mark of an arm or another checkout.
func ownName(trial string) (name, rest string) {
	name = strings.TrimSuffix(strings.TrimSuffix(trial, "-a"), "-b")
	name, _, _ = strings.Cut(name, "@")
	return name, trial[len(name):]
}

// mockLoad responds at the target's own rate, plus or minus a percent by trial.
type mockLoad struct {
	target string
	port   int // given last, above 8080
}

func (m *mockLoad) Offer(ctx context.Context, s load.Spec) (*load.Result, error) {
	of := uint64(0)
	name, rest := ownName(m.target)
	for _, c := range name[strings.LastIndexByte(name, '-')+1:] {
		of = 31*of + uint64(c)
	}
	rate := 10000 + 1000*float64(of%40) + 100*pace.Uniform(s.Seed, of+uint64(len(rest)))
	if strings.HasSuffix(rest, "b") {
		rate += 100 * pace.Uniform(s.Seed, of+1) // an arm's own noise
	}
	res, err := trialtest.Load{Rate: rate}.Offer(ctx, s)
	if err != nil || s.Trace.Share == 0 {
		return res, err
	}
	res.TraceShare = s.Trace.Share
	res.Traced = []record.Traced{{TraceID: "0123456789abcdef0123456789abcdef",
		Class: "slowest", ScheduledNs: 250e6, LagNs: 1e6, FirstByteNs: 7e6, ResponseNs: 9e6}}
	return res, nil
}

type mockWatch struct{ at int64 }

func (w *mockWatch) Mark() probe.Mark {
	w.at += 1e9
	return probe.Mark{TNs: w.at, Source: "proc"}
}
func (w *mockWatch) MarkPSS() probe.Mark               { return w.Mark() }
func (w *mockWatch) Series() probe.Series              { return probe.Series{} }
func (w *mockWatch) Roles() probe.Roles                { return probe.Roles{} }
func (w *mockWatch) Stop() (probe.Series, record.Cost) { return probe.Series{}, record.Cost{} }
