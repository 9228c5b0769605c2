package kernel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"prony/internal/shell"
)

// jcmdLimit bounds what a JVM may take to write down its methods.
const jcmdLimit = 20 * time.Second

// readJIT reads the names of code that the process made itself. Node.js writes them down as it
// goes, a JVM when it is asked to, which is after the sampling has ended.
func (p *process) readJIT(ctx context.Context) (note string) {
	id := p.inner()
	path := fmt.Sprintf("/proc/%d/root/tmp/perf-%s.map", p.pid, id)
	if p.isJVM() {
		if err := p.askJVM(ctx); err != nil {
			return fmt.Sprintf("Java's methods have no names: %v", err)
		}
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return fmt.Sprintf("code made at run time has no names: %v", err)
	}
	p.jit, err = readPerfMap(f)
	err = errors.Join(err, f.Close())
	if p.isJVM() { // it was written for this profile only
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return fmt.Sprintf("some code made at run time has no names: read %s: %v", path, err)
	}
	return ""
}

// inner is the process's id as it knows it itself, in a container.
func (p *process) inner() string {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err == nil { // else it has ended, and its file is not found
		for line := range strings.Lines(string(status)) {
			if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
				all := strings.Fields(ids)
				return all[len(all)-1]
			}
		}
	}
	return fmt.Sprint(p.pid)
}

func (p *process) isJVM() bool {
	for _, m := range p.mappings {
		if filepath.Base(m.path) == "libjvm.so" {
			return true
		}
	}
	return false
}

// askJVM has a JVM of 17 or newer write its map of methods.
func (p *process) askJVM(ctx context.Context) error {
	jcmd := "" // beside the process's java, or else in PATH
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.pid)); err == nil {
		jcmd = filepath.Join(filepath.Dir(exe), "jcmd")
	}
	if _, err := os.Stat(jcmd); err != nil {
		if jcmd, err = exec.LookPath("jcmd"); err != nil {
			return fmt.Errorf("ask process %d for them: %w: it is part of a JDK", p.pid, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, jcmdLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, jcmd, fmt.Sprint(p.pid), "Compiler.perfmap")
	shell.Command(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("ask process %d for them: %w: %.200s", p.pid, err, out)
	}
	return nil
}

// jitName makes what a JVM and V8 write into what people call the function. A JVM writes the return
// type, the method and its parameters, V8 a mark of how far it was optimised and the whole path of
// the file.
func jitName(text string) string {
	text = strings.TrimSpace(text)
	if kind, rest, ok := strings.Cut(text, ":"); ok && (kind == "JS" || kind == "LazyCompile" ||
		kind == "Function" || kind == "Script" || kind == "Eval") {
		name, where, _ := strings.Cut(strings.TrimLeft(rest, "*~^+"), " ")
		if name == "" {
			name = "(anonymous)"
		}
		if where = where[strings.LastIndexByte(where, '/')+1:]; where != "" {
			name += " (" + where + ")"
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
