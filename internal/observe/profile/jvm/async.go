// Package jvm takes profiles of JVMs: by async-profiler, which samples by timers and without
// safepoints' bias, and by JFR, which every JDK has, where that is missing. Both are asked over
// HotSpot's attach socket, so that no second JVM starts beside the one that is measured.
//
// A JVM is one subject: of a system, each process is profiled by itself.
//
// Non-goals: this package fetches nothing and starts no JVM.
package jvm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/observe/profile"
)

// AsyncProfiler is https://github.com/async-profiler/async-profiler, a library that the JVM loads.
type AsyncProfiler struct{}

// Name is as in records.
func (AsyncProfiler) Name() string { return "async-profiler" }

// Kinds are all of them.
func (AsyncProfiler) Kinds() []string { return profile.Kinds }

// Fits wants a JVM that can be attached to, and the library.
func (AsyncProfiler) Fits(s profile.Subject) error {
	if s.Tools.AsyncProfiler == "" {
		return errors.New("libasyncProfiler.so was not downloaded")
	}
	for _, path := range []string{s.Dir, s.Tools.AsyncProfiler} {
		if !filepath.IsAbs(path) || strings.ContainsAny(path, ",\x00") {
			return fmt.Errorf("the path %q is not absolute, or has a comma, which separates the "+
				"agent's options", path)
		}
	}
	if _, err := os.Stat(s.Tools.AsyncProfiler); err != nil {
		return err
	}
	_, err := find(s.PID)
	return err
}

// try is an event that async-profiler can sample by, and what its choice means.
type try struct{ event, note string }

// events are those of a kind, best first. Samples are 10 ms of processor time apart, 512 KiB of
// allocation, or 20 ms of a thread's life: the tool's own defaults but for the last, which is
// 50 ms there.
var events = map[string][]try{
	profile.CPU: {
		{"cpu-clock,interval=10ms", "event: cpu-clock of perf_events, with the kernel's frames"},
		{"ctimer,interval=10ms", "event: ctimer, because perf_events are not permitted " +
			"(kernel.perf_event_paranoid), so the kernel's frames are missing"},
		{"itimer,interval=10ms", "event: itimer, because neither perf_events nor timers of " +
			"threads are permitted, so threads are sampled less evenly and without the kernel's " +
			"frames"},
	},
	profile.Alloc: {{"alloc,alloc=512k", "event: alloc, one sample per 512 KiB"}},
	profile.Lock: {{"lock,lock=0", "event: lock, every contended monitor and " +
		"java.util.concurrent lock"}},
	profile.OffCPU: {{"wall,interval=20ms,jfr", "event: wall, samples of threads that did not " +
		"run, including threads that wait for work"}},
}

// Start loads the library, or wakes it up, and begins to sample.
func (a AsyncProfiler) Start(ctx context.Context, s profile.Subject, kind string) (
	profile.Session, error) {
	begun, err := begin(a, s, kind, len(events[kind]) > 0)
	if err != nil {
		return nil, fmt.Errorf("start async-profiler in JVM %d: %w", s.PID, err)
	}
	run := &asyncSession{session: begun, library: s.Tools.AsyncProfiler}
	var failed []error
	for _, e := range events[kind] {
		command := "start,event=" + e.event
		if kind == profile.OffCPU {
			command += ",file=" + run.path("wall.jfr")
		}
		if err := run.ask(ctx, command); err != nil {
			failed = append(failed, err)
			continue
		}
		run.note = e.note
		return run, nil
	}
	return nil, errors.Join(errors.Join(failed...), os.RemoveAll(run.dir))
}

type asyncSession struct {
	session
	library string
	note    string
}

// session is of one JVM, by either tool.
type session struct {
	target target
	dir    string // its own
	kind   string
}

// begin makes ready for a session of a kind, if the tool fits and knows it.
func begin(c profile.Collector, s profile.Subject, kind string, known bool) (out session,
	err error) {
	if err := c.Fits(s); err != nil {
		return out, err
	}
	if !known {
		return out, fmt.Errorf("it does not support %q profiles", kind)
	}
	out.kind = kind
	if out.target, err = find(s.PID); err == nil {
		out.dir, err = out.target.scratch(s.Dir, c.Name()+"-")
	}
	return out, err
}

func (s *session) path(name string) string { return filepath.Join(s.dir, name) }

// ask gives the library a command. What it says goes to a log, whose lines are the error's cause.
func (s *asyncSession) ask(ctx context.Context, command string) error {
	log := s.path("log")
	err := s.target.agent(ctx, s.library, command+",loglevel=error,log="+log)
	if err == nil {
		return nil
	}
	why, readErr := os.ReadFile(log)
	if readErr != nil {
		return err // it wrote none
	}
	return fmt.Errorf("%w: %s", err, bytes.TrimSpace(why))
}

// Stop ends the sampling and reads what was seen, twice: as counts and as sums.
func (s *asyncSession) Stop(ctx context.Context) (p *pprof.Profile, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if err := s.ask(ctx, "stop"); err != nil {
		return nil, fmt.Errorf("stop async-profiler: %w", err)
	}
	if s.kind == profile.OffCPU {
		p, err = readWall(ctx, s.target.pid, s.path("wall.jfr"))
	} else {
		p, err = s.collapsed(ctx)
	}
	if err != nil {
		return nil, err
	}
	profile.Describe(p, "async-profiler "+s.version(ctx), s.note)
	return p, nil
}

func (s *asyncSession) collapsed(ctx context.Context) (*pprof.Profile, error) {
	counts := map[string]int64{}
	read := func(counter string, visit func(frames []string, n int64)) error {
		file := s.path(counter)
		if err := s.ask(ctx, "dump,collapsed,"+counter+",file="+file); err != nil {
			return fmt.Errorf("read async-profiler's %s: %w", counter, err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read async-profiler's %s: %w", counter, err)
		}
		return profile.EachFolded(bytes.NewReader(data), visit)
	}
	err := read("samples", func(frames []string, n int64) {
		counts[strings.Join(frames, ";")] += n
	})
	if err != nil {
		return nil, err
	}
	stacks := profile.NewStacks(s.kind)
	err = read("total", func(frames []string, n int64) {
		key := strings.Join(frames, ";")
		stacks.Add(readable(frames), counts[key], n)
		delete(counts, key) // the counts of a stack that is there twice are booked once
	})
	if err != nil {
		return nil, err
	}
	return stacks.Profile(), nil
}

// version is what the library says of itself, e.g. "4.1"; a profile is none the worse without.
func (s *asyncSession) version(ctx context.Context) string {
	file := s.path("version")
	if err := s.ask(ctx, "version,file="+file); err != nil {
		return "of unknown version"
	}
	text, err := os.ReadFile(file)
	words := strings.Fields(string(text)) // "Async-profiler 4.1 built on Jul 21 2025"
	if err != nil || len(words) == 0 {
		return "of unknown version"
	}
	if len(words) > 1 {
		return words[1]
	}
	return words[0]
}

// readable writes a stack of async-profiler's as people write Java: dots for slashes. Frames of the
// kernel keep their mark; an allocation's last frame is its class, whose mark says that it fell
// outside of a TLAB.
func readable(frames []string) []string {
	out := slices.Clone(frames)
	for i, f := range out {
		switch {
		case strings.HasSuffix(f, "_[k]"):
		case strings.HasSuffix(f, "_[i]"):
			out[i] = dotted(strings.TrimSuffix(f, "_[i]"))
		default:
			out[i] = dotted(f)
		}
	}
	return out
}

// dotted is a Java name with dots; names that are none, such as C++'s and paths, stay.
func dotted(name string) string {
	plain := strings.NewReplacer(".<init>", "", ".<clinit>", "").Replace(name)
	if strings.HasPrefix(name, "/") || strings.ContainsAny(plain, ":(< ") {
		return name
	}
	return strings.ReplaceAll(name, "/", ".")
}

// tool is a program of the JDK that a process runs, or of the one in PATH.
func tool(pid int, name string) (string, error) {
	exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	if err == nil {
		sibling := filepath.Join(filepath.Dir(exe), name)
		if _, err := os.Stat(sibling); err == nil {
			return sibling, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find the JDK's %s: it is neither beside the running JVM's java, "+
			"which may belong to a JRE, nor in PATH", name)
	}
	return path, nil
}
