//go:build linux && !portable

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/files"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/launch/process"
	"prony.example/internal/report/runs"
	"prony.example/internal/server"
	"prony.example/record"
)

// tokenName is the variable with an existing token, such as from a Secret of a cluster. tokenLeast
// is its minimum length, the length of rand.Text.
const (
	tokenName  = "PRONY_TOKEN"
	tokenLeast = 26
)

func (a *app) serveCmd() *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use: "serve [DIR]", Short: "Serve runs as web pages and as an API",
		Args: cli.Arguments(0, 1),
		Long: `Serve shows the runs of a folder in a browser (default: results/ of the checkout, or
.prony/run of the project). The pages of the server are the list of runs with their rankings, the
report of each run, logs, comparisons, the history of a suite, the catalog and this machine.
Programs get the same data as JSON; /api/v1/openapi.yaml describes it.

By default, the server listens on 127.0.0.1 only and rejects requests of pages from other origins.
If --listen has an address that other machines can reach, every client must send a token. Addresses
of this machine only, 127.0.0.0/8 and ::1, take none. Serve prints a new token once, in the link.
If ` + tokenName + ` has a token, serve uses that one and does not print it. Put other names of this
machine into PRONY_HOSTS.

A run that you start in the browser is a process of its own, and continues when the server ends.
Serve uses no CPUs of services under test and has a low priority. Ctrl-C ends it.`,
		Example: `  prony serve
  prony serve nightly --listen 127.0.0.1:8080
  curl -s http://127.0.0.1:7766/api/v1/runs?verdict=invalid`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.serve(c.Context(), args, listen)
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:7766",
		"address to listen on; clients need the printed token unless it is in 127.0.0.0/8 or ::1")
	return c
}

func (a *app) serve(ctx context.Context, args []string, listen string) error {
	at, err := netip.ParseAddrPort(listen)
	if err != nil {
		return cli.Usagef("--listen %s must be an address and a port, such as 127.0.0.1:7766",
			listen)
	}
	connections, err := a.serveConnections()
	if err != nil {
		return err
	}
	room, err := a.newRoom()
	if err != nil && len(args) == 0 {
		return fmt.Errorf("%w, or name a folder with runs", err)
	}
	dir := ""
	if room != nil {
		dir = room.results
	}
	if len(args) > 0 {
		dir = args[0]
		if !files.IsDir(dir) {
			return fmt.Errorf("%s is not a folder, or does not exist; name a folder with runs, "+
				"such as results/", dir)
		}
	}
	runList, err := runs.Open(dir, runs.Options{Program: version(), Born: bornLab})
	if err != nil {
		return err
	}
	o := server.Options{Runs: runList, Version: version(), Ours: writes, Connections: connections,
		Busy: process.ErrBusy.Error(), Report: func(line string) { a.say("prony: " + line) }}
	given := os.Getenv(tokenName)
	if err := os.Unsetenv(tokenName); err != nil { // child processes do not need it
		return err
	}
	switch {
	case given != "" && len(given) < tokenLeast:
		return cli.Usagef("%s has %d characters; use at least %d random "+
			"characters", tokenName, len(given),
			tokenLeast)
	case given != "":
		o.Token = given
	case !at.Addr().IsLoopback():
		o.Token = rand.Text()
	}
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		return fmt.Errorf("cannot listen: %w; choose another port with --listen "+
			"127.0.0.1:PORT", err)
	}
	away, err := standAside()
	if err != nil {
		a.say("prony: serve shares the CPUs of services under test: " + err.Error())
	}
	if room != nil {
		room.away, o.Lab = away, room
	}
	query := ""
	if o.Token != "" && given == "" { // its owner knows it, and others may read the log
		query = "?token=" + o.Token
	}
	links := linksTo(l.Addr().(*net.TCPAddr).AddrPort(), machineAddresses())
	fmt.Fprintf(a.stdout, "%s%s shows the runs in %s; Ctrl-C ends the server\n", links[0], query,
		runList.Dir())
	for _, link := range links[1:] {
		fmt.Fprintf(a.stdout, "also at %s%s\n", link, query)
	}
	return server.New(o).Serve(ctx, l)
}

// serveConnections returns the number of concurrent connections, and reports if there are fewer
// than usual.
func (a *app) serveConnections() (int, error) {
	connections, few, err := server.Room()
	if err != nil {
		return 0, fmt.Errorf("serve: %w", err)
	}
	if few != "" {
		a.say("prony: serve accepts " + few)
	}
	return connections, nil
}

// linksTo returns the addresses to open in a browser. An unspecified address, such as 0.0.0.0,
// stands for the addresses by which other machines reach this one; without any, for 127.0.0.1.
func linksTo(at netip.AddrPort, machine []netip.Addr) (links []string) {
	addresses := []netip.Addr{at.Addr()}
	if at.Addr().IsUnspecified() {
		addresses = nil
		for _, address := range machine {
			if address.IsGlobalUnicast() && (address.Is4() || at.Addr().Is6()) {
				addresses = append(addresses, address)
			}
		}
		if len(addresses) == 0 {
			addresses = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
		}
	}
	for _, address := range addresses {
		links = append(links, "http://"+netip.AddrPortFrom(address, at.Port()).String()+"/")
	}
	return links
}

// machineAddresses returns the addresses of the machine's interfaces; none if the kernel does not
// list them.
func machineAddresses() (out []netip.Addr) {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, address := range found {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			out = append(out, prefix.Addr())
		}
	}
	return out
}

// ours reports whether a process may be this program, of any version. It also returns true if the
// process is another user's, about which the kernel reports nothing and to which it permits no
// signals.
func ours(pid int) bool {
	if pid == os.Getpid() {
		return false // it measures nothing
	}
	self, err1 := os.Executable()
	its, err2 := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	const replaced = " (deleted)" // a newer version replaced the file
	return errors.Join(err1, err2) != nil ||
		filepath.Base(strings.TrimSuffix(its, replaced)) == filepath.Base(self)
}

// bornLab returns when a process began, as cgroup.Born does; empty: it cannot be the one that
// measures a run. A run's folder can come from anywhere and name any process.
func bornLab(pid int) string {
	if !ours(pid) {
		return ""
	}
	return cgroup.Born(pid)
}

// writes reports whether a process may be the one that writes a run: it has a file of the run's
// folder open, or this user may not look.
func writes(pid int, dir string) bool {
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return true
	}
	for _, fd := range all {
		open, _ := os.Stat(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
		for _, name := range []string{record.TrialsFile, record.ProgressFile} {
			file, err := os.Stat(filepath.Join(dir, name))
			if err == nil && os.SameFile(open, file) {
				return true
			}
		}
	}
	return false
}
