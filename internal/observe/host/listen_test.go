package host

import (
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
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

// ofTheSame returns a listener's address, and another one with the same port.
func ofTheSame(l io.Closer, port int) (at, other netip.AddrPort) {
	var addr net.Addr
	switch l := l.(type) {
	case net.Listener:
		addr = l.Addr()
	case net.PacketConn:
		addr = l.LocalAddr()
	}
	return netip.MustParseAddrPort(addr.String()),
		netip.AddrPortFrom(netip.MustParseAddr("127.0.0.9"), uint16(port))
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
		at, other := ofTheSame(l, port)
		for _, want := range []netip.AddrPort{at, netip.AddrPortFrom(netip.Addr{}, at.Port())} {
			if got := Listening(network[:3], want); !slices.Equal(got, []int{os.Getpid()}) {
				t.Errorf("%s: %v listen at %v, want %d", network, got, want, os.Getpid())
			}
		}
		if got := Listening(network[:3], other); len(got) > 0 {
			t.Errorf("%s: %v listen at %v, which is another address", network, got, other)
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
		if got := Listening(network[:3], at); len(got) > 0 {
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

// Descendants belong to a service, also those of its children, but not this program and its own.
func TestFamily(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sh -c 'sleep 60 & echo; wait' & wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	all := Family([]int{cmd.Process.Pid})
	if ours := Family([]int{os.Getppid()}); slices.Contains(ours, os.Getpid()) ||
		slices.Contains(ours, cmd.Process.Pid) {
		t.Errorf("this program is among the processes of the one that started it: %v", ours)
	}
	for _, pid := range slices.Backward(all) {
		p, err := os.FindProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Kill()
	}
	if len(all) != 3 || all[0] != cmd.Process.Pid {
		t.Errorf("a shell, its shell and that one's sleep are %v", all)
	}
}
