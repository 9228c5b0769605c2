package load

import (
	"context"
	"net/netip"
	"time"

	"prony.example/load/network"
	"prony.example/load/pace"
)

// Spec specifies a load. A closed load needs Address, Scenario, Model, Connections, Window and
// Timeout; an open one also needs Schedule. Moments are of the monotonic clock (clock.Mono, ns).
type Spec struct {
	Name     string         // in errors and in the record; empty: "load"
	Address  netip.AddrPort // where the service accepts connections
	Host     string         // the Host header; empty: the address
	Scenario Scenario       // the requests and their expected responses

	// Model is record.Closed or record.Open. In a closed load, each connection sends its next
	// request after the last response. In an open load, Schedule defines when requests are due,
	// independently of responses.
	Model       string
	Connections int           // at the beginning, at least 1; with streams: concurrent requests
	Most        int           // open: the maximum number of connections; 0: as many as Connections
	Schedule    pace.Schedule // open: arrivals per second, from the beginning of the lead-in
	Users       *Users        // closed: virtual users; nil: connections send without pauses
	Requests    int64         // turns in the window after which it ends; 0: no limit
	Churn       int           // responses after which a connection is renewed; 0: never
	Trace       Trace         // which requests carry a trace id
	Part        Part          // which of several processes this is; zero: the only one
	Seed        uint64        // of arrivals, keys and choices: same seed, same requests

	Lead    time.Duration // sent before the window and not counted; 0: none
	Window  time.Duration // the measured time, above 0
	Drain   time.Duration // maximum wait for responses that are under way when the window ends
	Timeout time.Duration // of a request, from its first send, above 0

	// Network is the network that is simulated between load and service; zero: none. Set it before
	// Choice.Set, because only some engines can add a delay.
	Network network.Delay

	Pacing string // Frugal, the default, or Precise

	// Together, if set, is called once all connections are open and returns when the lead-in begins
	// (clock.Mono). Loads that synchronize in it start at the same moment. An error ends the load.
	Together func(context.Context) (start int64, err error) `json:"-"`

	Cores []int // one pinned thread for each; empty: one thread, not pinned
	Ahead bool  // run the threads before others on their cores, if permissions allow

	// Sample bounds the requests whose times are kept one by one; 0: 65,536.
	Sample int

	Observer Observer      `json:"-"` // follows the load and can end it; nil: none
	Every    time.Duration // between reports of the progress; 0: none
	Detail   Detail        // of these reports

	// Engine creates a thread's engine for a number of connections, and Describe describes it. If
	// Engine is nil, Run uses the cheapest one for cleartext HTTP/1.1. Choice.Set sets both for
	// other protocols.
	Engine   func(to netip.AddrPort, connections int) (Engine, error) `json:"-"`
	Describe EngineInfo                                               `json:"-"`
}

// Ways to wait for the next arrival.
const (
	Frugal  = "frugal"  // sleep until it is due: costs nothing, late by the wake-up latency
	Precise = "precise" // sleep until shortly before, then poll: punctual, costs CPU time
)
