package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/generator/distributed"
	"prony.example/load"
)

// keyName is the variable that contains a generator's key.
const keyName = "PRONY_KEY"

// indexName is the variable in which an Indexed Job of Kubernetes passes a pod its index
// (kubernetes.io/docs/concepts/workloads/controllers/job, Completion mode).
const indexName = "JOB_COMPLETION_INDEX"

const unknownIndex = -1

// keyMost limits the bytes of a key on standard input.
const keyMost = 1 << 10

func (a *app) generateCmd() *cobra.Command {
	g := &distributed.Generator{Index: unknownIndex, Version: version()}
	var child bool // started by the coordinator itself
	c := &cobra.Command{
		Use: "generate", Short: "Offer one part of a distributed load",
		Args: cli.Arguments(0, 0),
		Long: `Generate is a worker of a distributed load. The worker connects to the coordinator,
prony load --generators N --listen HOST:PORT, and receives the load from it. The worker connects to
the service, waits for the other workers, and sends every N-th request of the common schedule. The
worker reports its measurements to the coordinator each second and at the end. The worker needs
network access only to the coordinator and the service.

The coordinator writes the key with --key FILE. Generate reads the key from ` + keyName + `,
otherwise from standard input, because other users can read command lines. The coordinator makes a
certificate for each load, and the key identifies it. Without --index, the index is the value of
` + indexName + `, which Kubernetes sets in pods of an Indexed Job. Requests may contain ${NAME}:
each worker takes the value from its own environment.

Generate ends when the coordinator ends.`,
		Example: "  prony generate --of lab.example.com:7070 --index 0 < key\n" +
			"  PRONY_KEY=$(cat key) prony generate --of 10.0.0.5:7070 --index 1",
		RunE: func(c *cobra.Command, _ []string) error {
			key := os.Getenv(keyName)
			if child { // the coordinator handles Ctrl-C and ends its generators in order
				signal.Ignore(os.Interrupt)
				key = "" // the variable is for another coordinator
			}
			return a.generate(c.Context(), g, key, c.InOrStdin())
		},
	}
	fs := c.Flags()
	fs.StringVar(&g.Lab, "of", "", "address of the coordinator, HOST:PORT")
	fs.IntVar(&g.Index, "index", g.Index, "index of this worker, from 0 (default: $"+indexName+
		")")
	fs.DurationVar(&g.Wait, "wait", 0, "how long to retry until the coordinator listens")
	fs.StringVar(&g.Name, "name", "", "name of this worker (default: host and process)")
	fs.BoolVar(&child, "child", false, "set if prony itself starts the worker")
	fs.Lookup("child").Hidden = true
	return c
}

// generate runs a generator. If the key is empty, it reads one from in.
func (a *app) generate(ctx context.Context, g *distributed.Generator, key string,
	in io.Reader) error {
	if text := os.Getenv(indexName); g.Index == unknownIndex && text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return cli.Usagef("%s: %q is not a valid index", indexName, text)
		}
		g.Index = int(n)
	}
	switch {
	case g.Lab == "":
		return cli.Usagef("--of is missing: set it to the address of the coordinator, such as " +
			"127.0.0.1:7070")
	case g.Index < 0:
		return cli.Usagef("--index is missing: set it to the index of this worker, from 0")
	case g.Wait < 0:
		return cli.Usagef("--wait must not be negative, got %s", g.Wait)
	}
	if key == "" {
		line, err := bufio.NewReader(io.LimitReader(in, keyMost)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the key from standard input: %w", err)
		}
		key = line
	}
	var err error
	if g.Key, err = distributed.ParseKey(strings.TrimSpace(key)); err != nil {
		return cli.Usagef("%w; see prony generate --help", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	g.Name = cmp.Or(g.Name, fmt.Sprintf("%s/%d", host, os.Getpid()))
	g.Offer = func(ctx context.Context, o distributed.Order) (*load.Result, error) {
		return o.By.Offer(ctx, o.Spec)
	}
	// As for a load of one process.
	_, _ = load.RaiseFiles()
	return g.Run(ctx)
}
