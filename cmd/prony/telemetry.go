package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"prony/internal/cli"
	"prony/internal/clock"
	"prony/internal/suite"
	"prony/internal/telemetry"
	"prony/internal/telemetry/home"
)

const telemetryAbout = `Telemetry is what a service tells about itself: traces, metrics, logs.
"prony run --telemetry" starts a home for it beside the run; "prony telemetry serve" is that home
alone, for whatever speaks OpenTelemetry's protocol.`

const serveAbout = `Serve takes in OTLP over gRPC and HTTP and Zipkin's v2 spans, keeps them below a
folder, and answers queries about them:

  metrics  in Prometheus' database, tsdb/; Prometheus' own query API is on the query port, so that
           Grafana (a Prometheus data source) and promtool can read it while it comes in
  traces   all are counted and become metrics; whole ones are kept of errors, of the slowest, of
           those that a load asked for, and a uniform sample: spans.ndjson
  logs     warnings and errors, those of kept traces, and a uniform sample: logs.ndjson
  counts   stats.json, and GET /prony/stats: received, refused, dropped and kept, by service

Point an SDK or an agent at it with OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318, or at
http://127.0.0.1:4317 for gRPC. What comes from the start to the end is one trial, called
served-TIME; prony traces, logs and query read it when it has ended: they take the folder as they
take a run's.

It takes no more than --memory: what comes too fast, too large or too slowly is refused with the
status that has exporters try again, and counted. It ends by Ctrl-C or SIGTERM and stores what it
has; killed, it goes on where it was when it is started on the same folder.

With --forward everything is sent to another OTLP endpoint as well, with --forward-only to that one
only. The first line of output, JSON, says where it listens.

The doors have neither passwords nor encryption, so they open to this machine only; --expose takes
other addresses. --listen opens all but the one for queries, where the lab gives its orders, to one
other address of this machine: that of a bridge, say, by which containers reach it.`

const serveExamples = `  prony telemetry serve --dir here
  prony telemetry serve --dir here --grpc 127.0.0.1:0 --http 127.0.0.1:0   # any free ports
  prony telemetry serve --dir here --forward http://127.0.0.1:14318
  curl 'http://127.0.0.1:9090/api/v1/query?query=up'`

// telemetryCmd is the home for what services tell.
func (a *app) telemetryCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "telemetry", Short: "Take in traces, metrics and logs, and answer queries about them",
		Long: telemetryAbout, Args: cli.Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.serveCmd())
	return c
}

func (a *app) serveCmd() *cobra.Command {
	var cfg home.Config
	memory := suite.Size(home.DefaultMemory)
	var listen string
	var expose, untilEnd bool
	c := &cobra.Command{
		Use: "serve --dir DIR", Short: "Be a home for OTLP, Zipkin and Prometheus queries",
		Long: serveAbout, Example: serveExamples, Args: cli.Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if cfg, err = listenOn(cfg, listen, c.Flags().Changed); err == nil {
				err = checkServe(cfg, memory, expose)
			}
			if err != nil {
				return cli.Usage(err)
			}
			cfg.MemoryBytes = int64(memory)
			ctx := c.Context()
			if untilEnd {
				var stop context.CancelFunc
				ctx, stop = untilEOF(ctx, os.Stdin)
				defer stop()
			}
			return a.serveTelemetry(ctx, cfg, !untilEnd)
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.Dir, "dir", "", "folder to keep everything in; made if it is not there")
	f.StringVar(&cfg.GRPC, "grpc", "127.0.0.1:4317", "where OTLP over gRPC is taken in")
	f.StringVar(&cfg.HTTP, "http", "127.0.0.1:4318", "where OTLP over HTTP is taken in")
	f.StringVar(&cfg.Zipkin, "zipkin", "127.0.0.1:9411", "where Zipkin's v2 spans are taken in")
	f.StringVar(&cfg.Query, "query", "127.0.0.1:9090", "where queries are answered")
	f.StringVar(&listen, "listen", "", "this machine's address for gRPC, HTTP and Zipkin, where "+
		"those do not say theirs; one that others can reach takes --expose, too")
	f.StringVar(&cfg.Forward, "forward", "", "send everything to this OTLP endpoint, too: "+
		"http://HOST:4318, https://HOST, grpc://HOST:4317 or grpcs://HOST")
	f.BoolVar(&cfg.ForwardOnly, "forward-only", false, "keep nothing here but counts")
	f.TextVar(&memory, "memory", memory, "memory that it may take")
	f.BoolVar(&expose, "expose", false, "allow addresses that others can reach")
	f.BoolVar(&untilEnd, "until-stdin-ends", false, "end when standard input does, as a child of "+
		"a run")
	return c
}

// listenOn moves the doors that were not given an address to a host's; their ports stay. Who asks
// for that has to say which address it is: senders are told it.
func listenOn(cfg home.Config, host string, given func(flag string) bool) (home.Config, error) {
	if host == "" {
		return cfg, nil
	}
	ip := net.ParseIP(host)
	if ip == nil || ip.IsUnspecified() {
		return cfg, fmt.Errorf("serve telemetry: --listen %s: want one address of this machine, "+
			"as senders are told to send there; ip address lists them", host)
	}
	for _, at := range []struct {
		flag    string
		address *string
	}{{"grpc", &cfg.GRPC}, {"http", &cfg.HTTP}, {"zipkin", &cfg.Zipkin}} {
		_, port, err := net.SplitHostPort(*at.address)
		if err == nil && !given(at.flag) {
			*at.address = net.JoinHostPort(host, port)
		}
	}
	return cfg, nil
}

func checkServe(cfg home.Config, memory suite.Size, expose bool) error {
	const least = suite.Size(128 << 20)
	switch {
	case cfg.Dir == "":
		return fmt.Errorf("serve telemetry: name a folder to keep things in with --dir")
	case memory < least:
		return fmt.Errorf("serve telemetry: --memory %v is too little, give it %v", memory, least)
	case cfg.ForwardOnly && cfg.Forward == "":
		return fmt.Errorf("serve telemetry: --forward-only needs a --forward")
	}
	for _, at := range []struct{ flag, address string }{
		{"--grpc", cfg.GRPC}, {"--http", cfg.HTTP}, {"--zipkin", cfg.Zipkin},
		{"--query", cfg.Query},
	} {
		host, port, err := net.SplitHostPort(at.address)
		if err != nil {
			return fmt.Errorf("serve telemetry: %s %q: want HOST:PORT, as in 127.0.0.1:4318",
				at.flag, at.address)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil {
			return fmt.Errorf("serve telemetry: %s %q: port %q is no number from 0 to 65535",
				at.flag, at.address, port)
		} else if !expose && !loopback(host) {
			return fmt.Errorf("serve telemetry: %s %s: others could reach it and send or read "+
				"what they like; use 127.0.0.1:%d, or say --expose", at.flag, at.address, n)
		}
	}
	return nil
}

// oneTrial makes one trial of a home's whole life, since only a trial has traces and logs that are
// kept whole, and returns how to end it. The home says itself what it cannot do.
func oneTrial(ctx context.Context, query string) (end func()) {
	client := telemetry.NewClient(query)
	now := clock.Wall()
	name := "served-" + now.Format("2006-01-02T15-04-05Z")
	err := client.Begin(ctx, telemetry.Trial{Run: "served", ID: name, Target: name})
	if err != nil {
		return client.Close // it is in the home's own counts
	}
	client.Mark(telemetry.Mark{Trial: name, Kind: telemetry.Open, Name: "all",
		WallNs: now.UnixNano()})
	return func() {
		client.End(context.WithoutCancel(ctx))
		client.Close()
	}
}

// loopback says whether a host's address is reached from this machine alone.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// untilEOF ends the context when nobody holds the other end of a stream any more: a parent that
// dies cannot say so itself.
func untilEOF(ctx context.Context, from io.Reader) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, from) // an error is an end, too
		stop()
	}()
	return ctx, stop
}

func (a *app) serveTelemetry(ctx context.Context, cfg home.Config, alone bool) error {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return fmt.Errorf("serve telemetry: %w", err)
	}
	cfg.Dir = dir
	h, err := home.Start(ctx, cfg)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(a.stdout).Encode(h.Endpoints()); err != nil {
		fmt.Fprintf(a.stderr, "prony: tell where telemetry is taken in: %v\n", err)
	}
	at := h.Endpoints()
	fmt.Fprintf(a.stderr, "OTLP on %s (gRPC) and %s (HTTP), Zipkin on %s, queries on http://%s; "+
		"kept in %s\n", at.GRPC, at.HTTP, at.Zipkin, at.Query, dir)
	var whole func()
	if alone {
		whole = oneTrial(ctx, at.Query)
	}
	failed := h.Wait(ctx)
	if alone {
		whole()
	}
	if err := h.Close(context.WithoutCancel(ctx)); err != nil {
		fmt.Fprintf(a.stderr, "prony: end the home of telemetry: %v\n", err)
	}
	return failed
}
