package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/address"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/generator/progress"
	"prony.example/internal/generator/summary"
	"prony.example/record"
)

const rainAbout = `Rain sends the same load to several servers, one after the other. Rain writes the
results of each server into a JSON file with the name of its host. Rain leaves out servers whose
host name does not exist, such as containers that do not run.

deploy/compose.yaml starts rain as RAIN_FIRE. Rain neither interleaves nor repeats loads: to compare
services, use prony run. The flags are those of prony load; --lead-in is the warm-up.`

// rainCmd loads the running servers of a list.
func (a *app) rainCmd() *cobra.Command {
	f, o := &loadFlags{}, &outputFlags{view: string(progress.None), output: "text"}
	s := &saveFlags{}
	var into string
	c := &cobra.Command{
		Use: "rain URL...", Short: "Load several servers, one after the other",
		Long: rainAbout, Args: cli.Arguments(1, 1<<10),
		Example: "  prony rain http://127.0.0.1:8080/ http://127.0.0.1:8081/ --rate 1000 -d 1m",
		RunE: func(c *cobra.Command, urls []string) error {
			return a.rain(c.Context(), f, o, s, into, urls)
		},
	}
	fs := c.Flags()
	f.add(c)
	f.addModel(c)
	fs.StringVar(&into, "into", "results/rain", "folder for the JSON files, in a subfolder for "+
		"each run of rain")
	fs.StringVar(&o.otlp, "otlp", "", "push live metrics to this endpoint, such as "+
		"http://127.0.0.1:4318")
	s.add(c)
	return c
}

// rain continues after a server that could not be loaded, because the other results stay valid.
func (a *app) rain(ctx context.Context, f *loadFlags, o *outputFlags, s *saveFlags, into string,
	urls []string) (err error) {
	if err := f.check(); err != nil {
		return cli.Usage(err)
	}
	servers := make([]*address.Address, len(urls))
	for i, raw := range urls {
		u, err := address.Parse(raw, schemes...)
		if err != nil {
			return cli.Usagef("load %q: %w", address.Shown(raw), err)
		}
		if at, err := netip.ParseAddr(u.Name); err == nil { // names are resolved later
			if err := f.ask(u.Name, at); err != nil {
				return cli.Usagef("load %s: %w", cmdlog.Hush(raw), err)
			}
		}
		servers[i] = &u
	}
	kept, err := a.keep(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kept.close()) }()
	folder := filepath.Join(into, clock.Wall().Format("2006-01-02T15-04-05Z"))
	release, err := record.Reserve(folder, "--into")
	if err != nil {
		return err
	}
	defer release()
	var failed []error
	loaded := 0
	for i, u := range servers {
		up, err := f.connect+f.unix != "", error(nil)
		if !up {
			up, err = known(ctx, u.Name)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("look up %s: %w", u.Name, err))
		}
		if !up {
			continue
		}
		if loaded++; loaded > 1 {
			fmt.Fprintln(a.stdout)
		}
		name := filepath.Join(folder, rainName(servers, i))
		if err := a.one(ctx, f, o, name, urls, i, u.Name, kept); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", u.Name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	if loaded == 0 {
		failed = append(failed, fmt.Errorf("none of the %d servers runs: start them, or choose "+
			"others", len(urls)))
	}
	return errors.Join(failed...)
}

// rainName returns a server's file name: its host, or, if several servers have this host, its
// position in the list and the URL.
func rainName(servers []*address.Address, i int) string {
	at := servers[i]
	same := func(other *address.Address) bool { return other != at && other.Name == at.Name }
	if !slices.ContainsFunc(servers, same) {
		return at.Name + ".json"
	}
	return fmt.Sprintf("%02d-%s.json", i+1, fileName(at.Host+at.Path))
}

// Timeout and number of tries of a name lookup. Docker's resolver forwards names that are no
// container's to others, which do not respond on a machine without a network.
const (
	lookupWait  = 5 * time.Second
	lookupTries = 3
)

// known reports whether a name has an address. Any failure except "not found" is an error.
func known(ctx context.Context, host string) (up bool, err error) {
	if address.IsLocalhost(host) {
		return true, nil
	}
	for range lookupTries {
		bounded, cancel := context.WithTimeout(ctx, lookupWait)
		_, err = net.DefaultResolver.LookupHost(bounded, host)
		cancel()
		var no *net.DNSError
		if errors.As(err, &no) && no.IsNotFound {
			return false, nil
		}
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return err == nil, err
}

// one loads one server, prints the result and stores it.
func (a *app) one(ctx context.Context, f *loadFlags, o *outputFlags, name string, urls []string,
	i int, host string, kept *keeper) error {
	p, err := f.plan(ctx, urls[i])
	if err != nil {
		return cli.Usage(err)
	}
	a.noted(p)
	report, res, err := a.measured(ctx, p, o, kept)
	if err != nil {
		return err
	}
	report.Command = alone(report.Command, urls, urls[i], host)
	err = files.Write(name, func(w io.Writer) error { return summary.JSON(w, report) })
	if err != nil {
		return fmt.Errorf("store the result: %w", err)
	}
	return errors.Join(a.print(report, res, o), a.judge(report, nil, "text"))
}

// alone returns a command line with only one of its servers. Of --remote it retains only the
// server's host.
func alone(command, urls []string, url, host string) (out []string) {
	url, urls = cmdlog.Hush(url), cmdlog.Hushed(urls) // as in the command
	for i := 0; i < len(command); i++ {
		name, value, joined := strings.Cut(command[i], "=")
		switch {
		case name == "--remote":
			if !joined && i+1 < len(command) {
				i++
				value = command[i]
			}
			if slices.Contains(strings.Split(value, ","), host) {
				out = append(out, "--remote="+host)
			}
		case command[i] == url, !slices.Contains(urls, command[i]):
			out = append(out, command[i])
		}
	}
	return out
}
