package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony/internal/host"
	"prony/internal/load"
	"prony/internal/pace"
	"prony/internal/result"
	"prony/internal/stats"
	"prony/internal/table"
	"prony/internal/truth"
	"prony/internal/verdict"
)

type loadFlags struct {
	connections int
	rate        float64
	arrivals    string
	duration    time.Duration
	lead        time.Duration
	timeout     time.Duration
	method      string
	body        string
	keys        string
	status      int
	want        string
	cores       []int
	seed        uint64
	asJSON      bool
}

func (a *app) loadCmd() *cobra.Command {
	f := &loadFlags{}
	c := &cobra.Command{
		Use: "load URL", Short: "Load a server and say what it answered", Args: arguments(1, 1),
		Long: `Load offers requests to a server. Without --rate the model is closed: each
connection sends its next request when the last was answered, which finds the peak throughput. With
--rate it is open: requests are due on a schedule, whatever the answers do, and response time
counts from when each was due. Only the open model says what users would have waited.

{key} in the URL is replaced by a number drawn anew for each request from --keys.`,
		Example: `  prony load http://127.0.0.1:8080/hello --connections 64 --duration 10s
  prony load http://127.0.0.1:8080/hello --rate 5000
  prony load 'http://127.0.0.1:8080/hello/virtual?key={key}' --keys 1-50000 --rate 2000`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.load(c.Context(), args[0], f, c.Flags().Changed("want"))
		},
	}
	fs := c.Flags()
	fs.IntVarP(&f.connections, "connections", "c", 64, "connections")
	fs.Float64VarP(&f.rate, "rate", "r", 0, "requests a second, open model; 0: closed model")
	fs.StringVar(&f.arrivals, "arrivals", pace.Poisson, "of the open model: poisson or constant")
	fs.DurationVarP(&f.duration, "duration", "d", 10*time.Second, "length of the window")
	fs.DurationVar(&f.lead, "lead", 500*time.Millisecond, "offered before the window, not counted")
	fs.DurationVar(&f.timeout, "timeout", 5*time.Second, "of a request")
	fs.StringVarP(&f.method, "method", "X", "GET", "method")
	fs.StringVar(&f.body, "body", "", "body of each request")
	fs.StringVar(&f.keys, "keys", "1-1", "range that {key} is drawn from, as 1-50000")
	fs.IntVar(&f.status, "status", 200, "status of a good answer")
	fs.StringVar(&f.want, "want", "", "body of a good answer, byte for byte (default: any)")
	fs.IntSliceVar(&f.cores, "cores", nil,
		"a load thread on each of these cores (default: one thread, not pinned)")
	fs.Uint64Var(&f.seed, "seed", 1, "of arrivals and keys")
	fs.BoolVar(&f.asJSON, "json", false, "print the whole record of the load as JSON")
	return c
}

func (a *app) load(ctx context.Context, target string, f *loadFlags, checkBody bool) error {
	s, err := f.spec(ctx, target, checkBody)
	if err != nil {
		return usageError{err}
	}
	// More connections than the soft limit allows are common; failing to raise it shows as an error
	// of the connections that lack a socket.
	_, _ = load.RaiseFiles()
	res, err := generator{}.Offer(ctx, s)
	if err != nil {
		return err
	}
	rec := &result.Record{
		Outcome: result.Measured, Loads: []result.Load{res.Load},
		Warmup: result.Warmup{Steady: true}, // there was none to judge
	}
	rec.Verdict = verdict.Judge(rec)
	if f.asJSON {
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(map[string]any{"load": res.Load, "verdict": rec.Verdict})
	} else {
		a.printLoad(&res.Load, rec.Verdict)
	}
	if err == nil && rec.Verdict.Grade == result.Invalid {
		return &exitCode{exitInvalid, "the load is INVALID"}
	}
	return err
}

func (f *loadFlags) spec(ctx context.Context, target string, checkBody bool) (load.Spec, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" {
		return load.Spec{}, fmt.Errorf("load %q: want a URL such as http://127.0.0.1:8080/path", target)
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	addr, err := resolve(ctx, u.Hostname(), port)
	if err != nil {
		return load.Spec{}, err
	}
	s := load.Spec{
		Name: "load", Address: addr, Host: u.Host, Model: load.Closed, Connections: f.connections,
		Seed: f.seed, Lead: f.lead, Window: f.duration, Drain: f.timeout, Timeout: f.timeout,
	}
	// The path as it was typed: braces and all.
	_, rest, _ := strings.Cut(target, "://")
	path := "/"
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		path = rest[i:]
	}
	s.Scenario.Requests = []load.Request{{
		Method: f.method, Path: path, Body: f.body, Status: f.status,
		Want: f.want, HasWant: checkBody, WantSize: -1,
	}}
	lo, hi, ok := strings.Cut(f.keys, "-")
	if s.Scenario.KeyLo, err = strconv.ParseUint(lo, 10, 64); err == nil && ok {
		s.Scenario.KeyHi, err = strconv.ParseUint(hi, 10, 64)
	}
	if err != nil || !ok {
		return load.Spec{}, fmt.Errorf("keys %q: want a range such as 1-50000", f.keys)
	}
	if f.rate != 0 {
		s.Model = load.Open
		s.Schedule = pace.Schedule{Arrivals: f.arrivals, Rate: pace.Flat(f.rate)}
	}
	s.Cores = f.cores
	return s, checkCores(f.cores)
}

func checkCores(want []int) error {
	have, err := host.Cores()
	if err != nil {
		return err
	}
	for _, c := range want {
		if !slices.Contains(have, c) {
			return fmt.Errorf("core %d is not one of %v, which this process may use", c, have)
		}
	}
	return nil
}

func resolve(ctx context.Context, name, port string) (netip.AddrPort, error) {
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil || len(ips) == 0 {
		return netip.AddrPort{}, fmt.Errorf("resolve %s: %w", name, err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("port %q is not a number up to 65535", port)
	}
	best := ips[0]
	for _, ip := range ips {
		if ip.Unmap().Is4() {
			best = ip.Unmap()
			break
		}
	}
	return netip.AddrPortFrom(best, uint16(n)), nil
}

// printLoad says what a load came to, for people.
func (a *app) printLoad(l *result.Load, v result.Verdict) {
	w := a.stdout
	if l.Model == load.Open {
		fmt.Fprintf(w, "open, %s at %s/s over %d connections for %v\n", l.Arrivals,
			table.Rate(l.RatePerS), l.Connections, time.Duration(l.WindowNs))
	} else {
		fmt.Fprintf(w, "closed, %d connections for %v\n", l.Connections, time.Duration(l.WindowNs))
	}
	fmt.Fprintf(w, "\n  throughput   %s requests/s ", table.Rate(l.ThroughputPerS))
	fmt.Fprintf(w, "(of %d requests %d answered well, %d failed, %d unanswered)\n",
		l.Scheduled, l.Answered, l.Errors.Total(), l.Censored)
	printDist(w, "response", &l.ResponseTime)
	if l.Model == load.Open {
		printDist(w, "service", &l.ServiceTime)
		printDist(w, "lag", &l.Lag)
	}
	printDist(w, "connect", &l.ConnectTime)
	if l.Errors.Total() > 0 {
		e := l.Errors
		fmt.Fprintf(w, "  errors       connect %d, write %d, read %d, timeout %d, parse %d, ",
			e.Connect, e.Write, e.Read, e.Timeout, e.Parse)
		fmt.Fprintf(w, "status %d, body %d\n", e.Status, e.Body)
		fmt.Fprintf(w, "               first: %s\n", e.Example)
	}
	g := l.Generator
	fmt.Fprintf(w, "  generator    %s, %.2f µs of CPU a request, busiest thread %.0f %%, ",
		g.Engine, g.CPUPerRequestNs/1e3, 100*g.CPUShare)
	fmt.Fprintf(w, "pacing %s\n", g.Pacing)
	fmt.Fprintf(w, "\n%s\n", v.Grade)
	for _, f := range v.Findings {
		fmt.Fprintf(w, "  %s: %s (limit %s): %s\n", f.Rule, f.Observed, f.Limit, f.Hint)
	}
}

func printDist(w interface{ Write([]byte) (int, error) }, name string, d *result.Dist) {
	if d.Count == 0 {
		return
	}
	fmt.Fprintf(w, "  %-12s", name)
	for _, q := range []struct {
		name  string
		share float64
		ns    int64
	}{
		{"p50", 0.5, d.P50Ns}, {"p90", 0.9, d.P90Ns},
		{"p99", 0.99, d.P99Ns}, {"p99.9", 0.999, d.P999Ns},
	} {
		text := table.Duration(float64(q.ns))
		if need := stats.QuantileNeeds(q.share, 0.95); d.Count < need {
			text = fmt.Sprintf("– (needs n ≥ %s)", table.Count(need))
		}
		fmt.Fprintf(w, "  %s %s", q.name, text)
	}
	fmt.Fprintf(w, "  max %s\n", table.Duration(float64(d.MaxNs)))
}

// nullCmd is the server that the generator is calibrated against.
func (a *app) nullCmd() *cobra.Command {
	return &cobra.Command{
		Use: "null PORT", Short: "Serve the same few bytes as cheaply as one thread can",
		Args: arguments(1, 1), Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", args[0]))
			if err != nil {
				return fmt.Errorf("serve null: %w", err)
			}
			defer l.Close()
			fmt.Fprintf(os.Stderr, "null server on %s\n", l.Addr())
			return truth.Null(c.Context(), l.(*net.TCPListener), []byte(
				"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"))
		},
	}
}
