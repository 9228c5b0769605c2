package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/record"
)

// Limits of a launch.
const (
	// pendingBound limits how long a pod may wait while the scheduler finds no node with room: an
	// earlier pod may need a moment to end.
	pendingBound = 30 * time.Second
	// eventTurn is the interval of reading events while the pod does not change.
	eventTurn = 2 * time.Second
	// foundBound limits the search for a process that runs according to its node: the kubelet sees
	// an end within a second or two.
	foundBound = 5 * time.Second
)

// proc is a pod. It implements launch.Process.
type proc struct {
	*launch.Common
	l       *Launcher
	order   order
	uid     string // of the job
	created bool   // a job may exist

	pod      pod // as last seen during the launch
	sighting sighting
	addr     netip.AddrPort
	groups   []launch.Group

	site     site      // nil: a reader's own pod, which is not read
	sight    sight     // nil: its pod is not known yet
	sampling *Sampling // by a reader; nil: none
	log      *logCopy
	end      *cgroup.Evidence // of its main process; nil: it had already ended
	heard    atomic.Bool      // the cluster has reported its end
}

// Launch implements launch.Launcher. It returns when the container's own program runs, or has
// already ended.
func (l *Launcher) Launch(ctx context.Context, s launch.Spec) (launch.Process, error) {
	if why := refused(s); why != "" {
		return nil, fmt.Errorf("launch %s: %s", s.Name, why)
	}
	p := &proc{Common: launch.NewCommon(s), l: l, site: here{}, order: l.order()}
	l.live.Store(p, true)
	if err := p.run(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("launch %s: %w", s.Name, err), p.Stop(0))
	}
	return p, nil
}

// refused returns why this launcher cannot start a spec; empty: it can.
func refused(s launch.Spec) string {
	switch {
	case s.Compose != nil:
		return "a Compose file cannot run as a pod; use the launcher docker"
	case s.Beside != nil || s.ShareBytes > 0:
		return "a system of several processes cannot run as a pod, because Kubernetes starts " +
			"containers of a pod together"
	case s.Image == "":
		return "the service has no image; run prony build --images to build one"
	}
	return ""
}

// run creates the job and waits until its container runs.
func (p *proc) run(ctx context.Context) error {
	if err := p.l.bring(ctx, p.Spec.Image); err != nil {
		return err
	}
	if p.l.far {
		f, node, err := p.l.reader(ctx)
		if err != nil {
			return err
		}
		p.site, p.order.node, p.order.nodes = f, node, nil
	}
	if err := p.create(ctx, jobOf(p.Spec, p.order), jobOf(hushed(p.Spec), p.order)); err != nil {
		return err
	}
	if err := p.serve(ctx); err != nil {
		return err
	}
	before := clock.Mono()
	if err := p.await(ctx); err != nil {
		return err
	}
	return p.meet(ctx, before)
}

// create creates the job.
func (p *proc) create(ctx context.Context, o, shown object) error {
	p.created = true // a failed call may have created it
	j, err := made[job](ctx, p.l.cluster, o, shown)
	p.uid = j.Metadata.UID
	return err
}

// hushed returns a spec without the values of secrets.
func hushed(s launch.Spec) launch.Spec {
	s.Env = slices.Clone(s.Env)
	for i, pair := range s.Env {
		if name, _, _ := strings.Cut(pair, "="); cmdlog.Secret(name) {
			s.Env[i] = name + "=..."
		}
	}
	return s
}

// serve creates the service before the pod, if Options.Service is set.
func (p *proc) serve(ctx context.Context) error {
	if !p.l.options.Service || p.Spec.Port == 0 {
		return nil
	}
	o := serviceOf(p.order, p.uid, p.Spec.Port)
	service, err := made[struct{ Spec struct{ ClusterIP string } }](ctx, p.l.cluster, o, o)
	if err != nil {
		return err
	}
	ip, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil {
		return fmt.Errorf("create a Kubernetes service: its address is %q",
			said(service.Spec.ClusterIP))
	}
	p.addr = netip.AddrPortFrom(ip, uint16(p.Spec.Port))
	return nil
}

// await waits until the container runs or has ended. Its errors have the cluster's reason.
func (p *proc) await(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, failed := p.changes(ctx)
	turn := time.NewTicker(eventTurn)
	defer turn.Stop()
	began := clock.Mono()
	why := ""
	var observed <-chan sighting
	for {
		select {
		case place := <-observed: // the kernel shows it before its kubelet reports it
			if place.PID > 0 {
				p.sighting = place
				return nil
			}
		case c := <-changes:
			p.pod = c.Object
			if p.sight == nil && p.site != nil {
				if f, is := p.site.(*far); is {
					p.site = f.of(p.pod.Metadata.UID)
				}
				p.sight = p.site.watch(p.pod.Metadata.UID)
				observed = p.sight.seen()
			}
			s := p.pod.state()
			if stuck := p.pod.stuck(); stuck != "" {
				return errors.New(stuck)
			}
			if _, _, ended := p.pod.ended(); ended || s.Running != nil {
				return nil
			}
			if c.Type == "DELETED" {
				return errDeleted
			}
		case err := <-failed:
			return err
		case <-turn.C:
			var err error
			if why, err = p.warned(ctx); err != nil {
				return err
			}
			since := time.Duration(clock.Mono() - began)
			if p.pod.Spec.NodeName == "" && why != "" && since > pendingBound {
				return fmt.Errorf("no node has accepted the pod for %v: %s; %s",
					since.Round(time.Second), why, hintPending(why))
			}
		case <-ctx.Done():
			if why != "" {
				return errors.Join(ctx.Err(), errors.New(why))
			}
			return ctx.Err()
		}
	}
}

// warned returns the last warning about the pod or its job. A rejected pod shows only in its job's
// events.
func (p *proc) warned(ctx context.Context) (why string, err error) {
	for _, name := range []string{p.order.name, p.pod.Metadata.Name} {
		if name == "" {
			continue
		}
		events, err := look[list[event]](ctx, p.l.cluster, "get", "events",
			"--field-selector=involvedObject.name="+name)
		if isAway(err) {
			continue // it may come back
		}
		if err != nil {
			return "", err
		}
		got, hopeless := pending(events.Items)
		if hopeless {
			return "", fmt.Errorf("the cluster does not create the pod: %s; %s",
				got, hintPending(got))
		}
		if got != "" {
			why = got
		}
	}
	return why, nil
}

// changes sends the states of the pod until the context ends. It opens another stream if one ends,
// for example because the API server stopped.
func (p *proc) changes(ctx context.Context) (<-chan change, <-chan error) {
	out, failed := make(chan change), make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			err := p.follow(ctx, out)
			if err != nil && !isAway(err) {
				failed <- explained(err, p.l.cluster.Namespace)
				return
			}
			sleep(ctx, retryTurn)
		}
	}()
	return out, failed
}

// retryTurn is the pause before repeating a call to an API server that did not answer.
const retryTurn = time.Second

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// follow sends the changes from one stream until it ends.
func (p *proc) follow(ctx context.Context, to chan<- change) (err error) {
	s, err := p.l.cluster.open(ctx, "get", "pods", "--selector="+labelPod+"="+p.order.name,
		"--watch", "--output-watch-events", "--output=json")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	from := json.NewDecoder(io.LimitReader(s, maxSaid))
	for {
		c, err := readChange(from)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !c.Object.isOf(p.uid) {
			continue
		}
		select {
		case to <- c:
		case <-ctx.Done():
			return nil
		}
	}
}

// meet finds the container's main process on its node.
func (p *proc) meet(ctx context.Context, before int64) error {
	if p.sighting.PID == 0 {
		if err := p.find(ctx); err != nil {
			return err
		}
	}
	f := p.site.facts(p.sighting, limitsOf(p.Spec))
	if !p.addr.IsValid() {
		ip, err := netip.ParseAddr(p.pod.Status.PodIP)
		if err != nil {
			ip, _ = netip.ParseAddr(f.Address) // not valid: it has none
		}
		p.addr = netip.AddrPortFrom(ip, uint16(p.Spec.Port))
	}
	if p.BeganNs = p.sighting.BeganNs; p.BeganNs == 0 {
		p.BeganNs = f.born(before)
	}
	p.sight.close()
	if p.afar() {
		if err := p.reached(ctx); err != nil {
			return err
		}
	}
	if p.groups = f.Groups; p.sighting.PID > 0 {
		p.end = p.site.ending(p.sighting.PID, p.groups)
	}
	p.noteLimits(f)
	var err error
	if p.log, err = p.copyLog(); err != nil {
		return err
	}
	go p.heed()
	return ctx.Err()
}

// find looks for the main process on its node. If the process has ended meanwhile, the node reports
// this a moment later.
func (p *proc) find(ctx context.Context) error {
	bound := foundBound
	if p.afar() {
		bound = askBound
	}
	for end := clock.Mono() + int64(bound); ; sleep(ctx, pollTurn) {
		p.sighting = p.sight.find(p.pod.containerID())
		if _, _, ended := p.pod.ended(); ended || p.sighting.PID > 0 {
			return nil
		}
		now, err := p.now(ctx)
		if err != nil {
			return err
		}
		if p.pod = now; clock.Mono() > end {
			return p.elsewhere()
		}
	}
}

// elsewhere returns an error that explains why a running pod is not visible.
func (p *proc) elsewhere() error {
	name, ownText := said(p.pod.Spec.NodeName), p.l.node.Metadata.Name
	if f, is := p.site.(*far); is {
		return cmp.Or(f.lost(), fmt.Errorf("the pod runs on node %s, but the reader on that node "+
			"does not find the pod's control group: check that the node mounts control groups at "+
			"/sys/fs/cgroup", name))
	}
	if name == ownText {
		return fmt.Errorf("the pod runs on this node, %s, but its control group is not visible, "+
			"because Prony runs in a container; give Prony's container the host's PID namespace "+
			"and /sys/fs/cgroup, or set PRONY_KUBERNETES_READER=pod", name)
	}
	return fmt.Errorf("the pod runs on node %s, but Prony runs on another node: limits and "+
		"resource usage are read from the pod's cgroup on its own node; set "+
		"PRONY_KUBERNETES_READER=pod, which starts a reader on that node, or choose the node "+
		"with PRONY_KUBERNETES_NODES", name)
}

// errDeleted is the end of a pod that this program did not delete.
var errDeleted = errors.New("another user or program deleted the pod, possibly together with its " +
	"namespace")

// now returns the present state of the pod.
func (p *proc) now(ctx context.Context) (pod, error) {
	now, err := look[pod](ctx, p.l.cluster, "get", "pod", p.pod.Metadata.Name)
	if err != nil && strings.Contains(err.Error(), "not found") {
		err = errDeleted
	}
	return now, err
}

// noteLimits stores which limits the kernel enforces, and which it does not.
func (p *proc) noteLimits(f facts) {
	s, why := p.Spec, ""
	if p.sighting.PID == 0 {
		why = record.EndedBefore
	}
	if len(f.Cores) > 0 && len(s.Cores) > 0 {
		s.Cores = f.Cores
	}
	p.InForce = f.InForce
	p.Missing = cgroup.Unenforced(s, p.InForce, why, "")
	if s.MemoryBytes > 0 && f.Swaps {
		p.Missing = append(p.Missing, record.Unenforced(
			record.Limit{Kind: record.LimitSwap}, record.Permitted, ""))
	}
}

// Addr returns the address of the pod, or of its service.
func (p *proc) Addr() netip.AddrPort { return p.addr }

// Main returns the number of the container's first process on this node; 0: it ended before it was
// found, or runs on another node.
func (p *proc) Main() int {
	if p.afar() {
		return 0
	}
	return p.sighting.PID
}

// PIDs lists the processes of the container; none if it runs on another node.
func (p *proc) PIDs() []int {
	if p.afar() {
		return nil
	}
	return p.running()
}

// running lists the processes by their numbers on their own node.
func (p *proc) running() []int {
	if p.site == nil {
		return nil
	}
	return p.site.pids(p.groups)
}

// afar reports whether a reader reads the pod: then its numbers are not of this machine's kernel.
func (p *proc) afar() bool {
	_, is := p.site.(*far)
	return is
}

// Favour implements launch.Favourer.
func (p *proc) Favour(enabled bool) (int, error) { return p.site.favour(p.groups, enabled) }

// Groups returns its control groups on this machine.
func (p *proc) Groups() []launch.Group {
	if p.afar() {
		return nil
	}
	return p.groups
}
