package host

import (
	"net"
	"net/netip"
	"testing"
)

// TestOwnAddresses checks that all addresses of this machine are permitted, whatever their name.
func TestOwnAddresses(t *testing.T) {
	own := []string{"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::"}
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		own = append(own, a.(*net.IPNet).IP.String())
	}
	for _, text := range own {
		if is, err := Ours(netip.MustParseAddr(text)); err != nil || !is {
			t.Errorf("%s: %v, %v", text, is, err)
		}
	}
	for _, text := range []string{"192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"} {
		if is, err := Ours(netip.MustParseAddr(text)); err != nil || is {
			t.Errorf("%s: %v, %v", text, is, err)
		}
	}
}
