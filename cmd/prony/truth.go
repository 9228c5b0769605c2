//go:build linux && !portable

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/files"
	"prony.example/internal/base/format"
	"prony.example/internal/base/strictyaml"
	"prony.example/internal/base/units"
	"prony.example/internal/generator/truth"
	"prony.example/load"
)

const truthAbout = `Truth serves responses on 127.0.0.1 whose times and kinds are known by
arithmetic. Use it to test any load generator: the generator must report the numbers below. The time
of a response depends only on the times of its request and the earlier ones. At the end, the server
reports its own delays.

`

func (a *app) truthCmd() *cobra.Command {
	var about strings.Builder
	about.WriteString(truthAbout)
	for _, k := range truth.Kinds() {
		fmt.Fprintf(&about, "  %s\n%s\n", k.Name, format.Wrap("      ", k.Does+". "+k.Reads, 92, 6))
	}
	c := &cobra.Command{
		Use: "truth KIND", Short: "Serve responses with known times to test any load generator",
		Args: cobra.ArbitraryArgs, Long: about.String(),
		Example: `  prony truth stall --stall 1s --after 3s
  prony truth mm1 --service 2ms --port 9000 --duration 1m`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			var known []string
			for _, k := range truth.Kinds() {
				known = append(known, k.Name)
			}
			return cli.Usagef("truth server %q does not exist; "+
				"%s", args[0], strictyaml.Meant(args[0],
				known, "there are "+strings.Join(known, ", ")))
		},
	}
	for _, k := range truth.Kinds() {
		c.AddCommand(a.truthKind(k))
	}
	return c
}

// truthFlags are the flags of all kinds.
type truthFlags struct {
	port     uint16
	duration time.Duration
	asJSON   bool
	times    string
	ahead    bool
}

func (a *app) truthKind(k truth.Kind) *cobra.Command {
	f := &truthFlags{}
	p := k.Zero
	c := &cobra.Command{
		Use: k.Name, Short: k.Does, Args: cli.Arguments(0, 0),
		Long: format.Wrap("", "The server "+k.Does+".", 92, 0) + "\n\n" +
			format.Wrap("", "A correct generator reports: "+k.Reads, 92, 0),
		RunE: func(c *cobra.Command, _ []string) error { return a.truth(c.Context(), k, p, f) },
	}
	fs := c.Flags()
	for _, n := range k.Needs {
		switch v := p.Field(n.Name).(type) {
		case *time.Duration:
			fs.DurationVar(v, n.Name, *v, n.Says)
		case *int64:
			fs.Int64Var(v, n.Name, *v, n.Says)
		case *uint64:
			fs.Uint64Var(v, n.Name, *v, n.Says)
		}
	}
	fs.Uint16Var(&f.port, "port", 0, "port on 127.0.0.1 (default: a free port)")
	fs.DurationVarP(&f.duration, "duration", "d", 0, "how long to serve (default: until Ctrl-C)")
	fs.BoolVar(&f.asJSON, "json", false,
		"print only the served requests, as JSON; the address goes to standard error")
	fs.StringVar(&f.times, "times", "", "CSV file for the times of each request: arrival, "+
		"response and service time")
	fs.BoolVar(&f.ahead, "ahead", false,
		"run ahead of other processes on the same core, if permitted (CAP_SYS_NICE)")
	return c
}

// garbageMax is the memory limit of a server with priority, whose garbage is not collected before.
const garbageMax = 1 << 30

// truth serves until the end of ctx or of the duration, which are both normal ends.
func (a *app) truth(ctx context.Context, k truth.Kind, p truth.Params, f *truthFlags) error {
	plan, err := k.Plan(p)
	if err != nil {
		return cli.Usage(err)
	}
	if f.duration < 0 {
		return cli.Usagef("--duration must not be negative, got %v", f.duration)
	}
	if f.times != "" {
		if err := files.CanWrite(f.times); err != nil {
			return cli.Usagef("--times: %w", err)
		}
	}
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(f.port))))
	if err != nil {
		return fmt.Errorf("serve truth: %w; check whether the port is in use", err)
	}
	defer l.Close()
	if f.duration > 0 {
		bounded, cancel := context.WithTimeout(ctx, f.duration)
		defer cancel()
		ctx = bounded
	}
	if f.asJSON {
		a.say(fmt.Sprintf("%s on http://%s/", k.Name, l.Addr()))
	} else {
		fmt.Fprintf(a.stdout, "%s on http://%s/: %s\n", k.Name, l.Addr(), k.Does)
		for _, n := range k.Needs {
			fmt.Fprintf(a.stdout, "  --%s %s\n", n.Name, fieldText(&p, n.Name))
		}
		fmt.Fprintln(a.stdout, format.Wrap("  ", "A correct generator reports: "+k.Reads, 92, 2))
	}
	if f.ahead { // a collector with priority would keep the server off its core
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(garbageMax))
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
	}
	// More connections than the soft limit allows are common. Connections above the limit are
	// refused.
	_, _ = load.RaiseFiles()
	r, err := truth.Serve(ctx, l.(*net.TCPListener), plan,
		truth.Options{Ahead: f.ahead, Times: f.times != ""})
	if err != nil {
		return err
	}
	if err := writeTimes(f.times, r.Times); err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(a.stdout).Encode(r)
	}
	fmt.Fprintf(a.stdout, "served %s requests", units.Count(r.Requests))
	if r.Delayed > 0 {
		fmt.Fprintf(a.stdout, "; delayed responses were %s late on average, %s at most",
			units.Duration(r.LateMeanNs), units.Duration(float64(r.LateMaxNs)))
	}
	if r.RunDelayNs > 0 {
		fmt.Fprintf(a.stdout, "; the server's thread waited %s in total for a CPU",
			units.Duration(float64(r.RunDelayNs)))
	}
	fmt.Fprintln(a.stdout)
	return nil
}

// writeTimes writes the times of requests to a file; without a name, it does nothing.
func writeTimes(name string, times []truth.Times) error {
	if name == "" {
		return nil
	}
	return files.Write(name, func(w io.Writer) error { return truth.WriteTimes(w, times) })
}

// fieldText formats a parameter for a flag.
func fieldText(p *truth.Params, name string) string {
	return fmt.Sprint(reflect.ValueOf(p.Field(name)).Elem())
}
