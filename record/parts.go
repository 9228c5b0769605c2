package record

import "cmp"

// Telemetry counts what the processes of a trial sent about themselves, from start to end, and what
// the collector did with it.
type Telemetry struct {
	Signals   []Signal          `json:"signals"`   // by name
	Sources   []TelemetrySource `json:"sources"`   // senders, by service.name
	Collector CollectorCost     `json:"collector"` // cost of collecting
	// why it is incomplete; empty: no losses are known
	Partial string `json:"partial,omitempty"`
}

// Names of signals in Signal.Name.
const (
	Spans  = "spans"
	Points = "points" // of metrics
	Logs   = "logs"
)

// Signal counts the items of one kind. Received = Kept + Dropped. Refused items are counted
// separately and got an error response.
type Signal struct {
	Name     string `json:"name"`
	Requests int64  `json:"requests"` // number of export requests
	Received int64  `json:"received"` // accepted
	Refused  int64  `json:"refused"`  // malformed, too large, or beyond the collector's capacity
	Dropped  int64  `json:"dropped"`  // accepted and counted, but not kept because of bounds
	Kept     int64  `json:"kept"`     // available for later analysis
	Bytes    int64  `json:"bytes"`    // size of the payloads as OTLP protobuf, uncompressed
}

// TelemetrySource counts what one service.name sent. Equal services under equal loads should send
// similar amounts.
type TelemetrySource struct {
	Service string `json:"service"`
	Spans   int64  `json:"spans"`
	Points  int64  `json:"points"`
	Logs    int64  `json:"logs"`
	Bytes   int64  `json:"bytes"`
	// LostSpans is the number of spans that the sender reports to have dropped before sending (SDK
	// metrics such as otel.sdk.processor.span.processed with error.type); -1: unknown.
	LostSpans int64 `json:"lostSpans"`
}

// CollectorCost is the collector's resource use during the trial.
type CollectorCost struct {
	CPUNs    int64   `json:"cpuNs"`
	CPUShare float64 `json:"cpuShare"` // share of one core
	RSSBytes int64   `json:"rssBytes"` // at the end
}

// WindowTelemetry counts what was sent about one window: spans that began and log lines written
// between the marks around it, which are slightly outside the window.
type WindowTelemetry struct {
	WindowNs   int64 `json:"windowNs"` // between the marks
	Spans      int64 `json:"spans"`
	ErrorSpans int64 `json:"errorSpans"`
	Logs       int64 `json:"logs"`
}

// GC is the activity of the trial's JVM garbage collectors in one window, from their logs.
type GC struct {
	Collector   string `json:"collector"` // for example "G1"
	Collections int64  `json:"collections"`
	PauseNs     int64  `json:"pauseNs"` // sum of all pauses
	PauseMaxNs  int64  `json:"pauseMaxNs"`
	// HeapAfterBytes is the heap size after the last collection before the window's end; 0: none
	// yet.
	HeapAfterBytes int64 `json:"heapAfterBytes"`
	AllocatedBytes int64 `json:"allocatedBytes"` // in the window; -1: unknown
}

// Traced is one request that the load sent with a trace id (W3C Trace Context).
type Traced struct {
	TraceID     string `json:"traceId"` // 32 hexadecimal digits
	Class       string `json:"class"`   // "slowest", "failed" or "uniform"
	Route       string `json:"route,omitempty"`
	ScheduledNs int64  `json:"scheduledNs"` // from the window's opening
	LagNs       int64  `json:"lagNs"`       // sent - scheduled
	FirstByteNs int64  `json:"firstByteNs"` // first byte - sent; 0: no byte came
	ResponseNs  int64  `json:"responseNs"`  // done - scheduled
	Failed      bool   `json:"failed,omitempty"`
}

// Profile is a profile taken during a load; its file is a gzipped pprof below the run's folder.
type Profile struct {
	Kind       string `json:"kind"` // cpu, alloc, lock or offcpu
	Tool       string `json:"tool"` // with version: "async-profiler 4.1"
	Load       string `json:"load"`
	Process    string `json:"process,omitempty"` // of a system
	File       string `json:"file"`              // like "profiles/b1-03-go-nethttp.cpu.pb.gz"
	Samples    int64  `json:"samples"`
	DurationNs int64  `json:"durationNs"`
	Failed     string `json:"failed,omitempty"` // why there is no profile
}

// Dump is what a JVM left when it ran out of memory or crashed: its heap in HotSpot's binary format
// (hprof), compressed by gzip, or its report.
type Dump struct {
	File    string `json:"file"` // below the run's folder
	Bytes   int64  `json:"bytes"`
	Removed bool   `json:"removed,omitempty"` // the dumps of the run were larger than allowed
}

// Agent is a downloaded agent.
type Agent struct {
	Name    string `json:"name"`   // for example "otel-java"
	Source  string `json:"source"` // for example "maven:GROUP:ARTIFACT:VERSION"
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

// Generator is one of several that sent a load together, each its part of one schedule.
type Generator struct {
	Index  int    `json:"index"` // it sent the arrivals index, index + n, …
	Name   string `json:"name"`  // host and process
	Engine string `json:"engine"`

	Sent        int64 `json:"sent"` // since the beginning, as last reported
	Done        int64 `json:"done"` // good responses since the beginning, as last reported
	LagMaxNs    int64 `json:"lagMaxNs"`
	MemoryBytes int64 `json:"memoryBytes,omitempty"` // maximum of its process

	LateNs     int64   `json:"lateNs"` // delay of its start or window
	CPUShare   float64 `json:"cpuShare"`
	RunDelayNs int64   `json:"runDelayNs"`
	StallMaxNs int64   `json:"stallMaxNs"`

	Clock Clock `json:"clock"`

	// Fault is why its part is unusable: it died, stopped reporting, was late, or sent another
	// schedule. Findings are those of the health rules on its part.
	Fault    string    `json:"fault,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
}

// Clock relates a generator's clock to the lab's, by the fastest of several exchanges (RFC 5905,
// section 8). The load starts by the measured offset, so only its error affects results.
type Clock struct {
	OffsetNs     int64 `json:"offsetNs"`     // its monotonic clock minus the lab's, before
	ErrorNs      int64 `json:"errorNs"`      // half of that exchange's round-trip time
	DriftNs      int64 `json:"driftNs"`      // change of the offset until after the load
	DriftErrorNs int64 `json:"driftErrorNs"` // half of the round-trip time after the load
	WallNs       int64 `json:"wallNs"`       // its Unix time minus the lab's, before the load
}

// Pod describes the pod that ran the target, as reported by the cluster's API and, for cores, by
// the kernel of its node.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node"`
	Server    string `json:"server"`            // version of the API server
	Kubelet   string `json:"kubelet,omitempty"` // version; empty: this user may not read nodes
	Runtime   string `json:"runtime,omitempty"` // container runtime with version; empty as Kubelet
	QoS       string `json:"qos"`               // "Guaranteed": the requested limits apply
	Image     string `json:"image"`             // what the node started, by digest
	Service   string `json:"service,omitempty"` // address of the service, if requests used one
	Cores     []int  `json:"cores"`             // assigned by the kubelet
	// CoresSharedWith names who else can run on these cores; none: they are exclusive.
	CoresSharedWith []string    `json:"coresSharedWith,omitempty"`
	APIOutages      []APIOutage `json:"apiOutages,omitempty"`
	// Reader read limits and resource use on the pod's node; absent: prony itself ran there.
	Reader *Reader `json:"reader,omitempty"`
}

// Reader is a pod of this program on the node of the measured pod. Its readings have the node's own
// times on the sampler's time line, so differences of readings do not depend on clocks.
type Reader struct {
	Pod   string `json:"pod"`
	Image string `json:"image"` // what the node started, by digest
	Clock Clock  `json:"clock"` // the node's clock beside the lab's; drift over the whole trial
	// LateMaxNs is the maximum delay of a reading at a window's edge after its request.
	LateMaxNs int64 `json:"lateMaxNs"`
	// Lost are the readings that failed, each with its time (UTC) and the reason.
	Lost []string `json:"lost,omitempty"`
}

// APIOutage is a period in which the cluster's API did not respond. Measurements do not depend on
// it.
type APIOutage struct {
	AtNs       int64 `json:"atNs"` // Unix time
	DurationNs int64 `json:"durationNs"`
}

// BackendCalls is the count of a database or upstream over the window, from its own counter.
type BackendCalls struct {
	Counter string `json:"counter"` // the counter's name
	Unit    string `json:"unit"`    // what it counts: transactions, statements, or a series
	// Count is the difference of the readings at the window's opening and end; IntervalNs is the
	// time of load between them.
	Count      float64 `json:"count"`
	IntervalNs int64   `json:"intervalNs"`
	DelayNs    int64   `json:"delayNs,omitempty"`  // maximum delay of the counter
	Expected   float64 `json:"expected"`           // minimum for the window's good responses
	IdlePerS   float64 `json:"idlePerS,omitempty"` // its rate before the load
	Error      string  `json:"error,omitempty"`    // why it was not read; Count is then meaningless
}

// Errors counts requests with another outcome than the scenario expects, by class.
type Errors struct {
	Connect     int64 `json:"connect"`
	Write       int64 `json:"write"`
	Read        int64 `json:"read"`    // reset, or closed before the response was complete
	Timeout     int64 `json:"timeout"` // no complete response within the scenario's timeout
	Parse       int64 `json:"parse"`   // not HTTP
	Status      int64 `json:"status"`
	Body        int64 `json:"body"`                  // wrong length or wrong bytes
	Unsolicited int64 `json:"unsolicited,omitempty"` // responses without a request
	// Closed counts requests without any byte of a response because the server closed the
	// kept-alive connection, and that must not be sent twice, for example POST.
	Closed int64 `json:"closed,omitempty"`

	Example string `json:"example,omitempty"` // description of the first one
	// Party is what caused the first one: PartyMachine, PartyOptions; empty: the service.
	Party string `json:"party,omitempty"`
}

// Total returns the number of all errors.
func (e Errors) Total() int64 { return e.Connect + e.Unsolicited + e.Requests() }

// Requests returns the number of failed requests.
func (e Errors) Requests() int64 {
	return e.Write + e.Read + e.Timeout + e.Parse + e.Status + e.Body + e.Closed
}

// Plus returns the sum of errors of two loads, or of two threads of one load.
func (e Errors) Plus(more Errors) Errors {
	party := e.Party
	if e.Example == "" {
		party = more.Party
	}
	return Errors{Connect: e.Connect + more.Connect, Write: e.Write + more.Write,
		Read: e.Read + more.Read, Timeout: e.Timeout + more.Timeout, Parse: e.Parse + more.Parse,
		Status: e.Status + more.Status, Body: e.Body + more.Body,
		Unsolicited: e.Unsolicited + more.Unsolicited, Closed: e.Closed + more.Closed,
		Example: cmp.Or(e.Example, more.Example), Party: party}
}

// Parties other than the service that cause errors.
const (
	PartyMachine = "machine" // the load's machine: ports, files, routes, rights
	PartyOptions = "options" // the request for the load: address, certificates, protocol
)

// Why explains why there is no good response: the first error, or that all requests are pending.
func (e Errors) Why() string { return cmp.Or(e.Example, "every request is still waiting") }

// Grading is the suitability of a host for measurements.
type Grading struct {
	Grade  string  `json:"grade"` // the worst grade of the checks: Fit, Doubtful or Unfit
	Checks []Check `json:"checks"`
}

// Grades of a host, in order of trust. Unknown is only for single checks that the kernel cannot
// answer.
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
	Impact   string `json:"impact"`        // effect on measurements
	Fix      string `json:"fix,omitempty"` // a command or a setting; may be empty
	Source   string `json:"source"`        // kernel document, paper or issue
}
