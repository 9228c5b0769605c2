package host

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Socket is one that listens.
type Socket struct {
	Port int
	Wide bool // at every address of the machine, and so to whoever reaches it
}

// Sockets are those that listen, of a table of the kernel's such as /proc/net/tcp (proc(5)), by
// what /proc/PID/fd links to. One of UDP listens where it has no peer of its own.
func Sockets(table string) (map[string]Socket, error) {
	text, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	listen := "0A" // TCP_LISTEN, include/net/tcp_states.h
	if strings.HasPrefix(filepath.Base(table), "udp") {
		listen = "07" // TCP_CLOSE, likewise
	}
	out := map[string]Socket{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // sl local remote state … inode
		if len(f) < 10 || f[3] != listen {
			continue
		}
		address, hex, _ := strings.Cut(f[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if err != nil {
			return nil, fmt.Errorf("read %s: port %q: %w", table, hex, err)
		}
		out["socket:["+f[9]+"]"] = Socket{int(port), strings.Trim(address, "0") == ""}
	}
	return out, nil
}

// tables are those of this machine; a kernel without IPv6 has no second one of each.
var tables = map[string][]string{
	"tcp": {"/proc/net/tcp", "/proc/net/tcp6"}, "udp": {"/proc/net/udp", "/proc/net/udp6"},
}

// Wide says whether somebody listens at a port at every address of this machine.
func Wide(port int) bool {
	for _, table := range slices.Concat(tables["tcp"], tables["udp"]) {
		all, _ := Sockets(table) // what cannot be read has none
		for _, s := range all {
			if s.Port == port && s.Wide {
				return true
			}
		}
	}
	return false
}

// Listening lists the processes that hold a socket of a network, tcp or udp, which listens at a
// port of this machine, in order; a service that has forked is all that share it. Those of other
// users show to root alone.
func Listening(network string, port int) (pids []int) {
	var want []string
	for _, table := range tables[network] {
		all, _ := Sockets(table) // as in Wide
		for socket, s := range all {
			if s.Port == port {
				want = append(want, socket)
			}
		}
	}
	if len(want) == 0 {
		return nil
	}
	retained, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well formed
	for _, path := range retained {
		pid, err := strconv.Atoi(strings.Split(path, "/")[2])
		if err != nil || slices.Contains(pids, pid) {
			continue
		}
		if to, err := os.Readlink(path); err == nil && slices.Contains(want, to) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// PortsOf lists the TCP ports of this machine on which these processes listen, in order. It leaves
// out processes that have a network of their own, such as those of containers.
func PortsOf(pids []int) (ports []int) {
	listening := map[string]Socket{}
	for _, table := range tables["tcp"] {
		all, _ := Sockets(table) // as in Wide
		maps.Copy(listening, all)
	}
	network, _ := os.Readlink("/proc/self/ns/net")
	for _, pid := range pids {
		if theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err != nil ||
			theirs != network {
			continue
		}
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // the pattern is well formed
		for _, fd := range fds {
			to, _ := os.Readlink(fd) // empty where it was closed meanwhile
			if s, ok := listening[to]; ok && !slices.Contains(ports, s.Port) {
				ports = append(ports, s.Port)
			}
		}
	}
	slices.Sort(ports)
	return ports
}

// MayLoad is an error for a host at an address that is not one of this machine's, and says how it
// is named: a load is an attack on whoever does not expect it.
func MayLoad(name string, addr netip.Addr) error {
	isOwn, err := Ours(addr)
	if err == nil && !isOwn {
		err = fmt.Errorf("%s (%v) is another machine, and a load may harm it; if you are allowed "+
			"to load it, add --remote %s", name, addr, name)
	}
	return err
}

// Ours says whether an address is one of this machine's.
func Ours(addr netip.Addr) (bool, error) {
	if addr = addr.Unmap(); addr.IsLoopback() ||
		addr.IsUnspecified() { // connecting to 0.0.0.0 stays here
		return true, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("look up this machine's addresses: %w", err)
	}
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		ownPrefix, err := netip.ParsePrefix(a.String())
		return err == nil && ownPrefix.Addr().Unmap() == addr.WithZone("")
	}), nil
}
