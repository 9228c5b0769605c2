package docker

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moby/moby/api/types/container"

	"prony/internal/shell"
)

// line is what a container comes to in a shell, made from what the engine is asked for, so that
// neither can say what the other does not. A run of it starts at once and stays.
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
	text := shell.Join(words)
	if h.ReadonlyRootfs {
		text += " --read-only"
	}
	text += " --no-healthcheck"
	for _, pair := range c.Env {
		text += " --env " + shell.Variable(pair)
	}
	return text + " " + shell.Join(append([]string{c.Image}, c.Cmd...))
}
