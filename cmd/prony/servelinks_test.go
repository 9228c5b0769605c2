//go:build linux && !portable

package main

import (
	"net/netip"
	"slices"
	"testing"
)

// A server that listens on all addresses prints those that other machines reach.
func TestLinksTo(t *testing.T) {
	machine := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.0.2.7"),
		netip.MustParseAddr("fe80::1"), netip.MustParseAddr("2001:db8::7")}
	for _, row := range []struct {
		at      string
		machine []netip.Addr
		want    []string
	}{
		{"127.0.0.1:7766", machine, []string{"http://127.0.0.1:7766/"}},
		{"0.0.0.0:7766", machine, []string{"http://192.0.2.7:7766/"}},
		{"[::]:7766", machine, []string{"http://192.0.2.7:7766/", "http://[2001:db8::7]:7766/"}},
		{"[::]:7766", machine[:1], []string{"http://127.0.0.1:7766/"}},
	} {
		got := linksTo(netip.MustParseAddrPort(row.at), row.machine)
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.at, got, row.want)
		}
	}
}
