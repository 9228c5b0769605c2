package kernel

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/base/files"
	"prony.example/internal/observe/profile"
	"prony.example/internal/observe/profile/jvm"
)

// names maps addresses to names of functions. Code without symbols is named by its file,
// "[libc.so.6]", or the kernel's name of its memory, "[anon]"; names are never guessed. The
// position in the file is left out: it would split one frame into a thousand that say no more.
type names struct {
	processes map[int]*process
	files     map[string]*symbols // by path; nil: unreadable
	kernel    *symbols
}

// process is the memory of a process.
type process struct {
	pid      int
	mappings []mapping // by address
	jit      *symbols  // of code that the process generated; nil: unknown
}

// mapping is an executable line of /proc/PID/maps.
type mapping struct {
	start, end, offset uint64
	path               string
}

// newNames reads the processes' memory maps, because a process may have ended when names are
// needed.
func newNames(pids []int) *names {
	n := &names{processes: map[int]*process{}, files: map[string]*symbols{}}
	for _, pid := range pids {
		n.processes[pid] = &process{pid: pid}
		if maps, err := readMappings(pid); err == nil { // otherwise refresh reports it
			n.processes[pid].mappings = maps
		}
	}
	return n
}

// refresh reads the maps again, and everything that is needed only at the end.
func (n *names) refresh(ctx context.Context) (notes []string) {
	for _, p := range n.processes {
		maps, err := readMappings(p.pid)
		if err != nil || len(maps) == 0 {
			notes = append(notes, fmt.Sprintf("process %d has ended, so functions that it loaded "+
				"during the profile have no names", p.pid))
			continue
		}
		p.mappings = maps
		if note := p.readJIT(ctx); note != "" {
			notes = append(notes, note)
		}
	}
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return append(notes, "the kernel's functions have no names: "+err.Error())
	}
	n.kernel, err = readKallsyms(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return append(notes, "the kernel's functions have no names: "+err.Error())
	}
	if len(n.kernel.all) == 0 {
		notes = append(notes, "the kernel's functions have no names, because the kernel hides "+
			"their addresses (kernel.kptr_restrict)")
	}
	return notes
}

func readMappings(pid int) ([]mapping, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, fmt.Errorf("read the memory map: %w", err)
	}
	all, err := parseMappings(f)
	return all, errors.Join(err, f.Close())
}

// parseMappings reads lines such as "7f21-7f23 r-xp 0002a000 fe:00 1234   /usr/lib/libc.so.6"
// (proc_pid_maps(5)).
func parseMappings(r io.Reader) (all []mapping, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 5 || !strings.Contains(f[1], "x") {
			continue
		}
		from, to, _ := strings.Cut(f[0], "-")
		m := mapping{path: strings.TrimSuffix(strings.Join(f[5:], " "), " (deleted)")}
		for _, field := range []struct {
			to   *uint64
			text string
		}{{&m.start, from}, {&m.end, to}, {&m.offset, f[2]}} {
			if *field.to, err = strconv.ParseUint(field.text, 16, 64); err != nil {
				return nil, fmt.Errorf("read the memory map, %q: %w", lines.Text(), err)
			}
		}
		all = append(all, m)
	}
	return all, lines.Err()
}

// of returns the names of a stack, outermost frame first, the user's before the kernel's. All
// frames but the innermost are return addresses: the call is before them, and may be the last
// instruction of its function.
func (n *names) of(pid int, user, kernel []uint64) (out []string) {
	p := n.processes[pid]
	for i, ip := range user {
		if i < len(user)-1 {
			ip--
		}
		out = append(out, n.user(p, ip))
	}
	for i, ip := range kernel {
		if i < len(kernel)-1 {
			ip--
		}
		name := "[kernel]"
		if match, ok := n.kernel.find(ip); ok {
			name = match + kernelMark
		}
		out = append(out, name)
	}
	return withoutProfiler(out)
}

// kernelMark marks functions of the kernel, as Gregg's stackcollapse does.
const kernelMark = "_[k]"

// withoutProfiler removes the kernel's sampling from the end of a stack: this package's eBPF
// program and its callers, down to the scheduler.
func withoutProfiler(frames []string) []string {
	for i, f := range frames {
		name, ok := strings.CutSuffix(f, kernelMark)
		if ok && (strings.HasPrefix(name, "bpf_") || strings.HasPrefix(name, "__bpf_") ||
			strings.HasPrefix(name, "__traceiter_sched_switch") || name == "__schedule") {
			return frames[:i]
		}
	}
	return frames
}

func (n *names) user(p *process, ip uint64) string {
	if p == nil {
		return "[unknown]"
	}
	if name, ok := p.jit.find(ip); ok {
		return name
	}
	i, ok := slices.BinarySearchFunc(p.mappings, ip, func(m mapping, ip uint64) int {
		switch {
		case ip < m.start:
			return 1
		case ip >= m.end:
			return -1
		}
		return 0
	})
	if !ok {
		return "[unknown]"
	}
	m := p.mappings[i]
	switch {
	case m.path == "" || strings.HasPrefix(m.path, "//anon"):
		return "[anon]"
	case strings.HasPrefix(m.path, "[") && m.path != vdso:
		return m.path
	}
	return n.in(p, m, ip-m.start+m.offset)
}

// in names a place in a mapped file by its offset.
func (n *names) in(p *process, m mapping, offset uint64) string {
	syms := n.file(p, m)
	if syms != nil {
		offset = syms.address(offset)
		if name, ok := syms.find(offset); ok {
			return demangle(name) // here: a JVM's library has 100,000 names and few are used
		}
	}
	base := m.path[strings.LastIndexByte(m.path, '/')+1:]
	return "[" + strings.Trim(base, "[]") + "]"
}

// vdso is the kernel's name of the library that it maps into each process.
const vdso = "[vdso]"

// file reads the symbols of a mapped file, as the process sees it, perhaps in a container.
func (n *names) file(p *process, m mapping) *symbols {
	if s, ok := n.files[m.path]; ok {
		return s
	}
	var s *symbols
	var err error
	if m.path == vdso {
		s, err = readVDSO(p.pid, m)
	} else if p != nil {
		s, err = openELF(fmt.Sprintf("/proc/%d/root%s", p.pid, m.path))
	}
	if m.path != vdso && (p == nil || err != nil) { // it was replaced, or the process has ended
		s, err = openELF(m.path)
	}
	if err != nil {
		s = nil // frames in the file are named by the file
	}
	n.files[m.path] = s
	return s
}

// mapLimit bounds the time that a JVM may take to write its methods.
const mapLimit = 20 * time.Second

// readJIT reads the names of code that the process generated. Node.js writes them continuously, a
// JVM on request, which is after the sampling.
func (p *process) readJIT(ctx context.Context) (note string) {
	path := fmt.Sprintf("/proc/%d/root/tmp/perf-%s.map", p.pid, profile.Inner(p.pid))
	if p.isJVM() {
		ctx, cancel := context.WithTimeout(ctx, mapLimit)
		defer cancel()
		if err := jvm.PerfMap(ctx, p.pid); err != nil {
			return fmt.Sprintf("Java's methods have no names: %v", err)
		}
	}
	f, err := files.Plain(path) // any user may have made a link there
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return fmt.Sprintf("code made at run time has no names: %v", err)
	}
	p.jit, err = readPerfMap(f)
	err = errors.Join(err, f.Close())
	if p.isJVM() { // it was written only for this profile
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return fmt.Sprintf("some code made at run time has no names: read %s: %v", path, err)
	}
	return ""
}

func (p *process) isJVM() bool {
	return slices.ContainsFunc(p.mappings, func(m mapping) bool {
		return filepath.Base(m.path) == "libjvm.so"
	})
}

// jitName returns the usual name of a function from what a JVM or V8 writes. A JVM writes the
// return type, the method and its parameters; V8 writes a mark of its optimization level and the
// file's full path.
func jitName(text string) string {
	text = strings.TrimSpace(text)
	if kind, tail, ok := strings.Cut(text, ":"); ok && (kind == "JS" || kind == "LazyCompile" ||
		kind == "Function" || kind == "Script" || kind == "Eval") {
		name, location, _ := strings.Cut(strings.TrimLeft(tail, "*~^+"), " ")
		name = cmp.Or(name, "(anonymous)")
		if location = location[strings.LastIndexByte(location, '/')+1:]; location != "" {
			name += " (" + location + ")"
		}
		return name
	}
	head, _, ok := strings.Cut(text, "(")
	if !ok {
		return text
	}
	if i := strings.LastIndexByte(head, ' '); i >= 0 && strings.Contains(head[i:], ".") {
		return head[i+1:]
	}
	return text
}
