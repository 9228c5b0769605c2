package agents_test

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/service"
	"prony.example/internal/suite/agents"
	"prony.example/load"
	_ "prony.example/load/engine/nethttp"
	"prony.example/record"
)

// counting are targets that count the requests of the endpoint hello themselves, with the name of
// the counter, as OpenTelemetry has it. deploy's dashboard Services shows the counters.
var counting = []struct {
	target, counter string
	often           bool // in the second set; others of the same code are in the third
}{
	{"go-nethttp/otel", "hello.request.count", true},
	{"go-fiber/otel", "hello.request.count", false},
	{"rust-axum/otel", "hello.request.count", false},
	{"java-undertow/virtual", "spring.request.count", false},
	{"java-spring/virtual", "spring.request.count", true},
	{"java-springflux/reactive", "spring.request.count", false},
	{"java-quarkus/platform", "quarkus.request.count", false},
	{"java-quarkus/reactive", "quarkus.request.count", false},
}

// The generator's count of requests is the service's own, by endpoint.
func TestServicesCountRequests(t *testing.T) {
	testsets.Whole(t, "a real service with an agent")
	w := newWorkshop(t)
	for _, c := range counting {
		t.Run(strings.ReplaceAll(c.target, "/", "."), func(t *testing.T) {
			remember := testsets.Long
			if c.often {
				remember = testsets.Once
			}
			w.count(t, remember, c.target, c.counter)
		})
	}
}

// count sends a load of a number of requests to a target, ends the target, which makes it send its
// last metrics, and compares the counts.
func (w *workshop) count(t *testing.T, remember remembering, name, counter string) {
	s, target := w.find(name)
	if s == nil {
		t.Fatalf("there is no target %s", name)
	}
	if missing := w.tools.Missing(s, target); len(missing) > 0 {
		t.Skipf("%s: %s", name, strings.Join(missing, "; "))
	}
	remember(t, "the count of real services", testsets.Needs{
		Files: []string{"agents.yaml", "services/" + s.Name},
		Facts: []string{fmt.Sprint(w.tools.Versions())},
	})
	x := w.metering(t, target)
	x.name = name
	built, err := w.builder.Build(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), rideLimit)
	defer cancel()
	p := x.start(ctx, t, s, target, built)
	stop := func() error { return p.Stop(p.Grace()) }
	if _, _, err := service.WaitReady(ctx, nil, p.Addr().String(), s.Run.Ready, p.Began(),
		p.Exited()); err != nil {
		t.Fatal(err, stop())
	}
	path := "/hello/" + target.Mode
	r, err := load.Run(ctx, load.Spec{
		Address: netip.MustParseAddrPort(p.Addr().String()), Model: record.Closed, Connections: 2,
		Seed: 1, Requests: 3000, Window: rideLimit, Timeout: time.Minute,
		Scenario: load.Scenario{KeyLo: 1, KeyHi: 9, Requests: []load.Request{
			{Method: "GET", Path: path + "?key={key}", Want: "Hello from REST value-{key}",
				HasWant: true},
		}},
	})
	if err != nil {
		t.Fatal(err, stop())
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if r.Answered != 3000 || r.Errors.Total() != 0 {
		t.Fatalf("the load has %d answers and %d errors", r.Answered, r.Errors.Total())
	}
	if got := x.heard.counted(counter, path); got != r.Answered {
		t.Errorf("%s of %s is %d, and the load counts %d requests", counter, path, got, r.Answered)
	}
}

// metering returns a trip whose telemetry is metrics only: by the agent for a JVM, otherwise by the
// build of the target.
func (w *workshop) metering(t *testing.T, target service.Target) trip {
	x := trip{heard: newSink(t), page: port(t), out: t.TempDir(),
		log: filepath.Join(t.TempDir(), "service.log")}
	if target.Runtime != "jvm" {
		x.ride = agents.Ride{Env: map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://{otlpGrpc}",
			"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
			"OTEL_TRACES_EXPORTER":        "none",
			"OTEL_METRICS_EXPORTER":       "otlp",
			"OTEL_LOGS_EXPORTER":          "none",
		}}
		return x
	}
	a, level, err := declared(t).Find("otel-java/unsampled")
	if err != nil {
		t.Fatal(err)
	}
	x.ride = a.Variant(level)
	if x.fetched, err = w.fetcher.Fetch(t.Context(), a); err != nil {
		t.Skip(err)
	}
	return x
}
