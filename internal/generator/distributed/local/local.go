// Package local is generators that are processes of this machine and of this very program. It
// starts them for a load, which their lab leads, and ends them with it.
//
//	load, parts of n ─► lab on 127.0.0.1 ─► n × prony generate --child ─► one result
//
// Where a load is no part of several, Driver offers it in this process, as ever.
//
// Non-goals: it judges nothing, and knows no machine but this one.
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

// Most is how many generators are started on one machine.
const Most = 256

// Crew are the generators that are under way. The zero value has none.
type Crew struct {
	mu   sync.Mutex
	pids []int
}

// PIDs are their processes: the load is theirs, and who watches a machine takes them for no
// strangers.
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

// Driver is Prony's own generator where a suite may ask for several: a load whose part is one of
// so many (load.Spec.Part.Of) is offered by that number of processes, or by as many as it has
// connections, of which a search's first step has one.
type Driver struct {
	generator.Prony
	Crew    *Crew
	Version string // of this program
}

// Offer implements generator.Driver. Each generator has a share of the cores to itself where they
// can be shared out evenly, else all of them.
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
	if len(s.Cores)%n != 0 { // they take turns
		s.Cores, s.Ahead = slices.Repeat(s.Cores, n), false
	}
	lab, err := distributed.Listen("127.0.0.1:0", n, d.Version)
	if err != nil {
		return nil, err
	}
	return d.Crew.Lead(ctx, lab, distributed.Order{Spec: s, By: d.Prony})
}

// endIn is how long a generator has to end by itself when its lab has.
const endIn = 5 * time.Second

// Lead starts as many generators as a lab wants, has them offer a load, and ends both. One that
// ends in error before all have come ends the load, with its own words; later its connection tells.
func (c *Crew) Lead(ctx context.Context, lab *distributed.Lab, o distributed.Order) (*load.Result,
	error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	processes, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	var all sync.WaitGroup
	defer func() { // who does not go is killed
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
		// Not in the environment, which -x shows.
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
