// Package profile says where the work of a process goes: which stacks hold its processor, allocate
// its bytes, wait for its locks. Whatever took a profile, it comes out as pprof's, from which all
// views here follow: a table, a flame graph, the change between two.
//
//	Subject ── Choose ─► Collector ── Start ─► Session ── Stop ─► pprof ─► Top · Flame · Changes
//
// The collectors are in the folders below, one for each way to ask: internal/observe/profile/jvm,
// internal/observe/profile/gopprof, internal/observe/profile/node, internal/observe/profile/pyspy,
// and for anything else internal/observe/profile/kernel.
//
// Non-goals: a profile explains a number, it never is one. What profiling costs is measured as the
// cost of any other variant is: by trials with it and without.
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
	CPU    = "cpu"    // time on a processor, ns
	Alloc  = "alloc"  // memory asked for, bytes, whether it was freed since or not
	Lock   = "lock"   // time waited for locks of the runtime, ns
	OffCPU = "offcpu" // time not on a processor, ns
)

// Kinds are all of them, in the order of reports.
var Kinds = []string{CPU, Alloc, Lock, OffCPU}

// Units of values.
const (
	Nanoseconds = "nanoseconds"
	Bytes       = "bytes"
	Count       = "count"
)

// Unit is what a kind's values are counted in.
func Unit(kind string) string {
	if kind == Alloc {
		return Bytes
	}
	return Nanoseconds
}

// Subject is a target that runs, to be profiled.
type Subject struct {
	PID      int    // of the process that takes the requests
	PIDs     []int  // of all processes of the target, PID too; workers of a pre-forking server
	Runtime  string // as the manifest has it: jvm, aot, native, node, cpython
	Language string // as the manifest has it: "Java", "Go"
	PprofURL string // Go: where net/http/pprof answers, "http://127.0.0.1:6060/debug/pprof/"
	Dir      string // a scratch folder that the subject may write into; absolute
	Cores    []int  // where helpers of a profiler may run: not the target's; nil: anywhere
	Tools    Tools
}

// Processes are the subject's, each once, the one that takes the requests first.
func (s Subject) Processes() (out []int) {
	for _, pid := range append([]int{s.PID}, s.PIDs...) {
		if pid > 0 && !slices.Contains(out, pid) {
			out = append(out, pid)
		}
	}
	return out
}

// Tools are where profilers are that are fetched as agents are. An empty path: not fetched.
type Tools struct {
	AsyncProfiler string // libasyncProfiler.so
	PySpy         string // the program; empty: looked for in PATH
}

// Collector is one way to take profiles.
type Collector interface {
	// Name is that of the tool, as records have it without its version: "async-profiler".
	Name() string
	// Kinds are those that it can take of some subject.
	Kinds() []string
	// Fits says why it cannot take any profile of this subject; nil: nothing is known against it.
	Fits(Subject) error
	// Start begins to sample; when it returns, sampling is under way. The context ends the
	// beginning only.
	Start(ctx context.Context, s Subject, kind string) (Session, error)
}

// Session is a profile being taken.
type Session interface {
	// Stop ends the sampling and returns what was seen, described by Describe. It must be called,
	// and once only; whatever it returns, the subject is no longer sampled.
	Stop(ctx context.Context) (*pprof.Profile, error)
}

// Choose takes the best collector for a subject and a kind: by the subject's runtime first, then in
// the order given. Its error joins why none of them can.
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

// Marks of a profile's comments.
const (
	toolMark = "tool: "
	noteMark = "note: "
)

// Describe writes into a profile what took it, with its version, and what a reader should know of
// it, such as the event that stood in for another.
func Describe(p *pprof.Profile, tool string, notes ...string) {
	p.Comments = append(p.Comments, toolMark+tool)
	for _, n := range notes {
		p.Comments = append(p.Comments, noteMark+n)
	}
}

// Tool is what took a profile, as Describe wrote it; "unknown" where nobody did.
func Tool(p *pprof.Profile) string {
	if tools := marked(p, toolMark); len(tools) > 0 {
		return strings.Join(tools, " + ")
	}
	return "unknown"
}

// Notes are what a reader should know of a profile, as Describe wrote them.
func Notes(p *pprof.Profile) []string { return marked(p, noteMark) }

func marked(p *pprof.Profile, mark string) (out []string) {
	for _, c := range p.Comments {
		if tail, ok := strings.CutPrefix(c, mark); ok && !slices.Contains(out, tail) {
			out = append(out, tail)
		}
	}
	return out
}
