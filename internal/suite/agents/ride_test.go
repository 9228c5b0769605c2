package agents_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch/process"
	"prony.example/internal/service"
	"prony.example/internal/suite/agents"
	"prony.example/internal/trial/processes"
)

func TestMain(m *testing.M) {
	os.Exit(m.Run())
}

const checkout = "../../.."

// riders are the targets with which agents are tested, by runtime: the first at the telling levels,
// or at every level if allLevels is set in the environment, the others at the highest.
var riders = map[string][]string{
	"jvm":     {"java-spring/platform", "java-quarkus/virtual"},
	"node":    {"node-express", "node-fastify"},
	"cpython": {"python-flask", "python-fastapi", "python-django/platform"},
}

// single are the targets that get one core: uvicorn ends workers that take 5 s to start, as they do
// on a busy machine, and on one core it has none.
var single = []string{"python-fastapi"}

// allLevels takes a quarter of an hour. The telling levels send nothing, only requested traces, and
// everything; the levels between differ from them by a number.
const allLevels = "PRONY_ALL_LEVELS"

var telling = []string{"noop", "tagged", "full-logs"}

// Requests with a trace id, which every level but the lower ones must sample, and others, of which
// a share is sampled.
const (
	asked     = 20
	unnamed   = 200
	rideLimit = 8 * time.Minute
)

// Every agent that is available here, at every level, leaves the responses of a real service
// unchanged to the byte, and sends what its level promises.
func TestAgentsRide(t *testing.T) {
	testsets.Whole(t, "a real service with an agent")
	every := os.Getenv(testsets.Set) == testsets.Later
	catalog := declared(t)
	w := newWorkshop(t)
	for _, a := range catalog.Agents {
		if !every && a.Name != "otel-node" {
			continue
		}
		fetched, err := w.fetcher.Fetch(t.Context(), a)
		if errors.Is(err, agents.ErrMissing) {
			t.Logf("skipped %v", err)
			continue
		} else if err != nil {
			t.Error(err)
			continue
		}
		for i, target := range riders[a.Runtimes[0]] {
			for k, l := range a.Rungs() {
				ride := a.Variant(l)
				last := k == len(a.Rungs())-1
				first := os.Getenv(allLevels) != "" || slices.Contains(telling, l.Name)
				one := i == 0 && last
				if !last && (i > 0 || !first) || !every && !one {
					continue
				}
				remember := testsets.Long
				if a.Name == "otel-node" && one {
					remember = testsets.Once
				}
				if lacks := w.fetcher.Lacks(ride); len(lacks) > 0 {
					t.Logf("skipped %s: %s", ride.Name, strings.Join(lacks, "; "))
					continue
				}
				t.Run(ride.Name+" on "+strings.ReplaceAll(target, "/", "."), func(t *testing.T) {
					w.ride(t, remember, ride, fetched, target)
				})
			}
		}
	}
}

// workshop builds and starts services of the checkout.
type workshop struct {
	tools    *service.Tools
	builder  *service.Builder
	fetcher  *agents.Fetcher
	services []*service.Service
}

func newWorkshop(t *testing.T) *workshop {
	root, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	services, err := service.Catalog(root)
	if err != nil {
		t.Log(err) // the broken ones do not matter here
	}
	tools := service.FindTools(t.Context())
	return &workshop{tools: tools, builder: &service.Builder{Root: root, Tools: tools},
		fetcher: agents.New(root, func(string) {}), services: services}
}

func (w *workshop) find(name string) (*service.Service, service.Target) {
	for _, s := range w.services {
		for _, t := range s.Targets {
			if s.Full(t) == name {
				return s, t
			}
		}
	}
	return nil, service.Target{}
}

// trip is one target that runs with an agent.
type trip struct {
	ride    agents.Ride
	fetched agents.Fetched
	name    string // of the target
	heard   *sink
	page    int    // port of the agent's page
	out     string // folder for its files
	log     string
}

// remembering is Once or Long.
type remembering func(testing.TB, string, testsets.Needs)

// ride starts a target with an agent and checks its responses and telemetry.
func (w *workshop) ride(t *testing.T, remember remembering, r agents.Ride, f agents.Fetched,
	name string) {
	s, target := w.find(name)
	if s == nil {
		t.Fatalf("there is no target %s", name)
	}
	if missing := w.tools.Missing(s, target); len(missing) > 0 {
		t.Skipf("%s: %s", name, strings.Join(missing, "; "))
	}
	remember(t, "real services with every agent", testsets.Needs{
		Files: []string{"agents.yaml", "agents", "services/" + s.Name},
		Facts: []string{fmt.Sprint(w.tools.Versions(), f)},
	})
	x := trip{ride: r, fetched: f, name: name, heard: newSink(t), page: port(t), out: t.TempDir(),
		log: filepath.Join(t.TempDir(), "service.log")}
	built, err := w.builder.Build(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), rideLimit)
	defer cancel()
	p := x.start(ctx, t, s, target, built)
	defer func() {
		if err := p.Stop(p.Grace()); err != nil {
			t.Error(err)
		}
		x.after(t)
		if t.Failed() {
			text, _ := os.ReadFile(x.log) // as much as can be read
			t.Logf("it wrote:\n%s", text[max(0, len(text)-8000):])
		}
	}()
	_, ready, err := service.WaitReady(ctx, nil, p.Addr().String(), s.Run.Ready, p.Began(),
		p.Exited())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %v", time.Duration(ready).Round(time.Millisecond))
	report, err := service.Conform(ctx, service.Checker{Base: p.Addr().String(), Mode: target.Mode,
		Logs: func() []string { return p.Log(10000) }}, "hello")
	if err != nil {
		t.Fatal(err)
	}
	for _, failure := range report.Failures() {
		t.Errorf("answers differ: %s", failure)
	}
	x.listen(ctx, t, fmt.Sprintf("http://%s/hello/%s?key=7", p.Addr(), target.Mode))
	if r.Scrape != "" {
		text := get(ctx, t, fmt.Sprintf("http://127.0.0.1:%d%s", x.page, r.Scrape), "")
		if !strings.Contains(text, "jvm_memory_used_bytes") {
			t.Errorf("the page has no jvm_memory_used_bytes:\n%.500s", text)
		}
		t.Logf("a page of %d bytes", len(text))
	}
}

// start launches the target as a trial would, with shorter delays: batches are sent sooner, so that
// the test is fast.
func (x trip) start(ctx context.Context, t *testing.T, s *service.Service, target service.Target,
	built *service.Built) *processes.System {
	t.Helper()
	env, resolved, err := x.ride.Own(os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(env, resolved)
	if x.ride.Name != "again" {
		env["OTEL_BSP_SCHEDULE_DELAY"], env["OTEL_BLRP_SCHEDULE_DELAY"] = "100", "100"
		env["OTEL_METRIC_EXPORT_INTERVAL"], env["OTEL_METRIC_EXPORT_TIMEOUT"] = "500", "500"
		env["PYROSCOPE_UPLOAD_INTERVAL"] = "1s"
	}
	cores := 2.0 // so that services fork, or start, workers
	if slices.Contains(single, x.name) {
		cores = 1
	}
	p, err := processes.Starter{
		Launcher: &process.Launcher{},
		Port:     free,
	}.Start(
		ctx,
		processes.Order{
			Name: "agent", Service: s, Target: target, Built: built, LogFile: x.log,
			Values: service.Values{
				CPUs:         cores,
				MemoryBytes:  1 << 30,
				Env:          env,
				Append:       s.Brief(target),
				MetricsPorts: []int{x.page},
				Words: map[string]string{"agent": x.fetched.Path, "files": x.fetched.Files,
					"otlpGrpc": x.heard.grpc, "otlpHttp": x.heard.http, "zipkin": x.heard.http,
					"run": "run", "trial": "trial", "target": x.name, "variant": x.ride.Name,
					"out": x.out, "metricsHost": "127.0.0.1"},
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// listen sends requests and compares the received telemetry with the level.
func (x trip) listen(ctx context.Context, t *testing.T, url string) {
	r, h := x.ride, x.heard
	if !strings.HasPrefix(r.Name, "otel-") {
		get(ctx, t, url, "")
		return
	}
	for range unnamed {
		get(ctx, t, url, "")
	}
	ids := make([]string, asked)
	for i := range ids {
		ids[i] = fmt.Sprintf("%030x%02x", 0xabc, i+1)
		get(ctx, t, url, "00-"+ids[i]+"-00000000000000aa-01")
	}
	traced := func() (n int) {
		for _, id := range ids {
			if h.of("trace "+id) > 0 {
				n++
			}
		}
		return n
	}
	level := r.Name[strings.Index(r.Name, "/")+1:]
	all := slices.Contains([]string{"full", "full-logs"}, level)
	some := all || level == "tagged" || strings.HasPrefix(level, "sampled-")
	limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	defer func() {
		t.Logf("spans %d, of servers %d; %d of %d named traces; metrics %d times; logs %d",
			h.of("spans"), h.of("server spans"), traced(), len(ids), h.of("metrics"), h.of("logs"))
	}()
	if level == "disabled" || level == "noop" {
		return // data may arrive only after its end
	}
	before := h.of("metrics")
	if !h.await(limited, func() bool { return h.of("metrics") >= before+2 }) {
		t.Error("no metrics came")
	}
	switch {
	case all && !h.await(limited, func() bool {
		return h.of("server spans") >= unnamed+asked && traced() == len(ids)
	}):
		t.Errorf("%d spans of servers, want one for each of %d requests", h.of("server spans"),
			unnamed+asked)
	case some && !h.await(limited, func() bool { return traced() == len(ids) }):
		t.Errorf("%d of %d traces that a caller named", traced(), len(ids))
	case level == "tagged" && h.of("server spans") > len(ids):
		t.Errorf("%d spans of servers, want one for each of %d named traces", h.of("server spans"),
			len(ids))
	case some && !all && h.of("server spans") > unnamed/2:
		// Of 200 requests and those of the contract's check, a tenth: more than 100 never arrive.
		t.Errorf("%d spans of servers, want a share of %d", h.of("server spans"), unnamed)
	}
	if h.of("service.name "+x.name) == 0 || h.of("prony.trial trial") == 0 {
		t.Error("what came is of another service or trial")
	}
}

// after checks data that arrives only when the service has ended.
func (x trip) after(t *testing.T) {
	r, h := x.ride, x.heard
	level := r.Name[strings.Index(r.Name, "/")+1:]
	if slices.Contains([]string{"disabled", "noop", "unsampled"}, level) && h.of("spans") > 0 {
		t.Errorf("%d spans, want none", h.of("spans"))
	}
	if slices.Contains([]string{"disabled", "noop"}, level) && h.of("metrics") > 0 {
		t.Errorf("metrics came %d times, want never", h.of("metrics"))
	}
	logging := level == "full-logs" || level == "tagged"
	if logs := h.of("logs"); !logging && logs > 0 {
		t.Errorf("%d lines of logs, want none", logs)
	}
	files, err := filepath.Glob(filepath.Join(x.out, "*.jfr"))
	if records := strings.Contains(fmt.Sprint(r.Env), "{out}"); records && len(files) == 0 {
		t.Errorf("it left no recording (%v)", err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Size() == 0 {
			t.Errorf("recording %s: %v, %v", filepath.Base(file), info, err)
		} else {
			t.Logf("a recording of %d bytes", info.Size())
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for what, n := range h.heard {
		if strings.HasPrefix(what, "HTTP ") || strings.HasPrefix(what, "service.name") {
			t.Logf("%s: %d", what, n)
		}
	}
}

func get(ctx context.Context, t *testing.T, url, traceparent string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if traceparent != "" {
		request.Header.Set("traceparent", traceparent)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v", url, response.Status, err)
	}
	return string(body)
}

func free() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func port(t *testing.T) int {
	t.Helper()
	p, err := free()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// declared returns the checkout's agents.yaml.
func declared(t *testing.T) *agents.Catalog {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(checkout, "agents.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := agents.Read("agents.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
