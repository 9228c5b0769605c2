// Package local runs a load with several processes of this program on this machine. It starts the
// generators for the lab, and stops them after the load.
//
//	load, parts of n ─► lab on 127.0.0.1 ─► n × prony generate --child ─► one result
//
// If a load is not divided, Driver runs it in this process.
//
// Non-goals: it judges nothing, and uses no other machines.
package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/generator"
	"prony.example/internal/generator/distributed"
	"prony.example/load"
)

// Most is the largest number of generators on one machine.
const Most = 256

// Crew tracks the running generators. The zero value has none.
type Crew struct {
	mu   sync.Mutex
	pids []int
}

// PIDs returns the generators' processes, so that observers of the machine count them as the
// load's.
func (c *Crew) PIDs() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.pids)
}

func (c *Crew) came(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pids = append(c.pids, pid)
}

func (c *Crew) went(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pids = slices.DeleteFunc(c.pids, func(p int) bool { return p == pid })
}

// Driver is Prony's generator for suites with several generators. A load with load.Spec.Part.Of
// runs in that number of processes, or in as many as it has connections, for example one in a
// search's first step.
type Driver struct {
	generator.Prony
	Crew    *Crew
	Version string // of this program
}

// Offer implements generator.Driver. Each generator gets its own share of the cores if their number
// is divisible, otherwise all cores.
func (d Driver) Offer(ctx context.Context, s load.Spec) (*load.Result, error) {
	n := s.Part.Of
	if n == 0 {
		return d.Prony.Offer(ctx, s)
	}
	streams := 1
	if d.Stack != nil {
		streams = max(d.Stack.Streams, 1)
	}
	n = max(min(n, s.Connections/streams), 1)
	if len(s.Cores)%n != 0 { // generators share the cores
		s.Cores, s.Ahead = slices.Repeat(s.Cores, n), false
	}
	lab, err := distributed.Listen("127.0.0.1:0", n, d.Version)
	if err != nil {
		return nil, err
	}
	return d.Crew.Lead(ctx, lab, distributed.Order{Spec: s, By: d.Prony})
}

// endIn is the time in which a generator must exit after its lab has closed.
const endIn = 5 * time.Second

// Lead starts the generators of a lab, runs a load with them, and stops both. If a generator fails
// before all have connected, the load fails with its output; later failures show in its connection.
func (c *Crew) Lead(ctx context.Context, lab *distributed.Lab, o distributed.Order) (*load.Result,
	error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	processes, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	var all sync.WaitGroup
	defer func() { // kill generators that don't exit
		_ = lab.Close()
		defer time.AfterFunc(endIn, kill).Stop()
		all.Wait()
	}()
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start generators: %w", err)
	}
	for i := range lab.Number() {
		cmd := exec.CommandContext(processes, self, "generate", "--child", "--of", lab.Addr(),
			"--index", strconv.Itoa(i))
		// Not in the environment, because -x prints it.
		cmd.Stdin = strings.NewReader(lab.Key().String() + "\n")
		errs := &files.End{}
		cmd.Stderr = errs
		cmd.WaitDelay = endIn
		cmdlog.Command(cmd)
		if err := cmd.Start(); err != nil {
			return nil, fmt.Errorf("start generator %d: %w", i, err)
		}
		c.came(cmd.Process.Pid)
		all.Go(func() {
			err := cmd.Wait()
			c.went(cmd.Process.Pid)
			if err != nil && !lab.Complete() {
				text := errs.String()
				cancel(fmt.Errorf("generator %d: %w: %s", i, err,
					text[strings.LastIndexByte(text, '\n')+1:]))
			}
		})
	}
	return lab.Offer(ctx, o)
}
