package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"prony/internal/profile"
	"prony/internal/profile/jvm"
)

// mapLimit bounds what a JVM may take to write down its methods.
const mapLimit = 20 * time.Second

// readJIT reads the names of code that the process made itself. Node.js writes them down as it
// goes, a JVM when it is asked to, which is after the sampling has ended.
func (p *process) readJIT(ctx context.Context) (note string) {
	path := fmt.Sprintf("/proc/%d/root/tmp/perf-%s.map", p.pid, profile.Inner(p.pid))
	if p.isJVM() {
		ctx, cancel := context.WithTimeout(ctx, mapLimit)
		defer cancel()
		if err := jvm.PerfMap(ctx, p.pid); err != nil {
			return fmt.Sprintf("Java's methods have no names: %v", err)
		}
	}
	// Anybody could have put a link there.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
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

func (p *process) isJVM() bool {
	return slices.ContainsFunc(p.mappings, func(m mapping) bool {
		return filepath.Base(m.path) == "libjvm.so"
	})
}

// jitName makes what a JVM and V8 write into what people call the function. A JVM writes the return
// type, the method and its parameters, V8 a mark of how far it was optimised and the whole path of
// the file.
func jitName(text string) string {
	text = strings.TrimSpace(text)
	if kind, rest, ok := strings.Cut(text, ":"); ok && (kind == "JS" || kind == "LazyCompile" ||
		kind == "Function" || kind == "Script" || kind == "Eval") {
		name, where, _ := strings.Cut(strings.TrimLeft(rest, "*~^+"), " ")
		name = cmp.Or(name, "(anonymous)")
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
