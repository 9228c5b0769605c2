package processes

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/launch"
)

// A service of only HTTP/3 has no TCP port that accepts a connection.
func TestOfDatagramsAlone(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	by := attached{l.LocalAddr().(*net.UDPAddr).AddrPort()}
	p, err := by.Launch(t.Context(), launch.Spec{})
	if err != nil || !slices.Equal(p.PIDs(), []int{os.Getpid()}) {
		t.Errorf("%v, %v; want %d", p, err, os.Getpid())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := by.Launch(t.Context(), launch.Spec{}); err == nil ||
		!strings.Contains(err.Error(), "start the service first") {
		t.Errorf("nobody listens: %v", err)
	}
}
