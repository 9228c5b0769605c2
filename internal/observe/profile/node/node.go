// Package node takes profiles of Node by V8's profilers, over the inspector, which is the protocol
// of browsers' tools (https://chromedevtools.github.io/devtools-protocol/v8/). It profiles all
// processes of a cluster at once and adds up the results.
//
// Non-goals: locks and off-CPU time, which V8 does not sample.
package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/observe/profile"
)

// V8 uses V8's profilers in Node.
type V8 struct{}

// Name returns the name in records.
func (V8) Name() string { return "v8" }

// Kinds returns the kinds that V8 samples.
func (V8) Kinds() []string { return []string{profile.CPU, profile.Alloc} }

// Fits returns an error unless all processes run Node.
func (V8) Fits(s profile.Subject) error {
	for _, pid := range s.Processes() {
		if err := isNode(pid); err != nil {
			return err
		}
	}
	return nil
}

// method describes how a kind is sampled: the commands to start and stop, and the function that
// reads the response.
type method struct {
	prepare [][2]string // commands with their parameters
	start   [2]string
	stop    string
	read    func(answer json.RawMessage, into *profile.Stacks) error
	note    string
}

var methods = map[string]method{
	profile.CPU: {
		prepare: [][2]string{{"Profiler.enable", "{}"},
			{"Profiler.setSamplingInterval", `{"interval":1000}`}},
		start: [2]string{"Profiler.start", "{}"}, stop: "Profiler.stop", read: readCPU,
		note: "event: V8's CPU profile, one sample per 1 ms of wall time in which the event loop " +
			"was not idle; (program) is native code, such as code of libuv and the kernel",
	},
	profile.Alloc: {
		prepare: [][2]string{{"HeapProfiler.enable", "{}"}},
		start: [2]string{"HeapProfiler.startSampling", `{"samplingInterval":32768,` +
			`"includeObjectsCollectedByMajorGC":true,"includeObjectsCollectedByMinorGC":true}`},
		stop: "HeapProfiler.stopSampling", read: readHeap,
		note: "event: V8's sampled heap profile including collected objects, one sample per 32 " +
			"KiB; allocations of an inlined function count for its caller, and buffers outside " +
			"of V8's heap are missing",
	},
}

// Start opens the inspector of each process if necessary, and starts to sample.
func (c V8) Start(ctx context.Context, s profile.Subject, kind string) (profile.Session, error) {
	if err := c.Fits(s); err != nil {
		return nil, fmt.Errorf("start V8's profiler: %w", err)
	}
	m, ok := methods[kind]
	if !ok {
		return nil, fmt.Errorf("start V8's profiler: it does not support %q profiles", kind)
	}
	run := &session{kind: kind, method: m}
	for _, pid := range s.Processes() {
		if err := run.add(ctx, pid); err != nil {
			return nil, errors.Join(fmt.Errorf("start V8's profiler in process %d: %w", pid, err),
				run.close())
		}
	}
	for _, item := range run.inspectors {
		if _, err := item.call(ctx, m.start[0], m.start[1]); err != nil {
			return nil, errors.Join(fmt.Errorf("start V8's profiler: %w", err), run.close())
		}
	}
	return run, nil
}

type session struct {
	kind       string
	method     method
	inspectors []*inspector
	opened     int // number of inspectors opened by the signal
}

func (s *session) add(ctx context.Context, pid int) error {
	item, opened, err := connect(ctx, pid)
	if err != nil {
		return err
	}
	s.inspectors = append(s.inspectors, item)
	if opened {
		s.opened++
	}
	for _, command := range s.method.prepare {
		if _, err := item.call(ctx, command[0], command[1]); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) close() error {
	var failed []error
	for _, item := range s.inspectors {
		failed = append(failed, item.close())
	}
	return errors.Join(failed...)
}

// Stop ends the sampling of all processes and returns the sum of their profiles.
func (s *session) Stop(ctx context.Context) (p *pprof.Profile, err error) {
	defer func() { err = errors.Join(err, s.close()) }()
	stacks := profile.NewStacks(s.kind)
	for _, item := range s.inspectors {
		answer, err := item.call(ctx, s.method.stop, "{}")
		if err != nil {
			return nil, fmt.Errorf("stop V8's profiler: %w", err)
		}
		if err := s.method.read(answer, stacks); err != nil {
			return nil, fmt.Errorf("read V8's profile: %w", err)
		}
	}
	p = stacks.Profile()
	notes := []string{s.method.note}
	if s.opened > 0 {
		notes = append(notes, fmt.Sprintf("the inspectors of %d processes were opened by SIGUSR1 "+
			"and stay open, with an idle thread in each process", s.opened))
	}
	profile.Describe(p, s.inspectors[0].version, notes...)
	return p, nil
}

// frame returns the name of a function from V8's name, URL and line.
func frame(function, url string, line int64) string {
	function = cmp.Or(function, "(anonymous)")
	if url == "" {
		return function // internal to V8, such as (program)
	}
	location := url
	if i := strings.LastIndex(url, "/node_modules/"); i >= 0 {
		location = url[i+len("/node_modules/"):]
	} else if strings.HasPrefix(url, "file://") || strings.HasPrefix(url, "/") {
		parts := strings.Split(url, "/")
		location = strings.Join(parts[max(0, len(parts)-2):], "/")
	}
	if function == "(anonymous)" {
		return fmt.Sprintf("%s (%s:%d)", function, location, line+1)
	}
	return fmt.Sprintf("%s (%s)", function, location)
}
