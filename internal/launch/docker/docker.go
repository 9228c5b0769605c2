// Package docker launches a target as a container of the local Docker engine, under limits that the
// engine sets and that are read back from the kernel, and stops it.
//
// New makes one internal bridge for the lab, which nothing leaves or enters but the host itself;
// Launch creates a container on it, whose own address is where the load goes: no port is published,
// no proxy stands between. With Options.Host the same container lives in the host's network, which
// shows what the bridge costs. Processes of one system share the first one's network, so that they
// find each other on 127.0.0.1 as plain processes do.
//
// Nothing survives the lab. In order of what goes wrong: Stop removes the container, also that of a
// launch that was given up; Close removes the network; a guard (this program again, see Guard)
// removes both when the lab is killed; New removes what even that has left behind.
//
// Non-goals: it neither builds nor pulls images, and knows no engine on another machine.
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

// Names of the launchers, as records and flags have them.
const (
	Name     = "docker"
	HostName = "docker-host"
)

// Options say which engine and which network.
type Options struct {
	// Host leaves containers in the host's own network: what is left of a container's cost without
	// a network of its own.
	Host bool
	// Socket is the engine's, a path; empty: that of DOCKER_HOST, or else /var/run/docker.sock.
	Socket string
	// Dir is a folder in which the guard notes what it could not remove (docker-guard.log); empty:
	// nobody hears of it but the next lab, which finds it.
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

	network string // its name; empty: none was made
	gateway netip.Addr

	live sync.Map // of *proc and *stack
}

var _ launch.Launcher = (*Launcher)(nil)

// Bounds on what the engine is waited for. They are far above what it takes, so that only an engine
// which hangs meets them.
const (
	callBound = 30 * time.Second // one call, or the removal of all that there is
	giveUp    = 3 * time.Second  // a call that began before the launch was given up
)

// count makes names that no two launchers of this process share.
var count atomic.Int64

func nextName() string { return fmt.Sprintf("prony-%d-%d", os.Getpid(), count.Add(1)) }

// New finds the engine, removes what labs that are gone have left there, which reaped names in
// words, and makes the lab's network. Errors say what is wrong with the engine and what to do: it
// is absent, stopped, forbidden, too old, rootless or on another machine.
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

// know asks the engine what the launcher must know of it.
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

// makeNetwork makes the lab's bridge. Internal: nothing passes between it and any other network, no
// address on it is translated, and the host reaches its containers all the same.
func (l *Launcher) makeNetwork(ctx context.Context) error {
	if l.options.Host {
		l.gateway = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		return nil
	}
	ctx, cancel := unhurried(ctx)
	defer cancel()
	l.network = nextName()
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

// Listen implements launch.Launcher: a container on the lab's bridge has its address from the
// engine and knows none to listen at but all; one in the host's network must not be reached from
// elsewhere.
func (l *Launcher) Listen() string {
	if l.options.Host {
		return "127.0.0.1"
	}
	return "0.0.0.0"
}

// Gateway is the host's own address on the lab's bridge, where a container finds what listens on
// the host for it, as a home of telemetry does. With Options.Host it is 127.0.0.1.
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
	// What could not be removed is the guard's: it tries again once the lab has gone.
	return errors.Join(err, l.guard.End(err == nil))
}

// unhurried is for calls that make something: given up in the middle, nobody would know whether it
// was made. So they go on for a moment when their caller is told to stop, and end by themselves.
func unhurried(ctx context.Context) (context.Context, context.CancelFunc) {
	ownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callBound)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(giveUp, cancel) })
	return ownCtx, func() { stop(); cancel() }
}
