package load

import (
	"context"
	"net/netip"
	"time"

	"prony.example/load/pace"
)

// Spec says what to offer, to whom, and for how long. A closed load needs Address, Scenario, Model,
// Connections, Window and Timeout; an open one needs Schedule besides. Moments are of the monotonic
// clock (clock.Mono, ns).
type Spec struct {
	Name     string         // in errors and in the record; empty: "load"
	Address  netip.AddrPort // where the service takes requests
	Host     string         // of the Host header; empty: the address
	Scenario Scenario       // the requests, and the answers that are right for them

	// Model is record.Closed, in which each connection sends its next request when the last was
	// answered, or record.Open, in which requests are due by Schedule however long answers take.
	Model       string
	Connections int           // that it begins with, at least 1; with streams: requests at once
	Most        int           // open: connections that it may grow to; 0: it does not grow
	Schedule    pace.Schedule // open: arrivals per second, from the beginning of the lead-in
	Users       *Users        // closed: virtual users; nil: each connection always sends
	Requests    int64         // turns of the window after which it ends; 0: when it closes
	Churn       int           // answers after which a connection is renewed; 0: never
	Trace       Trace         // which requests carry a trace id
	Part        Part          // which of several processes this is; zero: the only one
	Seed        uint64        // of arrivals, keys and choices: the same seed asks the same

	Lead    time.Duration // offered before the window and not counted; 0: none
	Window  time.Duration // that is measured, above 0
	Drain   time.Duration // at most, for answers still under way at the window's end
	Timeout time.Duration // of a request, from its first sending, above 0

	Pacing string // Frugal, the default, or Precise

	// Together, where set, is called once all connections are open. The lead-in begins at the
	// moment that it returns (clock.Mono): two loads that wait for each other there begin at the
	// same one. Its error ends the load.
	Together func(context.Context) (start int64, err error)

	Cores []int // one thread each, pinned to it; empty: one thread, not pinned
	Ahead bool  // the threads go before others on their cores, where this user may have that

	// Sample is how many requests' times are kept one by one; 0: 65,536.
	Sample int

	// OnWindow is called just before the window opens and just after it closes.
	OnWindow func(open bool)
	// Each of Watch, Glance, Live and Stream that is set is called every Every, which
	// is above 0 then. False ends the load. Watch and Glance cost the load nothing; for the other
	// two its threads note each request once more.
	Every  time.Duration
	Watch  func(done int64, elapsed time.Duration) bool // good answers; time since the lead-in
	Glance func(Glance)                                 // where Watch is not set
	Live   func(Snapshot) bool
	Stream func(piece []byte) bool // a piece for Ledger.Take elsewhere

	// Engine makes the engine of a thread for a number of connections; Describe says what it
	// is.
	// Nil: the cheapest one for HTTP/1.1 in the clear. Choice.Set sets those of other protocols.
	Engine   func(to netip.AddrPort, connections int) (Engine, error)
	Describe EngineInfo
}

// Ways to wait for the next arrival.
const (
	Frugal  = "frugal"  // sleep until it is due: costs nothing, late by what a wake-up takes
	Precise = "precise" // sleep until shortly before, then poll: on time, costs processor time
)
