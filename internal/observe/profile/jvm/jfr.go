package jvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/observe/profile"
)

// JFR uses the JDK's Flight Recorder.
type JFR struct{}

// Name returns the name in records.
func (JFR) Name() string { return "jfr" }

// Kinds returns all kinds.
func (JFR) Kinds() []string { return profile.Kinds }

// Fits returns an error unless the subject is an attachable JVM and a JDK's jfr program exists,
// which reads recordings.
func (JFR) Fits(s profile.Subject) error {
	if !filepath.IsAbs(s.Dir) || strings.ContainsAny(s.Dir, "\"\x00") {
		return fmt.Errorf("the path %q is not absolute, or has a quote", s.Dir)
	}
	if _, err := find(s.PID); err != nil {
		return err
	}
	_, err := tool(s.PID, "jfr")
	return err
}

// setting is a recorded event: its name, and pairs of a setting's name and value.
type setting struct {
	event string
	pairs []string
}

// pauses is part of every recording: it costs one event per collection.
var pauses = setting{event: "jdk.GarbageCollection"}

// pins is part of every recording, too: a virtual thread that blocks while native code or a class
// initializer is on its stack also blocks its carrier thread.
var pins = setting{"jdk.VirtualThreadPinned", []string{"threshold", "0 ms"}}

// recorded lists the events of a kind. A JDK ignores events that it does not have.
var recorded = map[string][]setting{
	profile.CPU: {
		{"jdk.CPUTimeSample", []string{"throttle", "10 ms"}}, // JEP 509, since 25, on Linux
		{"jdk.CPUTimeSamplesLost", nil},
		{"jdk.ExecutionSample", []string{"period", "10 ms"}},
	},
	profile.Alloc: {{"jdk.ObjectAllocationSample", []string{"throttle", "1000/s"}}},
	profile.Lock: {
		{"jdk.JavaMonitorEnter", []string{"threshold", "0 ms"}},
		{"jdk.ThreadPark", []string{"threshold", "0 ms"}},
	},
	profile.OffCPU: {
		{"jdk.JavaMonitorEnter", []string{"threshold", "1 ms"}},
		{"jdk.JavaMonitorWait", []string{"threshold", "1 ms"}},
		{"jdk.ThreadPark", []string{"threshold", "1 ms"}},
		{"jdk.ThreadSleep", []string{"threshold", "1 ms"}},
		{"jdk.SocketRead", []string{"threshold", "1 ms"}},
		{"jdk.SocketWrite", []string{"threshold", "1 ms"}},
		{"jdk.FileRead", []string{"threshold", "1 ms"}},
		{"jdk.FileWrite", []string{"threshold", "1 ms"}},
	},
}

// executionPeriod is the time between samples of jdk.ExecutionSample, which have no weight.
const executionPeriod = 10 * time.Millisecond

// configuration returns a .jfc file. Unlike options of JFR.start, all JDKs since 11 read it.
func configuration(settings []setting) []byte {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<configuration version=\"2.0\">\n")
	for _, s := range settings {
		fmt.Fprintf(&b, "<event name=%q><setting name=\"enabled\">true</setting>", s.event)
		fmt.Fprint(&b, "<setting name=\"stackTrace\">true</setting>")
		for pair := range slices.Chunk(s.pairs, 2) {
			fmt.Fprintf(&b, "<setting name=%q>%s</setting>", pair[0], pair[1])
		}
		b.WriteString("</event>\n")
	}
	b.WriteString("</configuration>\n")
	return []byte(b.String())
}

// Start starts a recording.
func (j JFR) Start(ctx context.Context, s profile.Subject, kind string) (profile.Session, error) {
	settings := recorded[kind]
	begun, err := begin(j, s, kind, len(settings) > 0)
	if err != nil {
		return nil, fmt.Errorf("start JFR in JVM %d: %w", s.PID, err)
	}
	run := &jfrSession{begun}
	file := run.path("settings.jfc")
	if err = create(file, configuration(append(settings, pauses, pins))); err == nil {
		err = run.begin(ctx, file)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start JFR in JVM %d: %w", s.PID, err),
			os.RemoveAll(run.dir))
	}
	return run, nil
}

// create writes a new file: the JVM's user may already have made a link of its name.
func create(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

type jfrSession struct{ session }

// begin starts the recording. It requests complete stacks, which a JVM accepts only before its
// first recording; otherwise truncated stacks are marked.
func (s *jfrSession) begin(ctx context.Context, settings string) error {
	if _, err := s.target.jcmd(ctx, "JFR.configure stackdepth=1024"); err != nil {
		return err
	}
	answer, err := s.target.jcmd(ctx, fmt.Sprintf("JFR.start name=%s settings=%q disk=true",
		filepath.Base(s.dir), settings))
	if err != nil {
		return err
	}
	if !strings.Contains(answer, "Started recording") {
		return fmt.Errorf("JFR.start: %s", strings.TrimSpace(answer))
	}
	return nil
}

// Stop ends and reads the recording.
func (s *jfrSession) Stop(ctx context.Context) (p *pprof.Profile, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	file := s.path("recording.jfr")
	answer, err := s.target.jcmd(ctx, fmt.Sprintf("JFR.stop name=%s filename=%q",
		filepath.Base(s.dir), file))
	if err != nil {
		return nil, fmt.Errorf("stop JFR: %w", err)
	}
	if _, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("stop JFR: %w: %s", err, strings.TrimSpace(answer))
	}
	r := reading{kind: s.kind, timed: profile.NewStacks(s.kind), sampled: profile.NewStacks(s.kind)}
	names := []string{pauses.event, pins.event}
	for _, e := range recorded[s.kind] {
		names = append(names, e.event)
	}
	if err := eachEvent(ctx, s.target.pid, file, names, r.take); err != nil {
		return nil, err
	}
	p = r.profile()
	profile.Describe(p, "jfr of JDK "+s.version(ctx), r.notes()...)
	return p, nil
}

// version returns the JDK's version, from the second line of VM.version.
func (s *jfrSession) version(ctx context.Context) string {
	answer, err := s.target.jcmd(ctx, "VM.version")
	for line := range strings.Lines(answer) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "JDK "); ok && err == nil {
			return v
		}
	}
	return "of unknown version"
}

// reading builds a profile from a recording's events.
type reading struct {
	kind        string
	timed       *profile.Stacks // by processor time, or by the events' own weights
	sampled     *profile.Stacks // jdk.ExecutionSample, used if no better events exist
	timedN      int64
	lost        int64
	failed      int64 // samples without a stack
	collections int64
	paused      time.Duration
	longest     time.Duration
	pinned      int64
	pinnedFor   time.Duration
}

func (r *reading) take(e event) {
	v := e.Values
	stack := v.StackTrace.frames()
	switch e.Type {
	case pauses.event:
		r.collections++
		r.paused += time.Duration(v.SumOfPauses)
		r.longest = max(r.longest, time.Duration(v.LongestPause))
	case pins.event:
		r.pinned++
		r.pinnedFor += time.Duration(v.Duration)
	case "jdk.CPUTimeSamplesLost":
		r.lost += v.LostSamples
	case "jdk.CPUTimeSample":
		r.timedN++
		if v.Failed || len(stack) == 0 {
			r.failed++
			stack = []string{"[unknown]"}
		}
		r.timed.Add(stack, 1, int64(v.SamplingPeriod))
	case "jdk.ExecutionSample":
		r.sampled.Add(stack, 1, int64(executionPeriod))
	case "jdk.ObjectAllocationSample":
		r.timed.Add(append(stack, v.ObjectClass.java()), 1, max(v.Weight, 0))
	case "jdk.ThreadPark":
		if r.kind == profile.Lock && !isLock(v.ParkedClass.Name) {
			return // a thread that waits for work, not for a lock
		}
		r.timed.Add(append(stack, v.ParkedClass.java()), 1, int64(v.Duration))
	case "jdk.JavaMonitorEnter":
		r.timed.Add(append(stack, v.MonitorClass.java()), 1, int64(v.Duration))
	default: // events of off-CPU time
		r.timed.Add(stack, 1, int64(v.Duration))
	}
}

// isLock distinguishes java.util.concurrent's locks from other reasons to park, as async-profiler
// does.
func isLock(class string) bool {
	return strings.HasPrefix(class, "java/util/concurrent/locks/Reentrant") ||
		strings.HasPrefix(class, "java/util/concurrent/Semaphore")
}

// byTime reports whether the events have their own weights.
func (r *reading) byTime() bool { return r.kind != profile.CPU || r.timedN > 0 }

func (r *reading) profile() *pprof.Profile {
	if r.byTime() {
		return r.timed.Profile()
	}
	return r.sampled.Profile()
}

func (r *reading) notes() (out []string) {
	var names []string
	for _, e := range recorded[r.kind] {
		names = append(names, strings.TrimPrefix(e.event, "jdk."))
	}
	switch {
	case r.kind == profile.CPU && r.byTime():
		out = append(out, fmt.Sprintf("event: CPUTimeSample, every 10 ms of a thread's processor "+
			"time; %d samples were lost, %d without a stack", r.lost, r.failed))
	case r.kind == profile.CPU:
		out = append(out, "event: ExecutionSample, which samples a few threads in Java code per "+
			"period, and none in loops without debug information: use results as hints, not as "+
			"shares")
	case r.kind == profile.Alloc:
		// Measured on JDK 25: it shows 95 % for a function that allocates 75 % of the bytes.
		out = append(out, "event: ObjectAllocationSample, taken when a thread's buffer is full, "+
			"which favors large objects: use the order of functions, not their shares")
	default:
		out = append(out, "event: "+strings.Join(names, ", "))
	}
	return append(out, fmt.Sprintf("gc: %d collections paused for %v, the longest for %v",
		r.collections, r.paused.Round(time.Microsecond), r.longest.Round(time.Microsecond)),
		fmt.Sprintf("virtual threads: blocked %d times for %v together with their carrier threads "+
			"(jdk.VirtualThreadPinned)", r.pinned, r.pinnedFor.Round(time.Microsecond)))
}
