package record

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A slices file that is damaged, endless or not a file is an error that names it, in finite time.
func TestReadSlicesRefuses(t *testing.T) {
	dir := t.TempDir()
	const head = `{"version":1,"trials":["a","b"],"rounds":2}` + "\n"
	for name, text := range map[string]string{"target": head + `{"target":2}`,
		"round": head + `{"target":1,"round":1}` + "\n" +
			`{"target":1,"round":4611686018427387904}`,
		"twice":  head + `{"target":1,"round":1,"round":2}`,
		"packed": "\x1f\x8b\x08", "torn": head + `{"target":1,"rou`, "empty": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "device")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"target": "line 2: target 2 of 2",
		"round": "line 3: round is 4611686018427387904: must be at most 1048576",
		"twice": `line 2: the key "round" occurs twice`, "packed": "compressed by gzip",
		"torn": "line 2: unexpected EOF", "empty": "EOF", "pipe": "not a regular file",
		"device": "not a regular file",
		"gone":   "no such file", "../x": "not a file of the run's folder", ".": "it is a folder"} {
		_, _, err := ReadSlices(dir, name)
		if err == nil || !strings.Contains(err.Error(), want) ||
			name != "../x" && !strings.HasPrefix(err.Error(), "read slices "+name+": ") ||
			strings.Contains(err.Error(), dir) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}

// The schedule of a run is not read from a pipe or a device that never ends.
func TestReadScheduleEnds(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, ScheduleFile)
	for what, put := range map[string]func() error{
		"a pipe":   func() error { return syscall.Mkfifo(name, 0o644) },
		"a device": func() error { return os.Symlink("/dev/zero", name) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSchedule(dir); err == nil ||
			!strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: error %v", what, err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}
