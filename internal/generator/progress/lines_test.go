package progress

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"prony.example/load"
)

// told is a reader of lines.
type told chan string

func (t told) Write(b []byte) (int, error) {
	t <- string(b)
	return len(b), nil
}

// show sends n snapshots, a second each, to the lines of a view, and waits for each line.
func show(t *testing.T, c Config, n int) (text string) {
	t.Helper()
	lines := make(told, n)
	c.Out = lines
	v, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= n; k++ {
		s := snapshot(4 * k)
		s.Window = k > 1 && k < n
		if !v.Progress(s) {
			t.Fatal("the load ends though nobody asked")
		}
		if c.Kind != None {
			text += <-lines
		}
	}
	if err := v.Close(); err != nil || len(lines) > 0 {
		t.Errorf("error %v, %d lines too many", err, len(lines))
	}
	return text
}

func TestLines(t *testing.T) {
	c := openLoad
	c.Kind = Plain
	golden(t, "plain-open.txt", show(t, c, 5))
	c.Open = false
	golden(t, "plain-closed.txt", show(t, c, 5))
	c.Kind, c.Open = JSON, true
	text := show(t, c, 5)
	golden(t, "lines.ndjson", text)
	for line := range strings.Lines(text) {
		if !json.Valid([]byte(line)) {
			t.Errorf("%q is not JSON", line)
		}
	}
	c.Kind = None
	if text := show(t, c, 5); text != "" {
		t.Errorf("a view of nothing shows %q", text)
	}
}

// TestALineAPoint checks that a point has one line, however often draw is called.
func TestALineAPoint(t *testing.T) {
	c := openLoad
	c.Kind = None
	v, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	var out strings.Builder
	l := &lines{view: v, out: &out}
	l.draw()
	for k := 1; k <= 2; k++ {
		v.Progress(snapshot(4 * k))
		l.draw()
		l.draw()
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines of two points:\n%s", n, &out)
	}
}

// stuck is a writer that blocks until it is released.
type stuck struct{ writing, release chan struct{} }

func (s stuck) Write(b []byte) (int, error) {
	s.writing <- struct{}{}
	<-s.release
	return len(b), nil
}

// TestLoadDoesNotWaitForReaders checks that a blocked reader only delays the output.
func TestLoadDoesNotWaitForReaders(t *testing.T) {
	s := stuck{make(chan struct{}, 100), make(chan struct{})}
	c := openLoad
	c.Kind, c.Out = Plain, s
	v, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	v.Progress(snapshot(4))
	<-s.writing
	for k := 2; k <= 50; k++ {
		v.Progress(snapshot(4 * k)) // must not wait
	}
	close(s.release)
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if n := len(s.writing); n > 1 {
		t.Errorf("%d lines were kept for the reader, want the newest at most", n)
	}
}

func TestInterruptEndsTheLoad(t *testing.T) {
	check := func(name string, at time.Duration, want bool) {
		t.Run(name, func(t *testing.T) {
			c := openLoad
			c.Kind, c.Out = None, io.Discard
			v, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			if !v.Progress(snapshot(1)) {
				t.Fatal("the load ends though nobody asked")
			}
			if _, cut := v.Cut(); cut {
				t.Error("cut short though nobody asked")
			}
			v.Interrupt()
			for range 2 {
				if v.Progress(load.Progress{Elapsed: at}) {
					t.Error("the load goes on")
				}
				at += time.Second // the first interrupt counts
			}
			got, cut := v.Cut()
			if cut != want || got != at-2*time.Second {
				t.Errorf("cut short %v at %v, want %v", cut, got, want)
			}
		})
	}
	check("in the window", 3*time.Second, true)
	check("in the drain", 10500*time.Millisecond, false) // the window was over: 0.5 + 10 s
}

// TestProgressWithoutHistograms checks that missing histograms (no response yet, a closed load's
// lag) cause no panic.
func TestProgressWithoutHistograms(t *testing.T) {
	s := newState(openLoad)
	s.add(load.Progress{Elapsed: time.Second})
	if s.points != 1 || s.now.count != 0 || s.now.maxNs != 0 {
		t.Errorf("the point is %+v", s.now)
	}
}

// TestCloseTwice checks that a view may be closed twice, and interrupted afterwards by a late
// signal.
func TestCloseTwice(t *testing.T) {
	c := openLoad
	c.Kind, c.Out = Plain, io.Discard
	v, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	v.Interrupt()
	v.Progress(snapshot(1))
}
