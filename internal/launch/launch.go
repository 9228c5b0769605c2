// Package launch starts targets under limits and stops them, and says which limits are in force.
// The folders below it are the ways to do so; launchtest holds the one conformance suite for all of
// them.
package launch

import (
	"context"
	"net/netip"
	"time"

	"prony.example/record"
)

// Spec is what to start.
type Spec struct {
	Name        string // for messages, cgroups and the journal; letters, digits, dots and dashes
	Dir         string // working directory
	Args        []string
	Env         []string // complete: nothing of the lab's own environment is passed on
	Cores       []int    // the service may run on these; empty: on any
	CPUs        float64  // at most this much processor time per second
	MemoryBytes int64    // at most this much memory; 0 for no limit
	LogFile     string   // standard output and error go there
	Port        int      // it will take requests there

	// Image is what a launcher of containers starts, Args behind its entry point; Dir is the
	// image's own. Other launchers know nothing of images.
	Image string
	// Compose is what a launcher of containers brings up instead of an image; nil: nothing.
	Compose *Compose
	// Mounts are files and folders of the host that a container must have, each at its own place.
	Mounts []Mount
	// Give is a folder that becomes, with all in it, that of the user that a process runs as;
	// empty: none.
	Give string

	// Beside is a process of the same launcher whose limits this one shares: both together may use
	// what it was given, where one limit can hold several processes, as that of a cgroup does.
	Beside Process
	// ShareBytes is this process's part of MemoryBytes, for limits that hold one process only; 0:
	// all of it.
	ShareBytes int64
}

// Alone is the memory that its process may have where no limit holds it with others, in bytes.
func (s Spec) Alone() int64 {
	if s.ShareBytes > 0 {
		return s.ShareBytes
	}
	return s.MemoryBytes
}

// NeedsQuota says whether processor time must be limited by a quota: only where the cores given are
// more than the time allowed. A core of one's own limits by itself and never throttles.
func (s Spec) NeedsQuota() bool {
	return s.CPUs > 0 && (len(s.Cores) == 0 || float64(len(s.Cores)) > s.CPUs)
}

// Compose is a service of a Compose file, with all that it depends on.
type Compose struct {
	Program []string // that is Compose, as docker compose
	File    string   // for messages
	Service string   // which takes the requests
	Model   []byte   // what Compose makes of the file, as JSON
}

// Mount is a file or folder that a container shares with the host.
type Mount struct {
	Path  string // absolute, the same inside
	Write bool   // else it can only be read there
}

// Launcher starts a target. An error means that nothing is left running.
type Launcher interface {
	// Listen is the address at which what it starts has to listen: 127.0.0.1, or 0.0.0.0 in a
	// network of its own.
	Listen() string
	Launch(ctx context.Context, s Spec) (Process, error)
}

// Process is a started target, all its processes together.
type Process interface {
	// Addr is where it takes requests, if it does.
	Addr() netip.AddrPort
	// Began is the moment (clock.Mono) at which the target's own program began to run.
	Began() int64
	// Main is the number of its main process, which leads its process group; 0: it has none.
	Main() int
	// PIDs lists its live processes.
	PIDs() []int
	// Groups lists the cgroups that hold it, one a controller with version 1; none when not
	// permitted.
	Groups() []Group
	// Limits lists what the kernel was seen to enforce and what it would not. Where a process has
	// left its control groups, nothing is in force (see record.HasStrayed).
	Limits() (inForce, missing []record.Limit)
	// Exited is closed when the main process has ended, wanted or not. Exit says how, after that:
	// "exit status 0", "signal: killed", and what killed it where that was the memory's limit.
	Exited() <-chan struct{}
	Exit() string
	// Log returns up to n last lines of what it wrote.
	Log(n int) []string
	// LogDropped is what was not kept of what it wrote (see Log), in bytes, once it is stopped.
	LogDropped() int64
	// Stop ends all its processes: politely, then after the grace by force. It returns when none is
	// left. It may be called again.
	Stop(grace time.Duration) error
}

// Mover is a process whose cores may change while it runs. Containers are none: the engine would
// have to be asked.
type Mover interface {
	// Move lets all its processes and threads run on these cores, and on no others. Limits tells
	// what the kernel was then seen to enforce. An error leaves them anywhere.
	Move(cores []int) error
}

// Freezable is a process with a control group that the kernel can stop as a whole.
type Freezable interface {
	// Freezer returns the group that holds all its processes and no others; the zero value: none.
	Freezer() Group
}

// Pausable is a process whose engine can pause it, for users who may not use its control group.
type Pausable interface {
	// Pauser returns what pauses all its processes, or lets them run on; nil: nothing does.
	Pauser() func(paused bool) error
}

// Favourer is a process whose compilers may go before its other threads while it warms up. One that
// is not the lab's own is none.
type Favourer interface {
	// Favour gives the threads that compile, by their names, precedence, or takes it back from all
	// that have it, and says how many those were: none where this user may not. An error of taking
	// back leaves some that have it.
	Favour(enabled bool) (threads int, err error)
}

// Podded is a process that a cluster has started.
type Podded interface {
	// Pod is what has become of it, now. Who may run on its cores settles a moment after its start,
	// which is waited for until the context ends.
	Pod(ctx context.Context) record.Pod
}

// Group is a control group of the process.
type Group struct {
	Dir        string
	Controller string // version 1: cpuacct, cpu, cpuset, memory; version 2: empty, all in one
	Version    int    // 1 or 2
}
