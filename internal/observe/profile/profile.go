// Package profile shows where a process spends resources: which stacks use the processor, allocate
// bytes, or wait for locks. All collectors return profiles in pprof's form, and all views are
// derived from it: a table, a flame graph, the change between two profiles.
//
//	Subject ── Choose ─► Collector ── Start ─► Session ── Stop ─► pprof ─► Top · Flame · Changes
//
// The folders below have the collectors, one for each runtime: internal/observe/profile/jvm,
// internal/observe/profile/gopprof, internal/observe/profile/node, internal/observe/profile/pyspy,
// and internal/observe/profile/kernel for all other processes.
//
// Non-goals: a profile explains a measured number and never replaces one. The cost of profiling is
// measured like any variant's: by trials with it and without.
package profile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/base/runtimes"
)

// Kinds of profiles.
const (
	CPU    = "cpu"    // CPU time, ns
	Alloc  = "alloc"  // allocated memory, bytes, including memory that was freed
	Lock   = "lock"   // time of waiting for the runtime's locks, ns
	OffCPU = "offcpu" // time not on a processor, ns
)

// Kinds lists all kinds, in the order of reports.
var Kinds = []string{CPU, Alloc, Lock, OffCPU}

// Units of values.
const (
	Nanoseconds = "nanoseconds"
	Bytes       = "bytes"
	Count       = "count"
)

// Unit returns the unit of a kind's values.
func Unit(kind string) string {
	if kind == Alloc {
		return Bytes
	}
	return Nanoseconds
}

// Subject is a running target.
type Subject struct {
	PID      int    // process that receives the requests
	PIDs     []int  // all processes of the target, such as workers; includes PID
	Runtime  string // as in the manifest: jvm, aot, native, node, cpython
	PprofURL string // Go: URL of net/http/pprof, "http://127.0.0.1:6060/debug/pprof/"
	Dir      string // a scratch folder for which the subject has write permission; absolute
	Cores    []int  // where a profiler's helpers may run, without the target's; nil: anywhere
	Tools    Tools
}

// Processes returns the subject's distinct processes, first the one that receives the requests.
func (s Subject) Processes() (out []int) {
	for _, pid := range append([]int{s.PID}, s.PIDs...) {
		if pid > 0 && !slices.Contains(out, pid) {
			out = append(out, pid)
		}
	}
	return out
}

// Tools holds the paths of downloaded profilers; an empty path: not downloaded.
type Tools struct {
	AsyncProfiler string // libasyncProfiler.so
	PySpy         string // the program; empty: searched in PATH
}

// Collector takes profiles with one tool.
type Collector interface {
	// Name returns the tool's name in records, without its version: "async-profiler".
	Name() string
	// Kinds returns the kinds that it can take of some subjects.
	Kinds() []string
	// Fits returns why it cannot profile this subject, or nil if no reason is known.
	Fits(Subject) error
	// Start starts to sample, and returns when sampling is in progress. The context applies only to
	// the start.
	Start(ctx context.Context, s Subject, kind string) (Session, error)
}

// Session is a running profile.
type Session interface {
	// Stop ends the sampling and returns the profile, with the comments of Describe. It must be
	// called exactly once. Sampling ends even if Stop returns an error.
	Stop(ctx context.Context) (*pprof.Profile, error)
}

// Choose returns the best collector for a subject and a kind: by the subject's runtime, then in the
// given order. Its error joins the reasons why no collector fits.
func Choose(collectors []Collector, s Subject, kind string) (Collector, error) {
	if !slices.Contains(Kinds, kind) {
		return nil, fmt.Errorf("choose a profiler for %q: the kinds of profiles are %s", kind,
			strings.Join(Kinds, ", "))
	}
	preferred := runtimes.Of(s.Runtime).Profilers
	rank := func(c Collector) int {
		if i := slices.Index(preferred, c.Name()); i >= 0 {
			return i
		}
		return len(preferred)
	}
	ordered := slices.Clone(collectors)
	slices.SortStableFunc(ordered, func(a, b Collector) int { return rank(a) - rank(b) })
	var refused []error
	for _, c := range ordered {
		err := fmt.Errorf("does not support %s profiles", kind)
		if slices.Contains(c.Kinds(), kind) {
			err = c.Fits(s)
		}
		if err == nil {
			return c, nil
		}
		refused = append(refused, fmt.Errorf("%s: %w", c.Name(), err))
	}
	if len(refused) == 0 {
		refused = append(refused, errors.New("there is no profiler for this runtime"))
	}
	return nil, fmt.Errorf("choose a profiler for %s of a %s process: %w", kind, s.Runtime,
		errors.Join(refused...))
}

// Prefixes of a profile's comments.
const (
	toolMark = "tool: "
	noteMark = "note: "
)

// Describe adds comments to a profile: the tool with its version, and notes for readers, such as
// the event that replaced another.
func Describe(p *pprof.Profile, tool string, notes ...string) {
	p.Comments = append(p.Comments, toolMark+tool)
	for _, n := range notes {
		p.Comments = append(p.Comments, noteMark+n)
	}
}

// Tool returns the tools that Describe recorded, or "unknown".
func Tool(p *pprof.Profile) string {
	if tools := marked(p, toolMark); len(tools) > 0 {
		return strings.Join(tools, " + ")
	}
	return "unknown"
}

// Notes returns the notes that Describe recorded.
func Notes(p *pprof.Profile) []string { return marked(p, noteMark) }

func marked(p *pprof.Profile, mark string) (out []string) {
	for _, c := range p.Comments {
		if tail, ok := strings.CutPrefix(c, mark); ok && !slices.Contains(out, tail) {
			out = append(out, tail)
		}
	}
	return out
}
