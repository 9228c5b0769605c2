package kernel

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	pprof "github.com/google/pprof/profile"
	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/observe/profile"
)

// The compiled program is committed, so that only changes to its source need a compiler.
//
//go:generate -command bpf clang -O2 -g -Wall -target bpf -mcpu=v3 -fdebug-compilation-dir=.
//go:generate bpf -idirafter /usr/include/x86_64-linux-gnu -c stacks.bpf.c -o stacks.bpf.o
//go:generate llvm-strip -g stacks.bpf.o

//go:embed stacks.bpf.o
var object []byte

// leastAway is the shortest off-CPU time that counts.
const leastAway = time.Microsecond

// Tracing counts stacks in the kernel by eBPF. It copies nothing out before the profile's end, so
// that only sampling costs the subject time. By the kernel's own count (kernel.bpf_stats_enabled),
// of a Go server under load, it takes 8 µs a tick, which is 0.2 % of each core, and 4 µs a context
// switch of its threads, which at 22,000 per second were 8 % of one core. Take off-CPU profiles in
// separate trials.
//
// Off-CPU time is all of it: asleep, waiting for a lock or a response, and, if a stack ends outside
// of any system call, runnable without a core. If a runtime parks tasks, as Go's and Tokio's do,
// the profile shows what its threads wait for, not its tasks. Threads that slept from the beginning
// are visible from their first wakeup.
type Tracing struct{}

// Name returns the tool's name.
func (Tracing) Name() string { return "ebpf" }

// Kinds returns the kinds that measure time.
func (Tracing) Kinds() []string { return []string{profile.CPU, profile.OffCPU} }

// initialPIDNamespace is the value of /proc/self/ns/pid outside of all containers:
// PROC_PID_INIT_INO in the kernel's proc_ns.h.
const initialPIDNamespace = "pid:[4026531836]"

// Fits returns an error if this process lacks permission or the kernel lacks a feature.
func (Tracing) Fits(s profile.Subject) error {
	if err := running(s); err != nil {
		return err
	}
	for _, c := range []struct {
		bit  int
		name string
	}{{unix.CAP_BPF, "CAP_BPF"}, {unix.CAP_PERFMON, "CAP_PERFMON"}} {
		if ok, err := capable(c.bit); err != nil || !ok {
			return errors.Join(err, fmt.Errorf("profiling needs %s: run as root, or grant both "+
				"capabilities to the binary with setcap cap_bpf,cap_perfmon+ep", c.name))
		}
	}
	if ns, err := os.Readlink("/proc/self/ns/pid"); err != nil || ns != initialPIDNamespace {
		return errors.Join(err, errors.New("Prony runs in a container, whose process ids differ "+
			"from the kernel's; run it outside, or with the host's process ids (docker run "+
			"--pid=host)"))
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return fmt.Errorf("profiling needs a kernel with type information "+
			"(CONFIG_DEBUG_INFO_BTF): %w",
			err)
	}
	return nil
}

// capable reports whether this process has a capability or CAP_SYS_ADMIN, which included it in
// older kernels.
func capable(bit int) (bool, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // 32 bits each
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false, fmt.Errorf("read this process's capabilities: %w", err)
	}
	contains := func(bit int) bool { return data[bit/32].Effective&(1<<(bit%32)) != 0 }
	return contains(bit) || contains(unix.CAP_SYS_ADMIN), nil
}

// Start loads the program for the kind and attaches it.
func (Tracing) Start(ctx context.Context, s profile.Subject, kind string) (profile.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := &tracing{kind: kind, pids: s.Processes()}
	if err := t.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start profiling with eBPF: %w", err), t.close())
	}
	return t, nil
}

type tracing struct {
	kind  string
	pids  []int
	names *names
	all   *ebpf.Collection
	ticks []int // perf events, one per processor
	link  link.Link
}

// programs maps kinds to programs of stacks.bpf.c.
var programs = map[string]string{profile.CPU: "on_clock", profile.OffCPU: "on_switch"}

func (t *tracing) start() error {
	name := programs[t.kind]
	if name == "" {
		return fmt.Errorf("the kernel profiler does not support %s profiles", t.kind)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return fmt.Errorf("read the eBPF program: %w", err)
	}
	for candidate := range spec.Programs {
		if candidate != name {
			delete(spec.Programs, candidate)
		}
	}
	if t.kind == profile.CPU {
		spec.Maps["away"].MaxEntries = 1 // it is not used
	}
	if err := spec.Variables["least"].Set(uint64(leastAway)); err != nil {
		return fmt.Errorf("set the shortest counted waiting time: %w", err)
	}
	t.names = newNames(t.pids)
	if t.all, err = ebpf.NewCollection(spec); err != nil {
		return fmt.Errorf("load the eBPF program: %w", err)
	}
	for _, pid := range t.pids {
		if err := t.all.Maps["targets"].Put(uint32(pid), uint8(1)); err != nil {
			return fmt.Errorf("add process %d to the eBPF program: %w", pid, err)
		}
	}
	if t.kind == profile.OffCPU {
		t.link, err = link.AttachTracing(link.TracingOptions{Program: t.all.Programs[name]})
		if err != nil {
			return fmt.Errorf("attach to sched_switch: %w", err)
		}
		return nil
	}
	return t.tick(t.all.Programs[name].FD())
}

// tick runs the program at each tick on every processor. The software clock, a timer, measures
// time. Cycle counters run at the processor's changing frequency, and most virtual machines have
// none.
func (t *tracing) tick(program int) error {
	processors, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count processors: %w", err)
	}
	for cpu := range processors {
		fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{
			Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK,
			Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Sample: uint64(tick),
			Bits: unix.PerfBitDisabled,
		}, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ENODEV) {
			continue // a processor that is not online
		}
		if err != nil {
			return fmt.Errorf("open a clock of processor %d: %w", cpu, err)
		}
		t.ticks = append(t.ticks, fd)
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, program); err != nil {
			return fmt.Errorf("attach to the clock of processor %d: %w", cpu, err)
		}
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return fmt.Errorf("start the clock of processor %d: %w", cpu, err)
		}
	}
	return nil
}

// detach ends the sampling. It may be called twice.
func (t *tracing) detach() error {
	var errs []error
	for _, fd := range t.ticks {
		errs = append(errs, unix.Close(fd))
	}
	t.ticks = nil
	if t.link != nil {
		errs = append(errs, t.link.Close())
		t.link = nil
	}
	return errors.Join(errs...)
}

func (t *tracing) close() error {
	err := t.detach()
	if t.all != nil {
		t.all.Close()
	}
	return err
}

// counted is struct stack in stacks.bpf.c.
type counted struct {
	Seen, Ns           uint64
	TGID, User, Kernel uint32
	_                  uint32
	IPs                [2 * depth]uint64
}

// absent is struct off in stacks.bpf.c.
type absent struct{ Since, Key uint64 }

// Stop ends the sampling and returns the named stacks.
func (t *tracing) Stop(ctx context.Context) (p *pprof.Profile, err error) {
	defer func() { err = errors.Join(err, t.close()) }()
	offset, err := clock.Kernel()
	if err != nil {
		return nil, err
	}
	ended := clock.Mono() + offset // the following work is not the subject's time
	if err := t.detach(); err != nil {
		return nil, fmt.Errorf("stop profiling: %w", err)
	}
	notes := hints(t.pids)
	notes = append(notes, t.names.refresh(ctx)...)
	stacks := map[uint64]*counted{}
	var key uint64
	var value counted
	entries := t.all.Maps["stacks"].Iterate()
	for entries.Next(&key, &value) {
		retained := value
		stacks[key] = &retained
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("read the stacks: %w", err)
	}
	if t.kind == profile.OffCPU {
		if err := t.addAbsent(stacks, ended); err != nil {
			return nil, err
		}
	}
	out := profile.NewStacks(t.kind)
	for _, c := range stacks {
		weight := int64(c.Ns)
		if t.kind == profile.CPU {
			weight = int64(c.Seen) * int64(tick)
		}
		if c.Seen > 0 {
			user, kernel := c.frames()
			out.Add(t.names.of(int(c.TGID), user, kernel), int64(c.Seen), weight)
		}
	}
	lost, err := t.lost()
	if err != nil {
		return nil, err
	}
	p = out.Profile()
	profile.Describe(p, "ebpf, "+release(), append(notes, lost...)...)
	return p, nil
}

// addAbsent adds the time of threads that are still off a processor at now (CLOCK_MONOTONIC).
// Threads that ended don't count.
func (t *tracing) addAbsent(stacks map[uint64]*counted, now int64) error {
	var thread uint32
	var deviation absent
	entries := t.all.Maps["away"].Iterate()
	for entries.Next(&thread, &deviation) {
		c := stacks[deviation.Key]
		if c == nil {
			continue // its stack was lost
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", c.TGID, thread)); err != nil {
			continue // the thread has ended
		}
		if ns := now - int64(deviation.Since); ns >= int64(leastAway) {
			c.Seen++
			c.Ns += uint64(ns)
		}
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("read the waiting threads: %w", err)
	}
	return nil
}

func (t *tracing) lost() (notes []string, err error) {
	for i, subject := range []string{"stacks after the first 8192 different stacks",
		"waiting times of threads beyond 16384 waiting threads"} {
		var n uint64
		if err := t.all.Maps["lost"].Lookup(uint32(i), &n); err != nil {
			return nil, fmt.Errorf("read the number of lost samples: %w", err)
		}
		if n > 0 {
			notes = append(notes, fmt.Sprintf("lost %d %s", n, subject))
		}
	}
	return notes, nil
}

// frames returns a stack's addresses, outermost first: the user's, then the kernel's.
func (c *counted) frames() (user, kernel []uint64) {
	user = slices.Clone(c.IPs[:min(c.User, depth)])
	kernel = slices.Clone(c.IPs[depth : depth+min(c.Kernel, depth)])
	slices.Reverse(user)
	slices.Reverse(kernel)
	return user, kernel
}
