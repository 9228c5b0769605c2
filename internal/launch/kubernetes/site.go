package kubernetes

import (
	"prony/internal/clock"
	"prony/internal/launch"
	"prony/internal/launch/kernel"
)

// site reads what the kernel of a pod's node keeps of it: here, or by a reader there.
type site interface {
	// watch looks for the containers of a pod from now on.
	watch(uid string) sight
	// facts reads once what is in force for a container of these limits.
	facts(of sighting, asked limits) facts
	// ending waits for the end of a process.
	ending(pid int, groups []launch.Group) *kernel.Evidence
	// gone is closed when nothing will be read any more; nil: that is always possible.
	gone() <-chan struct{}
	pids(groups []launch.Group) []int
	favour(groups []launch.Group, on bool) (threads int, err error)
	cores(groups []launch.Group) []int
	shared(groups []launch.Group, cpus float64) []string
}

// sighting is the main process of a container.
type sighting struct {
	Dir     string `json:"dir"`     // of its control group
	PID     int    `json:"pid"`     // on its node; 0: there is none (any more)
	BeganNs int64  `json:"beganNs"` // when its program was first seen, clock.Mono; 0: nobody saw it
}

// sight is a pod that is looked for.
type sight interface {
	// seen tells of the container once, when its own program runs.
	seen() <-chan sighting
	// find looks for a container by its id.
	find(id string) sighting
	close()
}

// limits are those of a launch.Spec that a kubelet sets.
type limits struct {
	Cores       []int   `json:"cores"`
	CPUs        float64 `json:"cpus"`
	MemoryBytes int64   `json:"memoryBytes"`
}

func limitsOf(s launch.Spec) limits { return limits{s.Cores, s.CPUs, s.MemoryBytes} }

// facts are what is read of a container once, when it has begun.
type facts struct {
	Address string         `json:"address"` // of its network; empty: it has none
	AgeNs   int64          `json:"ageNs"`   // of its process; -1: there is none
	Groups  []launch.Group `json:"groups"`
	Cores   []int          `json:"cores"` // that its kubelet gave it
	InForce []string       `json:"inForce"`
	Swaps   bool           `json:"swaps"` // what it has may be swapped out
}

// here is this machine.
type here struct{}

var _ site = here{}

func (here) watch(uid string) sight { return watchNode(uid) }

func (here) facts(of sighting, asked limits) (f facts) {
	f.AgeNs = -1
	if age, ok := kernel.Age(of.PID); ok {
		f.AgeNs = age
	}
	if of.PID == 0 {
		return f
	}
	if ip := addressOf(of.PID); ip.IsValid() {
		f.Address = ip.String()
	}
	f.Groups = groupsOf(of.Dir)
	f.Cores = granted(f.Groups)
	s := launch.Spec{Cores: asked.Cores, CPUs: asked.CPUs, MemoryBytes: asked.MemoryBytes}
	// Which cores is the kubelet's to say.
	if len(f.Cores) > 0 && len(s.Cores) > 0 {
		s.Cores = f.Cores
	}
	f.InForce, _ = kernel.Limits(f.Groups, of.PID, s)
	f.Swaps = kernel.HasSwap() && !kernel.SwapLimited(f.Groups)
	return f
}

func (here) ending(pid int, groups []launch.Group) *kernel.Evidence {
	return kernel.WatchEnd(pid, func() kernel.Memory { return kernel.ReadMemory(groups) })
}

func (here) gone() <-chan struct{} { return nil }

func (here) pids(groups []launch.Group) []int {
	if len(groups) > 0 {
		return kernel.PIDs(groups[0].Dir)
	}
	return nil
}

func (h here) favour(groups []launch.Group, on bool) (int, error) {
	return kernel.Favour(h.pids(groups), on)
}

func (here) cores(groups []launch.Group) []int { return granted(groups) }

func (here) shared(groups []launch.Group, cpus float64) []string { return shared(groups, cpus) }

// born is a process's birth by its age, not before a moment; now where that is not known.
func (f facts) born(before int64) int64 {
	now := clock.Mono()
	if f.AgeNs >= 0 {
		return min(max(now-f.AgeNs, before), now)
	}
	return now
}
