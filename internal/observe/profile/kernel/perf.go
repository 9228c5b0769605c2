package kernel

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
	"golang.org/x/sys/unix"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/observe/profile"
)

// Perf takes profiles by the kernel's tool perf, if this process may not load programs into the
// kernel. Users may profile their own processes unless kernel.perf_event_paranoid forbids it.
// Calling perf_event_open(2) directly would need an event and a buffer for each thread on each
// processor, also for threads that start later; perf has done that reliably for years. It writes
// each sample to a file while the subject is under load.
type Perf struct{}

// Name returns the tool's name.
func (Perf) Name() string { return "perf" }

// Kinds returns the kinds that ordinary users may take: only the kernel can trace context switches.
func (Perf) Kinds() []string { return []string{profile.CPU} }

// Levels of kernel.perf_event_paranoid (admin-guide/sysctl/kernel.rst).
const (
	kernelToo = 1 // up to here stacks include the kernel's part
	usersToo  = 2 // up to here users may profile their own processes
)

// Fits returns an error if perf is missing or lacks permission.
func (Perf) Fits(s profile.Subject) error {
	if err := running(s); err != nil {
		return err
	}
	if _, err := exec.LookPath("perf"); err != nil {
		return fmt.Errorf("%w: install the package linux-perf or linux-tools", err)
	}
	level, err := paranoid()
	if err != nil {
		return err
	}
	if ok, err := capable(unix.CAP_PERFMON); err != nil || !ok && level > usersToo {
		return errors.Join(err, fmt.Errorf("kernel.perf_event_paranoid is %d: run sysctl -w "+
			"kernel.perf_event_paranoid=%d as root", level, usersToo))
	}
	return nil
}

func paranoid() (int, error) {
	text, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		return 0, fmt.Errorf("the kernel has no performance events: %w", err)
	}
	level, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read kernel.perf_event_paranoid: %w", err)
	}
	return level, nil
}

const (
	perfLimit = 20 * time.Second // for its start and its end
	perfDone  = "ack\n\x00"      // perf-record(1), --control; perf sends the last byte
)

type perf struct {
	pids   []int
	cores  []int
	names  *names
	file   string
	notes  []string
	cmd    *exec.Cmd
	output bytes.Buffer
	pipes  []*os.File // to perf and back
	ended  chan error
}

// Start starts perf and returns when it reports that it samples.
func (Perf) Start(ctx context.Context, s profile.Subject, kind string) (profile.Session, error) {
	if kind != profile.CPU {
		return nil, fmt.Errorf("start perf: perf does not support %s profiles", kind)
	}
	p := &perf{pids: s.Processes(), cores: s.Cores, ended: make(chan error, 1)}
	p.file = filepath.Join(s.Dir, fmt.Sprintf("perf-%d.data", s.PID))
	p.names = newNames(p.pids)
	if err := p.start(ctx); err != nil {
		return nil, fmt.Errorf("start perf: %w", err)
	}
	return p, nil
}

func (p *perf) start(ctx context.Context) error {
	event := "cpu-clock"
	level, err := paranoid()
	if err != nil {
		return err
	}
	if ok, err := capable(unix.CAP_PERFMON); err != nil {
		return err
	} else if !ok && level > kernelToo {
		event = "cpu-clock:u"
		p.notes = append(p.notes, "the kernel's functions are missing, because "+
			"kernel.perf_event_paranoid is above "+
			strconv.Itoa(kernelToo))
	}
	var pids []string
	for _, pid := range p.pids {
		pids = append(pids, strconv.Itoa(pid))
	}
	theirs, ours, err := pipes()
	if err != nil {
		return err
	}
	p.pipes = ours
	// File descriptors 3 and 4 of perf receive commands and send acknowledgements.
	p.cmd = exec.Command("perf", "record", "--quiet", "-e", event, "-c",
		strconv.Itoa(int(tick)), "-g", "-p", strings.Join(pids, ","), "-D", "-1",
		"--control", "fd:3,4", "-o", p.file)
	p.cmd.ExtraFiles = theirs
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	cmdlog.Command(p.cmd)
	err = p.cmd.Start()
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return err
	}
	go func() { p.ended <- p.cmd.Wait() }()
	if err := p.enable(ctx); err != nil {
		return errors.Join(err, p.cmd.Process.Kill(), p.end(), os.Remove(p.file))
	}
	return nil
}

// enable moves perf off the subject's cores and starts the sampling.
func (p *perf) enable(ctx context.Context) error {
	if err := profile.Confine(p.cmd.Process.Pid, p.cores); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, perfLimit)
	defer cancel()
	// Closing the pipe ends a read that waits for a response.
	defer context.AfterFunc(ctx, func() { closeAll(p.pipes[1:]) })()
	_, err := p.pipes[0].WriteString("enable\n")
	answer := make([]byte, len(perfDone))
	if err == nil {
		_, err = io.ReadFull(p.pipes[1], answer)
	}
	if err != nil || string(answer) != perfDone {
		return errors.Join(ctx.Err(), fmt.Errorf("wait for perf to start sampling: %w: perf "+
			"responded %q", err,
			answer))
	}
	return nil
}

// pipes returns perf's ends and this process's ends of two pipes, one in each direction.
func pipes() (theirs, ours []*os.File, err error) {
	in, command, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("open a pipe: %w", err)
	}
	answer, out, err := os.Pipe()
	if err != nil {
		closeAll([]*os.File{in, command})
		return nil, nil, fmt.Errorf("open a pipe: %w", err)
	}
	return []*os.File{in, out}, []*os.File{command, answer}, nil
}

// closeAll closes pipes. It may be called twice, and drops unread data.
func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// end ends perf, and includes perf's output in an error.
func (p *perf) end() error {
	defer closeAll(p.pipes)
	_, reported := p.pipes[0].WriteString("stop\n") // fails only if perf has ended already
	select {
	case err := <-p.ended:
		if err = errors.Join(reported, err); err != nil {
			return fmt.Errorf("end perf: %w: %.400s", err, p.output.String())
		}
		return nil
	case <-time.After(perfLimit):
		err := p.cmd.Process.Kill()
		<-p.ended
		return errors.Join(err, fmt.Errorf("end perf: perf did not end within %v: %.400s",
			perfLimit,
			p.output.String()))
	}
}

// Stop ends perf and reads its file.
func (p *perf) Stop(ctx context.Context) (_ *pprof.Profile, err error) {
	defer func() { err = errors.Join(err, os.Remove(p.file)) }()
	if err := p.end(); err != nil {
		return nil, err
	}
	notes := append(p.notes, hints(p.pids)...)
	notes = append(notes, p.names.refresh(ctx)...)
	script := exec.CommandContext(ctx, "perf", "script", "-i", p.file, "-F",
		"pid,ip,sym,dso")
	var output bytes.Buffer
	script.Stderr = &output
	cmdlog.Command(script)
	text, err := script.Output()
	if err != nil {
		return nil, fmt.Errorf("read perf's output: %w: %.400s%.400s", err, output.String(),
			p.output.String())
	}
	out, lost := p.read(bytes.NewReader(text))
	if lost > 0 {
		notes = append(notes, fmt.Sprintf("perf lost samples %d times because it was too slow",
			lost))
	}
	version, err := exec.CommandContext(ctx, "perf", "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("read perf's version: %w", err)
	}
	profile.Describe(out, strings.TrimSpace(string(version)), notes...)
	return out, nil
}

// read parses the output of perf script: a line with the process, a line for each frame, innermost
// first, and an empty line. Other lines count as lost.
func (p *perf) read(text io.Reader) (out *pprof.Profile, lost int) {
	stacks := profile.NewStacks(profile.CPU)
	var pid int
	var frames []string
	flush := func() {
		if len(frames) > 0 {
			slices.Reverse(frames)
			stacks.Add(frames, 1, int64(tick))
		}
		frames = nil
	}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, maxName)
	for lines.Scan() {
		line := lines.Text()
		word := strings.TrimSpace(line)
		var err error
		switch {
		case word == "":
			flush()
		case strings.HasPrefix(line, "\t"):
			var name string
			if name, err = p.frame(pid, word, len(frames) > 0); err == nil {
				frames = append(frames, name)
			}
		default:
			flush()
			pid, err = strconv.Atoi(word)
		}
		if err != nil {
			lost++
		}
	}
	flush()
	if lines.Err() != nil { // a line that is too long
		lost++
	}
	return stacks.Profile(), lost
}

// nameless is perf's name for unknown symbols.
const nameless = "[unknown]"

// frame names a frame such as "1750ce __strpbrk_sse42 (/usr/lib/libc.so.6)". The number is the
// offset in that file. It uses perf's name if perf has one. Otherwise it reads the file, because
// perf does not read the table of a stripped Go program.
func (p *perf) frame(pid int, text string, caller bool) (string, error) {
	digits, tail, _ := strings.Cut(text, " ")
	i := strings.LastIndex(tail, " (")
	if i < 0 {
		return "", fmt.Errorf("read a stack frame of perf's output: no file in %q", text)
	}
	offset, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return "", fmt.Errorf("read a stack frame of perf's output: %w", err)
	}
	name, file := tail[:i], strings.Trim(tail[i:], " ()")
	switch {
	case name != nameless && strings.HasPrefix(file, "[") && file != vdso:
		return name + kernelMark, nil
	case name != nameless && strings.HasPrefix(filepath.Base(file), "perf-"):
		return jitName(name), nil
	case name != nameless:
		return demangle(name), nil
	case file == nameless || strings.HasPrefix(file, "//anon"):
		return nameless, nil
	case strings.HasPrefix(file, "["):
		return file, nil
	}
	if caller {
		offset--
	}
	return p.names.in(p.names.processes[pid], mapping{path: file}, offset), nil
}
