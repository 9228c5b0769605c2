package progress

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/dev/testsets"
)

// terminal is a pseudo-terminal: text has what is written to tty.
type terminal struct {
	t     *testing.T
	user  *os.File // the side of the user, with keys and page
	tty   *os.File
	ended chan struct{}

	mu    sync.Mutex
	text  strings.Builder
	fresh chan struct{}
}

func openTerminal(t *testing.T, width, height int) *terminal {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("needs pseudo-terminals: ", err)
	}
	t.Cleanup(func() { user.Close() })
	if err := unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	size := &unix.Winsize{Row: uint16(height), Col: uint16(width)}
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
	p := &terminal{t: t, user: user, tty: tty, ended: make(chan struct{}),
		fresh: make(chan struct{}, 1)}
	go p.read()
	return p
}

func (p *terminal) read() {
	defer close(p.ended)
	buf := make([]byte, 4096)
	for {
		n, err := p.user.Read(buf)
		p.mu.Lock()
		p.text.Write(buf[:n])
		p.mu.Unlock()
		select {
		case p.fresh <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (p *terminal) seen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// await waits until the terminal has shown the words.
func (p *terminal) await(words string) {
	p.t.Helper()
	end := time.After(time.Minute)
	for !strings.Contains(p.seen(), words) {
		select {
		case <-p.fresh:
		case <-end:
			p.t.Fatalf("after a minute the terminal lacks %q: %q", words, p.seen())
		}
	}
}

func (p *terminal) press(key string) {
	p.t.Helper()
	if _, err := p.user.WriteString(key); err != nil {
		p.t.Fatal(err)
	}
}

func (p *terminal) mode() unix.Termios {
	p.t.Helper()
	mode, err := unix.IoctlGetTermios(int(p.tty.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *mode
}

// all closes the terminal and returns its whole output.
func (p *terminal) all() string {
	p.t.Helper()
	p.tty.Close()
	<-p.ended
	return p.seen()
}

func (p *terminal) view(env ...string) *View {
	p.t.Helper()
	c := openLoad
	c.In, c.Out, c.Env = p.tty, p.tty, append([]string{"TERM=xterm-256color"}, env...)
	v, err := New(c)
	if err != nil {
		p.t.Fatal(err)
	}
	if v.Every() != redrawEvery {
		p.t.Errorf("it draws every %v: there is no page", v.Every())
	}
	return v
}

// feed sends snapshots until the view ends the load, with a limit.
func feed(t *testing.T, v *View, from int) (last int) {
	t.Helper()
	for k := from; k < from+1000; k++ {
		if !v.Progress(snapshot(k)) {
			return k
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the load goes on and on")
	return 0
}

// TestPageOnATerminal checks that the page appears, follows the load, ends it at a key, and
// restores the terminal.
func TestPageOnATerminal(t *testing.T) {
	for _, key := range []string{"q", "\x03"} {
		t.Run(fmt.Sprintf("%q", key), func(t *testing.T) {
			p := openTerminal(t, 80, 24)
			before := p.mode()
			v := p.view()
			p.await("connecting")
			for k := 1; k <= 10; k++ {
				if !v.Progress(snapshot(k)) {
					t.Fatal("the load ends though nobody asked")
				}
			}
			p.await("2.0 s of 10.0 s")
			if mode := p.mode(); mode.Lflag&unix.ICANON != 0 {
				t.Error("the terminal waits for whole lines: keys are not heard")
			}
			p.press(key)
			last := feed(t, v, 11)
			at, cut := v.Cut()
			if want := time.Duration(last) * redrawEvery; !cut || at != want {
				t.Errorf("cut short %v at %v, want at %v", cut, at, want)
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
			if after := p.mode(); after != before {
				t.Errorf("the terminal's mode is\n%+v, was\n%+v", after, before)
			}
			text := p.all()
			wantRestored(t, text)
			for _, words := range []string{"http://127.0.0.1:8080/hello", "≤ 500 µs", "\x1b[36m"} {
				if !strings.Contains(text, words) {
					t.Errorf("the terminal never showed %q: %q", words, text)
				}
			}
			// A page that is cleared before it is drawn again flickers.
			if n := strings.Count(text, "\x1b[2J"); n > 1 {
				t.Errorf("the screen was cleared %d times", n)
			}
		})
	}
}

// wantRestored checks that every terminal mode that was set is reset.
func wantRestored(t *testing.T, text string) {
	t.Helper()
	for _, mode := range []string{"?1049", "?25", "?2004", "?1000", "?1006", "?2026", "?2027"} {
		set, reset := strings.LastIndex(text, "\x1b["+mode+"h"),
			strings.LastIndex(text, "\x1b["+mode+"l")
		if mode == "?25" { // the cursor, which is hidden meanwhile
			set, reset = reset, set
		}
		if set > reset {
			t.Errorf("mode %s stays set: %q", mode, text)
		}
	}
	if !strings.Contains(text, "\x1b[?1049h") {
		t.Errorf("the page has no screen of its own: %q", text)
	}
}

// TestInterruptTwiceCancels checks that a view cancels at a second interrupt, and at one before the
// window has opened.
func TestInterruptTwiceCancels(t *testing.T) {
	testsets.Whole(t, "waits")
	check := func(name string, snapshots int, open bool, want int) {
		t.Run(name, func(t *testing.T) {
			p := openTerminal(t, 80, 24)
			cancelled := make(chan struct{}, 9)
			c := openLoad
			c.In, c.Out, c.Env = p.tty, p.tty, []string{"TERM=xterm"}
			c.Cancel = func() { cancelled <- struct{}{} }
			v, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			p.await("connecting")
			for k := 1; k <= snapshots; k++ {
				v.Progress(snapshot(k))
			}
			if open {
				v.Window(true)
			}
			p.press("q")
			p.await("ending")
			if len(cancelled) != want {
				t.Errorf("cancelled %d times, want %d", len(cancelled), want)
			}
			p.press("q")
			for range want + 1 - len(cancelled) {
				<-cancelled
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
			p.tty.Close()
		})
	}
	check("in the window", 3, false, 0)
	check("in the window, before its first snapshot", 2, true, 0)
	check("in the lead-in", 2, false, 1)
	check("before", 0, false, 1)
}

func TestNoColour(t *testing.T) {
	p := openTerminal(t, 80, 24)
	v := p.view("NO_COLOR=1")
	for k := 1; k <= 10; k++ {
		v.Progress(snapshot(k))
	}
	p.await("2.0 s of 10.0 s")
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	text := p.all()
	for _, colour := range []string{"\x1b[36", "\x1b[31", ";31m", "\x1b[38", "\x1b[48"} {
		if strings.Contains(text, colour) {
			t.Errorf("there is colour %q in %q", colour, text)
		}
	}
}

// TestResize checks that the page follows the terminal's size.
func TestResize(t *testing.T) {
	p := openTerminal(t, 80, 24)
	v := p.view()
	for k := 1; k <= 10; k++ {
		v.Progress(snapshot(k))
	}
	p.await("2.0 s of 10.0 s")
	size := &unix.Winsize{Row: 5, Col: 20}
	if err := unix.IoctlSetWinsize(int(p.tty.Fd()), unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
	// The kernel signals only a terminal's own processes, which this is not.
	if err := unix.Kill(unix.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	p.await("…")
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	wantRestored(t, p.all())
}

// TestNoTerminalNoPage checks that a view without a terminal has lines, whatever its kind.
func TestNoTerminalNoPage(t *testing.T) {
	check := func(name string, c Config) {
		t.Run(name, func(t *testing.T) {
			v, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := v.out.(*lines); !ok || v.Every() != lineEvery {
				t.Errorf("it draws with %T every %v, want lines", v.out, v.Every())
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	c := openLoad
	c.Out = &strings.Builder{}
	check("a buffer", c)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	c.In, c.Out = null, null
	check("a file", c)
	p := openTerminal(t, 80, 24)
	c.In, c.Out, c.Env = p.tty, p.tty, []string{"TERM=dumb"}
	check("a dumb terminal", c)
}
