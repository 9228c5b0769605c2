package doctor

import (
	"fmt"
	"strconv"
	"strings"
)

// networkRules are about connections and their limits.
var networkRules = []Rule{
	{Name: "open files", look: openFiles,
		Fit:      "16384 or more",
		Doubtful: "fewer",
		Why: "each connection uses one open file on both sides; beyond the limit, connecting and " +
			"accepting fails",
		Source: "getrlimit(2), RLIMIT_NOFILE"},
	{Name: "ports", look: ports,
		Fit:      "28000 or more",
		Doubtful: "fewer",
		Why: "a connection to one server occupies a port until 60 s after its end: a load that " +
			"renews connections runs out of ports",
		Source: "kernel, networking/ip-sysctl.rst: ip_local_port_range"},
	{Name: "time-wait", look: timeWait,
		Fit:      "the kernel reuses ports, at least on loopback",
		Doubtful: "they are not",
		Why: "without reuse, a load can renew at most ports / 60 s connections, about 470 a " +
			"second",
		Source: "kernel, networking/ip-sysctl.rst: tcp_tw_reuse"},
	{Name: "backlog", look: backlog,
		Fit:      "1024 or more",
		Doubtful: "less",
		Why: "the kernel drops connections beyond a server's queue, and clients retry after 1 s, " +
			"which adds latencies of just over 1 s",
		Source: "listen(2), net.core.somaxconn; RFC 6298 §2"},
	{Name: "conntrack", look: conntrack,
		Fit:      "connection tracking is not loaded, or has room for 30000 connections",
		Doubtful: "less room",
		Why: "if the connection tracking table is full, the kernel drops packets without an " +
			"error, also on loopback",
		Source: "kernel, networking/nf_conntrack-sysctl.rst"},
}

const (
	filesMin     = 16384
	portsMin     = 28000 // the default range, 32768 to 60999, has 28232
	backlogMin   = 1024
	conntrackMin = 30000 // more than there are ports
)

func openFiles(m *machine) finding {
	const name = "Max open files"
	for line := range strings.SplitSeq(m.text("proc/self/limits"), "\n") {
		tail, ok := strings.CutPrefix(line, name)
		if !ok {
			continue
		}
		soft, _, _ := strings.Cut(strings.TrimSpace(tail), " ")
		n, err := strconv.ParseInt(soft, 10, 64)
		return doubtfulIf(err == nil && n < filesMin, soft, fmt.Sprintf("raise the limit with "+
			"ulimit -n %d; above the hard limit, set /etc/security/limits.conf, LimitNOFILE= or "+
			"docker run --ulimit",
			filesMin))
	}
	return unsaid()
}

func ports(m *machine) finding {
	var first, last int
	if n, _ := fmt.Sscan(m.text("proc/sys/net/ipv4/ip_local_port_range"), &first, &last); n != 2 {
		return unsaid()
	}
	observed := fmt.Sprintf("%d ports: %d to %d", last-first+1, first, last)
	return doubtfulIf(last-first+1 < portsMin, observed,
		asRoot(`sysctl -w net.ipv4.ip_local_port_range="32768 60999"`))
}

func timeWait(m *machine) finding {
	switch n := m.number("proc/sys/net/ipv4/tcp_tw_reuse"); n {
	case -1:
		return unsaid()
	case 0:
		return doubtful("never used again", asRoot("sysctl -w net.ipv4.tcp_tw_reuse=2"))
	case 2:
		return fit("reused only on loopback")
	}
	return fit("used again")
}

func backlog(m *machine) finding {
	n := m.number("proc/sys/net/core/somaxconn")
	if n < 0 {
		return unsaid()
	}
	return doubtfulIf(n < backlogMin, strconv.FormatInt(n, 10),
		asRoot("sysctl -w net.core.somaxconn=4096"))
}

func conntrack(m *machine) finding {
	const dir = "proc/sys/net/netfilter/nf_conntrack_"
	most, now := m.number(dir+"max"), m.number(dir+"count")
	switch {
	case most < 0 && m.exists("proc/sys/net"):
		return fit("not loaded")
	case most < 0 || now < 0:
		return unsaid()
	}
	return doubtfulIf(most-now < conntrackMin, fmt.Sprintf("%d of %d table entries in "+
		"use", now, most),
		asRoot("sysctl -w net.netfilter.nf_conntrack_max=262144"))
}
