package result

// Telemetry is what the processes of a trial told about themselves, from their start to their end,
// and what became of it in the lab's home for it.
type Telemetry struct {
	Signals []Signal `json:"signals"`           // by name
	Voices  []Voice  `json:"voices"`            // who sent it, by service.name
	Home    HomeCost `json:"home"`              // what taking it in cost the lab
	Partial string   `json:"partial,omitempty"` // why it is not whole; empty: it seems to be
}

// Signals, as Signal.Name has them.
const (
	Spans  = "spans"
	Points = "points" // of metrics
	Logs   = "logs"
)

// Signal counts the items of one kind. Received = Kept + Dropped; Refused came on top and were
// answered with an error.
type Signal struct {
	Name     string `json:"name"`
	Requests int64  `json:"requests"` // that brought them
	Received int64  `json:"received"` // taken in
	Refused  int64  `json:"refused"`  // malformed, too large, or more than the home can take
	Dropped  int64  `json:"dropped"`  // taken in and counted, but not kept, to stay within bounds
	Kept     int64  `json:"kept"`     // to be looked at later
	Bytes    int64  `json:"bytes"`    // of the payloads as OTLP protobuf, uncompressed
}

// Voice is what one service.name sent: equal services under equal loads should say equally much.
type Voice struct {
	Service string `json:"service"`
	Spans   int64  `json:"spans"`
	Points  int64  `json:"points"`
	Logs    int64  `json:"logs"`
	Bytes   int64  `json:"bytes"`
	// LostSpans are those that the sender itself says it dropped before sending (SDK metrics such
	// as otel.sdk.processor.span.processed with error.type); -1: it does not say.
	LostSpans int64 `json:"lostSpans"`
}

// HomeCost is what the home of telemetry took during the trial.
type HomeCost struct {
	CPUNs    int64   `json:"cpuNs"`
	CPUShare float64 `json:"cpuShare"` // of one core
	RSSBytes int64   `json:"rssBytes"` // at the end
}

// Told is what was sent about one window: spans that began and log lines written between the marks
// around it, which lie a little outside.
type Told struct {
	WindowNs   int64 `json:"windowNs"` // between the marks
	Spans      int64 `json:"spans"`
	ErrorSpans int64 `json:"errorSpans"`
	Logs       int64 `json:"logs"`
}

// GC is what the collectors of the trial's JVMs did in one window, from their logs.
type GC struct {
	Collector   string `json:"collector"` // e.g. "G1"
	Collections int64  `json:"collections"`
	PauseNs     int64  `json:"pauseNs"` // all pauses together
	PauseMaxNs  int64  `json:"pauseMaxNs"`
	// HeapAfterBytes is the heap after the last collection until the window's end; 0: none so far.
	HeapAfterBytes int64 `json:"heapAfterBytes"`
	AllocatedBytes int64 `json:"allocatedBytes"` // in the window; -1 unknown
}

// Traced is one request whose trace id the load sent along (W3C Trace Context).
type Traced struct {
	TraceID     string `json:"traceId"` // 32 hexadecimal digits
	Why         string `json:"why"`     // "slowest", "failed" or "uniform"
	Route       string `json:"route,omitempty"`
	ScheduledNs int64  `json:"scheduledNs"` // from the window's opening
	LagNs       int64  `json:"lagNs"`       // sent - scheduled
	FirstByteNs int64  `json:"firstByteNs"` // first byte - sent; 0: none came
	ResponseNs  int64  `json:"responseNs"`  // done - scheduled
	Failed      bool   `json:"failed,omitempty"`
}

// Profile is a profile taken during a load; its file is a gzipped pprof below the run's folder.
type Profile struct {
	Kind       string `json:"kind"` // cpu, alloc, lock or offcpu
	Tool       string `json:"tool"` // with its version: "async-profiler 4.1"
	Load       string `json:"load"`
	Process    string `json:"process,omitempty"` // of a system
	File       string `json:"file"`              // e.g. "profiles/b1-03-go-nethttp.cpu.pb.gz"
	Samples    int64  `json:"samples"`
	DurationNs int64  `json:"durationNs"`
	Failed     string `json:"failed,omitempty"` // why there is none
}

// Agent is what was fetched to ride along.
type Agent struct {
	Name    string `json:"name"`   // e.g. "otel-java"
	Source  string `json:"source"` // e.g. "maven:GROUP:ARTIFACT:VERSION"
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}
