package generator

import (
	"fmt"
	"os"

	"prony.example/internal/base/units"
	"prony.example/internal/observe/host"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
)

// filesBeside is the number of open files of a load beside its connections.
const filesBeside = 64

// portsFile has the first and last local port that the kernel assigns (ip(7)).
const portsFile = "/proc/sys/net/ipv4/ip_local_port_range"

// Memory of a connection in bytes at least: 4 KiB of the kernel for a TCP socket with its file, and
// what this process was measured to add for each of 4,000 connections.
const (
	socketMemory = 5 << 10  // HTTP/1.1 in the clear
	stackMemory  = 21 << 10 // TLS, HTTP/2 and other protocols
)

// room is what this process and the kernel allow; 0: unknown.
type room struct {
	files, ports int
	memory       int64 // free, in bytes
}

// roomHere returns the room of this process. It raises the limit on open files as far as possible.
func roomHere() (r room) {
	r.memory = host.AvailableBytes()
	if most, err := load.RaiseFiles(); err == nil {
		r.files = int(min(most, 1<<30))
	}
	if text, err := os.ReadFile(portsFile); err == nil {
		var first, last int
		if n, _ := fmt.Sscan(string(text), &first, &last); n == 2 {
			r.ports = last - first + 1
		}
	}
	return r
}

// check refuses a load with more connections than can be opened, before it opens the first one.
func (r room) check(s *load.Spec, c *nethttp.Config) error {
	parts, streams, protocol, connection := max(s.Part.Of, 1), 1, "", int64(socketMemory)
	if c != nil {
		streams, protocol, connection = max(c.Streams, 1), c.Protocol, stackMemory
	}
	sockets := (s.Connections/streams + parts - 1) / parts
	switch {
	case protocol == nethttp.H3: // connections share sockets
		return nil
	case r.files > 0 && sockets+filesBeside > r.files:
		fewer := ""
		if r.files > filesBeside {
			fewer = fmt.Sprintf(", or use at most %d connections", r.files-filesBeside)
		}
		return fmt.Errorf("%d connections need %d open files, but this process may have %d: raise "+
			"the limit with ulimit -n %d%s", sockets, sockets+filesBeside, r.files,
			sockets+filesBeside, fewer)
	case r.ports > 0 && sockets > r.ports && protocol != nethttp.H1Unix:
		return fmt.Errorf("%d connections to %v need as many local ports, but %s has %d: widen "+
			"the range with sysctl net.ipv4.ip_local_port_range, or use at most %d connections",
			sockets, s.Address, portsFile, r.ports, r.ports)
	case r.memory > 0 && int64(sockets)*connection > r.memory:
		return fmt.Errorf("%d connections need at least %s of memory, but %s are free: use at "+
			"most %d connections", sockets, units.Bytes(float64(int64(sockets)*connection)),
			units.Bytes(float64(r.memory)), int(r.memory/connection)*streams)
	}
	return nil
}
