package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Sockets are those that listen, of a table of the kernel's such as /proc/net/tcp (proc(5)): their
// ports by what /proc/PID/fd links to.
func Sockets(table string) (map[string]int, error) {
	text, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	const listen = "0A" // TCP_LISTEN, include/net/tcp_states.h
	out := map[string]int{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // sl local remote state … inode
		if len(f) < 10 || f[3] != listen {
			continue
		}
		_, hex, _ := strings.Cut(f[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if err != nil {
			return nil, fmt.Errorf("read %s: port %q: %w", table, hex, err)
		}
		out["socket:["+f[9]+"]"] = int(port)
	}
	return out, nil
}

// Listening lists the processes that hold a socket which listens at a port of this machine, in
// order; a service that has forked is all that share it. Those of other users show to root alone.
func Listening(port int) (pids []int) {
	var wanted []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		all, _ := Sockets(table) // a kernel without IPv6 has no second one
		for socket, at := range all {
			if at == port {
				wanted = append(wanted, socket)
			}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	held, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well formed
	for _, path := range held {
		pid, err := strconv.Atoi(strings.Split(path, "/")[2])
		if err != nil || slices.Contains(pids, pid) {
			continue
		}
		if to, err := os.Readlink(path); err == nil && slices.Contains(wanted, to) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}
