// Package rtsched has a thread go before others on its processor (sched(7)). A load thread that
// takes turns with whatever else runs is late by their turns, which are milliseconds long.
package rtsched

// Levels of precedence, lowest first. Each is above all ordinary threads of the machine, whatever
// their nice value.
const (
	Load      = 1 // sends when it is due
	Probe     = 2 // reads counters at moments that it says, for less than a hundredth of the time
	Heartbeat = 3 // shows that a core runs, for some microseconds each millisecond
)

// How a thread that goes first leaves room for the others (Breath).
const (
	breathEveryNs = 2_000_000
	breathNs      = 50_000
)
