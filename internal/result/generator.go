package result

// Generator is one of several that offered a load together, each its part of one schedule.
type Generator struct {
	Index  int    `json:"index"` // it sent the arrivals index, index + n, …
	Name   string `json:"name"`  // host and process
	Engine string `json:"engine"`

	Sent        int64 `json:"sent"` // since the beginning, as it last said
	Done        int64 `json:"done"` // good answers likewise
	LagMaxNs    int64 `json:"lagMaxNs"`
	MemoryBytes int64 `json:"memoryBytes,omitempty"` // most, of its whole process

	LateNs     int64   `json:"lateNs"` // from the agreed beginning, or the window's, to its own
	CPUShare   float64 `json:"cpuShare"`
	RunDelayNs int64   `json:"runDelayNs"`
	StillMaxNs int64   `json:"stillMaxNs"`

	Clock Clock `json:"clock"`

	// Fault is why its part cannot be counted on: it died, fell silent, was late, or sent another
	// schedule. Findings are those of its part alone, by the rules on a generator's health.
	Fault    string    `json:"fault,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
}

// Clock is a generator's beside the lab's, by exchanges of which the quickest counts (RFC 5905,
// section 8). The load begins by the offset that was measured, so that only what is not known of it
// moves anything.
type Clock struct {
	OffsetNs     int64 `json:"offsetNs"`     // monotonic clocks, before: its less the lab's
	ErrorNs      int64 `json:"errorNs"`      // half of that exchange's round trip
	DriftNs      int64 `json:"driftNs"`      // by which the offset was more after the load
	DriftErrorNs int64 `json:"driftErrorNs"` // half of the round trip then
	WallNs       int64 `json:"wallNs"`       // Unix times, before: its less the lab's
}
