package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Observer receives the progress of a load. Run calls both methods in its own goroutine, one call
// at a time and never on a load thread: a slow method delays later calls, not requests.
type Observer interface {
	// Window is called twice, also if the load ends early: with true just before the window opens,
	// and with false just after it closes.
	Window(open bool)
	// Progress is called every Spec.Every. If it returns false, the load ends early, and its result
	// has the measurements until then.
	Progress(p Progress) bool
}

// Detail selects how much a load reports while it runs.
type Detail int

// The levels of detail. Each includes the ones before.
const (
	// Brief reports what the load threads record anyway, and costs them nothing.
	Brief Detail = iota
	// Full reports all totals and all response times: the load threads record each request a second
	// time. One more report, after the last response, makes the sum complete.
	Full
	// Pieces reports a message for Ledger.Take in another process.
	Pieces
)

// Progress is the state of a load under way, over all threads. Its histograms are valid during the
// call only.
type Progress struct {
	Elapsed time.Duration // since the beginning of the lead-in
	Window  bool          // whether the window is open

	// Totals count from the beginning. With Brief, only Done and Failed are set, and Failed covers
	// only the window's intervals that have ended.
	Totals

	// Answers is the number of response times since the last report, and Response has them, in ns.
	// With Brief, both cover only the window's intervals that ended since then, and Response is a
	// sample: the first thread's times in the last interval, or nil if no interval ended.
	Answers  int64
	Response *hdrhistogram.Histogram
	Lag      *hdrhistogram.Histogram // send delays since the last report, ns; nil with Brief

	Piece []byte // nil without Pieces
}

// Totals are counters of a load under way. Due minus Done minus Failed is the backlog.
type Totals struct {
	Due      int64 // arrivals whose time has come; closed: requests sent
	Sent     int64
	Done     int64 // good responses
	Failed   int64
	BytesIn  int64
	InFlight int64
	Errors   [Classes]int64 // by class, in the order of ClassNames
}

// ProgressFunc is an Observer that ignores the window's ends.
type ProgressFunc func(Progress) bool

// Window does nothing.
func (f ProgressFunc) Window(bool) {}

// Progress calls the function.
func (f ProgressFunc) Progress(p Progress) bool { return f(p) }

// WindowFunc is an Observer of the window's ends that never ends the load.
type WindowFunc func(open bool)

// Window calls the function.
func (f WindowFunc) Window(open bool) { f(open) }

// Progress returns true.
func (f WindowFunc) Progress(Progress) bool { return true }

// Observers is an Observer that calls several, in order, except those that are nil.
type Observers []Observer

// Window calls Window of all observers.
func (all Observers) Window(open bool) {
	for _, o := range all {
		if o != nil {
			o.Window(open)
		}
	}
}

// Progress calls Progress of all observers. It returns false if one of them does.
func (all Observers) Progress(p Progress) bool {
	enabled := true
	for _, o := range all {
		if o != nil {
			enabled = o.Progress(p) && enabled
		}
	}
	return enabled
}
