package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
)

// The generator limit is not the server's rate: two connections get 40 responses a second from a
// server that takes 50 ms, and thousands from the null server, in every protocol.
func TestCeilingSpeaks(t *testing.T) {
	testsets.Once(t, "the ceiling of every protocol", testsets.Needs{})
	testsets.Measured(t)
	for _, protocol := range truth.Spoken {
		network, address := "tcp", "127.0.0.1:0"
		if protocol == "http" {
			network, address = "unix", filepath.Join(t.TempDir(), "s")
		}
		l, err := truth.Listen(protocol, network, address)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- truth.Speak(ctx, protocol, l, truth.Fixed(50*time.Millisecond), nil) }()
		args := []string{"load", protocol + "://" + l.Addr().String() + "/p.S/M", "-c", "2", "-d",
			"300ms", "-X", "POST", "--body", "x", "-k", "--ceiling", "--json", "--view", "none"}
		if network == "unix" {
			args[1] = "http://localhost/p.S/M"
			args = append(args, "--unix", address)
		}
		stdout, stderr, _ := really(args...)
		var out struct {
			Load struct {
				ThroughputPerS, CeilingPerS float64
			}
		}
		if err := json.Unmarshal([]byte(stdout), &out); err != nil {
			t.Errorf("%s: %v: %s%s", protocol, err, stdout, stderr)
		}
		if out.Load.ThroughputPerS > 40 || out.Load.CeilingPerS < 400 {
			t.Errorf("%s: %+v", protocol, out.Load)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
