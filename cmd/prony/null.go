//go:build linux && !portable

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/generator"
	"prony.example/internal/generator/truth"
	"prony.example/internal/suite"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
)

var nullAnswer = []byte(
	"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok")

// nullCmd is the server against which the generator is calibrated.
func (a *app) nullCmd() *cobra.Command {
	protocol, path := suite.Protocols[0], ""
	c := &cobra.Command{
		Use: "null PORT", Short: "Serve the same few bytes as cheaply as one thread can",
		Args: cli.Arguments(1, 1), Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			network, address := "tcp", net.JoinHostPort("127.0.0.1", args[0])
			if path != "" {
				network, address = "unix", path
			}
			l, err := truth.Listen(protocol, network, address)
			if err != nil {
				return fmt.Errorf("serve null: %w", err)
			}
			defer l.Close()
			fmt.Fprintf(os.Stderr, "null server on %s\n", l.Addr())
			return serveNull(c.Context(), protocol, l)
		},
	}
	cli.OneOf(c, &protocol, "protocol", "", suite.Protocols...)
	c.Flags().StringVar(&path, "unix", "", "listen on this Unix socket")
	return c
}

// serveNull answers requests on a listener, in a protocol of suites, until ctx ends.
func serveNull(ctx context.Context, protocol string, l net.Listener) error {
	if t, ok := l.(*net.TCPListener); ok && protocol == suite.Protocols[0] {
		return truth.Null(ctx, t, nullAnswer)
	}
	plan := truth.Fixed(0)
	if strings.HasPrefix(protocol, "grpc") { // callers expect messages; an empty one fits all
		plan = func(now int64, _ truth.Request) truth.Reply {
			return truth.Reply{At: now, Text: nullMessage}
		}
	}
	return truth.Speak(ctx, protocol, l, plan, nil)
}

var nullMessage = truth.Answer("200 OK", "", "")

// hasNull reports whether this system has the null server.
const hasNull = true

// ceiling measures the generator limit with these connections, in requests/s: the rate against a
// server that does nothing, on a core of its own if possible. It applies only to servers on this
// machine.
func (a *app) ceiling(ctx context.Context, p *offer) (perS float64, err error) {
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = errors.New("interrupted before the load: nothing was measured")
		} else if err != nil {
			err = fmt.Errorf("measure the generator limit: %w", err)
		}
	}()
	dir, err := os.MkdirTemp("", "prony-null-") // accessible only to this user
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	spec := load.Spec{Name: "ceiling", Connections: p.spec.Connections, Cores: p.spec.Cores,
		Seed: p.spec.Seed, Address: p.spec.Address, Part: p.spec.Part}
	by, protocol, network, at := p.by, suite.Protocols[0], "tcp", "127.0.0.1:0"
	if c := by.Stack; c != nil {
		for name, is := range nethttp.Schemes {
			if is == c.Protocol {
				protocol = name
			}
		}
		if network = c.Network; network == "unix" {
			at = filepath.Join(dir, "null")
		}
	}
	l, err := truth.Listen(protocol, network, at)
	if err != nil {
		return 0, err
	}
	if c := by.Stack; c != nil {
		by.Stack = &nethttp.Config{Protocol: c.Protocol, Network: network,
			Address: l.Addr().String(), Host: "localhost", Path: generator.NullPath,
			Streams: c.Streams, Insecure: true}
		spec.Host = by.Stack.Host
	}
	if t, ok := l.Addr().(*net.TCPAddr); ok {
		spec.Address = t.AddrPort()
	}
	defer l.Close()
	serving, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- serveNull(serving, protocol, l) }()
	a.say("measure the generator limit against a null server")
	res, err := p.together(ctx, by, generator.Calibration(spec, by.Stack))
	cancel()
	if err = cmp.Or(err, <-done); err != nil {
		return 0, err
	}
	return res.ThroughputPerS, nil
}
