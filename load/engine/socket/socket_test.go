package socket

import (
	"net"
	"net/netip"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's and Go's conversions agree: a socket bound by one is reached by the other.
func TestAddressOf(t *testing.T) {
	check := func(bind, want string) {
		t.Helper()
		a := AddressOf(netip.MustParseAddrPort(bind))
		fd, err := a.New()
		if err != nil {
			t.Skipf("no socket for %s: %v", bind, err)
		}
		defer unix.Close(fd)
		_, _, errno := syscall.Syscall(unix.SYS_BIND, uintptr(fd),
			uintptr(unsafe.Pointer(&a.Raw)), uintptr(a.Len))
		if errno != 0 {
			t.Skipf("cannot bind to %s: %v", bind, errno)
		}
		sa, err := unix.Getsockname(fd)
		if err != nil {
			t.Fatal(err)
		}
		var ip net.IP
		port := 0
		switch sa := sa.(type) {
		case *unix.SockaddrInet4:
			ip, port = sa.Addr[:], sa.Port
		case *unix.SockaddrInet6:
			ip, port = sa.Addr[:], sa.Port
		}
		if got := (&net.TCPAddr{IP: ip, Port: port}).String(); got != want {
			t.Errorf("%s became %s, want %s", bind, got, want)
		}
	}
	check("127.0.0.1:54321", "127.0.0.1:54321")          // 54321 = 0xd431: both bytes count
	check("[::1]:54321", "[::1]:54321")                  //
	check("[::ffff:127.0.0.2]:54321", "127.0.0.2:54321") // IPv4
}

func TestScope(t *testing.T) {
	all, err := net.Interfaces()
	if err != nil || len(all) == 0 {
		t.Skip("no interfaces")
	}
	for zone, want := range map[string]int{all[0].Name: all[0].Index, "7": 7, "": 0, "none9": 0} {
		a := AddressOf(netip.AddrPortFrom(netip.MustParseAddr("fe80::1").WithZone(zone), 8))
		if got := int(a.Raw[24]) | int(a.Raw[25])<<8; got != want { // sockaddr_in6, little-endian
			t.Errorf("zone %q is interface %d, want %d", zone, got, want)
		}
	}
}
