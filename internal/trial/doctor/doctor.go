// Package doctor grades a host as a place to measure on, with a fix for each problem, and checks
// between trials whether the host is quiet.
//
// Rules read files below a root and a few measured values (machine) and return findings. Examine
// combines them into a record.Grading, Text prints it, and Refuse compares it with what a run
// demands. Quiet takes two readings (edge), a window apart, until the difference between them
// (sight) is calm. Values that the kernel does not report are unknown, never guessed.
//
// Non-goals: it changes nothing on the host, and judges no trial (internal/analysis/verdict does).
// Besides record it imports internal/observe/host, internal/observe/probe and
// internal/launch/cgroup, whose parsers it shares, and has internal/observe/stalls measure what its
// record of stalls costs.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/observe/host"
	"prony.example/internal/observe/probe"
	"prony.example/record"
)

const (
	windowDefault = time.Second // on two cores, a share of 0.5 % is one tick of the kernel
	memoryDefault = 1 << 30

	sleeps     = 200
	sleepEvery = time.Millisecond

	stallsTime = 300 * time.Millisecond
)

// Options describe what the host is used for. The zero value is this host, for services that get
// one core and 1 GiB, as in the canonical suite.
type Options struct {
	Root        string        // folder of /proc and /sys; "" is "/"
	CPUs        float64       // of a service; 0 is 1
	MemoryBytes int64         // of a service; 0 is 1 GiB
	Window      time.Duration // time of each reading of other load; 0 is 1 s, in Quiet 200 ms
	Bound       time.Duration // on waiting for calm: all windows but the last; 0 is 10 s

	senses *senses // replaced in tests
}

// senses are values that are measured or requested from the kernel rather than read from a file.
type senses struct {
	self     int // PID of this process
	nowNs    func() int64
	ownNs    func() int64 // CPU time of this process
	wait     func(context.Context, time.Duration)
	lateNs   func() []int64   // delays of short sleeps, in any order
	readNs   func() []float64 // times of memory reads, in any order
	stalls   func(core int) stallRecord
	writable func(path string) bool
}

func realSenses() *senses {
	return &senses{
		self:     os.Getpid(),
		nowNs:    clock.Mono,
		ownNs:    probe.SelfCPUNs,
		wait:     wait,
		lateNs:   func() []int64 { return oversleep(sleeps, sleepEvery) },
		readNs:   func() []float64 { return wander(walks, walkTime, walkBytes) },
		stalls:   measureStalls,
		writable: func(path string) bool { return unix.Access(path, unix.W_OK) == nil },
	}
}

// Examine grades the host. It takes Options.Window and some milliseconds, or less if ctx ends; then
// values without a full window are unknown. Run no measurement meanwhile, because other processes
// than this one count as other load.
func Examine(ctx context.Context, o Options) record.Grading {
	m := newMachine(o)
	m.watch(ctx)
	var checks []record.Check
	for _, r := range rules {
		f := r.look(m)
		checks = append(checks, record.Check{
			Name: r.Name, Grade: f.grade, Observed: f.observed, Expected: r.Fit, Impact: r.Why,
			Fix: f.fix, Source: r.Source,
		})
	}
	return record.Grading{Grade: overall(checks), Checks: checks}
}

// overall returns the worst grade. An unknown value makes a host doubtful only if it is vital,
// because no host reports all values.
func overall(checks []record.Check) string {
	grade := record.Fit
	for i, c := range checks {
		switch {
		case c.Grade == record.Unfit:
			return record.Unfit
		case c.Grade == record.Doubtful, c.Grade == record.Unknown && rules[i].Vital:
			grade = record.Doubtful
		}
	}
	return grade
}

// Bars are the demands that a run can make of its host: fit, at least doubtful, or any.
var Bars = []string{record.Fit, record.Doubtful, "any"}

// Refuse returns an error if a host is below one of Bars. The error names the failed checks and
// what to do.
func Refuse(g record.Grading, bar string) error {
	if bar == "any" || g.Grade == record.Fit || bar == g.Grade {
		return nil
	}
	below := []string{record.Unfit}
	if bar == record.Fit {
		below = []string{record.Unfit, record.Doubtful, record.Unknown}
	}
	var matches []string
	for _, grade := range below {
		for _, c := range g.Checks {
			vital := grade != record.Unknown || isVital(c.Name)
			if c.Grade == grade && vital {
				matches = append(matches, c.Name+" ("+c.Observed+")")
			}
		}
	}
	return fmt.Errorf("refused to measure: the host is %s, but --host requires %s: %s; run prony "+
		"doctor for fixes", g.Grade, bar, strings.Join(matches, ", "))
}

func isVital(name string) bool {
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.Name == name })
	return i >= 0 && rules[i].Vital
}

// machine is the host as the rules read it.
type machine struct {
	Options
	cores   []int // that this process may use; empty: unknown
	layout  host.Layout
	refused error     // why the cores cannot be divided
	sight   sight     // what happened in the window
	lateNs  []int64   // sorted
	readNs  []float64 // sorted
	stalls  stallRecord
}

func newMachine(o Options) *machine {
	o.Root = cmp.Or(o.Root, "/")
	o.CPUs = cmp.Or(o.CPUs, 1)
	o.MemoryBytes = cmp.Or(o.MemoryBytes, memoryDefault)
	o.Window = cmp.Or(o.Window, windowDefault)
	o.senses = cmp.Or(o.senses, realSenses())
	m := &machine{Options: o}
	m.cores = cgroup.ParseCores(host.Field(m.text("proc/self/status"), "Cpus_allowed_list"))
	m.layout, m.refused = host.Divide(m.cores, o.CPUs)
	return m
}

// watch reads what runs on the host during the window. Its own measurements happen in the window,
// and their cost counts as this process's.
func (m *machine) watch(ctx context.Context) {
	a := takeEdge(m.Root, m.senses, true)
	m.stalls.err = errNoCore
	if n := len(m.cores); n > 0 {
		m.stalls = m.senses.stalls(m.cores[n-1])
	}
	m.lateNs = slices.Sorted(slices.Values(m.senses.lateNs()))
	m.readNs = slices.Sorted(slices.Values(m.senses.readNs()))
	m.senses.wait(ctx, m.Window-time.Duration(m.senses.nowNs()-a.atNs))
	m.sight = between(a, takeEdge(m.Root, m.senses, true))
}

// wait sleeps until d is over or ctx ends.
func wait(ctx context.Context, d time.Duration) {
	over, end := context.WithTimeout(ctx, d)
	defer end()
	<-over.Done()
}

// oversleep returns by how many ns a thread of its own was woken too late, n times. It calls the
// kernel directly, as the generator does, because Go's own timers wait for whole milliseconds.
func oversleep(n int, d time.Duration) []int64 {
	late := make([]int64, 0, n)
	done := make(chan struct{})
	go func() { // the thread is locked to the goroutine and ends with it
		defer close(done)
		runtime.LockOSThread()
		for range n {
			due := clock.Mono() + int64(d)
			for remaining := int64(d); remaining > 0; remaining = due - clock.Mono() {
				ts := unix.NsecToTimespec(remaining)
				_ = unix.Nanosleep(&ts, nil) // after an interrupt, it continues with the rest
			}
			late = append(late, clock.Mono()-due)
		}
	}()
	<-done
	return late
}
