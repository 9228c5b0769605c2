package main

import (
	"fmt"
	"io"
	"net"
	"os"

	"github.com/spf13/cobra"

	"prony/internal/cli"
	"prony/internal/file"
	"prony/internal/pace"
	"prony/internal/suite"
	"prony/internal/truth/exact"
)

var nullAnswer = []byte(
	"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok")

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
			l, err := net.Listen(network, address)
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

// writeTrace keeps arrivals for another time and another place.
func writeTrace(name string, p pace.Process, horizonNs int64) error {
	err := file.Write(name, func(w io.Writer) error { return pace.WriteTrace(w, p, horizonNs) })
	if err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}
