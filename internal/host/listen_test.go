package host

import (
	"net"
	"os"
	"slices"
	"testing"
)

func TestListening(t *testing.T) {
	for _, network := range []string{"tcp4", "tcp6"} {
		l, err := net.Listen(network, "localhost:0")
		if err != nil {
			t.Log(err) // a machine without IPv6
			continue
		}
		port := l.Addr().(*net.TCPAddr).Port
		if Wide(port) {
			t.Errorf("%s: it is said to listen at every address", network)
		}
		if got := Listening(port); !slices.Equal(got, []int{os.Getpid()}) {
			t.Errorf("%s: %v listen, want %d", network, got, os.Getpid())
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got := Listening(port); len(got) > 0 {
			t.Errorf("%s: %v listen where nobody does", network, got)
		}
	}
	for _, network := range []string{"tcp4", "tcp"} {
		l, err := net.Listen(network, ":0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if !Wide(l.Addr().(*net.TCPAddr).Port) {
			t.Errorf("%s: nobody notices who listens at every address", network)
		}
	}
}
