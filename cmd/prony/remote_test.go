package main

import (
	"net/netip"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
)

// Another machine is loaded only if it was named; otherwise the command is refused.
func TestRemoteIsAsked(t *testing.T) {
	for _, row := range [][]string{{"load"}, {"capacity", "--slo", "p99<50ms"}} {
		for _, named := range []string{"", "192.0.2.2"} {
			args := append(row, "http://192.0.2.1/")
			if named != "" {
				args = append(args, "--remote", named)
			}
			out, stderr, exit := really(args...)
			if exit != cli.Misused || out != "" ||
				!strings.Contains(stderr, "add --remote 192.0.2.1") {
				t.Errorf("%v: exit %d, %q, %q", args, exit, out, stderr)
			}
		}
	}
	if _, stderr, exit := really("rain", "http://192.0.2.1/", "--into", t.TempDir()); exit !=
		cli.Misused || !strings.Contains(stderr, "--remote 192.0.2.1") {
		t.Errorf("rain: exit %d, %q", exit, stderr)
	}
	f := &loadFlags{remote: []string{"192.0.2.1"}}
	if err := f.ask("192.0.2.1", netip.MustParseAddr("192.0.2.1")); err != nil {
		t.Errorf("a host that was named: %v", err)
	}
}
