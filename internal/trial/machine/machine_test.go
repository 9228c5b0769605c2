package machine_test

import (
	"net/netip"
	"testing"

	"prony.example/internal/launch"
	"prony.example/internal/observe/host"
	"prony.example/internal/trial/machine"
)

// gone is a process that has ended, with its control group.
type gone struct{ launch.Process }

func (gone) Addr() netip.AddrPort { return netip.AddrPort{} }
func (gone) Main() int            { return 0 }
func (gone) PIDs() []int          { return nil }
func (gone) Groups() []launch.Group {
	return []launch.Group{{Version: 2, Dir: "/sys/fs/cgroup/of-a-pod-that-has-ended"}}
}

// A service that ended before it could be sampled gives an error and no watcher: a nil pointer
// would be a non-nil interface.
func TestWhatHasEndedIsNotWatched(t *testing.T) {
	w, err := machine.Watch(gone{}, host.Layout{}, 0, nil)
	if w != nil || err == nil {
		t.Errorf("watcher %#v, error %v; want none, and an error", w, err)
	}
}
