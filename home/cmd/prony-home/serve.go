package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"path/filepath"

	"prony.example/home/collector"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/flags"
)

// serve runs a collector until it is told to end.
func (p *program) serve(ctx context.Context, s flags.Serve) error {
	if s.UntilEnd {
		var stop context.CancelFunc
		ctx, stop = cli.UntilEnd(ctx, p.stdin)
		defer stop()
	}
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return fmt.Errorf("serve telemetry: %w", err)
	}
	token := rand.Text()
	h, err := collector.Start(ctx, collector.Config{Token: token,
		Dir: dir, GRPC: s.GRPC, HTTP: s.HTTP, Zipkin: s.Zipkin, Query: s.Query,
		Forward: s.Forward, ForwardOnly: s.ForwardOnly, MemoryBytes: int64(s.Memory),
		Report: p.report,
	})
	if err != nil {
		return err
	}
	word := telemetry.Word{Endpoints: h.Endpoints()}
	if s.UntilEnd { // the reader is prony
		word.Token = token
	}
	if err := json.NewEncoder(p.stdout).Encode(word); err != nil {
		fmt.Fprintf(p.stderr, "prony: report the collector's addresses: %v\n", err)
	}
	at := h.Endpoints()
	fmt.Fprintf(p.stderr, "OTLP on %s (gRPC) and %s (HTTP), Zipkin on %s, queries on http://%s; "+
		"stored in %s\n", at.GRPC, at.HTTP, at.Zipkin, at.Query, dir)
	var whole func()
	if !s.UntilEnd {
		if err := h.EndEarlier(ctx); err != nil {
			fmt.Fprintf(p.stderr, "prony: store what an earlier collector left: %v\n", err)
		}
		whole = oneTrial(ctx, at.Query, token)
	}
	failed := h.Wait(ctx)
	if whole != nil {
		whole()
	}
	if err := h.Close(context.WithoutCancel(ctx)); err != nil {
		fmt.Fprintf(p.stderr, "prony: end the telemetry collector: %v\n", err)
	}
	return failed
}

// report prints a message.
func (p *program) report(line string) { fmt.Fprintf(p.stderr, "prony: %s\n", line) }

// oneTrial declares the collector's whole life as one trial, since traces and logs are stored only
// for trials, and returns a function that ends it. The collector reports its own errors.
func oneTrial(ctx context.Context, query, token string) (end func()) {
	client := telemetry.NewClient(query, token)
	now := clock.Wall()
	name := "served-" + now.Format("2006-01-02T15-04-05Z")
	err := client.Begin(ctx, telemetry.Trial{Run: "served", ID: name, Target: name})
	if err != nil {
		return client.Close // the collector counts the failure
	}
	client.Mark(telemetry.Mark{Trial: name, Kind: telemetry.Open, Name: "all",
		WallNs: now.UnixNano()})
	return func() {
		client.End(context.WithoutCancel(ctx))
		client.Close()
	}
}
