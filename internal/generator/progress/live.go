// Package progress shows a load while it is offered: on a terminal as a page that is redrawn,
// elsewhere as a line a second for people or for programs, and to monitoring as pushes by OTLP.
//
//	load.Snapshot ─► state ─┬─► page or line      (its own goroutine, at most four times a second)
//	                        └─► OTLP push         (once a second)
//
// The load comes first. Snapshot takes a lock, adds histograms and returns; whatever may wait, a
// terminal that was stopped, a pipe that nobody reads, a receiver that is gone, does so elsewhere
// and is left behind: what could not be shown is replaced by what comes next.
//
// Non-goals: no number of a result comes from here, and nothing is judged; package summary has the
// last word.
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
	Auto  Kind = "auto"  // Page on a terminal, Plain elsewhere
	Page  Kind = "live"  // a page on the terminal, redrawn
	Plain Kind = "plain" // a line a second, for people
	JSON  Kind = "json"  // a line a second, for programs: docs/formats/load-live.md
	None  Kind = "none"
)

// Kinds are all of them, for usage and completion.
var Kinds = []Kind{Auto, Page, Plain, JSON, None}

// Redrawing more often shows nothing more and costs the load its neighbour's core.
const (
	redrawEvery = 250 * time.Millisecond
	lineEvery   = time.Second
)

// Config says what is offered, which the page repeats, and where to show it.
type Config struct {
	Target string // the URL
	Model  string // in words: "open, poisson at 5.00k/s, 64 connections"
	Engine string
	Open   bool // arrivals come on a schedule

	Lead, Window, Drain time.Duration
	Requests            int64 // the load ends after so many, of flows all steps; 0: no such end

	Kind Kind
	Out  io.Writer // of page and lines; a page needs an *os.File that is a terminal
	In   io.Reader // keys; when it is no terminal, the process's own is opened
	Env  []string  // TERM, NO_COLOR, OTEL_EXPORTER_OTLP_HEADERS and the like

	// Cancel ends the load without a result. It is called when the load is to end before its window
	// has opened, or when somebody asks a second time.
	Cancel func()

	OTLP string // endpoint of the pushes, such as "http://127.0.0.1:4318"; empty: none
}

// View shows one load.
type View struct {
	cfg Config

	mu    sync.Mutex
	state *state
	cutAt time.Duration // when the load was told to end

	out   output
	dirty chan struct{} // there is something new; never waited for
	stop  chan struct{} // the pump is to end
	ended chan struct{} // it has
	shut  func() error

	push *pusher
}

// output is where a view draws. Both may wait for the reader of what they write.
type output interface {
	draw()
	close() error
}

// New opens what the config asks for. An endpoint that cannot be opened is an error, a terminal
// that cannot be used is not: lines take the page's place.
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

// open chooses the output. Where Page was asked for and there is no terminal, lines are the next
// best thing, as they are for Auto.
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

// Every is how often the load should call Snapshot.
func (v *View) Every() time.Duration {
	if _, ok := v.out.(*screen); ok {
		return redrawEvery
	}
	return lineEvery
}

// Snapshot takes in the state of the load. It is called by one goroutine, never waits for whoever
// reads what is shown, and keeps nothing of its argument. False ends the load.
func (v *View) Snapshot(n load.Snapshot) bool {
	v.mu.Lock()
	v.state.failures = v.push.failures()
	v.state.add(n)
	ending := v.state.ending
	if ending && v.cutAt == 0 {
		v.cutAt = n.Elapsed
	}
	v.mu.Unlock()
	v.touch()
	return !ending
}

// Interrupt asks for the load's end at the next snapshot, with the result so far. The second time,
// or before the window has been seen open, there is no result to wait for: it cancels.
func (v *View) Interrupt() {
	v.mu.Lock()
	now := v.state.ending || !v.state.opened
	v.state.ending = true
	v.mu.Unlock()
	if now && v.cfg.Cancel != nil {
		v.cfg.Cancel()
	}
	v.touch()
}

// Cut says whether the load was ended before its window was over, and when: the time since the
// beginning of the lead-in.
func (v *View) Cut() (moment time.Duration, cut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.cutAt, v.cutAt > 0 && v.cutAt < v.cfg.Lead+v.cfg.Window
}

// touch tells the pump that there is something new, if it does not know yet.
func (v *View) touch() {
	select {
	case v.dirty <- struct{}{}:
	default:
	}
}

// pump draws, and waits where drawing has to wait.
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

// Close ends the view, after the last call of Snapshot: the terminal is as it was, and what was
// counted has been pushed or the attempt given up. Its error tells once what went wrong with
// showing; the load has not suffered from it. A second call returns the same.
func (v *View) Close() error { return v.shut() }

func (v *View) end() error {
	close(v.stop)
	<-v.ended
	err := v.out.close()
	return errors.Join(err, v.push.close())
}

// measure copies what is exported.
func (v *View) measure() measures {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state.measures()
}

// nothing is the output of None.
type nothing struct{}

func (nothing) draw()        {}
func (nothing) close() error { return nil }
