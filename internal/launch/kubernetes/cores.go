package kubernetes

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/record"
)

// coresOf returns the cores of one control group; none if its files show none.
func coresOf(dir string) []int {
	for _, name := range []string{"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"} {
		if cores := cgroup.ParseCores(cgroup.Value(dir, name)); len(cores) > 0 {
			return cores
		}
	}
	return nil
}

// granted returns the cores that the kubelet gave to a container.
func granted(groups []launch.Group) []int {
	if dir, _ := cgroup.Find(groups, "cpuset"); dir != "" {
		return coresOf(dir)
	}
	return nil
}

// Limits on listed neighbours and on waiting.
const (
	maxNeighbours = 8
	// sharedBound is slightly longer than a kubelet takes to remove cores that it has given to one
	// pod from all other pods (cpuManagerReconcilePeriod, 10 s).
	sharedBound = 12 * time.Second
	sharedTurn  = 500 * time.Millisecond
)

// shared describes who else may run on a container's cores: other pods, or all pods of the shared
// pool. An empty result means that the cores are exclusive.
func shared(groups []launch.Group, cpus float64) (out []string) {
	cores := granted(groups)
	if len(cores) == 0 {
		return []string{"the pod's cores cannot be read from this machine"}
	}
	if float64(len(cores)) != cpus {
		return []string{fmt.Sprintf("the kubelet gave the pod no exclusive cores: it shares %d "+
			"cores with all pods, for %g CPUs", len(cores), cpus)}
	}
	ownText, _ := cgroup.Find(groups, "cpuset")
	counted := 0
	_ = filepath.WalkDir(top(ownText), func(path string, e fs.DirEntry, err error) error {
		switch counted++; {
		case counted > maxGroups || len(out) >= maxNeighbours:
			return fs.SkipAll
		case err != nil || !e.IsDir(): // groups come and go
			return nil
		case path == ownText:
			return fs.SkipDir
		}
		pids := strings.Fields(cgroup.Value(path, "cgroup.procs"))
		theirs := coresOf(path)
		if len(pids) > 0 && !pauses(pids) && slices.ContainsFunc(theirs, func(c int) bool {
			return slices.Contains(cores, c)
		}) {
			out = append(out, fmt.Sprintf("%s may run on cores %s", podOfGroup(path),
				cgroup.CoreList(theirs)))
		}
		return nil
	})
	return out
}

// top returns the group of all pods above a pod's group.
func top(dir string) string {
	out := filepath.Dir(dir)
	for up := out; up != "/" && up != "."; up = filepath.Dir(up) {
		if strings.Contains(filepath.Base(up), "kubepods") {
			out = up
		}
	}
	return out
}

// pauses reports whether a group has only the pause process, which holds a pod's network and
// sleeps.
func pauses(pids []string) bool {
	return !slices.ContainsFunc(pids, func(pid string) bool {
		return cgroup.Value("/proc/"+pid, "comm") != "pause"
	})
}

// podOfGroup returns the name of the pod to which a group belongs.
func podOfGroup(path string) string {
	parts := strings.Split(path, "/")
	for i := len(parts) - 1; i >= 0; i-- {
		name := strings.TrimSuffix(parts[i], ".slice")
		if pos := strings.LastIndex("-"+name, "-pod"); pos >= 0 &&
			!strings.HasSuffix(name, "pods") {
			return "pod " + said(name[pos+len("pod"):])
		}
	}
	return "group " + said(filepath.Base(path))
}

// told returns the pod as soon as its node has reported the container, shortly after its start.
func (p *proc) told(ctx context.Context) pod {
	observed := p.pod
	for end := clock.Mono() + int64(sharedBound); observed.image() == "" && ctx.Err() == nil &&
		clock.Mono() < end; sleep(ctx, pollTurn) {
		if now, err := p.now(ctx); err == nil {
			observed = now
		}
	}
	return observed
}

// Pod implements launch.Podded.
func (p *proc) Pod(ctx context.Context) record.Pod {
	observed := p.told(ctx)
	out := record.Pod{Namespace: p.l.cluster.Namespace, Name: said(observed.Metadata.Name),
		Node: said(observed.Spec.NodeName), Server: p.l.server,
		Kubelet: said(p.l.node.Status.NodeInfo.KubeletVersion),
		Runtime: said(p.l.node.Status.NodeInfo.ContainerRuntimeVersion),
		QoS: said(
			observed.Status.QOSClass,
		), Image: observed.image(), Cores: p.site.cores(p.groups)}
	if p.l.options.Service {
		out.Service = p.addr.String()
	}
	if p.log != nil {
		out.APIOutages = p.log.absences()
	}
	if f, is := p.site.(*far); is {
		out.Reader = f.record(p.sampling)
	}
	out.CoresSharedWith = p.site.shared(p.groups, p.Spec.CPUs)
	ctx, cancel := context.WithTimeout(ctx, sharedBound)
	defer cancel()
	for len(out.CoresSharedWith) > 0 && float64(len(out.Cores)) == p.Spec.CPUs &&
		ctx.Err() == nil &&
		!p.mainEnded() {
		sleep(ctx, sharedTurn)
		out.CoresSharedWith = p.site.shared(p.groups, p.Spec.CPUs)
	}
	return out
}
