package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/api/types/container"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/record"
)

// Labels that Compose gives to its objects.
const (
	labelProject = "com.docker.compose.project"
	labelService = "com.docker.compose.service"
)

const (
	// composeLines limits the log lines that are kept of each container of a Compose file.
	composeLines = 10000
	// engineLog limits the log that the engine keeps of a container while it runs.
	engineLog = "8m"
	// saidLines is the number of last output lines of Compose, and of its containers, in an error.
	saidLines = 20
)

// stack is a running Compose project, under a name of its own. It implements launch.Process.
// Compose makes and removes it; its limits, and the search for leftovers, use the same groups and
// labels as other containers.
type stack struct {
	*launch.Common
	l     *Launcher
	name  string // of the project
	model []byte
	pod   *pod
	noPod string

	all    []container.InspectResponse // running ones; the one that receives requests is first
	ip     netip.Addr
	groups []launch.Group // of the first container, if there is no pod
	dirs   []string       // of a group of each container; empty: it has none here
	// freezer is the first container's group in the tree of version 1's freezer.
	freezer launch.Group

	up     bool // compose up was called
	logged bool
}

// bringUp launches the service of a Compose file with its dependencies.
func (l *Launcher) bringUp(ctx context.Context, s launch.Spec) (launch.Process, error) {
	p := &stack{Common: launch.NewCommon(s), l: l, name: l.nextName()}
	p.pod, p.noPod = l.podFor()
	l.live.Store(p, true)
	if err := p.run(ctx); err != nil {
		err = fmt.Errorf("launch %s: %w", s.Name, err)
		if log := p.Log(saidLines); p.up && len(log) > 0 {
			err = fmt.Errorf("%w; its containers wrote:\n  %s", err, strings.Join(log, "\n  "))
		}
		return nil, errors.Join(err, p.Stop(0))
	}
	return p, nil
}

func (p *stack) run(ctx context.Context) (err error) {
	if p.model, err = p.adapted(); err != nil {
		return err
	}
	p.up = true // also after a failure, which may leave a part
	if p.pod != nil {
		err := p.compose(ctx, nil, "up", "--no-start", "--no-build", p.Spec.Compose.Service)
		if err != nil {
			return err
		}
		if err := p.pod.make(p.Spec); err != nil {
			return fmt.Errorf("limit the control group of the Compose file: %w", err)
		}
	}
	before := clock.Mono()
	err = p.compose(ctx, nil, "up", "--detach", "--no-build", p.Spec.Compose.Service)
	if err != nil {
		return err
	}
	if err := p.meet(ctx, before); err != nil {
		return err
	}
	return ctx.Err()
}

// adapted returns the model with this program's labels, cores and group, and bounds the logs that
// the engine writes. It removes the names of containers and published ports, which could collide
// with another lab's, and restarts, which would hide an end.
func (p *stack) adapted() ([]byte, error) {
	var model map[string]any
	if err := json.Unmarshal(p.Spec.Compose.Model, &model); err != nil {
		return nil, fmt.Errorf("read Compose's output for %s: %w", p.Spec.Compose.File, err)
	}
	labels := p.l.self.labels()
	if p.pod != nil {
		labels[labelGroup] = p.pod.name
	}
	model["name"] = p.name
	for kind, parts := range map[string]map[string]any{
		"services": within(model, "services"), "networks": within(model, "networks"),
		"volumes": within(model, "volumes")} {
		for name := range parts {
			part := within(parts, name)
			if part["external"] == true {
				continue
			}
			byName := within(part, "labels")
			for key, value := range labels {
				byName[key] = value
			}
			if kind != "services" {
				part["name"] = p.name + "_" + name
				continue
			}
			delete(part, "ports")
			delete(part, "container_name")
			delete(part, "build")
			part["restart"], part["pull_policy"] = "no", "never"
			part["logging"] = map[string]any{"driver": "json-file",
				"options": map[string]string{"max-size": engineLog}}
			if len(p.Spec.Cores) > 0 {
				part["cpuset"] = cgroup.CoreList(p.Spec.Cores)
			}
			if p.pod != nil {
				part["cgroup_parent"] = p.pod.parent()
			}
		}
	}
	return json.Marshal(model)
}

// within returns the mapping below a key, and creates it if it is missing.
func within(byName map[string]any, key string) map[string]any {
	to, ok := byName[key].(map[string]any)
	if !ok {
		to = map[string]any{}
		byName[key] = to
	}
	return to
}

// compose runs Compose on the model, with its output in a file; nil: it is discarded. It receives
// SIGINT when ctx ends, and ends with this program. Errors include its last lines about progress.
func (p *stack) compose(ctx context.Context, to *os.File, args ...string) error {
	words := slices.Concat(p.Spec.Compose.Program, []string{"--progress", "plain",
		"--project-name", p.name, "--file", "-"}, args)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = giveUp
	cmd.Stdin = bytes.NewReader(p.model)
	var output files.End
	cmd.Stderr = &output
	if to != nil { // a nil *os.File would be a non-nil io.Writer
		cmd.Stdout = to
	}
	cmdlog.Command(cmd)
	runtime.LockOSThread() // the parent-death signal follows this thread
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	lines := strings.Split(output.String(), "\n")
	return fmt.Errorf("%s %s of %s: %w:\n  %s", strings.Join(p.Spec.Compose.Program, " "),
		args[0], p.Spec.Compose.File, err,
		strings.Join(lines[max(0, len(lines)-saidLines):], "\n  "))
}

// meet finds the containers, and the address that receives the requests.
func (p *stack) meet(ctx context.Context, before int64) error {
	var matches []container.Summary
	err := p.l.engine.get(ctx, "/containers/json", labelled(labelProject+"="+p.name), &matches)
	if err != nil {
		return fmt.Errorf("list the containers of %s: %w", p.Spec.Compose.File, explained(err))
	}
	for _, c := range matches {
		got, err := p.l.engine.inspect(ctx, c.ID)
		if err != nil {
			return fmt.Errorf("inspect container %s: %w", c.ID, explained(err))
		}
		if got.State == nil {
			return fmt.Errorf("inspect container %s: the engine reported no state", c.ID)
		}
		front, running := c.Labels[labelService] == p.Spec.Compose.Service, got.State.Running
		if front && !running {
			return fmt.Errorf("service %s ended immediately after its start: %s",
				p.Spec.Compose.Service,
				cgroup.ExitWords(int64(got.State.ExitCode)))
		}
		if front {
			p.all = slices.Insert(p.all, 0, got)
		} else if running { // others have ended as planned, or Compose would have failed
			p.all = append(p.all, got)
		}
	}
	if len(p.all) == 0 || p.service(p.all[0]) != p.Spec.Compose.Service {
		return fmt.Errorf("%s started no container of service %s", p.Spec.Compose.File,
			p.Spec.Compose.Service)
	}
	p.BeganNs = clock.Mono()
	for _, c := range p.all {
		p.BeganNs = min(p.BeganNs, beganAt(c.State.StartedAt, before))
	}
	if err := p.recognise(); err != nil {
		return err
	}
	for _, c := range p.all {
		go p.heed(c)
	}
	return p.place()
}

// recognise finds the control groups of all containers.
func (p *stack) recognise() error {
	mounts := cgroup.OwnMounts()
	for i, c := range p.all {
		paths, err := p.l.pathsOf(c.ID, strings.TrimPrefix(c.Name, "/"), c.State.Pid)
		if err != nil {
			return err
		}
		groups := cgroup.Groups(mounts, paths, p.l.version)
		if i == 0 {
			p.groups, p.freezer = groups, cgroup.FreezerGroup(mounts, paths)
		}
		p.dirs = append(p.dirs, "")
		if len(groups) > 0 {
			p.dirs[i] = groups[0].Dir
		}
	}
	if p.pod != nil {
		p.groups = p.pod.groups
	}
	return nil
}

func (p *stack) service(c container.InspectResponse) string {
	if c.Config == nil {
		return ""
	}
	return c.Config.Labels[labelService]
}

// place finds the address and the limits of the containers.
func (p *stack) place() error {
	front := p.all[0]
	if front.HostConfig != nil && front.HostConfig.NetworkMode.IsHost() {
		p.ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	} else if n := front.NetworkSettings; n != nil {
		for _, name := range slices.Sorted(maps.Keys(n.Networks)) {
			if endpoint := n.Networks[name]; endpoint != nil && endpoint.IPAddress.Is4() {
				p.ip = endpoint.IPAddress
			}
		}
	}
	if !p.ip.IsValid() {
		return fmt.Errorf("service %s has no address that this machine can reach: give the "+
			"service a bridge network", p.Spec.Compose.Service)
	}
	p.InForce, _ = cgroup.Limits(p.groups, p.Main(), p.Spec)
	p.Missing = cgroup.Unenforced(p.Spec, p.InForce, record.Refused, p.noPod)
	return nil
}

// heed waits for the end of one container, and reports it as the end of the stack.
func (p *stack) heed(c container.InspectResponse) {
	got := <-p.l.engine.wait(context.Background(), c.ID, container.WaitConditionNotRunning)
	how := cgroup.ExitWords(got.StatusCode)
	if got.err != nil {
		how = fmt.Sprintf("not known: %v", explained(got.err))
	} else if p.l.wasOutOfMemory(c.ID) {
		how = cgroup.Memory{Kills: 1}.Exit(how, p.Stopping.Load())
	}
	p.End("service " + p.service(c) + ": " + how)
}

func (p *stack) Addr() netip.AddrPort { return netip.AddrPortFrom(p.ip, uint16(p.Spec.Port)) }
func (p *stack) Main() int            { return p.all[0].State.Pid }

// Container returns the name of the container that receives the requests.
func (p *stack) Container() string { return strings.TrimPrefix(p.all[0].Name, "/") }

// PIDs lists the processes of all containers.
func (p *stack) PIDs() (out []int) {
	for i, dir := range p.dirs {
		switch pid := p.all[i].State.Pid; {
		case dir != "":
			out = append(out, cgroup.PIDs(dir)...)
		case lives(pid):
			out = append(out, pid)
		}
	}
	return out
}

// Groups returns the groups that hold all containers; none if the engine cannot place several in
// one.
func (p *stack) Groups() []launch.Group {
	if p.pod == nil && len(p.all) > 1 {
		return nil
	}
	return p.groups
}

// Favour implements launch.Favourer.
func (p *stack) Favour(enabled bool) (int, error) { return cgroup.Favour(p.PIDs(), enabled) }

// Log implements launch.Process. It fetches the output of all containers from Compose until Stop.
func (p *stack) Log(n int) []string {
	if p.up && !p.logged {
		ctx, cancel := context.WithTimeout(context.Background(), callBound)
		defer cancel()
		if err := p.fetchLog(ctx); err != nil {
			return []string{err.Error()}
		}
	}
	return files.Tail(p.Spec.LogFile, n)
}

// fetchLog replaces the log by the output of all containers until now, within the log's bounds.
func (p *stack) fetchLog(ctx context.Context) error {
	to, err := p.OpenLog()
	if err != nil {
		return err
	}
	if err = to.Truncate(0); err == nil {
		err = p.compose(ctx, to, "logs", "--no-color", "--tail", strconv.Itoa(composeLines))
	}
	return errors.Join(err, to.Close(), p.CloseLog())
}

// Stop saves the log, and removes all containers, networks and volumes.
func (p *stack) Stop(grace time.Duration) error {
	p.Stops.Lock()
	defer p.Stops.Unlock()
	p.Stopping.Store(true)
	var errs []error
	if p.up {
		p.Log(0)
		p.logged = true
		ctx, cancel := context.WithTimeout(context.Background(), grace+callBound)
		defer cancel()
		err := p.compose(ctx, nil, "down", "--volumes", "--remove-orphans", "--timeout",
			strconv.Itoa(int(grace.Seconds())))
		errs = append(errs, err)
		p.up = err != nil
	}
	if p.pod != nil && !p.up {
		errs = append(errs, inTrees(p.pod.name, cgroup.Remove))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop %s: %w", p.Spec.Name, err)
	}
	p.l.live.Delete(p)
	return nil
}
