// Package jvm takes profiles of JVMs: by async-profiler, which samples by timers and without
// safepoint bias, or by JFR, which is part of every JDK. It controls both over HotSpot's attach
// socket, so that no second JVM starts beside the measured one.
//
// A subject is one JVM: in a system, each process is profiled separately.
//
// Non-goals: the package downloads nothing and starts no JVM.
package jvm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/base/files"
	"prony.example/internal/observe/profile"
)

// AsyncProfiler uses https://github.com/async-profiler/async-profiler, a library that the JVM
// loads.
type AsyncProfiler struct{}

// Name returns the name in records.
func (AsyncProfiler) Name() string { return "async-profiler" }

// Kinds returns all kinds.
func (AsyncProfiler) Kinds() []string { return profile.Kinds }

// Fits returns an error unless the subject is an attachable JVM and the library exists.
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

// try is an event that async-profiler can sample by, and a note about its properties.
type try struct{ event, note string }

// events lists the events of a kind, best first. Samples are 10 ms of processor time apart, 512 KiB
// of allocation, or 20 ms of a thread's life. These are the tool's defaults except for the last,
// which is 50 ms there.
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

// Start loads the library or calls it again, and starts to sample.
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

// session is a session of one JVM, with either tool.
type session struct {
	target target
	dir    string // the session's folder
	kind   string
}

// begin prepares a session of a kind. It returns an error if the tool doesn't fit, or known is
// false.
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

// read returns the content of a file that the JVM has written.
func (s *session) read(name string) ([]byte, error) {
	f, err := files.Plain(s.path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, files.Results))
}

// ask sends the library a command. The library writes errors to a log, which ask adds to its error.
func (s *asyncSession) ask(ctx context.Context, command string) error {
	err := s.target.agent(ctx, s.library, command+",loglevel=error,log="+s.path("log"))
	if err == nil {
		return nil
	}
	why, readErr := s.read("log")
	if readErr != nil {
		return err // the library wrote no log
	}
	return fmt.Errorf("%w: %s", err, bytes.TrimSpace(why))
}

// Stop ends the sampling and reads the result.
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
		data, err := s.read(counter)
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
		delete(counts, key) // repeated stacks must count once
	})
	if err != nil {
		return nil, err
	}
	return stacks.Profile(), nil
}

// version returns the library's version, for example "4.1". Errors are ignored, because the version
// is only a note.
func (s *asyncSession) version(ctx context.Context) string {
	file := s.path("version")
	if err := s.ask(ctx, "version,file="+file); err != nil {
		return "of unknown version"
	}
	text, err := s.read("version")
	words := strings.Fields(string(text)) // "Async-profiler 4.1 built on Jul 21 2025"
	if err != nil || len(words) == 0 {
		return "of unknown version"
	}
	if len(words) > 1 {
		return words[1]
	}
	return words[0]
}

// readable converts a stack of async-profiler to Java notation, with dots for slashes. Kernel
// frames keep their mark. An allocation's last frame is its class, whose mark means that it was
// allocated outside of a TLAB.
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

// dotted returns a Java name with dots; other names, such as C++ names and paths, are unchanged.
func dotted(name string) string {
	plain := strings.NewReplacer(".<init>", "", ".<clinit>", "").Replace(name)
	if strings.HasPrefix(name, "/") || strings.ContainsAny(plain, ":(< ") {
		return name
	}
	return strings.ReplaceAll(name, "/", ".")
}

// tool returns the path of a program of the JDK that a process runs, or of the one in PATH.
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
