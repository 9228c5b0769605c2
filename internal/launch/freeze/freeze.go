// Package freeze stops a running target and lets it run on, so that an idle target uses no
// processor time while others are loaded. A Freezer belongs to one launch.Process and stops all its
// processes: by the freezer of its control group (launch.Freezable, or a group of version 2 among
// its own), otherwise by SIGSTOP to each of them, otherwise by its engine (launch.Pausable).
//
// A target cannot detect that it was stopped, but its clocks went on: timers that were due
// meanwhile fire at once, deadlines have passed, and rates that it computes itself are too low. A
// blocking system call such as epoll_wait(2) may return EINTR after both ways of stopping
// (signal(7)). With signals, the parent of a stopped process receives SIGCHLD. This package does
// not handle a service's reactions.
//
// The launcher's Stop thaws a frozen target. If the program is killed, the journal's next reader
// ends the target (package process).
//
// Non-goals: it does not decide when to freeze, and does not stop backing processes of a system.
package freeze

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/record"
)

// bound limits how long Freeze waits for threads to stop: each needs a turn on a core to stop, and
// a thread that waits for a disk stops when its wait ends. Meanwhile no thread executes an
// instruction of the program; with signals, this holds as soon as the first thread stops.
const bound = 5 * time.Millisecond

// ErrEnded reports that the target has no live process.
var ErrEnded = errors.New("the target has ended")

// Freezer stops one target. Its methods may be called from several goroutines.
type Freezer struct {
	process launch.Process
	way     string

	mu     sync.Mutex
	group  *group   // for FreezeCgroup
	signal *signals // for FreezeSignals
	pause  *pause   // for FreezeEngine
	closed bool
}

// New returns the freezer of a running target without stopping it. The way is one of record's
// Freeze names; empty: the best way that this user may use, or record.FreezeOff if there is none,
// such as for an attached URL or a pod on another node. New fails if a named way is impossible,
// with the reason.
func New(p launch.Process, way string) (*Freezer, error) {
	f := &Freezer{process: p, way: record.FreezeOff}
	var refused error
	if slices.Contains(p.PIDs(), os.Getpid()) {
		way = record.FreezeOff // this program must not stop itself
	}
	switch way {
	case record.FreezeOff:
		return f, nil
	case "", record.FreezeCgroup, record.FreezeSignals, record.FreezeEngine:
	default:
		return nil, fmt.Errorf("freeze: %q is not a way to stop a target: use %s, %s, %s or %s",
			way,
			record.FreezeCgroup, record.FreezeSignals, record.FreezeEngine, record.FreezeOff)
	}
	if way == "" || way == record.FreezeCgroup {
		if f.group, refused = openGroup(p); refused == nil {
			f.way = record.FreezeCgroup
			return f, nil
		}
	}
	if way == "" || way == record.FreezeSignals {
		if f.signal, refused = newSignals(p); refused == nil {
			f.way = record.FreezeSignals
			return f, nil
		}
	}
	if way == "" || way == record.FreezeEngine {
		if f.pause, refused = newPause(p); refused == nil {
			f.way = record.FreezeEngine
			return f, nil
		}
	}
	if way == "" {
		return f, nil
	}
	return nil, fmt.Errorf("freeze by %s: %w", way, refused)
}

// Way returns how the target is stopped: one of record's Freeze names.
func (f *Freezer) Way() string { return f.way }

// Freeze stops all processes of the target. It returns when all threads have stopped, or after 5
// ms: on a busy machine threads wait longer for the turn in which they stop. A frozen target stays
// frozen; with signals, processes that it has forked meanwhile are also stopped. The error is
// ErrEnded for a target without live processes; after any other error the target is thawed.
func (f *Freezer) Freeze() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.way == record.FreezeOff || f.closed {
		return nil
	}
	var err error
	switch f.way {
	case record.FreezeCgroup:
		err = f.group.freeze()
	case record.FreezeEngine:
		err = f.pause.set(true)
	default:
		err = f.signal.freeze()
	}
	switch {
	case err == nil:
		return nil
	case f.ended():
		err = ErrEnded
	default:
		err = errors.Join(err, f.thaw())
	}
	return fmt.Errorf("freeze the target: %w", err)
}

// Thaw lets the target run again; its threads are runnable when it returns. It does nothing if the
// target runs or has ended.
func (f *Freezer) Thaw() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.thaw(); err != nil {
		return fmt.Errorf("thaw the target: %w", err)
	}
	return nil
}

// thaw resumes the target. The caller holds mu.
func (f *Freezer) thaw() error {
	var err error
	switch {
	case f.closed:
	case f.group != nil:
		err = f.group.thaw()
	case f.signal != nil:
		err = f.signal.thaw()
	case f.pause != nil:
		err = f.pause.set(false)
	}
	if err != nil && f.ended() {
		return nil
	}
	return err
}

func (f *Freezer) ended() bool {
	select {
	case <-f.process.Exited():
	default:
		return false
	}
	return len(f.process.PIDs()) == 0
}

// Close thaws the target and closes the freezer's files. Later calls of Freeze do nothing.
func (f *Freezer) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.thaw()
	if f.group != nil && !f.closed {
		f.group.close()
	}
	f.closed = true
	if err != nil {
		return fmt.Errorf("thaw the target: %w", err)
	}
	return nil
}

// groupOf returns the control group by which a target can be stopped: one that holds all its
// processes and not this program.
func groupOf(p launch.Process) (launch.Group, error) {
	var all []launch.Group
	if f, ok := p.(launch.Freezable); ok {
		all = append(all, f.Freezer())
	}
	for _, g := range p.Groups() {
		if g.Version == 2 {
			all = append(all, g)
		}
	}
	pids := p.PIDs()
	for _, g := range all {
		members := cgroup.PIDs(g.Dir) // listed later, so that a new process is already a member
		outside := slices.ContainsFunc(pids, func(pid int) bool {
			return !slices.Contains(members, pid) && cgroup.Born(pid) != ""
		})
		if cgroup.CanFreeze(g) && !outside && !slices.Contains(members, os.Getpid()) {
			return g, nil
		}
	}
	return launch.Group{}, errors.New("the target has no separate control group with a freezer " +
		"that this user may use")
}
