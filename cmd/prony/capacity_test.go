package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/schema"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
	"prony.example/internal/trial/machine"
)

// capacityOf runs the verb by itself.
func capacityOf(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{world: machine.World{}, args: append([]string{"capacity"}, args...), stdout: &out,
		stderr: &errs}
	c := a.capacityCmd()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	err = c.ExecuteContext(context.Background())
	return out.String(), errs.String(), err
}

func TestCapacityUsage(t *testing.T) {
	check := func(want string, args ...string) {
		t.Helper()
		_, _, err := capacityOf(t, append([]string{"http://127.0.0.1:1/"}, args...)...)
		if cli.Code(err) != cli.Misused || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	check("nothing to measure: add --slo")
	check("--slo: parse objective \"p99\"", "--slo", "p99")
	check("an objective limits the throughput", "--slo", "throughput>5/s")
	check("must be between 0 and 1, got 2", "--slo", "p99<5ms", "--confidence", "2")
	check("the precision must not be negative, got -1", "--slo", "p99<5ms", "--precision", "-1")
	check("the budget must be greater than 0, got 0s", "--slo", "p99<5ms", "--budget", "0")
	check("--curve needs --slo", "--curve", "--stress", "1..5")
	check("--duration is not possible here", "--slo", "p99<5ms", "--duration", "5s")
	check("--replicates must be at least 1, got 0", "--slo", "p99<5ms", "--curve", "--replicates",
		"0")
	check("--concurrency: \"x\" must be a list", "--concurrency", "x")
	check(`--stress: "5..1" must be a rising sequence of numbers`, "--stress", "5..1")
	check("got 2 arguments", "http://127.0.0.1:1/", "--slo", "p99<5ms")
	_, _, err := capacityOf(t, "nothing", "--slo", "p99<5ms")
	if cli.Code(err) != cli.Misused || !strings.Contains(err.Error(), "the URL must have") {
		t.Errorf("%v", err)
	}
}

// TestCapacitySweeps offers a few short loads to a real server of any speed.
func TestCapacitySweeps(t *testing.T) {
	testsets.Whole(t, "whole searches")
	addr, stop, err := truth.Start(truth.Fixed(0))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	stdout, stderr, err := capacityOf(t, "http://"+addr.String()+"/", "--concurrency", "1,2",
		"--stress", "50,100", "--window", "100ms", "--lead-in", "10ms", "--json", "--want", "ok")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	schema.Valid(t, "capacity", []byte(stdout))
	var got capacityReport
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Concurrency) != 2 || got.Concurrency[1].Connections != 2 ||
		got.Concurrency[0].ThroughputPerS <= 0 || len(got.Stress) == 0 ||
		got.Stress[0].RatePerS != 50 || got.Capacity != nil {
		t.Errorf("%+v", got)
	}
	has(t, "stderr", stderr, "warm-up", "sweep", "2 conn", "50.0/s")
	has(t, "reproduce", got.Reproduce, "prony capacity http://", "--concurrency 1,2", "--json")
}

// TestCapacityNotFound has a budget that no search fits into: the exit code differs from that of a
// result.
func TestCapacityNotFound(t *testing.T) {
	testsets.Whole(t, "whole searches")
	addr, stop, err := truth.Start(truth.Fixed(0))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	stdout, stderr, err := capacityOf(t, "http://"+addr.String()+"/", "--slo", "p99<50ms",
		"--window", "200ms", "--lead-in", "10ms", "--budget", "1ms")
	if cli.Code(err) != cli.Invalid {
		t.Fatalf("%v\n%s", err, stderr)
	}
	has(t, "stdout", stdout, "capacity    not found: the budget ended", "ceiling ", "p99<50ms",
		"reproduce  prony capacity http://", "--slo 'p99<50ms'")
}

func TestCapacityNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	stdout, _, err := capacityOf(t, "http://"+l.Addr().String()+"/", "--slo", "p99<50ms")
	if cli.Code(err) != cli.Failed {
		t.Errorf("%v", err)
	}
	has(t, "stdout", stdout, "not found: run step 1 (warm-up)", "reproduce")
}
