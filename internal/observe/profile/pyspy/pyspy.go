// Package pyspy takes profiles of CPython by py-spy (https://github.com/benfred/py-spy), which
// reads the interpreter's memory from outside and loads nothing into it.
//
// Non-goals: allocations and locks, which py-spy cannot observe.
package pyspy

import (
	"bufio"
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
	"time"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/observe/profile"
)

// PySpy uses the program py-spy.
type PySpy struct{}

// Name returns the name in records.
func (PySpy) Name() string { return "py-spy" }

// Kinds returns the kinds that py-spy can distinguish.
func (PySpy) Kinds() []string { return []string{profile.CPU, profile.OffCPU} }

// Fits returns an error unless the process runs CPython and py-spy exists.
func (PySpy) Fits(s profile.Subject) error {
	if _, err := program(s); err != nil {
		return err
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", s.PID))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(filepath.Base(exe), "python") {
		return fmt.Errorf("process %d runs %s, not python", s.PID, filepath.Base(exe))
	}
	return nil
}

func program(s profile.Subject) (string, error) {
	if s.Tools.PySpy != "" {
		_, err := os.Stat(s.Tools.PySpy)
		return s.Tools.PySpy, err
	}
	return exec.LookPath("py-spy")
}

const (
	rate   = 100 // samples/s of each thread
	period = time.Second / rate
)

// runs lists the options of the py-spy processes of a kind. The profile is what the last one
// observes minus what the first one observes.
var runs = map[string][][]string{
	profile.CPU:    {nil},
	profile.OffCPU: {nil, {"--idle"}},
}

var notes = map[string]string{
	profile.CPU: "event: every 10 ms, threads in Python and native code that are not idle; a " +
		"thread that waits for the interpreter's lock (GIL) may count as running",
	profile.OffCPU: "event: every 10 ms, idle threads (all threads minus busy threads, from two " +
		"runs of py-spy at once), including threads that wait for work",
}

// Start starts to sample the process and its children. It does not pause the process
// (--nonblocking), because pauses would increase latencies, and a torn stack costs only one sample.
func (c PySpy) Start(ctx context.Context, s profile.Subject, kind string) (profile.Session, error) {
	if err := c.Fits(s); err != nil {
		return nil, fmt.Errorf("start py-spy: %w", err)
	}
	if len(runs[kind]) == 0 {
		return nil, fmt.Errorf("start py-spy: py-spy does not support %q profiles", kind)
	}
	path, err := program(s)
	if err != nil {
		return nil, fmt.Errorf("start py-spy: %w", err)
	}
	dir, err := os.MkdirTemp(s.Dir, "py-spy-")
	if err != nil {
		return nil, fmt.Errorf("start py-spy: %w", err)
	}
	all := &session{kind: kind, dir: dir, path: path}
	for i, options := range runs[kind] {
		r := &recording{file: filepath.Join(dir, strconv.Itoa(i)), reply: make(chan struct{})}
		args := append([]string{"record", "--pid", strconv.Itoa(s.PID), "--format", "raw",
			"--output", r.file, "--nolineno", "--nonblocking", "--rate", strconv.Itoa(rate)},
			options...)
		if len(s.PIDs) > 1 {
			args = append(args, "--subprocesses")
		}
		if err := r.begin(ctx, path, args, s.Cores); err != nil {
			return nil, errors.Join(fmt.Errorf("start py-spy: %w", err), all.end(ctx),
				os.RemoveAll(dir))
		}
		all.recordings = append(all.recordings, r)
	}
	return all, nil
}

type session struct {
	kind       string
	dir, path  string
	recordings []*recording
}

// recording is one running py-spy process.
type recording struct {
	file  string
	cmd   *exec.Cmd
	reply chan struct{} // closed when its output was read to the end
	log   bytes.Buffer  // its output; complete when reply is closed
}

// begun is py-spy's message when it samples, finished its message when it has written its file.
const (
	begun    = "Sampling process"
	finished = "Wrote raw flamegraph data"
)

func (r *recording) begin(ctx context.Context, path string, args []string, cores []int) error {
	r.cmd = exec.Command(path, args...) // without the context, which applies only to the start
	cmdlog.Command(r.cmd)
	output, err := r.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	r.cmd.Stderr = r.cmd.Stdout
	if err := r.cmd.Start(); err != nil {
		return err
	}
	started := make(chan struct{})
	go r.listen(output, started)
	if err := profile.Confine(r.cmd.Process.Pid, cores); err != nil {
		return errors.Join(err, r.end(ctx))
	}
	select {
	case <-started:
		return nil
	case <-r.reply:
		return fmt.Errorf("it ended: %w", r.wait())
	case <-ctx.Done():
		return fmt.Errorf("sampling has not begun: %w", errors.Join(ctx.Err(), r.end(ctx)))
	}
}

// listen stores the program's output, and closes started when it samples.
func (r *recording) listen(from io.Reader, started chan<- struct{}) {
	defer close(r.reply)
	for lines := bufio.NewReaderSize(from, 64<<10); ; {
		piece, _, err := lines.ReadLine() // or a part of a long line, such as of all arguments
		if err != nil {
			return
		}
		line := string(piece)
		fmt.Fprintln(&r.log, line)
		if started != nil && strings.Contains(line, begun) {
			close(started)
			started = nil
		}
	}
}

// wait waits for the program's end. Its error includes the program's output.
func (r *recording) wait() error {
	<-r.reply
	err := r.cmd.Wait()
	if text := r.log.String(); err != nil || !strings.Contains(text, finished) {
		return fmt.Errorf("py-spy wrote no profile: %w", errors.Join(err,
			errors.New(strings.TrimSpace(text))))
	}
	return nil
}

// end interrupts the program, which then writes its file, and kills it when the context ends.
func (r *recording) end(ctx context.Context) error {
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	kill := context.AfterFunc(ctx, func() { _ = r.cmd.Process.Kill() }) // wait returns the error
	defer kill()
	return r.wait()
}

func (s *session) end(ctx context.Context) error {
	var failed []error
	for _, r := range s.recordings {
		failed = append(failed, r.end(ctx))
	}
	return errors.Join(failed...)
}

// Stop ends the sampling and returns the profile.
func (s *session) Stop(ctx context.Context) (p *pprof.Profile, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if err := s.end(ctx); err != nil {
		return nil, fmt.Errorf("stop py-spy: %w", err)
	}
	visited := map[string]int64{}
	for i, r := range s.recordings {
		sign := int64(1)
		if i < len(s.recordings)-1 {
			sign = -1
		}
		data, err := os.ReadFile(r.file)
		if err != nil {
			return nil, fmt.Errorf("read py-spy's profile: %w", err)
		}
		if err := profile.EachFolded(bytes.NewReader(data), func(frames []string, n int64) {
			visited[strings.Join(frames, ";")] += sign * n
		}); err != nil {
			return nil, fmt.Errorf("read py-spy's profile: %w", err)
		}
	}
	stacks := profile.NewStacks(s.kind)
	for stack, n := range visited {
		if n > 0 { // may be negative, because two programs sample at different moments
			stacks.Add(slices.Clone(strings.Split(stack, ";")), n, n*int64(period))
		}
	}
	p = stacks.Profile()
	texts := []string{notes[s.kind]}
	for _, r := range s.recordings {
		texts = append(texts, lost(r.log.String())...)
	}
	profile.Describe(p, version(ctx, s.path), texts...)
	return p, nil
}

// lost returns py-spy's messages about samples that it could not take.
func lost(text string) (out []string) {
	for line := range strings.Lines(text) {
		if _, n, ok := strings.Cut(line, "Errors: "); ok && strings.TrimSpace(n) != "0" {
			out = append(out, "lost: "+strings.TrimSpace(n)+" samples could not be read")
		}
		if strings.Contains(line, "behind in sampling") {
			out = append(out, "late: "+strings.TrimSpace(strings.TrimPrefix(line, "py-spy>")))
		}
	}
	if len(out) > 2 {
		out = out[:2] // py-spy repeats messages
	}
	return out
}

// version returns the program's name and version: "py-spy 0.4.3".
func version(ctx context.Context, path string) string {
	text, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "py-spy of unknown version"
	}
	return string(bytes.TrimSpace(text))
}
