package collector_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/strangers"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/telemetry"
)

// asker sends requests to one port of a collector.
type asker struct {
	ask   func(context.Context) error
	dials *atomic.Int64
	close func()
}

// request returns an asker of an HTTP request, whose connection stays open between requests.
func request(method, url, body string, header ...string) *asker {
	dials := &atomic.Int64{}
	transport := &http.Transport{DialContext: counted(dials)}
	ask := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		if err != nil {
			return err
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		res, err := transport.RoundTrip(r)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if res.StatusCode >= http.StatusBadRequest {
			return fmt.Errorf("%s: %s", res.Status, text)
		}
		return err
	}
	return &asker{ask, dials, transport.CloseIdleConnections}
}

func counted(dials *atomic.Int64) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		dials.Add(1)
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}
}

// export returns an asker of an export over gRPC.
func export(t *testing.T, address string) *asker {
	t.Helper()
	dials := &atomic.Int64{}
	dial := counted(dials)
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dial(ctx, "tcp", address)
		}))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context) error {
		d := plog.NewLogs()
		d.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().
			SetStr("a line")
		_, err := plogotlp.NewGRPCClient(conn).Export(ctx, plogotlp.NewExportRequestFromLogs(d))
		return err
	}
	return &asker{ask, dials, func() { conn.Close() }}
}

// entrance is a port of a collector: what hostile clients send there, and a request that must be
// answered.
type entrance struct {
	name               string
	address            func(telemetry.Endpoints) string
	beginning, invalid string
	asker              func(*testing.T, *telemetry.Child) *asker
	forgets            bool // requests make no client known
}

func entrances() []entrance {
	const greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	const head = "GET /elsewhere HTTP/1.1\r\nHost: localhost\r\n"
	const kind, jason = "Content-Type", "application/json"
	web := func(t telemetry.Endpoints) string { return t.HTTP }
	query := func(t telemetry.Endpoints) string { return t.Query }
	return []entrance{
		{name: "OTLP/gRPC", address: func(e telemetry.Endpoints) string { return e.GRPC },
			beginning: greeting[:20], invalid: greeting,
			asker: func(t *testing.T, c *telemetry.Child) *asker {
				t.Helper()
				return export(t, c.Endpoints().GRPC)
			}},
		{name: "OTLP/HTTP", address: web, beginning: head, invalid: head + "\r\n",
			asker: func(_ *testing.T, c *telemetry.Child) *asker {
				return request("POST", "http://"+c.Endpoints().HTTP+"/v1/traces",
					spanJSON(trial.ID, 1, clock.Wall().UnixNano()), kind, jason)
			}},
		{name: "Zipkin", address: func(e telemetry.Endpoints) string { return e.Zipkin },
			beginning: head, invalid: head + "\r\n",
			asker: func(_ *testing.T, c *telemetry.Child) *asker {
				return request("POST", "http://"+c.Endpoints().Zipkin+"/api/v2/spans",
					`[{"traceId":"5b8efff798038103","id":"eee19b7ec3c1b174"}]`, kind, jason)
			}},
		{name: "query", address: query, beginning: head, invalid: head + "\r\n",
			asker: func(_ *testing.T, c *telemetry.Child) *asker {
				return request("POST", "http://"+c.Endpoints().Query+"/prony/scrape",
					`{"id":"`+trial.ID+`"}`, kind, jason,
					"Authorization", telemetry.Bearer+c.Token())
			}},
		{name: "query", address: query, beginning: head, invalid: head + "\r\n", forgets: true,
			asker: func(_ *testing.T, c *telemetry.Child) *asker {
				return request("GET", "http://"+c.Endpoints().Query+"/api/v1/labels", "")
			}},
	}
}

// crowded starts a collector with a trial, and a known client of a port, which hostile clients then
// hold connections to.
func crowded(t *testing.T, e *entrance, n int, again time.Duration) (c *telemetry.Child, dir string,
	known *asker, others *strangers.Crowd) {
	t.Helper()
	dir = t.TempDir()
	c = launched(t, telemetry.LaunchSpec{Dir: dir})
	client := telemetry.NewClient(c.Endpoints().Query, c.Token())
	defer client.Close()
	if err := client.Begin(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	known = e.asker(t, c)
	t.Cleanup(known.close)
	if err := known.ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	others = &strangers.Crowd{Address: e.address(c.Endpoints()), Beginning: e.beginning,
		Invalid: e.invalid, Again: again}
	others.Gather(t, n)
	return c, dir, known, others
}

// askNew sends a request on a connection of its own, up to three times, as a client does at a busy
// moment.
func askNew(t *testing.T, e *entrance, c *telemetry.Child) error {
	t.Helper()
	var errs []error
	for range 3 {
		a := e.asker(t, c)
		err := a.ask(t.Context())
		a.close()
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Clients that hold connections and send nothing valid shut out no other client of any port, do not
// close the connection of a known one, and are reported in one line.
func TestCrowd(t *testing.T) {
	testsets.Live(t)
	const hostile, most = 1300, 1024
	strangers.NeedFiles(t, 8*most)
	for _, e := range entrances() {
		name := e.name
		if e.forgets {
			name += " without token"
		}
		t.Run(name, func(t *testing.T) {
			c, dir, known, others := crowded(t, &e, hostile, 0)
			for range 5 {
				if err := askNew(t, &e, c); err != nil {
					t.Error(err)
				}
			}
			if err := known.ask(t.Context()); err != nil {
				t.Error(err)
			}
			if n := known.dials.Load(); n != 1 && !e.forgets {
				t.Errorf("the known client connected %d times", n)
			}
			until(t, func() bool { return others.Closed() >= hostile-most })
			if err := c.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			log := strings.Join(c.Log(1000), "\n")
			lines := regexp.MustCompile(`(?m)^prony: closed (\d+) connections to the `+e.name+
				` port without a valid request$`).FindAllStringSubmatch(log, -1)
			// Two if the first ones were reported while it ran.
			if len(lines) < 1 || len(lines) > 2 || strings.Count(log, "closed") != len(lines) {
				t.Fatalf("it said %q", log)
			}
			sum := 0
			for _, line := range lines {
				n, _ := strconv.Atoi(line[1])
				sum += n
			}
			if sum < hostile-most || sum > hostile+10 {
				t.Errorf("it reported %d of %d", sum, hostile)
			}
			if got := stats(t, dir).Odd.Closed; got != int64(sum) {
				t.Errorf("it counted %d closed connections, and reported %d", got, sum)
			}
		})
	}
}

// With 10,000 hostile clients of a port, each of which comes again, requests are answered within
// 200 ms at the median and 1 s at most, with less than 300 MB of memory.
func TestLargeCrowd(t *testing.T) {
	testsets.Long(t, "the collector with 10,000 hostile clients", testsets.Needs{})
	testsets.Measured(t)
	const hostile = 10_000
	strangers.NeedFiles(t, hostile)
	for _, e := range entrances() {
		name := e.name
		if e.forgets {
			name += " without token"
		}
		t.Run(name, func(t *testing.T) {
			c, _, known, others := crowded(t, &e, hostile, 5*time.Second)
			var took []time.Duration
			for range 200 {
				began := time.Now()
				if err := askNew(t, &e, c); err != nil {
					t.Fatal(err)
				}
				took = append(took, time.Since(began))
				time.Sleep(50 * time.Millisecond)
			}
			if err := known.ask(t.Context()); err != nil {
				t.Error(err)
			}
			if n := known.dials.Load(); n != 1 && !e.forgets {
				t.Errorf("the known client connected %d times", n)
			}
			slices.Sort(took)
			median, last := took[len(took)/2], took[len(took)-1]
			peak := strangers.PeakMemory(t, c.PID())
			t.Logf("median %v, at most %v, %d MB, %d connections closed", median, last, peak/1e6,
				others.Closed())
			if median > 200*time.Millisecond || last > time.Second || peak > 300e6 {
				t.Errorf("median %v, at most %v, %d MB", median, last, peak/1e6)
			}
		})
	}
}
