//go:build linux && !portable

package stalls

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/rtsched"
	"prony.example/internal/observe/stalls/heartbeat"
)

// obeyWithin limits the time in which a heartbeat must start or follow a command. It runs before
// all other processes, but a hypervisor may take its core for some time.
const obeyWithin = 5 * time.Second

// heartbeats is a process that ticks on some cores.
type heartbeats struct {
	cmd    *exec.Cmd
	output *bytes.Buffer
	ended  chan struct{} // closed when the process has ended
	input  io.Closer     // the process ends when it is closed
	memory []byte
	beats  []heartbeat.Beat
	offset int64 // CLOCK_MONOTONIC minus clock.Mono
}

// startHeartbeats starts the process, and returns when it is ready to tick.
func startHeartbeats(cores []int, periodNs int64) (*heartbeats, error) {
	offset, err := clock.Kernel()
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate(heartbeat.Name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create shared memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), heartbeat.Name)
	defer file.Close() // the mapping remains
	size := heartbeat.Size(len(cores))
	if err := file.Truncate(int64(size)); err != nil {
		return nil, fmt.Errorf("size shared memory: %w", err)
	}
	memory, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map shared memory: %w", err)
	}
	h := &heartbeats{output: &bytes.Buffer{}, ended: make(chan struct{}), memory: memory,
		beats: heartbeat.Beats(memory), offset: offset}
	h.cmd = exec.Command("/proc/self/exe")
	h.cmd.Args = []string{heartbeat.Name}
	h.cmd.Env = []string{heartbeat.Variable + "=" + heartbeat.Start{
		Priority: rtsched.Heartbeat, PeriodNs: periodNs, Cores: cores}.String()}
	h.cmd.ExtraFiles = []*os.File{file}
	h.cmd.Stderr = h.output
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must reach only this program
	if h.input, err = h.cmd.StdinPipe(); err != nil {
		return nil, errors.Join(err, unix.Munmap(memory))
	}
	cmdlog.Command(h.cmd)
	if err := h.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start a heartbeat: %w", err), unix.Munmap(memory))
	}
	go func() {
		_ = h.cmd.Wait() // its output says why it ended
		close(h.ended)
	}()
	for i := range h.beats {
		if err := h.await(&h.beats[i], heartbeat.Idle); err != nil {
			return nil, errors.Join(err, h.close())
		}
	}
	return h, nil
}

// await returns when a thread has reached a state, or an error after obeyWithin.
func (h *heartbeats) await(b *heartbeat.Beat, state uint32) error {
	const step = 10 * time.Millisecond
	for until := clock.Mono() + int64(obeyWithin); clock.Mono() < until; {
		is := atomic.LoadUint32(&b.State)
		if is == state {
			return nil
		}
		select {
		case <-h.ended:
			return h.failure()
		default:
		}
		heartbeat.Wait(&b.State, is, int64(step))
	}
	return fmt.Errorf("the heartbeat process did not respond within %v", obeyWithin)
}

// failure returns an error with the reason why the process ended.
func (h *heartbeats) failure() error {
	state := h.cmd.ProcessState
	why, code := cmp.Or(h.output.String(), state.String()), state.ExitCode()
	if code <= 0 || code == heartbeat.Failed {
		return fmt.Errorf("the heartbeat process ended: %s", why)
	}
	refused, remedy := syscall.Errno(code), ""
	if errors.Is(refused, unix.EPERM) {
		remedy = ": run as root, or give the program CAP_SYS_NICE"
	}
	return fmt.Errorf("the heartbeat process ended: %s: %w%s", why, refused, remedy)
}

// close ends the process.
func (h *heartbeats) close() error {
	err := h.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-h.ended // the process's end also closed the input
	h.beats = nil
	return errors.Join(err, unix.Munmap(h.memory))
}

// Interrupter interrupts what runs on some cores, so that the kernel adds the time of running
// threads to their clocks (package cpuclock). It has a process as a heartbeat does, which does not
// tick.
type Interrupter struct{ beats *heartbeats }

// OpenInterrupter starts the process. The error is fs.ErrPermission if the user may not.
func OpenInterrupter(cores []int) (*Interrupter, error) {
	h, err := startHeartbeats(cores, int64(Period))
	if err != nil {
		return nil, fmt.Errorf("interrupt cores %v: %w", cores, err)
	}
	return &Interrupter{h}, nil
}

// Interrupt interrupts each core for some microseconds. It neither allocates nor waits longer than
// some 100 µs for each core.
func (i *Interrupter) Interrupt() {
	for k := range i.beats.beats {
		i.beats.beats[k].Interrupt()
	}
}

// Close ends the process.
func (i *Interrupter) Close() error { return i.beats.close() }

// beatClock is the clock of one core.
type beatClock struct {
	*heartbeats
	index  int
	read   uint64 // number of drained ticks
	missed int
}

func (c *beatClock) begin() error { return c.command(heartbeat.Ticking) }
func (c *beatClock) end() error   { return c.command(heartbeat.Idle) }

func (c *beatClock) command(state uint32) error {
	b := &c.beats[c.index]
	atomic.StoreUint32(&b.Command, state)
	heartbeat.Wake(&b.Command)
	return c.await(b, state)
}

func (c *beatClock) lost() int { return c.missed }

// close does nothing, because the process belongs to its starter.
func (c *beatClock) close() error { return nil }

func (c *beatClock) drain(add func(tick)) {
	b := &c.beats[c.index]
	head, gap := atomic.LoadUint64(&b.Head), false
	if head-c.read > heartbeat.Capacity {
		c.missed += int(head - c.read - heartbeat.Capacity)
		c.read, gap = head-heartbeat.Capacity, true
	}
	for ; c.read < head; c.read++ {
		ns := atomic.LoadInt64(&b.Ticks[c.read%heartbeat.Capacity])
		if now := atomic.LoadUint64(&b.Head); now-c.read >= heartbeat.Capacity {
			c.missed++ // it may be overwritten
			gap = true
			continue
		}
		add(tick{ns: ns - c.offset, gap: gap})
		gap = false
	}
}
