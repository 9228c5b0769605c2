package processes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/observe/host"
	"prony.example/load/engine/socket"
	"prony.example/record"
)

// attached treats a service that runs already as a launched one. It starts, limits and stops
// nothing: the service runs as its owner configured it, and the record says so. Its processes are
// those that listen at its address, and their children; processes of another machine are not
// visible.
type attached struct{ address netip.AddrPort }

// Listen implements launch.Launcher.
func (l attached) Listen() string { return l.address.Addr().String() }

// Launch implements launch.Launcher. It checks that the service accepts connections.
func (l attached) Launch(ctx context.Context, _ launch.Spec) (launch.Process, error) {
	p := &attachedProcess{Common: launch.NewCommon(launch.Spec{}), address: l.address}
	p.BeganNs = clock.Mono()
	var err error
	if p.near, err = host.Ours(l.address.Addr()); err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.address.String())
	if err != nil && p.near { // a service of HTTP/3 may have only a UDP port
		p.pids = host.Listening("udp", l.address)
	}
	if len(p.pids) > 0 {
		p.pids = slices.DeleteFunc(p.pids, forwards)
		return p, nil
	}
	if err != nil {
		if socket.Blame(socket.Explain(err, false)) != socket.Service {
			return nil, fmt.Errorf("attach to a running service: %w", socket.Explain(err, false))
		}
		return nil, fmt.Errorf("attach to a running service: %w; start the service first", err)
	}
	if err := conn.Close(); err != nil {
		return nil, err
	}
	if p.near {
		p.pids = host.Listening("tcp", l.address)
	}
	if p.near && len(p.pids) == 0 {
		return nil, errors.New("attach to a running service: no process visible to this user " +
			"listens at " + l.address.String() + "; run Prony as the service's " +
			"user, or as root")
	}
	p.pids = slices.DeleteFunc(p.pids, forwards)
	return p, nil
}

// forwarders are the names of programs that pass connections on to a service in another network:
// what they use is not what the service uses.
var forwarders = []string{"docker-proxy", "kubectl", "pasta", "pasta.avx2", "rootlesskit",
	"rootlessport", "slirp4netns", "ssh"}

func forwards(pid int) bool {
	return slices.Contains(forwarders, cgroup.Value(fmt.Sprintf("/proc/%d", pid), "comm"))
}

type attachedProcess struct {
	*launch.Common
	address netip.AddrPort
	near    bool  // on this machine
	pids    []int // of the processes that listened when the trial began
}

func (p *attachedProcess) Addr() netip.AddrPort   { return p.address }
func (p *attachedProcess) PIDs() []int            { return host.Family(p.pids) }
func (p *attachedProcess) Groups() []launch.Group { return nil }

// Main implements launch.Process. It returns 0 for a service on another machine or in a network
// that another program reaches.
func (p *attachedProcess) Main() int {
	if len(p.pids) == 0 {
		return 0
	}
	return p.pids[0]
}

// Limits implements launch.Process. The owner of the service sets its limits.
func (p *attachedProcess) Limits() (inForce, missing []record.Limit) {
	source := record.ByHere
	if !p.near {
		source = record.ByAway
	}
	return []record.Limit{{Kind: record.LimitOwners, By: source}}, nil
}

func (p *attachedProcess) Exit() string     { return "left alone" }
func (p *attachedProcess) Log(int) []string { return nil }

// Stop leaves the service running. Only Stop closes Exited: if the service ends before, refused
// connections show it.
func (p *attachedProcess) Stop(time.Duration) error {
	p.End("")
	return nil
}
