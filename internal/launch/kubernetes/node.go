package kubernetes

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/record"
)

// site reads from the kernel of a pod's node: directly here, or through a reader there.
type site interface {
	// watch begins to look for the containers of a pod.
	watch(uid string) sight
	// facts reads once which of these limits are in force for a container.
	facts(item sighting, requested limits) facts
	// ending waits for the end of a process.
	ending(pid int, groups []launch.Group) *cgroup.Evidence
	// gone is closed when the site can no longer read; nil: it always can.
	gone() <-chan struct{}
	pids(groups []launch.Group) []int
	favour(groups []launch.Group, enabled bool) (threads int, err error)
	cores(groups []launch.Group) []int
	shared(groups []launch.Group, cpus float64) []string
}

// sighting identifies the main process of a container.
type sighting struct {
	Dir     string `json:"dir"`     // of its control group
	PID     int    `json:"pid"`     // on its node; 0: there is none (any more)
	BeganNs int64  `json:"beganNs"` // when its program was first seen, clock.Mono; 0: unknown
}

// sight is a search for the container of a pod.
type sight interface {
	// seen sends the container once, when its own program runs.
	seen() <-chan sighting
	// find looks for a container by its id.
	find(id string) sighting
	close()
}

// limits are the limits of a launch.Spec that a kubelet sets.
type limits struct {
	Cores       []int   `json:"cores"`
	CPUs        float64 `json:"cpus"`
	MemoryBytes int64   `json:"memoryBytes"`
}

func limitsOf(s launch.Spec) limits { return limits{s.Cores, s.CPUs, s.MemoryBytes} }

// facts are read once from a container that has begun.
type facts struct {
	Address string         `json:"address"` // in its network; empty: none
	AgeNs   int64          `json:"ageNs"`   // of its process; -1: there is none
	Groups  []launch.Group `json:"groups"`
	Cores   []int          `json:"cores"` // given by its kubelet
	InForce []record.Limit `json:"inForce"`
	Swaps   bool           `json:"swaps"` // its memory may be swapped out
}

// here is the site of this machine.
type here struct{}

var _ site = here{}

func (here) watch(uid string) sight { return watchNode(uid) }

func (here) facts(item sighting, requested limits) (f facts) {
	f.AgeNs = -1
	if age, ok := cgroup.Age(item.PID); ok {
		f.AgeNs = age
	}
	if item.PID == 0 {
		return f
	}
	if ip := addressOf(item.PID); ip.IsValid() {
		f.Address = ip.String()
	}
	f.Groups = groupsOf(item.Dir)
	f.Cores = granted(f.Groups)
	s := launch.Spec{
		Cores:       requested.Cores,
		CPUs:        requested.CPUs,
		MemoryBytes: requested.MemoryBytes,
	}
	// The kubelet chooses the cores.
	if len(f.Cores) > 0 && len(s.Cores) > 0 {
		s.Cores = f.Cores
	}
	f.InForce, _ = cgroup.Limits(f.Groups, item.PID, s)
	f.Swaps = cgroup.MaySwap(f.Groups)
	return f
}

func (here) ending(pid int, groups []launch.Group) *cgroup.Evidence {
	return cgroup.WatchEnd(pid, func() cgroup.Memory { return cgroup.ReadMemory(groups) })
}

func (here) gone() <-chan struct{} { return nil }

func (here) pids(groups []launch.Group) []int {
	if len(groups) > 0 {
		return cgroup.PIDs(groups[0].Dir)
	}
	return nil
}

func (h here) favour(groups []launch.Group, enabled bool) (int, error) {
	return cgroup.Favour(h.pids(groups), enabled)
}

func (here) cores(groups []launch.Group) []int { return granted(groups) }

func (here) shared(groups []launch.Group, cpus float64) []string { return shared(groups, cpus) }

// born returns a process's start time from its age, but not before a moment; without an age, now.
func (f facts) born(before int64) int64 {
	now := clock.Mono()
	if f.AgeNs >= 0 {
		return min(max(now-f.AgeNs, before), now)
	}
	return now
}

// Limits on searching this node's control groups.
const (
	maxDepth  = 7     // of a pod's group below the root: some clusters run in a container
	maxGroups = 50000 // visited in one pass
	// turn is the interval of looking for a new container, and so the precision of its start time.
	turn = time.Millisecond
	// podTurn is the interval of looking for a new pod's group, which exists long before its
	// containers.
	podTurn = 20 * time.Millisecond
)

// runtimes are the names of a container's first process before it becomes the image's program.
var runtimes = []string{"runc", "crun", "youki", "conmon", "containerd-shim"}

// groupOf returns the folder of a pod's control group below a root; empty: not found. Cgroup
// drivers name it podUID or, with systemd, …-podU_I_D.slice.
func groupOf(root, uid string) (dir string) {
	if !uidForm.MatchString(uid) {
		return ""
	}
	plain, slice := "pod"+uid, "-pod"+strings.ReplaceAll(uid, "-", "_")+".slice"
	counted, base := 0, strings.Count(root, "/")
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch counted++; {
		case counted > maxGroups:
			return fs.SkipAll
		case err != nil || !e.IsDir(): // groups come and go
			return nil
		case e.Name() == plain || strings.HasSuffix(e.Name(), slice):
			dir = path
			return fs.SkipAll
		case strings.Count(path, "/")-base >= maxDepth:
			return fs.SkipDir
		}
		return nil
	})
	return dir
}

// trees returns the roots below which pods' groups may be, one for each version.
func trees() (roots []string) {
	version := 0
	for _, m := range cgroup.OwnMounts() {
		if v2 := m.Version == 2; v2 || slices.Contains(m.Controllers, "memory") {
			if m.Version != version {
				roots = append(roots, m.Dir)
			}
			version = m.Version
		}
	}
	return roots
}

// eye watches this node for the containers of a pod, to record their start times.
type eye struct {
	uid  string
	done chan struct{}
	stop context.CancelFunc

	first chan sighting // the container, when its program runs

	mu    sync.Mutex
	began map[string]int64 // clock.Mono, by the folder of a container's group
}

// eye implements sight.
var _ sight = (*eye)(nil)

// sandbox is the name, in all runtimes, of the process that holds a pod's network.
const sandbox = "pause"

func watchNode(uid string) *eye {
	ctx, cancel := context.WithTimeout(context.Background(), eyeBound)
	e := &eye{uid: uid, done: make(chan struct{}), stop: cancel, first: make(chan sighting, 1),
		began: map[string]int64{}}
	go e.watch(ctx)
	return e
}

// eyeBound limits the wait for a container, whose image may have to be pulled.
const eyeBound = 6 * time.Minute

func (e *eye) watch(ctx context.Context) {
	defer close(e.done)
	dir := ""
	for pause := podTurn; ctx.Err() == nil; time.Sleep(pause) {
		if dir == "" {
			dir = seenOf(e.uid)
		}
		if dir == "" {
			continue
		}
		pause = turn
		entries, _ := os.ReadDir(dir) // the group may have gone
		for _, c := range entries {
			if path := filepath.Join(dir, c.Name()); c.IsDir() {
				e.look(path)
			}
		}
	}
}

// seenOf returns the folder of a pod's group on this node, in the first tree that has it.
func seenOf(uid string) string {
	for _, root := range trees() {
		if dir := groupOf(root, uid); dir != "" {
			return dir
		}
	}
	return ""
}

// look records when a container's first process has become the image's own program.
func (e *eye) look(dir string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.began[dir] != 0 {
		return
	}
	for _, pid := range cgroup.PIDs(dir) {
		name := cgroup.Value(fmt.Sprintf("/proc/%d", pid), "comm")
		if name != "" && !slices.ContainsFunc(runtimes, func(r string) bool {
			return strings.HasPrefix(name, r)
		}) {
			e.began[dir] = clock.Mono()
			if name == sandbox {
				return
			}
			select {
			case e.first <- sighting{dir, mainOf(dir), e.began[dir]}:
			default:
			}
			return
		}
	}
}

func (e *eye) seen() <-chan sighting { return e.first }

func (e *eye) find(id string) (s sighting) {
	if dir := seenOf(e.uid); dir != "" {
		s.Dir = containerDir(dir, id)
		s.PID = mainOf(s.Dir)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.BeganNs = e.began[s.Dir]
	return s
}

// close ends the watch.
func (e *eye) close() {
	e.stop()
	<-e.done
}

// containerDir returns the folder of a container's group below its pod's; empty: there is none.
func containerDir(pod, container string) string {
	entries, _ := os.ReadDir(pod) // the group may have gone
	for _, e := range entries {
		if container != "" && strings.Contains(e.Name(), container) {
			return filepath.Join(pod, e.Name())
		}
	}
	return ""
}

// mainOf returns the number of a container's main process on this node; 0: there is none (any
// more).
func mainOf(dir string) int {
	if dir == "" {
		return 0
	}
	pids := cgroup.PIDs(dir)
	if index := slices.IndexFunc(pids, isFirst); index >= 0 {
		return pids[index]
	}
	if len(pids) > 0 {
		return slices.Min(pids)
	}
	return 0
}

// addressOf returns the IPv4 address of a process's network, from the kernel's
// /proc/PID/net/fib_trie, in which the line after an address has its type. It is not valid if there
// is only the loopback address.
func addressOf(pid int) netip.Addr {
	var last string
	for line := range strings.Lines(cgroup.Value(fmt.Sprintf("/proc/%d/net", pid), "fib_trie")) {
		text := strings.TrimSpace(line)
		if tail, ok := strings.CutPrefix(text, "|-- "); ok {
			last = tail
			continue
		}
		if ip, err := netip.ParseAddr(last); err == nil && strings.Contains(text, "host LOCAL") &&
			!ip.IsLoopback() {
			return ip
		}
	}
	return netip.Addr{}
}

// isFirst reports whether a process is the first of its PID namespace (NSpid of /proc/PID/status).
func isFirst(pid int) bool {
	for line := range strings.Lines(cgroup.Value(fmt.Sprintf("/proc/%d", pid), "status")) {
		if tail, ok := strings.CutPrefix(line, "NSpid:"); ok {
			f := strings.Fields(tail)
			return len(f) > 1 && f[len(f)-1] == strconv.Itoa(1)
		}
	}
	return false
}

// groupsOf returns the control groups of a container from the folder of one of them: those at the
// same path in the trees of version 1 that have the controllers, otherwise of version 2. It does
// not read /proc/PID/cgroup, which shows another path inside a control group namespace.
func groupsOf(dir string) []launch.Group {
	mounts, paths := cgroup.OwnMounts(), map[string]string{}
	for i, m := range mounts {
		mounts[i].Root = "/"
		if rel, err := filepath.Rel(m.Dir, dir); err == nil && filepath.IsLocal(rel) {
			for _, c := range allControllers {
				paths[c] = "/" + rel
			}
		}
	}
	groups := cgroup.Groups(mounts, paths, 1)
	if slices.ContainsFunc(groups, func(g launch.Group) bool { return g.Controller == "cpuacct" }) {
		return groups
	}
	return cgroup.Groups(mounts, paths, 2)
}

// allControllers are the controllers of mounts: version 2 has one with an empty name.
var allControllers = []string{"", "cpu", "cpuacct", "cpuset", "memory"}
