// Package rtsched gives threads real-time priority (sched(7)). A load thread with ordinary priority
// waits for other threads of its core, for milliseconds each time.
package rtsched

// Levels of priority, lowest first. All are above ordinary threads, whatever their nice value.
const (
	Load      = 1 // sends requests when they are due
	Probe     = 2 // reads counters at given moments, for less than a hundredth of the time
	Heartbeat = 3 // detects whether a core runs, for some microseconds each millisecond
)

// Times that a real-time thread leaves to others; see Breath.
const (
	breathEveryNs = 2_000_000
	breathNs      = 50_000
)
