// Package progress shows a load while it runs: on a terminal as a page that is redrawn, elsewhere
// as a line per second for people or programs, and for monitoring as OTLP pushes.
//
//	load.Progress ─► state ─┬─► page or line      (its own goroutine, at most four times a second)
//	                        └─► OTLP push         (once a second)
//
// The load has priority. Progress takes a lock, adds histograms and returns. Everything that may
// block runs elsewhere: a stopped terminal, a pipe without a reader, an absent receiver. Updates
// that could not be shown in time are replaced by later ones.
//
// Non-goals: it produces no results; package summary does. The verdict that it shows is of package
// verdict, on the window so far.
package progress

import (
	"errors"
	"io"
	"sync"
	"time"

	"prony.example/load"
)

// Kind is a way to show a load.
type Kind string

// Ways to show a load.
const (
	Auto  Kind = "auto"  // Page on a terminal, otherwise Plain
	Page  Kind = "live"  // a page on the terminal that is redrawn
	Plain Kind = "plain" // a line per second, for people
	JSON  Kind = "json"  // a line per second, for programs: docs/formats/load-live.md
	None  Kind = "none"
)

// More frequent redrawing shows no more and takes CPU time from the load.
const (
	redrawEvery = 250 * time.Millisecond
	lineEvery   = time.Second
)

// Config describes the load, for the page, and the output.
type Config struct {
	Target string // the URL
	Model  string // in words: "open, poisson at 5.00k/s, 64 connections"
	Engine string
	Open   bool // arrivals follow a schedule
	Steady bool // the rate of arrivals does not change

	Lead, Window, Drain time.Duration
	Requests            int64 // end of the load, all steps of flows counted; 0: no limit

	Kind Kind
	Out  io.Writer // of page and lines; a page needs an *os.File of a terminal
	In   io.Reader // keys; if it is not a terminal, the process's terminal is opened
	Env  []string  // TERM, NO_COLOR, OTEL_EXPORTER_OTLP_HEADERS and others

	// Cancel ends the load without a result. It is called on an interrupt before the window opens,
	// and on a second interrupt.
	Cancel func()

	OTLP string // endpoint of pushes, such as "http://127.0.0.1:4318"; empty: none
}

// View shows one load, which it observes in full detail.
type View struct {
	cfg Config

	mu    sync.Mutex
	state *state
	cutAt time.Duration // time at which the load was interrupted
	// opened is set when the window opens, before the first report on the window.
	opened bool

	out   output
	dirty chan struct{} // has a value if the state changed; senders never block
	stop  chan struct{} // tells the pump to end
	ended chan struct{} // closed when the pump has ended
	shut  func() error

	push *pusher
}

// output is where a view draws. Both methods may block.
type output interface {
	draw()
	close() error
}

// New opens the outputs of a config. An invalid endpoint is an error. If the terminal cannot be
// used, lines replace the page.
func New(cfg Config) (*View, error) {
	v := &View{
		cfg: cfg, state: newState(cfg), dirty: make(chan struct{}, 1), stop: make(chan struct{}),
		ended: make(chan struct{}),
	}
	v.shut = sync.OnceValue(v.end)
	if cfg.OTLP != "" {
		var err error
		if v.push, err = startPushes(cfg.OTLP, cfg.Env, v.measure); err != nil {
			return nil, err
		}
	}
	v.out = v.open()
	go v.pump()
	return v, nil
}

// open chooses the output. Without a usable terminal, Page and Auto become lines.
func (v *View) open() output {
	switch v.cfg.Kind {
	case None:
		return nothing{}
	case Plain, JSON:
	default:
		if s := newScreen(v); s != nil {
			return s
		}
	}
	return &lines{view: v, out: v.cfg.Out, asJSON: v.cfg.Kind == JSON}
}

// Every returns the interval at which the load must call Progress.
func (v *View) Every() time.Duration {
	if _, ok := v.out.(*screen); ok {
		return redrawEvery
	}
	return lineEvery
}

// Progress adds the state of the load. One goroutine calls it; it never waits for readers, and
// keeps no reference to its argument. It returns false to end the load.
func (v *View) Progress(p load.Progress) bool {
	v.mu.Lock()
	v.state.failures = v.push.failures()
	v.state.add(p)
	ending := v.state.ending
	if ending && v.cutAt == 0 {
		v.cutAt = p.Elapsed
	}
	v.mu.Unlock()
	v.touch()
	return !ending
}

// Window notes that the window opens, or that it has closed.
func (v *View) Window(open bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.opened = v.opened || open
}

// Interrupt ends the load at the next report, with the result so far. On a second call, or before
// the window has opened, it calls Cancel, because there is no result.
func (v *View) Interrupt() {
	v.mu.Lock()
	now := v.state.ending || !v.state.opened && !v.opened
	v.state.ending = true
	v.mu.Unlock()
	if now && v.cfg.Cancel != nil {
		v.cfg.Cancel()
	}
	v.touch()
}

// Cut reports whether the load was interrupted before the end of its window, and when: the time
// since the begin of the lead-in.
func (v *View) Cut() (moment time.Duration, cut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.cutAt, v.cutAt > 0 && v.cutAt < v.cfg.Lead+v.cfg.Window
}

// touch notifies the pump of a change, unless a notification is pending.
func (v *View) touch() {
	select {
	case v.dirty <- struct{}{}:
	default:
	}
}

// pump draws. It may block in drawing.
func (v *View) pump() {
	defer close(v.ended)
	for {
		select {
		case <-v.stop:
			return
		case <-v.dirty:
			v.out.draw()
		}
	}
}

// Close ends the view after the last report. It restores the terminal and pushes the last
// counters once. Its error is the first problem with showing the load, which did not affect the
// load. A second call returns the same.
func (v *View) Close() error { return v.shut() }

func (v *View) end() error {
	close(v.stop)
	<-v.ended
	err := v.out.close()
	return errors.Join(err, v.push.close())
}

// measure copies the exported metrics.
func (v *View) measure() measures {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state.measures()
}

// nothing is the output of None.
type nothing struct{}

func (nothing) draw()        {}
func (nothing) close() error { return nil }
