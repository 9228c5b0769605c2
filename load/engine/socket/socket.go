//go:build linux

package socket

import (
	"net"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Address is an address in the kernel's format. The kernel gets a pointer to Raw, which must not
// move: keep it on the heap.
type Address struct {
	Family int // unix.AF_INET or unix.AF_INET6
	Raw    [unix.SizeofSockaddrInet6]byte
	Len    int
}

// AddressOf converts an address. An IPv4-mapped IPv6 address becomes IPv4.
func AddressOf(a netip.AddrPort) Address {
	var out Address
	port := [2]byte{byte(a.Port() >> 8), byte(a.Port())}
	if ip := a.Addr().Unmap(); ip.Is4() {
		out.Family, out.Len = unix.AF_INET, unix.SizeofSockaddrInet4
		sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(&out.Raw))
		sa.Family, sa.Addr = unix.AF_INET, ip.As4()
		*(*[2]byte)(unsafe.Pointer(&sa.Port)) = port
		return out
	}
	out.Family, out.Len = unix.AF_INET6, unix.SizeofSockaddrInet6
	sa := (*unix.RawSockaddrInet6)(unsafe.Pointer(&out.Raw))
	sa.Family, sa.Addr, sa.Scope_id = unix.AF_INET6, a.Addr().As16(), scope(a.Addr().Zone())
	*(*[2]byte)(unsafe.Pointer(&sa.Port)) = port
	return out
}

// scope returns the number of an interface, which link-local addresses need; 0: none.
func scope(zone string) uint32 {
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n)
	}
	i, err := net.InterfaceByName(zone)
	if err != nil { // connecting reports that the address needs a zone
		return 0
	}
	return uint32(i.Index)
}

// Error returns the pending error of a socket, and clears it; nil: none.
func Error(fd int) error {
	v, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	if v != 0 {
		return unix.Errno(v)
	}
	return nil
}

// New returns a non-blocking TCP socket that is closed on exec. It returns ErrNone if the limit on
// open files is reached.
func (a *Address) New() (int, error) {
	fd, err := unix.Socket(a.Family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err == unix.EMFILE || err == unix.ENFILE {
		return -1, ErrNone
	}
	if err != nil {
		return -1, err
	}
	// Nagle's algorithm would hold back the second part of a request that is sent in two.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	return fd, nil
}
