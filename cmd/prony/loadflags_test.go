package main

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/generator/capacity"
	"prony.example/load"
)

// plannedAt plans a load of a port on which something listens.
func plannedAt(t *testing.T, scheme string, args ...string) *offer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, c := &loadFlags{}, &cobra.Command{}
	f.add(c)
	f.addModel(c)
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	p, err := f.plan(t.Context(), scheme+"://"+l.Addr().String()+"/a.B/C")
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return p
}

// mixFile returns a file with a scenario of 100 connections.
func mixFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "mix.yaml")
	err := os.WriteFile(name, []byte("name: mix\nconnections: 100\nrequests:\n"+
		"  - request: POST /a.B/C\n    body: x\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// A flag that another one leaves without effect is refused.
func TestFlagsWithoutEffect(t *testing.T) {
	check := func(flag string, args ...string) {
		t.Helper()
		_, stderr, exit := really(slices.Concat([]string{"load", "http://127.0.0.1:1/"}, args)...)
		if exit != cli.Misused || !strings.Contains(stderr, flag) {
			t.Errorf("%q: exit %d, want %d and %s: %s", args, exit, cli.Misused, flag, stderr)
		}
	}
	mix := mixFile(t)
	for flag, value := range map[string]string{"--method": "GET", "--header": "A: b", "--body": "x",
		"--type": "a/b", "--keys": "1-9", "--zipf": "1", "--status": "201", "--want": "x"} {
		check(flag, "--scenario", mix, flag, value)
	}
	check("--arrivals", "--arrivals", "constant")
	check("--arrivals", "--arrivals", "constant", "--users", "3")
	check("--max-connections", "--max-connections", "99")
	check("--pacing", "--pacing", "precise", "--users", "3")
	check("--max-connections", "--max-connections", "99", "--rate", "5", "--http2",
		"--streams", "2")
	check("--churn", "--churn", "9", "--http2", "--streams", "2")
	check("--keys and --zipf need {key}", "--keys", "1-9")
	check("--keys and --zipf need {key}", "--zipf", "1.1", "--body", "{seq}")
	check("--type needs --body", "--type", "a/b")
	check("--cores names core 0 twice", "--cores", "0,0")
	check("--ceiling", "--ceiling", "--rate", "5")
	check("--spectrum", "--spectrum", "--output", "csv")
	for _, scheme := range []string{"grpc", "ws"} {
		url := scheme + "://127.0.0.1:1/a.B/C"
		for _, args := range [][]string{{"--type", "a/b"}, {"-X", "GET"}} {
			_, stderr, exit := really(append([]string{"load", url}, args...)...)
			if exit != cli.Misused || !strings.Contains(stderr, "message") {
				t.Errorf("%s with %q: exit %d: %s", url, args, exit, stderr)
			}
		}
	}
}

// Each connection has the streams that are requested, wherever its number comes from.
func TestStreamsOfConnections(t *testing.T) {
	check := func(want int, args ...string) {
		t.Helper()
		p := plannedAt(t, "h2c", append([]string{"--streams", "10"}, args...)...)
		if p.spec.Connections != want {
			t.Errorf("%q: %d streams, want %d", args, p.spec.Connections, want)
		}
	}
	check(640)
	check(70, "-c", "7")
	check(1000, "--scenario", mixFile(t))
	check(70, "--scenario", mixFile(t), "-c", "7")
	check(20, "--users", "15")
	check(30, "--users", "15", "-c", "3")
	p := plannedAt(t, "h2c", "--streams", "10")
	for phase, want := range map[string]int{capacity.Sweep: 50, capacity.Quiet: 5} {
		s := p.stepped(capacity.Step{Phase: phase, Connections: 5})
		if s.Connections != want {
			t.Errorf("%s: %d streams, want %d", phase, s.Connections, want)
		}
	}
}

// The method of messages is not that of a later URL.
func TestMethodsOfSeveralURLs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, c := &loadFlags{}, &cobra.Command{}
	f.add(c)
	f.addModel(c)
	var methods []string
	for _, scheme := range []string{"ws", "http"} {
		p, err := f.plan(t.Context(), scheme+"://"+l.Addr().String()+"/")
		if err != nil {
			t.Fatal(err)
		}
		methods = append(methods, p.spec.Scenario.Requests[0].Method)
	}
	if !slices.Equal(methods, []string{"POST", "GET"}) {
		t.Errorf("methods %q", methods)
	}
}

// A search for a rate of flows needs the generator's limit in flows.
func TestCeilingOfFlows(t *testing.T) {
	o := &offer{}
	o.spec.Scenario = load.Scenario{Flow: true, Requests: make([]load.Request, 5)}
	if perS := o.turns(1000); perS != 200 {
		t.Errorf("1000 requests/s are %v flows/s of 5 steps, want 200", perS)
	}
}
