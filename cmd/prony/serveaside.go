//go:build linux && !portable

package main

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"prony.example/internal/observe/host"
)

// behind is the nice value of the server, of 19 (nice(2)).
const behind = 10

// aside keeps the server off the cores of services, and below the priority of all other work: a
// page may be late, a measurement may not. Runs that it starts must not inherit this, and a program
// cannot raise its own priority again. Therefore one thread keeps cores and priority, and starts
// all processes.
type aside struct{ todo chan func() }

// standAside changes all threads but one.
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
		runtime.LockOSThread() // forever: no other goroutine may use the thread
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

// standBehind lowers the priority of all threads but one. Later threads inherit it.
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

// start starts a process with the original cores and priority. A nil aside was never restricted.
func (a *aside) start(cmd *exec.Cmd) error {
	if a == nil {
		return cmd.Start()
	}
	started := make(chan error)
	a.todo <- func() { started <- cmd.Start() }
	return <-started
}
