package main

import (
	"net"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
)

// TestTokenLength checks the least length of a given token on both sides. The port is taken, so
// serve ends after this check.
func TestTokenLength(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	check := func(length, exit int, want string) {
		t.Helper()
		t.Setenv(tokenName, strings.Repeat("x", length))
		_, stderr, got := say(t, mock{}, "serve", "--listen", l.Addr().String(), t.TempDir())
		if got != exit || !strings.Contains(stderr, want) {
			t.Errorf("%d characters: exit %d, %s, want %d, %s", length, got, stderr, exit, want)
		}
	}
	check(25, cli.Misused, "PRONY_TOKEN has 25 characters; use at least 26 random characters")
	check(26, cli.Failed, "cannot listen: ")
	check(0, cli.Failed, "cannot listen: ")
}
