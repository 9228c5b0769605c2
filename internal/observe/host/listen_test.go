package host

import (
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
)

// listen opens a listener and returns its port.
func listen(network, address string) (io.Closer, int, error) {
	if strings.HasPrefix(network, "udp") {
		l, err := net.ListenPacket(network, address)
		if err != nil {
			return nil, 0, err
		}
		return l, l.LocalAddr().(*net.UDPAddr).Port, nil
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, 0, err
	}
	return l, l.Addr().(*net.TCPAddr).Port, nil
}

// addressOf returns the address of a TCP listener; "" for any other.
func addressOf(l io.Closer) string {
	if tcp, ok := l.(*net.TCPListener); ok {
		return tcp.Addr().String()
	}
	return ""
}

func TestListening(t *testing.T) {
	for _, network := range []string{"tcp4", "tcp6", "udp4", "udp6"} {
		l, port, err := listen(network, "localhost:0")
		if err != nil {
			t.Log(err) // a machine without IPv6
			continue
		}
		if Wide(port) {
			t.Errorf("%s: it is said to listen at every address", network)
		}
		if got := Listening(network[:3], port); !slices.Equal(got, []int{os.Getpid()}) {
			t.Errorf("%s: %v listen, want %d", network, got, os.Getpid())
		}
		owns := func() bool { // the socket, at the address at which it listens
			return slices.ContainsFunc(SocketsOf([]int{os.Getpid()}), func(s Socket) bool {
				return s.Port == port && s.String() == addressOf(l)
			})
		}
		here := owns()
		if here != (network[:3] == "tcp") {
			t.Errorf("%s: port %d is among those of this process: %v", network, port, here)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if owns() {
			t.Errorf("%s: port %d is among those of this process, and closed", network, port)
		}
		if got := Listening(network[:3], port); len(got) > 0 {
			t.Errorf("%s: %v listen where nobody does", network, got)
		}
	}
	for _, network := range []string{"tcp4", "tcp", "udp4", "udp"} {
		l, port, err := listen(network, ":0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if !Wide(port) {
			t.Errorf("%s: nobody notices who listens at every address", network)
		}
	}
}
