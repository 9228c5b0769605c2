//go:build linux && !portable

package main

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"prony.example/internal/observe/host"
)

// behind is how far the server stands behind other work, of 19 (nice(2)).
const behind = 10

// aside keeps the server off the cores that services get, and behind all other work: what a reader
// looks at may be late, a measurement may not. What it starts must not inherit that, and a program
// cannot take back that it stands behind others. So one thread of it stays as it was, and starts
// them all.
type aside struct{ todo chan func() }

// standAside moves all threads but one.
func standAside() (*aside, error) {
	cores, err := host.Cores()
	if err != nil {
		return nil, err
	}
	layout, err := host.Divide(cores, 1)
	if err != nil {
		return nil, err
	}
	a := &aside{make(chan func())}
	own := make(chan int)
	go func() {
		runtime.LockOSThread() // for ever: it is not to become another's
		own <- unix.Gettid()
		for do := range a.todo {
			do()
		}
	}()
	stays := <-own
	if err := host.Confine(layout.Load); err != nil {
		return nil, err
	}
	runtime.GOMAXPROCS(len(layout.Load))
	if err := standBehind(stays); err != nil {
		return nil, err
	}
	var set unix.CPUSet
	for _, c := range cores {
		set.Set(c)
	}
	if err := unix.SchedSetaffinity(stays, &set); err != nil {
		return nil, fmt.Errorf("keep a thread on all cores: %w", err)
	}
	return a, nil
}

// standBehind lowers the priority of all threads but one; those made later inherit it.
func standBehind(stays int) error {
	err := host.EachThread("self", func(tid int) error {
		if tid == stays {
			return nil
		}
		return unix.Setpriority(unix.PRIO_PROCESS, tid, behind)
	})
	if err != nil {
		return fmt.Errorf("lower the priority of prony serve: %w", err)
	}
	return nil
}

// start starts a process as one of a program that never stood aside; nil: this one never did.
func (a *aside) start(cmd *exec.Cmd) error {
	if a == nil {
		return cmd.Start()
	}
	started := make(chan error)
	a.todo <- func() { started <- cmd.Start() }
	return <-started
}
