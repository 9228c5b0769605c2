//go:build linux && !portable

package load

import (
	"net"
	"testing"
)

// Datagrams without buffer space in a socket that nobody reads are counted, in both families.
func TestUnread(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		c, err := net.ListenPacket("udp", at)
		if err != nil {
			t.Logf("there is no %s: %v", at, err)
			continue
		}
		defer c.Close()
		if err := c.(*net.UDPConn).SetReadBuffer(1); err != nil {
			t.Fatal(err)
		}
		to, err := net.Dial("udp", c.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		before := unread()
		const sent = 100
		for range sent {
			if _, err := to.Write(make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		// The kernel's minimum buffer is 2,304 bytes, and datagrams count with their overhead.
		if n := unread() - before; n < sent-5 {
			t.Errorf("%s: %d of %d lost are counted", at, n, sent)
		}
	}
}
