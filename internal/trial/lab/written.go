package lab

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"prony.example/internal/base/units"
	"prony.example/internal/service"
	"prony.example/record"
)

// mostStamps is the maximum number of files in a folder that is checked for changes.
const mostStamps = 20_000

// stamp is what shows that a file was written.
type stamp struct {
	bytes int64
	time  time.Time
}

// unwatched are folders that are not checked for changes: they are large, or hold no state.
var unwatched = []string{".git", record.Kept, "node_modules", "__pycache__"}

// stamps returns the files of a folder; nil: there are too many.
func stamps(dir string) map[string]stamp {
	out := map[string]stamp{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // unreadable for root's services, too
		}
		if d.IsDir() {
			if slices.Contains(unwatched, d.Name()) && path != dir {
				return fs.SkipDir
			}
			return nil
		}
		if info, err := d.Info(); err == nil && d.Type().IsRegular() && !isOutput(info) {
			name, _ := filepath.Rel(dir, path) // below dir, so there is no error
			out[name] = stamp{info.Size(), info.ModTime()}
		}
		if len(out) > mostStamps {
			out = nil
			return fs.SkipAll
		}
		return nil
	})
	return out
}

// outputs are Prony's standard output and error.
var outputs = []string{"/proc/self/fd/1", "/proc/self/fd/2"}

// isOutput reports whether a file is Prony's own standard output or error, redirected to it.
func isOutput(info fs.FileInfo) bool {
	for _, name := range outputs {
		if opened, err := os.Stat(name); err == nil && os.SameFile(info, opened) {
			return true
		}
	}
	return false
}

// watch notes the files of a target that has no fresh copy of its folder in each start, and returns
// a function that reports which of them were written since.
func (v Visitor) watch(name string, built *service.Built) (reportWritten func()) {
	if v.Hint == "" || !built.InUserFolder() {
		return func() {}
	}
	before := stamps(built.Dir)
	return func() {
		after := stamps(built.Dir)
		if before == nil || after == nil {
			return
		}
		var written []string
		for _, file := range slices.Sorted(maps.Keys(after)) {
			if after[file] != before[file] {
				written = append(written, file)
			}
		}
		if len(written) > 0 {
			v.Tell.Say(fmt.Sprintf("%s writes into its folder (%s), so each start finds the files "+
				"of earlier starts. If they change its work, let its command restore them, or "+
				"build it (--git, or build in prony.yaml): each start of a build has a fresh copy "+
				"of the folder", name, units.Few(written, 3)))
		}
	}
}
