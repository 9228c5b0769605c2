package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/record"
)

// proc is a container. It implements launch.Process.
type proc struct {
	*launch.Common
	l    *Launcher
	name string
	root *proc // whose network and limits it shares; itself if first or alone
	pod  *pod  // group of the system; nil: none

	user, signal string // user to run as, signal to stop by
	id           string
	created      bool // a container may exist
	started      bool

	pid    int
	ip     netip.Addr
	groups []launch.Group // its own
	// freezer is its group in the tree of version 1's freezer.
	freezer launch.Group
	noPod   string // why its system has no group

	leave    context.CancelFunc // cancels requests for streams and events
	evidence *cgroup.Evidence
}

// Launch implements launch.Launcher. It returns when the container's own program runs, or has
// already ended.
func (l *Launcher) Launch(ctx context.Context, s launch.Spec) (launch.Process, error) {
	if s.Compose != nil {
		return l.bringUp(ctx, s)
	}
	p := &proc{Common: launch.NewCommon(s), l: l, name: l.nextName()}
	p.root = p
	if s.Beside != nil {
		host, ok := s.Beside.(*proc)
		if !ok || host.l != l {
			return nil, fmt.Errorf("launch %s: the process must share the limits of a process "+
				"that this launcher did not start", s.Name)
		}
		p.root, p.pod, p.noPod = host.root, host.root.pod, host.root.noPod
		if p.pod == nil && p.noPod == "" {
			return nil, fmt.Errorf("launch %s: the other process of the system was started "+
				"without a share of the memory", s.Name)
		}
	} else if s.ShareBytes > 0 {
		p.pod, p.noPod = l.podFor()
	}
	l.live.Store(p, true)
	if err := p.run(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("launch %s: %w", s.Name, err), p.Stop(0))
	}
	return p, nil
}

// podFor returns a group for a system, or why it cannot be made.
func (l *Launcher) podFor() (*pod, string) {
	name := fmt.Sprintf("%s%d-%d", podPrefix, os.Getpid(), count.Add(1))
	p := &pod{name: name, groups: podGroups(cgroup.OwnMounts(), name, l.version)}
	if why := p.allowed(l.driver); why != "" {
		return nil, why
	}
	return p, ""
}

// run creates and starts the container.
func (p *proc) run(ctx context.Context) error {
	if err := p.look(ctx); err != nil {
		return err
	}
	making, cancel := unhurried(ctx)
	defer cancel()
	if err := p.create(making); err != nil {
		return err
	}
	if p.pod != nil && p.root == p {
		if err := p.pod.make(p.Spec); err != nil {
			return fmt.Errorf("limit the system's control group: %w", err)
		}
	}
	listening, leave := context.WithCancel(context.Background())
	p.leave = leave
	if err := p.attach(listening); err != nil {
		return err
	}
	// Waiting begins before the start, so that even an immediate end is received.
	end := p.l.engine.wait(listening, p.id, container.WaitConditionNextExit)
	defer func() { go p.heed(end) }() // after all fields that it reads are set
	if err := ctx.Err(); err != nil {
		return err
	}
	before := clock.Mono()
	if err := p.l.engine.post(making, "/containers/"+p.id+"/start", nil); err != nil {
		return fmt.Errorf("start container %s: %w", p.name, explained(err))
	}
	p.started = true
	if err := p.meet(making, before); err != nil {
		return err
	}
	return ctx.Err()
}

// meet finds the container's main process, and checks its user.
func (p *proc) meet(ctx context.Context, before int64) error {
	got, err := p.l.engine.inspect(ctx, p.id)
	if err != nil {
		return fmt.Errorf("inspect container %s: %w", p.name, explained(err))
	}
	state := got.State
	if state == nil {
		return fmt.Errorf("inspect container %s: the engine reported no state", p.name)
	}
	p.pid, p.BeganNs = state.Pid, beganAt(state.StartedAt, before)
	if n := got.NetworkSettings; n != nil && n.Networks[p.l.network] != nil {
		p.ip = n.Networks[p.l.network].IPAddress
	}
	if p.pid > 0 {
		if err := p.recognise(); err != nil {
			return err
		}
	}
	if p.pid > 0 {
		p.evidence = cgroup.WatchEnd(p.pid, p.readMemory)
	}
	p.noteLimits()
	return nil
}

// beganAt converts the start time from the engine's wall clock, which is this host's. The engine
// reads it, in ns, after it was notified that the program was executed. In 16 comparisons with the
// first output of a shell in the container it was 3 ms to 29 ms earlier, and twice up to 14 ms
// later, on an overloaded host: the notification is late by some ms. The kernel's start time is
// worse: the process is born when the engine begins to prepare the container, 80 ms to 1.1 s
// before, in ticks of 10 ms.
func beganAt(startedAt string, before int64) int64 {
	moment, err := time.Parse(time.RFC3339Nano, startedAt)
	now := clock.Mono()
	if err != nil {
		return now
	}
	// The wall clock may have been adjusted in between.
	return min(max(now-int64(clock.Wall().Sub(moment)), before), now)
}

// recognise finds the container's control groups, and checks its user.
func (p *proc) recognise() error {
	paths, err := p.l.pathsOf(p.id, p.name, p.pid)
	if err != nil {
		return err
	}
	if paths == nil {
		p.pid = 0
		return nil
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err == nil && strings.Contains(string(status), "\nUid:\t0\t") {
		return fmt.Errorf("container %s runs as root: user %q in its image is root; set another "+
			"USER in the image", p.name, p.user)
	}
	p.groups = cgroup.Groups(cgroup.OwnMounts(), paths, p.l.version)
	p.freezer = cgroup.FreezerGroup(cgroup.OwnMounts(), paths)
	return nil
}

// pathsOf returns the paths of a container's control groups; nil: it has ended. It checks that the
// process number from the engine is this container's process here: an engine in a virtual machine,
// or Prony in a container, uses other numbers.
func (l *Launcher) pathsOf(id, name string, pid int) (map[string]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	switch {
	case err == nil && strings.Contains(string(text), id):
		return cgroup.Paths(string(text)), nil
	case !lives(pid) && l.hasEnded(id):
		return nil, nil
	}
	return nil, fmt.Errorf("find process %d of container %s: it is not visible, because the "+
		"engine runs in a virtual machine, or Prony runs in a container; run Prony on the "+
		"engine's machine, or give Prony's container the host's PID namespace", pid, name)
}

// noteLimits reads back from the kernel which limits are in force, and which are not.
func (p *proc) noteLimits() {
	groups, why := p.groups, ""
	switch {
	case p.pid == 0:
		why = record.EndedBefore
	case len(groups) == 0:
		why = record.NotMounted
	}
	if p.pod != nil {
		groups = p.pod.groups
	}
	// If the process has ended meanwhile, its affinity is unknown.
	p.InForce, _ = cgroup.Limits(groups, p.pid, p.Spec)
	p.Missing = cgroup.Unenforced(p.Spec, p.InForce, why, "")
	s := p.Spec
	lacks := func(kind string, value float64, reason, detail string) {
		p.Missing = append(p.Missing, record.Unenforced(
			record.Limit{Kind: kind, Value: value}, reason, detail))
	}
	if p.noPod != "" && s.NeedsQuota() {
		lacks(record.LimitCPU, s.CPUs, record.PerContainer, p.noPod)
	}
	if p.noPod != "" && s.MemoryBytes > 0 {
		lacks(record.LimitMemory, float64(s.MemoryBytes), record.PerContainer, p.noPod)
	}
	if s.MemoryBytes > 0 && cgroup.MaySwap(groups) {
		lacks(record.LimitSwap, 0, record.NotCounted, "")
	}
}

// exiting is the kernel's flag of a process that is ending (PF_EXITING in its sched.h), in the
// ninth field of /proc/PID/stat. Such a process has left its control groups.
const exiting = 0x4

// lives reports whether a process exists and is not ending.
func lives(pid int) bool {
	stat := cgroup.Stat(pid)
	if len(stat) < 7 || stat[0] == "Z" {
		return false
	}
	flags, err := strconv.ParseUint(stat[6], 10, 64)
	return err == nil && flags&exiting == 0
}

// hasEnded reports whether the engine has seen the end of a container, which it does shortly after
// the kernel.
func (l *Launcher) hasEnded(id string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), giveUp)
	defer cancel()
	end := <-l.engine.wait(ctx, id, container.WaitConditionNotRunning)
	return end.err == nil
}

// Addr implements launch.Process: an address on the bridge, or of the loopback interface with the
// host's network.
func (p *proc) Addr() netip.AddrPort {
	if p.l.options.Host {
		return p.Common.Addr()
	}
	return netip.AddrPortFrom(p.root.ip, uint16(p.Spec.Port))
}

// Main returns the number of the container's first process on the host; 0: it ended before it was
// inspected.
func (p *proc) Main() int { return p.pid }

// Container returns the container's name in the engine.
func (p *proc) Container() string { return p.name }

// PIDs lists the processes of the container, or of the whole system if it is the system's first.
func (p *proc) PIDs() []int {
	groups := p.groups
	if p.root == p && p.pod != nil {
		groups = p.pod.groups
	}
	if len(groups) > 0 {
		return cgroup.PIDs(groups[0].Dir)
	}
	if p.pid > 0 && !p.Ended() && lives(p.pid) {
		return []int{p.pid}
	}
	return nil
}

// Favour implements launch.Favourer.
func (p *proc) Favour(enabled bool) (int, error) { return cgroup.Favour(p.PIDs(), enabled) }

// Groups returns the groups of the container or of its system. It returns none for a system without
// a group, since each container's own groups exclude the others.
func (p *proc) Groups() []launch.Group {
	switch {
	case p.pod != nil:
		return p.pod.groups
	case p.noPod != "":
		return nil
	}
	return p.groups
}

// attach opens the container's streams before its start, so that no line is lost.
func (p *proc) attach(ctx context.Context) error {
	file, err := p.OpenLog()
	if err != nil {
		return err
	}
	reply, err := p.l.engine.attach(ctx, p.id)
	if err != nil {
		return errors.Join(fmt.Errorf("attach to container %s: %w", p.name, explained(err)),
			file.Close())
	}
	p.CopyLog(file, func() { reply.Close() }, func() {
		// A full disk must not block the container at its next line.
		if _, err := stdcopy.StdCopy(file, file, reply); err != nil {
			_, _ = io.Copy(io.Discard, reply)
		}
	})
	return nil
}

// readMemory reads the kills from the container's own group, and the limit and the peak from its
// system's group if there is one.
func (p *proc) readMemory() cgroup.Memory {
	m := cgroup.ReadMemory(p.groups)
	if p.pod != nil {
		full := cgroup.ReadMemory(p.pod.groups)
		m.Kills = max(m.Kills, full.Kills) // version 2 counts above too
		m.LimitBytes, m.PeakBytes = full.LimitBytes, full.PeakBytes
	}
	return m
}

// heed waits for the end of the container and records how it ended.
func (p *proc) heed(end <-chan ended) {
	got := <-end
	how := cgroup.ExitWords(got.StatusCode)
	if got.Error != nil && got.Error.Message != "" {
		how += " (" + got.Error.Message + ")"
	}
	if got.err != nil {
		how = fmt.Sprintf("unknown, because waiting for container %s failed: %v",
			p.name, explained(got.err))
	} else {
		how = p.memory().Exit(how, p.Stopping.Load())
	}
	p.DrainLog()
	p.End(how)
}

// memory returns the numbers of a kill by the limit on memory, if there was one.
func (p *proc) memory() cgroup.Memory {
	var m cgroup.Memory
	if p.evidence != nil {
		m = p.evidence.Memory() // the process has ended
	}
	if m.Kills == 0 && p.l.wasOutOfMemory(p.id) {
		m.Kills = 1
		m.LimitBytes = cmp.Or(m.LimitBytes, p.Spec.Alone())
	}
	return m
}

// wasOutOfMemory reports whether the engine says that the limit on memory ended a container.
func (l *Launcher) wasOutOfMemory(id string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	got, err := l.engine.inspect(ctx, id)
	return err == nil && got.State != nil && got.State.OOMKilled
}

// Stop implements launch.Process. It uses no context of the launch, so that it also removes
// cancelled launches.
func (p *proc) Stop(grace time.Duration) error {
	p.Stops.Lock()
	defer p.Stops.Unlock()
	p.Stopping.Store(true)
	if !p.created {
		p.over()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace+callBound)
	defer cancel()
	if p.started && !p.Ended() {
		if grace > 0 {
			p.send(ctx, p.signal)
			p.Wait(grace)
		}
		if !p.Ended() {
			p.send(ctx, "SIGKILL")
			select {
			case <-p.Exited():
			case <-ctx.Done():
			}
		}
	}
	// Errors then show the name; the ID may be unknown.
	if err := removeContainer(ctx, p.l.engine, p.name); err != nil {
		return fmt.Errorf("stop %s: %w", p.Spec.Name, err)
	}
	if p.pod != nil && p.root == p {
		if err := inTrees(p.pod.name, cgroup.Remove); err != nil {
			return fmt.Errorf("stop %s: remove the system's control group: %w", p.Spec.Name, err)
		}
	}
	p.over()
	return nil
}

// send sends a signal. It ignores errors: the removal reports those of the engine, and a container
// that has just ended receives no signal.
func (p *proc) send(ctx context.Context, signal string) {
	cmdlog.Run("docker", "kill", "--signal", signal, p.id)
	_ = p.l.engine.post(ctx, "/containers/"+p.id+"/kill", url.Values{"signal": {signal}})
}

// over ends the listeners of a removed container.
func (p *proc) over() {
	if p.leave != nil {
		p.leave()
	}
	_ = p.CloseLog() // the log that exists is kept
	p.created = false
	p.l.live.Delete(p)
}
