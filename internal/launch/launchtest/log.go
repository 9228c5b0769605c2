package launchtest

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony/internal/launch"
)

// boundsLog has a target write far more than is kept.
func (s *suite) boundsLog(t *testing.T) {
	dir := t.TempDir()
	l := s.make(t)
	p, err := l.Launch(t.Context(), launch.Spec{Name: "t", Dir: dir, Image: s.of.Image,
		Args: []string{s.of.Program, "act-floods"}, Env: []string{"PATH=/usr/bin:/bin"},
		LogFile: filepath.Join(dir, "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(0); err != nil {
			t.Error(err)
		}
	})
	const kept = launch.LogHead + launch.LogTail
	eventually(t, "end of the flood", func() bool { return slices.Contains(p.Log(1), "ready") })
	eventually(t, "space", func() bool {
		var stat syscall.Stat_t
		if err := syscall.Stat(filepath.Join(dir, "log"), &stat); err != nil {
			t.Fatal(err)
		}
		return stat.Blocks*512 < kept+2<<20 // while it runs: what the disk has of it
	})
	if err := p.Stop(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	checkFlood(t, filepath.Join(dir, "log"), p.(launch.Dropper).LogDropped(), kept)
}

// checkFlood wants the numbers from the first on, one line that says what is not there, and the
// numbers up to the last.
func checkFlood(t *testing.T, name string, dropped, kept int64) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	want, size, gaps := 0, int64(0), 0
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		size += int64(len(line)) + 1
		if strings.Contains(line, "prony: ") {
			gaps++
			size -= int64(len(line)) + 1
			want += int(dropped / FloodLine)
			if !strings.Contains(line, fmt.Sprintf(" %d bytes ", dropped)) {
				t.Errorf("it says %q, and %d bytes are not there", line, dropped)
			}
			continue
		}
		if want == FloodLines {
			break // its last words
		}
		if line != fmt.Sprintf("%0*d", FloodLine-1, want) {
			t.Fatalf("line %q, want %d", line, want)
		}
		want++
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if gaps != 1 || want != FloodLines || dropped%FloodLine != 0 ||
		size < kept-1<<20 || size > kept+2<<20 {
		t.Errorf("%d bytes kept and %d not, in %d gaps, up to line %d; want about %d, 1, %d",
			size, dropped, gaps, want, kept, FloodLines)
	}
}
