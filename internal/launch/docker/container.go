package docker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/launch/cgroup"
)

const (
	// pidsLimit stops runaway forks and is above the needs of any service: it is the kernel's
	// default limit on the processes of a machine (pid_max).
	pidsLimit = 32768
	// tmpOptions are those of /tmp, the only place that a service may write to. It counts as the
	// service's memory. Programs in it can be executed: JVMs and profilers unpack libraries there.
	tmpOptions = "rw,exec,nosuid,nodev,size=256m,mode=1777"
	// anybody is the user of a container whose image names root or no user: the user of this
	// program's own images. Refusing such images was rejected, because most images elsewhere name
	// no user and few need root; a service that needs it reports this in its log.
	anybody = "1001:1001"
	// polite is the signal to end a program, unless its image names another.
	polite = "SIGTERM"
)

// look reads the user and the stop signal of the image.
func (p *proc) look(ctx context.Context) error {
	if p.Spec.Image == "" {
		return fmt.Errorf("the service has no image; run prony build --images to build one")
	}
	var got struct {
		Config struct{ User, StopSignal string }
	}
	err := p.l.engine.get(ctx, "/images/"+p.Spec.Image+"/json", nil, &got)
	if refused(err, http.StatusNotFound) {
		return fmt.Errorf("image %s is missing; run prony build --images to build it", p.Spec.Image)
	}
	if err != nil {
		return fmt.Errorf("inspect image %s: %w", p.Spec.Image, explained(err))
	}
	p.user = anybody
	if !isRoot(got.Config.User) {
		p.user = got.Config.User
	}
	p.signal = cmp.Or(got.Config.StopSignal, polite)
	return nil
}

// isRoot reports whether a USER of an image is root, by its text. Other names that the image's own
// /etc/passwd maps to root are detected after the start.
func isRoot(user string) bool {
	name, _, _ := strings.Cut(user, ":")
	id, err := strconv.Atoi(name)
	return name == "" || name == "root" || err == nil && id == 0
}

// create creates the container without starting it.
func (p *proc) create(ctx context.Context) error {
	labels := p.l.self.labels()
	if p.pod != nil {
		labels[labelGroup] = p.pod.name
	}
	c, h := p.config(labels), p.hostConfig()
	if cmdlog.Watched() {
		cmdlog.Say(line(p.name, c, h))
	}
	p.created = true // a failed call may have created it
	var got container.CreateResponse
	err := p.l.engine.call(ctx, http.MethodPost, "/containers/create", url.Values{"name": {p.name}},
		container.CreateRequest{Config: c, HostConfig: h}, &got)
	if refused(err, http.StatusConflict) {
		p.created = false // the container with this name belongs to another lab
		return fmt.Errorf("create container %s: %w; a container of another run has this name: "+
			"stop that run, or run docker rm -f %s", p.name, err, p.name)
	}
	if err != nil {
		return fmt.Errorf("create container %s: %w", p.name, explained(err))
	}
	p.id = got.ID
	return nil
}

func (p *proc) config(labels map[string]string) *container.Config {
	return &container.Config{
		Image: p.Spec.Image, Cmd: p.Spec.Args, Env: p.Spec.Env, User: p.user, Labels: labels,
		AttachStdout: true, AttachStderr: true,
		// A health check during a window would use the service's own processor time.
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
}

func (p *proc) hostConfig() *container.HostConfig {
	disabled, pids := false, int64(pidsLimit)
	h := &container.HostConfig{
		NetworkMode:    container.NetworkMode(p.network()),
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		CapDrop:        []string{"ALL"},
		SecurityOpt:    []string{"no-new-privileges"},
		ReadonlyRootfs: true,
		Tmpfs:          map[string]string{"/tmp": tmpOptions},
		Init:           &disabled, // it would stand between signals and the service
		// Prony reads the streams into its own file. With any logging driver the engine would write
		// every line again, using processor time during windows.
		LogConfig: container.LogConfig{Type: "none"},
	}
	h.PidsLimit = &pids
	for _, m := range p.Spec.Mounts {
		h.Mounts = append(h.Mounts, mount.Mount{
			Type: mount.TypeBind, Source: m.Path, Target: m.Target(), ReadOnly: !m.Write})
	}
	p.limit(h)
	return h
}

// network returns the container's network: Prony's bridge, the neighbour's network or the host's.
func (p *proc) network() string {
	switch {
	case p.root != p:
		return "container:" + p.root.id
	case p.l.options.Host:
		return "host"
	}
	return p.l.network
}

// limit sets limits, or joins the group that holds the whole system.
func (p *proc) limit(h *container.HostConfig) {
	h.CpusetCpus = cgroup.CoreList(p.Spec.Cores)
	if p.pod != nil {
		h.CgroupParent = p.pod.parent()
		return
	}
	if p.Spec.NeedsQuota() {
		h.CPUPeriod = cgroup.CPUPeriodUs
		h.CPUQuota = cgroup.QuotaUs(p.Spec.CPUs)
	}
	if ownNs := p.Spec.Alone(); ownNs > 0 {
		// Equal limits for memory and for memory with swap disable swap.
		h.Memory, h.MemorySwap = ownNs, ownNs
	}
}

// line returns the shell command that equals the request to the engine. It is made from the
// request, so that both cannot differ.
func line(name string, c *container.Config, h *container.HostConfig) string {
	words := []string{"docker", "run", "-d", "--name", name}
	flag := func(name string, value any) {
		if text := fmt.Sprint(value); text != "" && text != "0" {
			words = append(words, "--"+name, text)
		}
	}
	flag("user", c.User)
	flag("network", h.NetworkMode)
	flag("cpuset-cpus", h.CpusetCpus)
	flag("cgroup-parent", h.CgroupParent)
	flag("cpu-period", h.CPUPeriod)
	flag("cpu-quota", h.CPUQuota)
	flag("memory", h.Memory)
	flag("memory-swap", h.MemorySwap)
	flag("pids-limit", *h.PidsLimit)
	for _, name := range h.CapDrop {
		flag("cap-drop", name)
	}
	for _, option := range h.SecurityOpt {
		flag("security-opt", option)
	}
	for _, path := range slices.Sorted(maps.Keys(h.Tmpfs)) {
		flag("tmpfs", path+":"+h.Tmpfs[path])
	}
	for _, m := range h.Mounts {
		text := fmt.Sprintf("type=%s,source=%s,target=%s", m.Type, m.Source, m.Target)
		if m.ReadOnly {
			text += ",readonly"
		}
		flag("mount", text)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		flag("label", name+"="+c.Labels[name])
	}
	text := cmdlog.Join(words)
	if h.ReadonlyRootfs {
		text += " --read-only"
	}
	text += " --no-healthcheck"
	for _, pair := range c.Env {
		text += " --env " + cmdlog.Variable(pair)
	}
	return text + " " + cmdlog.Join(append([]string{c.Image}, c.Cmd...))
}
