package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/generator/truth"
)

// HTTP/3 works with a trusted service, by the flag or by the URL, and with no other.
func TestLoadSpeaksHTTP3(t *testing.T) {
	l, err := truth.Listen("h3", "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done, made := make(chan error), make(chan []byte, 1)
	go func() {
		done <- truth.Speak(ctx, "h3", l, truth.Fixed(time.Millisecond),
			func(b []byte) { made <- b })
	}()
	known := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(known, <-made, 0o644); err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String() + "/"
	check := func(exit int, says string, args ...string) {
		t.Helper()
		stdout, stderr, got := really(slices.Concat([]string{"load", "-n", "50", "-c", "2",
			"--timeout", "9s", "--view", "none"}, args)...)
		if unspoilt(got) != exit || !strings.Contains(stdout+stderr, says) {
			t.Errorf("%q: exit %d, want %d and %q: %s%s", args, got, exit, says, stdout, stderr)
		}
	}
	check(cli.Fine, "HTTP/3, closed", "https://"+at, "--http3", "--ca", known)
	check(cli.Fine, "HTTP/3, closed", "h3://"+at, "-k", "--streams", "4")
	check(cli.Failed, "trust its authority with --ca FILE", "https://"+at, "--http3")
	check(cli.Misused, "--http3 needs an https URL", "http://"+at, "--http3")
	check(cli.Misused, "--http3 needs an https URL", "https://"+at, "--http3", "--http2")
	check(cli.Misused, "--engine", "https://"+at, "--http3", "-k", "--engine", "epoll")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	check(cli.Failed, "connection refused", "https://"+at, "--http3", "-k")
}
