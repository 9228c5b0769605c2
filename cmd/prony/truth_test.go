package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/generator/truth"
	"prony.example/internal/trial/machine"
)

func TestTruthUsage(t *testing.T) {
	check := func(want string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		err := run(context.Background(), machine.World{}, args, &stdout, &stderr)
		if cli.Code(err) != cli.Misused || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: exit %d, %s; want %d, %q", args, cli.Code(err), &stderr, cli.Misused,
				want)
		}
	}
	check(`truth server "stal" does not exist; did you mean "stall"?`, "truth", "stal")
	check(`truth server "x" does not exist; there are fixed, md1`, "truth", "x")
	check("parameter --n is out of range: it must be from 1 to 65536", "truth", "cap", "--n", "0")
	check("unknown flag: --stall", "truth", "cap", "--stall", "1s")
	check("got 1 arguments", "truth", "cap", "now")
	check(`case "x" does not exist; choose one of stall, pause`, "selftest", "x")
}

// The help describes every kind: what it does and which numbers to expect.
func TestTruthTeaches(t *testing.T) {
	help := func(args ...string) string {
		var stdout, stderr bytes.Buffer
		if err := run(context.Background(), machine.World{}, args, &stdout, &stderr); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return strings.Join(strings.Fields(stdout.String()), " ")
	}
	all := help("truth", "--help")
	for _, k := range truth.Kinds() {
		reads := strings.Join(strings.Fields(k.Reads), " ")
		one := help("truth", k.Name, "--help")
		for _, text := range []string{all, one} {
			if !strings.Contains(text, k.Does) || !strings.Contains(text, reads) {
				t.Errorf("%s is not taught in: %s", k.Name, text)
			}
		}
		for _, n := range k.Needs {
			if !strings.Contains(one, "--"+n.Name+" ") {
				t.Errorf("%s does not hear --%s", k.Name, n.Name)
			}
		}
	}
}

// A server of kind wrong gives every second response wrongly until it is stopped, and reports their
// number.
func TestTruthServes(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var stdout bytes.Buffer
	says, stderr := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, machine.World{}, []string{"truth", "wrong", "--n", "2", "--json"}, &stdout,
			stderr)
		stderr.Close()
	}()
	line, err := bufio.NewReader(says).ReadString('\n')
	go io.Copy(io.Discard, says) //nolint:errcheck // drain the pipe
	url := strings.TrimSpace(strings.TrimPrefix(line, "wrong on "))
	if err != nil || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("it says %q where it listens, error %v", line, err)
	}
	for _, want := range []string{"ok", "no", "ok"} {
		if got := ask(t, url); got != want {
			t.Errorf("answer is %q, want %q", got, want)
		}
	}
	var errs bytes.Buffer
	err = run(context.Background(), machine.World{}, []string{"truth", "wrong", "--port",
		url[strings.LastIndex(url, ":")+1 : len(url)-1]}, io.Discard, &errs)
	if err == nil || !strings.Contains(errs.String(), "check whether the port is in use") {
		t.Errorf("a second one at its port: %v, %s", err, &errs)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	var r truth.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil || r.Requests != 3 {
		t.Errorf("it says %s (%v), want 3 requests", &stdout, err)
	}

	stdout.Reset()
	file := filepath.Join(t.TempDir(), "times.csv")
	err = run(context.Background(), machine.World{}, []string{"truth", "stall", "-d", "1ms",
		"--times", file, "--ahead"},
		&stdout, io.Discard)
	for _, want := range []string{"stall on http://127.0.0.1:", "--after 3s", "--stall 1s",
		"served 0 requests"} {
		if err != nil || !strings.Contains(stdout.String(), want) {
			t.Errorf("%v, want %q in:\n%s", err, want, &stdout)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || string(text) != "came_ns,left_ns,service_ns,processor_ns\n" {
		t.Errorf("the times are %q, %v", text, err)
	}
}

// ask returns the body of a response.
func ask(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
