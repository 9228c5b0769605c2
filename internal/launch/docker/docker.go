// Package docker launches a target as a container of the local Docker engine, under limits that the
// engine sets and that are read back from the kernel, and stops it.
//
// New makes one internal bridge, which connects only its containers and the host. Launch creates a
// container on it; load goes to the container's own address, without a published port or a proxy.
// With Options.Host the container uses the host's network instead, which shows the cost of the
// bridge. Processes of one system share the first one's network, so that they reach each other at
// 127.0.0.1 like plain processes.
//
// Nothing survives the lab: Stop removes the container, also after a failed launch; Close removes
// the network; a guard (this program again, see Guard) removes both if the lab is killed; New
// removes earlier leftovers.
//
// Non-goals: it builds and pulls no images, and uses no engine on another machine.
package docker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/api/types/network"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/launch"
	"prony.example/internal/launch/guard"
)

// Names of the launchers in records and flags.
const (
	Name     = "docker"
	HostName = "docker-host"
)

// Options select the engine and the network.
type Options struct {
	// Host uses the host's network, to measure a container without the cost of its own network.
	Host bool
	// Socket is the path of the engine's socket; empty: that of DOCKER_HOST, or else
	// /var/run/docker.sock.
	Socket string
	// Dir is a folder in which the guard notes what it could not remove (docker-guard.log); empty:
	// no notes.
	Dir string
}

// Launcher starts containers. It implements launch.Launcher.
type Launcher struct {
	engine  *api
	options Options
	driver  string // the engine's cgroup driver: cgroupfs or systemd
	version int    // of cgroups: 1 or 2
	self    lab
	guard   *guard.Guard

	network string // its name; empty: not created
	gateway netip.Addr

	live sync.Map // of *proc and *stack
}

var _ launch.Launcher = (*Launcher)(nil)

// Limits on waiting for the engine. They are far above the usual time, so only an engine that hangs
// exceeds them.
const (
	callBound = 30 * time.Second // one call, or the removal of everything
	giveUp    = 3 * time.Second  // a call under way when the launch is cancelled
)

// count makes names unique among the launchers of this process.
var count atomic.Int64

// nextName returns a name that no lab uses, also not one of another PID namespace with the same
// engine.
func (l *Launcher) nextName() string {
	return fmt.Sprintf("prony-%s-%d", processOf(l.self.ID), count.Add(1))
}

// New connects to the engine, removes leftovers of ended labs, described in reaped, and creates the
// network. Errors say what is wrong with the engine and what to do: it is absent, stopped,
// forbidden, too old, rootless or on another machine.
func New(ctx context.Context, o Options) (l *Launcher, reaped []string, err error) {
	path, err := socketOf(o.Socket, os.Getenv("DOCKER_HOST"))
	if err != nil {
		return nil, nil, err
	}
	self, err := thisLab()
	if err != nil {
		return nil, nil, err
	}
	l = &Launcher{options: o, self: self}
	if l.engine, err = connect(ctx, path); err != nil {
		return nil, nil, err
	}
	if err = l.know(ctx); err != nil {
		l.engine.Close()
		return nil, nil, err
	}
	reaped, err = sweep(ctx, l.engine, self.outlived)
	if err != nil {
		l.engine.Close()
		return nil, reaped, fmt.Errorf("remove containers and networks that earlier runs left in "+
			"the Docker engine: %w",
			err)
	}
	if l.guard, err = post.Start(watch{Socket: path, Lab: self, Dir: o.Dir}); err != nil {
		l.engine.Close()
		return nil, reaped, fmt.Errorf("start the guard process that removes containers if Prony "+
			"is killed: %w", err)
	}
	if err = l.makeNetwork(ctx); err != nil {
		return nil, reaped, errors.Join(err, l.Close())
	}
	return l, reaped, nil
}

// know reads the engine's properties and checks that it is usable.
func (l *Launcher) know(ctx context.Context) error {
	var got info
	if err := l.engine.get(ctx, "/info", nil, &got); err != nil {
		return fmt.Errorf("read the Docker engine's properties: %w", explained(err))
	}
	l.driver, l.version = got.CgroupDriver, 1
	if got.CgroupVersion == "2" {
		l.version = 2
	}
	return usable(got)
}

// makeNetwork creates the bridge. It is internal: it has no route or address translation to other
// networks, but the host reaches its containers.
func (l *Launcher) makeNetwork(ctx context.Context) error {
	if l.options.Host {
		l.gateway = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		return nil
	}
	ctx, cancel := unhurried(ctx)
	defer cancel()
	l.network = l.nextName()
	cmdlog.Run("docker", "network", "create", "--internal", l.network)
	err := l.engine.call(ctx, http.MethodPost, "/networks/create", nil, network.CreateRequest{
		Name: l.network, Driver: "bridge", Internal: true, Labels: l.self.labels()}, nil)
	if err != nil {
		return fmt.Errorf("create network %s: %w", l.network, explained(err))
	}
	var got network.Inspect
	if err := l.engine.get(ctx, "/networks/"+l.network, nil, &got); err != nil {
		return fmt.Errorf("inspect network %s: %w", l.network, explained(err))
	}
	for _, c := range got.IPAM.Config {
		if c.Gateway.Is4() {
			l.gateway = c.Gateway
			return nil
		}
	}
	return fmt.Errorf("inspect network %s: the host has no IPv4 address on it: %s", l.network,
		ranges(got.IPAM.Config))
}

func ranges(configs []network.IPAMConfig) string {
	if len(configs) == 0 {
		return "the engine assigned no address range; check default-address-pools in its " +
			"daemon.json"
	}
	text := "it has"
	for _, c := range configs {
		text += " " + c.Subnet.String()
	}
	return text
}

// Listen implements launch.Launcher. The address of a container on the bridge is unknown before it
// starts, so it must listen on all; a container in the host's network must not be reachable from
// elsewhere.
func (l *Launcher) Listen() string {
	if l.options.Host {
		return "127.0.0.1"
	}
	return "0.0.0.0"
}

// Gateway returns the host's address on the bridge, at which containers reach servers of the host,
// such as a collector. With Options.Host it is 127.0.0.1.
func (l *Launcher) Gateway() netip.Addr { return l.gateway }

// Close stops what still runs, removes the network and ends the guard. It may be called again.
func (l *Launcher) Close() error {
	var errs []error
	l.live.Range(func(p, _ any) bool {
		errs = append(errs, p.(launch.Process).Stop(0))
		return true
	})
	if l.network != "" {
		ctx, cancel := context.WithTimeout(context.Background(), callBound)
		defer cancel()
		err := remove(ctx, l.engine, "network", l.network)
		if err == nil {
			l.network = ""
		}
		errs = append(errs, err)
	}
	l.engine.Close()
	err := errors.Join(errs...)
	// The guard tries to remove the rest after this process has ended.
	return errors.Join(err, l.guard.End(err == nil))
}

// unhurried returns a context for calls that create something: interrupted, it would be unknown
// whether they did. It ends giveUp after its parent is cancelled, and after callBound at the
// latest.
func unhurried(ctx context.Context) (context.Context, context.CancelFunc) {
	ownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callBound)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(giveUp, cancel) })
	return ownCtx, func() { stop(); cancel() }
}
