package host

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
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

// Socket is a listening socket.
type Socket struct {
	Port int
	Addr netip.Addr
	Wide bool // listens on all addresses, and so is reachable from other machines
}

// String returns the address as users write it.
func (s Socket) String() string { return netip.AddrPortFrom(s.Addr, uint16(s.Port)).String() }

// Reaches reports whether connections to an address of this machine arrive at the socket. A socket
// of all IPv6 addresses also accepts IPv4, unless its program prevents that.
func (s Socket) Reaches(addr netip.Addr) bool { return s.Wide || s.Addr == addr }

// Sockets returns the listening sockets of a kernel table such as /proc/net/tcp (proc(5)), by the
// target of their links in /proc/PID/fd. A UDP socket counts as listening if it has no peer.
func Sockets(table string) (map[string]Socket, error) {
	text, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	listen := "0A" // TCP_LISTEN, include/net/tcp_states.h
	if strings.HasPrefix(filepath.Base(table), "udp") {
		listen = "07" // TCP_CLOSE, from the same file
	}
	out := map[string]Socket{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // sl local remote state … inode
		if len(f) < 10 || f[3] != listen {
			continue
		}
		address, digits, _ := strings.Cut(f[1], ":")
		port, err := strconv.ParseUint(digits, 16, 16)
		if err != nil {
			return nil, fmt.Errorf("read %s: port %q: %w", table, digits, err)
		}
		addr, err := hexAddr(address)
		if err != nil {
			return nil, fmt.Errorf("read %s: address %q: %w", table, address, err)
		}
		out["socket:["+f[9]+"]"] = Socket{int(port), addr, addr.IsUnspecified()}
	}
	return out, nil
}

// hexAddr reads an address of a kernel table: 32-bit words in the machine's byte order.
func hexAddr(text string) (netip.Addr, error) {
	raw, err := hex.DecodeString(text)
	if err != nil {
		return netip.Addr{}, err
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.Addr{}, fmt.Errorf("it has %d bytes", len(raw))
	}
	return addr.Unmap(), nil
}

// tables lists the tables of this machine. A kernel without IPv6 lacks the second of each.
var tables = map[string][]string{
	"tcp": {"/proc/net/tcp", "/proc/net/tcp6"}, "udp": {"/proc/net/udp", "/proc/net/udp6"},
}

// Wide reports whether a process listens at a port on all addresses of this machine.
func Wide(port int) bool {
	for _, table := range slices.Concat(tables["tcp"], tables["udp"]) {
		all, _ := Sockets(table) // an unreadable table has no sockets
		for _, s := range all {
			if s.Port == port && s.Wide {
				return true
			}
		}
	}
	return false
}

// Listening lists the processes that have a listening socket of a network, tcp or udp, at which
// connections to an address of this machine arrive, in order; without an address, those to any. All
// processes that share the socket after a fork are included. Only root sees processes of other
// users.
func Listening(network string, local netip.AddrPort) (pids []int) {
	addr := local.Addr().Unmap().WithZone("")
	var want []string
	for _, table := range tables[network] {
		all, _ := Sockets(table) // as in Wide
		for socket, s := range all {
			if s.Port == int(local.Port()) &&
				(!addr.IsValid() || addr.IsUnspecified() || s.Reaches(addr)) {
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

// Family lists processes and all that descend from them, without this program unless it is among
// them.
func Family(pids []int) []int {
	children := map[int][]int{}
	all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, path := range all {
		pid, _ := strconv.Atoi(strings.Split(path, "/")[2]) // the kernel wrote it
		text, err := os.ReadFile(path)
		if err != nil || pid == os.Getpid() {
			continue // it has ended
		}
		// Behind the name are the state and the parent (proc_pid_stat(5)).
		tail := string(text[strings.LastIndexByte(string(text), ')')+1:])
		if fields := strings.Fields(tail); len(fields) > 1 {
			parent, _ := strconv.Atoi(fields[1])
			children[parent] = append(children[parent], pid)
		}
	}
	delete(children, 1) // init adopts processes of all services
	members := slices.Clone(pids)
	for i := 0; i < len(members); i++ {
		for _, child := range children[members[i]] {
			if !slices.Contains(members, child) {
				members = append(members, child)
			}
		}
	}
	return members
}

// SocketsOf lists the TCP sockets of this machine on which the processes listen, by their ports. It
// ignores processes with their own network, such as those of containers.
func SocketsOf(pids []int) (out []Socket) {
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
			to, _ := os.Readlink(fd) // empty if it was closed meanwhile
			if s, ok := listening[to]; ok && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	slices.SortFunc(out, func(a, b Socket) int {
		return cmp.Or(a.Port-b.Port, a.Addr.Compare(b.Addr))
	})
	return out
}

// MayLoad returns an error if an address is not one of this machine's, with the option that permits
// it: load on a machine whose owner does not expect it is an attack.
func MayLoad(name string, addr netip.Addr) error {
	isOwn, err := Ours(addr)
	if err == nil && !isOwn {
		err = fmt.Errorf("%s (%v) is another machine, and a load may harm it; if you are allowed "+
			"to load it, add --remote %s", name, addr, name)
	}
	return err
}

// Ours reports whether an address belongs to this machine.
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
