// Package launch starts targets under limits, stops them and reports which limits are in force.
// Each folder below it is one launcher; launchtest holds the conformance suite for all of them.
package launch

import (
	"cmp"
	"context"
	"net/netip"
	"time"

	"prony.example/record"
)

// Spec describes a target to start.
type Spec struct {
	Name        string // in messages, cgroups and the journal; letters, digits, dots and dashes
	Dir         string // working directory
	Args        []string
	Env         []string // complete: no variable of this program is added
	Cores       []int    // cores on which the service may run; empty: any
	CPUs        float64  // processor time per second at most
	MemoryBytes int64    // memory at most; 0: no limit
	LogFile     string   // receives standard output and error
	Port        int      // on which the target accepts requests

	// Image is the image that a launcher of containers starts, with Args after its entry point; Dir
	// is then the image's own. Other launchers ignore it.
	Image string
	// Compose is what a launcher of containers starts instead of an image; nil: nothing.
	Compose *Compose
	// Mounts are files and folders of the host that a container must have.
	Mounts []Mount
	// Give is a folder whose owner becomes the user that the process runs as, with all its files;
	// empty: none.
	Give string

	// Copy is the process's own copy of the service's folder. It becomes the property of the user
	// that the process runs as, so that the process can write there; empty: none.
	Copy string
	// AsMe lets the process run as this program's user, also if that is root.
	AsMe bool

	// Beside is a process of the same launcher that shares its limits with this one: both together
	// may use the resources of the first. This needs a limit that can hold several processes, such
	// as a cgroup.
	Beside Process
	// ShareBytes is this process's part of MemoryBytes, for limits that hold a single process; 0:
	// all of it.
	ShareBytes int64
}

// Alone returns the memory in bytes that this process may use if no limit can hold several
// processes.
func (s Spec) Alone() int64 {
	if s.ShareBytes > 0 {
		return s.ShareBytes
	}
	return s.MemoryBytes
}

// NeedsQuota reports whether a quota must limit processor time: only if the spec gives more cores
// than processor time. A core used by a single target limits it without throttling.
func (s Spec) NeedsQuota() bool {
	return s.CPUs > 0 && (len(s.Cores) == 0 || float64(len(s.Cores)) > s.CPUs)
}

// Compose describes a service of a Compose file, with all its dependencies.
type Compose struct {
	Program []string // the command of Compose, such as docker compose
	File    string   // for messages
	Service string   // receives the requests
	Model   []byte   // the resolved file, as JSON
}

// Mount is a file or folder of the host that a container shares.
type Mount struct {
	Path        string // absolute
	Destination string // its path in the container; empty: Path
	Write       bool   // false: read-only
}

// Target returns the path in the container.
func (m Mount) Target() string { return cmp.Or(m.Destination, m.Path) }

// Launcher starts a target. After an error nothing is left running.
type Launcher interface {
	// Listen returns the address at which targets must listen: 127.0.0.1, or 0.0.0.0 in a network
	// of their own.
	Listen() string
	Launch(ctx context.Context, s Spec) (Process, error)
}

// Process is a started target with all its processes.
type Process interface {
	// Addr returns the address at which the target accepts requests, if it does.
	Addr() netip.AddrPort
	// Began returns the moment (clock.Mono) at which the target's own program began to run.
	Began() int64
	// Main returns the number of the main process, which leads its process group; 0: there is none.
	Main() int
	// PIDs lists its live processes.
	PIDs() []int
	// Groups lists the cgroups that hold the target: with version 1 one for each controller; none
	// if the user may not make any.
	Groups() []Group
	// Limits lists the limits that the kernel was seen to enforce, and those that it did not.
	// Nothing is in force after a process has left its control groups (see record.HasStrayed).
	Limits() (inForce, missing []record.Limit)
	// Exited is closed when the main process has ended for any reason. Exit then says how: "exit
	// status 0" or "signal: killed", with the cause if the limit on memory killed it.
	Exited() <-chan struct{}
	Exit() string
	// Log returns up to n last lines of the target's output.
	Log(n int) []string
	// LogDropped returns the bytes of output that were not kept (see Log), after Stop.
	LogDropped() int64
	// Stop ends all processes: by SIGTERM, then by force after the grace. It returns when none is
	// left. It may be called again.
	Stop(grace time.Duration) error
}

// Mover is a process whose cores can change while it runs. Containers do not implement it because
// only their engine could.
type Mover interface {
	// Move lets all processes and threads run only on these cores. Afterwards, Limits reports what
	// the kernel enforces. After an error threads may be on any of the old and new cores.
	Move(cores []int) error
}

// Freezable is a process with a control group that the kernel can stop as a whole.
type Freezable interface {
	// Freezer returns the group that holds exactly its processes; the zero value: there is none.
	Freezer() Group
}

// Pausable is a process whose engine can pause it, for users who may not use its control group.
type Pausable interface {
	// Pauser returns a function that pauses or resumes all its processes; nil: the engine cannot.
	Pauser() func(paused bool) error
}

// Favourer is a process whose compiler threads can get precedence over its other threads during
// warm-up. Only local processes implement it.
type Favourer interface {
	// Favour gives precedence to the threads that compile, chosen by name, or takes it back from
	// all that have it. It returns the number of these threads: 0 if this user lacks the
	// permission. After an error of taking back, some threads still have precedence.
	Favour(enabled bool) (threads int, err error)
}

// Podded is a process that was started by a cluster.
type Podded interface {
	// Pod returns the present state of the pod. Which other pods may run on its cores settles
	// shortly after the start; Pod waits for this until the context ends.
	Pod(ctx context.Context) record.Pod
}

// Group is a control group that holds a process.
type Group struct {
	Dir        string
	Controller string // version 1: cpuacct, cpu, cpuset or memory; version 2: empty, for all
	Version    int    // 1 or 2
}

// HasExited reports whether a target's main process has ended.
func HasExited(p Process) bool {
	select {
	case <-p.Exited():
		return true
	default:
		return false
	}
}
