//go:build linux && !portable

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"prony/internal/cli"
	"prony/internal/driver"
	"prony/internal/load"
	"prony/internal/load/stack"
	"prony/internal/suite"
	"prony/internal/truth/exact"
)

var nullAnswer = []byte(
	"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok")

// nullPath is asked of a null server that is spoken to by a library; that of gRPC has two parts.
const nullPath = "/null/Null"

// nullCmd is the server that the generator is calibrated against.
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
			l, err := exact.Listen(protocol, network, address)
			if err != nil {
				return fmt.Errorf("serve null: %w", err)
			}
			defer l.Close()
			fmt.Fprintf(os.Stderr, "null server on %s\n", l.Addr())
			if t, ok := l.(*net.TCPListener); ok && protocol == suite.Protocols[0] {
				return exact.Null(c.Context(), t, nullAnswer)
			}
			return exact.Speak(c.Context(), protocol, l, exact.Fixed(0), nil)
		},
	}
	cli.OneOf(c, &protocol, "protocol", "", suite.Protocols...)
	c.Flags().StringVar(&path, "unix", "", "listen at this Unix socket")
	return c
}

// ceiling is what the generator reaches with these connections against a server that does nothing,
// in the protocol of the load, on a core of its own where there is one. It is a bound for servers
// on this machine only.
func (a *app) ceiling(ctx context.Context, p *offer) (float64, error) {
	spec := driver.Calibration(load.Spec{Name: "ceiling", Address: p.spec.Address,
		Connections: p.spec.Connections, Cores: p.spec.Cores, Seed: p.spec.Seed})
	by, protocol, network, address := p.by, suite.Protocols[0], "tcp", "127.0.0.1:0"
	if by.Stack != nil {
		for name, is := range stack.Schemes {
			if is == by.Stack.Protocol {
				protocol = name
			}
		}
		if network = by.Stack.Network; network == "unix" {
			address = filepath.Join(os.TempDir(), fmt.Sprintf("prony-null-%d", os.Getpid()))
		}
	}
	l, err := exact.Listen(protocol, network, address)
	if err != nil {
		return 0, fmt.Errorf("measure the ceiling: %w", err)
	}
	defer l.Close()
	var serve func(context.Context) error
	if by.Stack == nil {
		spec.Address = l.Addr().(*net.TCPAddr).AddrPort()
		serve = func(c context.Context) error {
			return exact.Null(c, l.(*net.TCPListener), nullAnswer)
		}
	} else {
		to := *by.Stack
		to.Address, to.Path, to.Insecure, to.CA = l.Addr().String(), nullPath, true, ""
		by.Stack, spec.Host = &to, to.Host
		r := &spec.Scenario.Requests[0]
		r.Method, r.Path = http.MethodPost, nullPath
		serve = func(c context.Context) error {
			return exact.Speak(c, protocol, l, exact.Fixed(0), nil)
		}
	}
	serving, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- serve(serving) }()
	a.say("calibrate the generator against a null server")
	res, err := by.Offer(ctx, spec)
	cancel()
	if e := <-done; err == nil {
		err = e
	}
	if err != nil && ctx.Err() != nil {
		return 0, errors.New("interrupted before the load: nothing was measured")
	}
	if err != nil {
		return 0, fmt.Errorf("measure the ceiling: %w", err)
	}
	return res.ThroughputPerS, nil
}
