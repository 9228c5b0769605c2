package load

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// The error for a Unix socket names its path, not an address that nothing uses.
func TestAbsentUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	s := Spec{Name: "load", Model: record.Closed, Connections: 1, Window: time.Second,
		Timeout: 20 * time.Second, Scenario: Scenario{Requests: []Request{{Method: "GET",
			Path: "/"}}}}
	s.Address = netip.MustParseAddrPort("127.0.0.1:1")
	err := Choice{Speak: &nethttp.Config{Protocol: nethttp.H1Unix, Network: "unix",
		Address: path}}.Set(&s)
	if err == nil {
		_, err = Run(t.Context(), s)
	}
	if err == nil || strings.Contains(err.Error(), s.Address.String()) ||
		!strings.Contains(err.Error(), "Unix socket could be opened: connect: dial unix "+path) {
		t.Errorf("error %v", err)
	}
}
