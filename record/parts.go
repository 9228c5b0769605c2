package record

import "cmp"

// Telemetry is what the processes of a trial told about themselves, from their start to their end,
// and what became of it in the lab's home for it.
type Telemetry struct {
	Signals   []Signal          `json:"signals"`   // by name
	Sources   []TelemetrySource `json:"sources"`   // who sent it, by service.name
	Collector CollectorCost     `json:"collector"` // what taking it in cost the lab
	// why it is not whole; empty: it seems to be
	Partial string `json:"partial,omitempty"`
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

// TelemetrySource is what one service.name sent: equal services under equal loads should say
// equally much.
type TelemetrySource struct {
	Service string `json:"service"`
	Spans   int64  `json:"spans"`
	Points  int64  `json:"points"`
	Logs    int64  `json:"logs"`
	Bytes   int64  `json:"bytes"`
	// LostSpans are those that the sender itself says it dropped before sending (SDK metrics such
	// as otel.sdk.processor.span.processed with error.type); -1: it does not say.
	LostSpans int64 `json:"lostSpans"`
}

// CollectorCost is what the collector of telemetry took during the trial.
type CollectorCost struct {
	CPUNs    int64   `json:"cpuNs"`
	CPUShare float64 `json:"cpuShare"` // of one core
	RSSBytes int64   `json:"rssBytes"` // at the end
}

// WindowTelemetry is what was sent about one window: spans that began and log lines written between
// the marks around it, which lie a little outside.
type WindowTelemetry struct {
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
	Class       string `json:"class"`   // "slowest", "failed" or "uniform"
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
	StallMaxNs int64   `json:"stallMaxNs"`

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

// Pod is what a cluster made of the target, by the words of its API and, for cores, by what the
// kernel of its node was read to say.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node"`
	Server    string `json:"server"`            // version of the API server
	Kubelet   string `json:"kubelet,omitempty"` // version; empty: this user may not look at nodes
	Runtime   string `json:"runtime,omitempty"` // likewise, with its name
	QoS       string `json:"qos"`               // "Guaranteed": limits are what was asked for
	Image     string `json:"image"`             // what the node started, by its digest
	Service   string `json:"service,omitempty"` // its address, where requests went through one
	Cores     []int  `json:"cores"`             // that its kubelet gave it
	// CoresSharedWith says who else may run on them, in words; none: they are its own.
	CoresSharedWith []string    `json:"coresSharedWith,omitempty"`
	APIOutages      []APIOutage `json:"apiOutages,omitempty"`
	// Reader read limits and use on its node; absent: prony itself did, there.
	Reader *Reader `json:"reader,omitempty"`
}

// Reader is a pod of this program on the node of the one that is measured. Readings have that
// node's own moments, by the sampler's time line, so that no clock is part of a difference of two.
type Reader struct {
	Pod   string `json:"pod"`
	Image string `json:"image"` // what the node started, by its digest
	Clock Clock  `json:"clock"` // its node's beside the lab's; drift is that of the whole trial
	// LateMaxNs is how long after it was asked for the latest reading at a window's edge was taken.
	LateMaxNs int64 `json:"lateMaxNs"`
	// Lost are the readings that did not come, each with its time (UTC) and why.
	Lost []string `json:"lost,omitempty"`
}

// APIOutage is a stretch in which the cluster's API could not be asked. What was measured meanwhile
// does not depend on it.
type APIOutage struct {
	AtNs       int64 `json:"atNs"` // Unix time
	DurationNs int64 `json:"durationNs"`
}

// BackendCalls is what a database or an upstream of the service counted of the window, by itself.
type BackendCalls struct {
	Counter string `json:"counter"` // the counter's name
	Unit    string `json:"unit"`    // it counts: transactions, statements, or its series
	// Count is from its reading at the window's opening to that at its end; BetweenNs is the time
	// of load between the two.
	Count      float64 `json:"count"`
	IntervalNs int64   `json:"intervalNs"`
	DelayNs    int64   `json:"delayNs,omitempty"`  // for so long an ask may not be counted yet
	Expected   float64 `json:"expected"`           // at least, by the window's good answers
	IdlePerS   float64 `json:"idlePerS,omitempty"` // by how much it moved before the load
	Error      string  `json:"error,omitempty"`    // why it was not read; Count is nothing then
}

// Errors counts requests that did not end as the scenario expects, by class.
type Errors struct {
	Connect     int64 `json:"connect"`
	Write       int64 `json:"write"`
	Read        int64 `json:"read"`    // reset, or closed before the answer was whole
	Timeout     int64 `json:"timeout"` // no whole answer within the scenario's timeout
	Parse       int64 `json:"parse"`   // not HTTP
	Status      int64 `json:"status"`
	Body        int64 `json:"body"`                  // wrong length or wrong bytes
	Unsolicited int64 `json:"unsolicited,omitempty"` // answers without a request
	// Closed are requests that a closed kept-alive connection left without a byte of an answer, and
	// that must not be sent twice, such as a POST.
	Closed int64 `json:"closed,omitempty"`

	Example string `json:"example,omitempty"` // the first one, in words
}

// Total is the number of all that went wrong.
func (e Errors) Total() int64 { return e.Connect + e.Unsolicited + e.Requests() }

// Requests is the number of failed requests.
func (e Errors) Requests() int64 {
	return e.Write + e.Read + e.Timeout + e.Parse + e.Status + e.Body + e.Closed
}

// Plus adds up errors of two loads, or of two threads of one.
func (e Errors) Plus(more Errors) Errors {
	return Errors{Connect: e.Connect + more.Connect, Write: e.Write + more.Write,
		Read: e.Read + more.Read, Timeout: e.Timeout + more.Timeout, Parse: e.Parse + more.Parse,
		Status: e.Status + more.Status, Body: e.Body + more.Body,
		Unsolicited: e.Unsolicited + more.Unsolicited, Closed: e.Closed + more.Closed,
		Example: cmp.Or(e.Example, more.Example)}
}

// Why says in words why there is no good answer: the first error, or that there was none either.
func (e Errors) Why() string { return cmp.Or(e.Example, "every request is still waiting") }

// Grading is what is known against a host as a place to measure on.
type Grading struct {
	Grade  string  `json:"grade"` // the worst of the checks: Fit, Doubtful or Unfit
	Checks []Check `json:"checks"`
}

// Grades of a host, in order of trust. Unknown is for single checks: the kernel does not say.
const (
	Fit      = "fit"
	Doubtful = "doubtful"
	Unfit    = "unfit"
	Unknown  = "unknown"
)

// Check is one property of the host.
type Check struct {
	Name     string `json:"name"` // one or two words
	Grade    string `json:"grade"`
	Observed string `json:"observed"`
	Expected string `json:"expected"`
	Impact   string `json:"impact"`        // what it does to numbers
	Fix      string `json:"fix,omitempty"` // a command or a setting; may be empty
	Source   string `json:"source"`        // kernel document, paper or issue
}
