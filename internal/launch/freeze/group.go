package freeze

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
)

// group is the freezer of a control group, kept open because opening costs more than writing.
type group struct {
	dir      string
	control  *os.File
	state    *os.File // the same file as control with version 1
	freezing string   // value of control to freeze
	thawing  string
	frozen   []byte // content of state when frozen
	text     [256]byte
}

// spinFor is how long the state is read continuously before the reader sleeps between readings:
// waiting threads stop within microseconds, and a sleep ends 50 µs late or more.
const spinFor = 300 * time.Microsecond

// nap is the length of these sleeps.
const nap = 100 * time.Microsecond

func openGroup(p launch.Process) (*group, error) {
	g, err := groupOf(p)
	if err != nil {
		return nil, err
	}
	out := &group{dir: g.Dir, freezing: "1", thawing: "0", frozen: []byte("frozen 1")}
	if g.Version == 1 {
		out.freezing, out.thawing, out.frozen = "FROZEN", "THAWED", []byte("FROZEN")
		out.control, err = os.OpenFile(filepath.Join(g.Dir, cgroup.StateFile), os.O_RDWR, 0)
		if err != nil {
			return nil, err // not a group that Thaw would prefer to signals
		}
		out.state = out.control
		return out, nil
	}
	out.control, err = os.OpenFile(filepath.Join(g.Dir, cgroup.FreezeFile), os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if out.state, err = os.Open(filepath.Join(g.Dir, cgroup.EventsFile)); err != nil {
		return nil, errors.Join(err, out.control.Close())
	}
	return out, nil
}

func (g *group) close() {
	_ = g.control.Close() // each write was checked
	if g.state != g.control {
		_ = g.state.Close()
	}
}

func (g *group) write(value string) error {
	_, err := g.control.WriteAt([]byte(value), 0)
	return err
}

// freeze returns when the kernel reports that every thread has stopped, or after the bound. The
// kernel also stops processes that are just being forked.
func (g *group) freeze() error {
	if err := g.write(g.freezing); err != nil {
		return err
	}
	began := clock.Mono()
	for {
		n, err := g.state.ReadAt(g.text[:], 0)
		if n == 0 {
			return err // the group has gone
		}
		if bytes.Contains(g.text[:n], g.frozen) {
			return nil
		}
		passed := time.Duration(clock.Mono() - began)
		if passed > bound {
			return nil
		}
		if passed > spinFor {
			time.Sleep(nap)
		}
		// Reading makes version 1 try again (freezer-subsystem.rst).
	}
}

func (g *group) thaw() error {
	err := g.write(g.thawing)
	if errors.Is(err, unix.ENODEV) {
		return nil // the group has gone, and all in it
	}
	return err
}
