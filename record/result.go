// Package record defines the record of a trial: the plan, what ran, the measurements, and their
// provenance. A trial ends as exactly one Record, measured or failed; statistics and reports depend
// only on records. docs/formats/record.md describes the bytes on disk.
//
// All times are nanoseconds, all sizes bytes, all rates per second.
package record

import (
	"time"
)

// Version is the version of the format. A reader rejects newer versions and reads older ones (see
// version1.go).
const Version = 2

// Outcomes of a trial.
const (
	Measured = "measured" // every load ran to its end
	Failed   = "failed"   // a step failed, see Failure
)

// Record is one trial, a line of trials.ndjson.
type Record struct {
	Version  int       `json:"version"`
	Run      string    `json:"run"`   // the run's id and the name of its folder
	Trial    string    `json:"trial"` // unique in the run, for example "b1-03-go-nethttp"
	Time     time.Time `json:"time"`  // wall clock at the trial's start
	Suite    string    `json:"suite"`
	Block    int       `json:"block"` // from 1
	Order    int       `json:"order"` // position in the run, from 1
	Target   Target    `json:"target"`
	Scenario string    `json:"scenario"`
	Contract string    `json:"contract"`
	Outcome  string    `json:"outcome"`

	Failure    *Failure `json:"failure,omitempty"`
	HostBefore Before   `json:"hostBefore,omitzero"`
	// SideBySide describes the start that the trial is part of; nil: it ran alone.
	SideBySide *SideBySide `json:"sideBySide,omitempty"`
	Limits     Limits      `json:"limits"`
	Pod        *Pod        `json:"pod,omitempty"` // nil unless a cluster ran the target
	Artifact   Artifact    `json:"artifact"`
	Start      Start       `json:"start"`
	// Processes are the processes of a system, in order of start; the last receives the requests.
	Processes []Started `json:"processes,omitempty"`
	Warmup    Warmup    `json:"warmup"`
	Loads     []Load    `json:"loads,omitempty"`
	// Role is why the trial ran in addition to the comparison, which excludes it: one of Roles;
	// empty: it is part of the comparison.
	Role string `json:"role,omitempty"`
	// Resumed is the number of the resumption in which the trial ran, from 1; 0: before any.
	Resumed int `json:"resumed,omitempty"`
	// LogDroppedBytes is the part of the service's log that was not kept.
	LogDroppedBytes int64 `json:"logDroppedBytes,omitempty"`

	Instruments []string   `json:"instruments,omitempty"` // active besides the usual samples
	Telemetry   *Telemetry `json:"telemetry,omitempty"`
	Profiles    []Profile  `json:"profiles,omitempty"`
	Dumps       []Dump     `json:"dumps,omitempty"` // of JVMs that ran out of memory or crashed

	Probe      Cost       `json:"probe"` // resource use of the sampler
	Provenance Provenance `json:"provenance"`
	Verdict    Verdict    `json:"verdict"`
	DurationNs int64      `json:"durationNs"` // in a start, an equal share of the start's
}

// End returns when the trial ended, or the start that it was part of.
func (r *Record) End() time.Time {
	trials := 1
	if r.SideBySide != nil {
		trials += len(r.SideBySide.With)
	}
	return r.Time.Add(time.Duration(int64(trials) * r.DurationNs))
}

// Target identifies what was measured.
type Target struct {
	Name      string `json:"name"` // unique in the catalog, for example "java-jdk/virtual"
	Service   string `json:"service"`
	Language  string `json:"language"`
	Framework string `json:"framework"`
	Version   string `json:"version"`
	Runtime   string `json:"runtime"`
	Mode      string `json:"mode"`
	Variant   string `json:"variant"`          // the attached agent; "none" without one
	Driver    string `json:"driver,omitempty"` // load generator, if not Prony's own
	// Launcher is what started the target, if not as a plain process: "docker".
	Launcher string `json:"launcher,omitempty"`
	Arm      string `json:"arm,omitempty"` // A/A: "a" or "b", the same target twice per block
	// ControlOf is the target that this one is a second copy of, to show random differences; empty:
	// it is no control.
	ControlOf string `json:"controlOf,omitempty"`
	Origin    string `json:"origin,omitempty"` // of another checkout: "base"; suffix of Name
	// URL is the address of a target that was already running; its processes are unknown.
	URL string `json:"url,omitempty"`
	// Matrix is the row's load in a matrix, which differs between rows.
	Matrix MatrixRow `json:"matrix,omitzero"`
}

// MatrixRow overrides the suite for a row of a matrix; 0: as in the suite.
type MatrixRow struct {
	Connections int   `json:"connections,omitempty"`
	BodyBytes   int64 `json:"bodyBytes,omitempty"` // of requests
}

// Failure is where a trial ended early. Step is one of launch, ready, verify, warmup, measure,
// reverify, stop; or StepPeer.
type Failure struct {
	Step  string   `json:"step"`
	Error string   `json:"error"`
	Hint  string   `json:"hint,omitempty"`
	Log   []string `json:"log,omitempty"` // last lines of the service's log
	// Interrupted: the run was ended during the trial; the target did not fail.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Before is the state of the host just before the trial, without processes of the run.
type Before struct {
	WindowNs int64 `json:"windowNs"` // observed time
	WaitedNs int64 `json:"waitedNs"` // waiting time for quiet, before WindowNs
	// share of all cores' time that the hypervisor took
	StealShare float64 `json:"stealShare"`
	// share of all cores' time that other processes used; -1: unknown
	OtherCPUShare  float64 `json:"otherCPUShare"`
	TemperatureC   float64 `json:"temperatureC,omitempty"`   // the hottest sensor; 0: unknown
	ThrottleEvents int64   `json:"throttleEvents,omitempty"` // thermal throttle events since boot
	Quiet          bool    `json:"quiet"`
	Reason         string  `json:"reason,omitempty"` // why it was not quiet, or what delayed it
}

// Limits are the requested limits, and those that the kernel was found to enforce.
type Limits struct {
	CPUs         float64 `json:"cpus"`
	MemoryBytes  int64   `json:"memoryBytes"`
	ServiceCores []int   `json:"serviceCores"`
	LoadCores    []int   `json:"loadCores"`
	InForce      []Limit `json:"inForce"`           // as read back from the kernel
	Missing      []Limit `json:"missing,omitempty"` // requested but not enforced, with the reason
	// Privileges are user and privileges of the process: "user 1000, no capabilities, no new
	// privileges".
	Privileges string `json:"privileges,omitempty"`

	// cores of the collector; none: the load's last core
	TelemetryCores []int `json:"telemetryCores,omitempty"`
	// BackingCores are the cores of services that the target depends on, for example a database, if
	// they are outside its limits; none: inside, or there is no such service.
	BackingCores []int `json:"backingCores,omitempty"`
}

// Artifact is the result of the build.
type Artifact struct {
	SHA256    string `json:"sha256"`
	SizeBytes int64  `json:"sizeBytes"`
	BuildHash string `json:"buildHash"` // hash of sources and tool versions: the cache's key
	// Image is the container image that ran, by name and the engine's identifier; empty: none.
	Image string `json:"image,omitempty"`
	// ImageBytes is the size of the container image, if one was built; 0: unknown.
	ImageBytes int64 `json:"imageBytes,omitempty"`
	// NoCopy is why the target did not work in a fresh copy of its folder: one of the NoCopy names.
	// Empty: it did, or it was not in a start.
	NoCopy       string `json:"noCopy,omitempty"`
	NoCopyDetail string `json:"noCopyDetail,omitempty"` // for example the system's error
}

// Reasons why a target of a start works in the folder of the build.
const (
	NoCopyContainer = "container" // it works in its image
	NoCopyAttached  = "attached"  // it was already running
	NoCopyGiven     = "given"     // nothing was built: the command can need files beside it
	NoCopyLarge     = "large"     // larger than a copy may be
	NoCopyFailed    = "failed"    // for example a full disk
)

// Start is how long the service took to start, from the exec of its program.
type Start struct {
	ListenNs        int64 `json:"listenNs"`        // until its port accepted a connection
	ReadyNs         int64 `json:"readyNs"`         // until its readiness path returned 200
	FirstResponseNs int64 `json:"firstResponseNs"` // until the first response was complete
	// RSSBytes is the resident memory after the first response, before any load; -1: unknown.
	RSSBytes int64 `json:"rssBytes,omitempty"`
}

// Started is a process of a target with several processes (a system).
type Started struct {
	Name    string   `json:"name"`
	Args    []string `json:"args"`
	ReadyNs int64    `json:"readyNs"` // from its own exec until ready
}

// Warmup is the closed load before the first window; results exclude it.
type Warmup struct {
	DurationNs int64 `json:"durationNs"`
	Requests   int64 `json:"requests"`
	Steady     bool  `json:"steady"`             // it reached a steady state
	SteadyAtNs int64 `json:"steadyAtNs"`         // when that began; 0 also if it did not
	RatePerS   Rates `json:"ratePerS,omitempty"` // requests/s, one value per interval
	IntervalNs int64 `json:"intervalNs"`

	// Results of stats.SteadyState for warm-up and first closed window together.
	Kind     string  `json:"kind,omitempty"`     // one of stats.Kinds
	PeakAtNs int64   `json:"peakAtNs,omitempty"` // until the first interval at the steady level
	CostNs   int64   `json:"costNs,omitempty"`   // steady time that serves what was lost
	Levels   []Level `json:"levels,omitempty"`

	Connections int `json:"connections,omitempty"` // of the warm-up load
	// CompilersIdleAtNs is when compilers became almost idle; -1: they did not; 0: thread names do
	// not identify compilers.
	CompilersIdleAtNs int64 `json:"compilersIdleAtNs,omitempty"`
	// Cores are cores that the service had in addition until CoresReducedAtNs, and InForce the
	// limits in force afterwards; none: it had no additional ones. If present, Kind and Levels only
	// cover the time afterwards.
	Cores            []int   `json:"cores,omitempty"`
	InForce          []Limit `json:"inForce,omitempty"`
	CoresReducedAtNs int64   `json:"coresReducedAtNs,omitempty"`
	// PrioritizedThreads is the number of compiler threads that had priority during warm-up, which
	// makes it shorter than in production.
	PrioritizedThreads int `json:"prioritizedThreads,omitempty"`
	// ReconnectedAtNs is when its connections were last closed and reopened; 0: never.
	ReconnectedAtNs int64 `json:"reconnectedAtNs,omitempty"`
}

// Level is a stretch of a series with a constant mean.
type Level struct {
	FromNs   int64   `json:"fromNs"`
	ToNs     int64   `json:"toNs"`
	MeanPerS float64 `json:"meanPerS"`
}

// Rates is a series of requests per second at equal intervals.
type Rates []float64

// Load models.
const (
	Closed = "closed" // N connections; each sends its next request after the last response
	Open   = "open"   // arrivals on a schedule, independent of responses
	// Capacity is a search over open loads; the record has the deciding one.
	Capacity = "capacity"
)

// Load is one load of the trial: its configuration and its results.
type Load struct {
	Name string `json:"name"` // from the suite, for example "peak"
	// external load generator, with version: "wrk 4.1.0"
	Driver   string `json:"driver,omitempty"`
	Protocol string `json:"protocol,omitempty"` // empty: HTTP/1.1 without TLS
	// negotiated version and cipher suite, and who encrypted
	TLS   string `json:"tls,omitempty"`
	Model string `json:"model"` // Closed or Open
	// "poisson", "constant" or "replay"
	Arrivals string `json:"arrivals,omitempty"`
	// open: the rate over time, if it changes
	Shape string `json:"shape,omitempty"`
	Users string `json:"users,omitempty"` // closed: virtual users over time
	// closed: their pause between requests
	Think string `json:"think,omitempty"`
	// responses after which a connection is renewed
	Churn int `json:"churn,omitempty"`
	// concurrent requests per connection
	Streams int `json:"streams,omitempty"`
	// concurrent requests per connection that the server permits, if fewer
	StreamsPermitted *int `json:"streamsPermitted,omitempty"`
	Connections      int  `json:"connections"` // at the beginning
	// network that the generator simulated; nil: none
	Network *Network `json:"network,omitempty"`
	// open: connections opened later, as needed
	ConnectionsAdded int     `json:"connectionsAdded,omitempty"`
	Threads          int     `json:"threads"`
	RatePerS         float64 `json:"ratePerS,omitempty"` // open: requested, mean over the window
	RateOf           string  `json:"rateOf,omitempty"`   // as in the suite: "50% of peak"
	RateBase         string  `json:"rateBase,omitempty"` // the load that RateOf refers to
	Seed             uint64  `json:"seed"`
	TraceHash        string  `json:"traceHash,omitempty"` // open: of the schedule

	// Requests is the number of turns after which the load ends; 0: it ends with its window.
	Requests int64 `json:"requests,omitempty"`

	WindowNs  int64 `json:"windowNs"`
	LeadInNs  int64 `json:"leadInNs"`  // before the window, not counted
	DrainNs   int64 `json:"drainNs"`   // maximum wait for responses after it
	Scheduled int64 `json:"scheduled"` // arrivals due in the window
	Sent      int64 `json:"sent"`      // arrivals due in the window and sent before it closed
	Done      int64 `json:"done"`      // good responses that ended inside the window
	Answered  int64 `json:"answered"`  // of scheduled: good responses until the end of the drain
	Censored  int64 `json:"censored"`  // of scheduled: no response until the end of the drain
	BytesIn   int64 `json:"bytesIn"`
	BytesOut  int64 `json:"bytesOut"`

	ThroughputPerS float64 `json:"throughputPerS"` // Done / window
	Errors         Errors  `json:"errors"`
	Reconnects     int64   `json:"reconnects"`
	// requests sent again because the service had not processed them
	Retried int64 `json:"retried,omitempty"`
	// responses that were complete before their request was sent
	Early int64 `json:"early,omitempty"`
	// mean number of requests under way in the window
	InFlightMean float64 `json:"inFlightMean"`
	// part of InFlightMean by requests that were due before the window
	CarriedInMean  float64 `json:"carriedInMean"`
	CarriedOutMean float64 `json:"carriedOutMean"` // of requests due in it, after the window
	// open: slope of scheduled - done, per second
	BacklogPerS float64 `json:"backlogPerS"`
	// the generator's limit, against a null server; 0: unknown
	CeilingPerS  float64 `json:"ceilingPerS"`
	ResponseTime Dist    `json:"responseTime"` // done - scheduled
	ServiceTime  Dist    `json:"serviceTime"`  // done - sent
	FirstByte    Dist    `json:"firstByte"`    // first byte - sent
	Lag          Dist    `json:"lag"`          // sent - scheduled
	// part of lag after a connection and a stream were free: the generator's own delay
	OwnLag Dist `json:"ownLag"`
	// requests that found every connection, or every stream that the server permits, busy
	Waited int64 `json:"waited"`
	// of failed requests; timeouts at their bound
	ErrorTime Dist `json:"errorTime"`
	// TCP handshake, plus TLS handshake if there is one
	ConnectTime Dist `json:"connectTime"`
	TLSTime     Dist `json:"tlsTime,omitzero"` // only TLS handshake
	// flows: from due to the last response
	FlowTime Dist `json:"flowTime,omitzero"`
	// per request of a mix or flow
	Routes []Route `json:"routes,omitempty"`
	// open: whether requests left on schedule
	ArrivalProcess ArrivalProcess `json:"arrivalProcess,omitzero"`
	// of response times
	Autocorrelation Autocorrelation `json:"autocorrelation,omitzero"`
	Series          Series          `json:"series"`    // values per interval of the window
	Generator       Gen             `json:"generator"` // resource use and state of the generator
	Service         Usage           `json:"service"`   // resource use of the service
	// activity of the machine
	Host Host `json:"host"`

	// PunctualTime is a lower bound of response times: each minus the most that the generator's own
	// delay can have added. Only for open loads without flows on one thread; otherwise it is
	// unknown.
	PunctualTime Dist `json:"punctualTime,omitzero"`

	// TLSResumed is how many handshakes in TLSTime resumed an earlier session.
	TLSResumed int64 `json:"tlsResumed,omitempty"`

	// Unix time of the window's opening
	WindowOpenedUnixNs int64 `json:"windowOpenedUnixNs,omitempty"`
	// CLOCK_MONOTONIC of the window's opening
	WindowOpenedMonotonicNs int64 `json:"windowOpenedMonotonicNs,omitempty"`
	// share of requests with a trace id
	TraceShare float64 `json:"traceShare,omitempty"`
	// some requests with a trace id, slowest first
	Traced    []Traced         `json:"traced,omitempty"`
	Telemetry *WindowTelemetry `json:"windowTelemetry,omitempty"`
	GC        *GC              `json:"gc,omitempty"`

	// Slices are the results under this load in slices, interleaved with those of other targets;
	// nil: the load only ran in a window. Ratios between targets come from slices.
	Slices *Sliced `json:"slices,omitempty"`
	// Stalls are the machine's stalls in the window. Without them are StallFree, percentiles of an
	// open load, and WithoutStalls, the throughput of a closed load; nil: not recorded.
	Stalls        *Stalls        `json:"stalls,omitempty"`
	StallFree     []StallFree    `json:"stallFree,omitempty"`
	WithoutStalls *WithoutStalls `json:"withoutStalls,omitempty"`
	// Disturbed is the number of windows before this one in which the machine's stalls took more
	// than 10 % of the time. Nothing else is recorded of them.
	Disturbed int `json:"disturbedWindows,omitempty"`

	IdleTargets []IdleTarget `json:"idleTargets,omitempty"` // the longest time first
	Search      *Search      `json:"search,omitempty"`      // this load is its deciding step

	Generators []Generator `json:"generators,omitempty"` // if several sent the load

	// per counter of databases and upstreams
	BackendCalls []BackendCalls `json:"backendCalls,omitempty"`
}

// Search is a search for the highest open rate that meets the objectives. It succeeded if Reason is
// empty.
type Search struct {
	SLO       string       `json:"slo"`
	RatePerS  float64      `json:"ratePerS,omitempty"` // rate at which half of the steps pass
	LoPerS    float64      `json:"loPerS,omitempty"`   // confidence interval, from this trial only
	HiPerS    float64      `json:"hiPerS,omitempty"`   //
	MetPerS   float64      `json:"metPerS,omitempty"`  // the highest rate that met the SLO once
	Reason    string       `json:"reason,omitempty"`   // why it ended without a rate
	Warnings  []string     `json:"warnings,omitempty"`
	BudgetNs  int64        `json:"budgetNs"`
	ElapsedNs int64        `json:"elapsedNs"`
	Steps     []SearchStep `json:"steps"`
}

// SearchStep is one open load of a search, in order of time.
type SearchStep struct {
	Phase    string  `json:"phase"` // of internal/generator/capacity
	RatePerS float64 `json:"ratePerS"`
	WindowNs int64   `json:"windowNs"`
	P99Ns    int64   `json:"p99Ns,omitempty"`
	Outcome  string  `json:"outcome"` // met, missed or invalid
	Reason   string  `json:"reason,omitempty"`
}

// Kind returns the load's model as in suites and tables: Capacity for a search, whose steps are
// open.
func (l *Load) Kind() string {
	if l.Search != nil {
		return Capacity
	}
	return l.Model
}

// Roles of trials in addition to the comparison.
const (
	Pilot    = "pilot"    // finds the rate of which all variants of a target get shares
	Observed = "observed" // runs with agent, traces and profiler, to explain results
)

// Route is one kind of request of a mix, or one step of a flow.
type Route struct {
	Name         string `json:"name"`
	Sent         int64  `json:"sent"`     // due in the window and sent
	Answered     int64  `json:"answered"` // of sent: good responses until the end of the drain
	Failed       int64  `json:"failed"`
	ResponseTime Dist   `json:"responseTime"`
	ServiceTime  Dist   `json:"serviceTime"`
}

// ArrivalProcess describes how the requests left, from a contiguous sample of their send times.
type ArrivalProcess struct {
	Samples int64 `json:"samples"`
	// Anderson-Darling's A² of the gaps above 50 µs against the exponential distribution (Poisson),
	// corrected for the estimated mean (Stephens 1974); the 1 % point is 1.957.
	AndersonDarling float64 `json:"andersonDarling,omitempty"`
	GapDeviationNs  int64   `json:"gapDeviationNs,omitempty"` // p99 of |gap - scheduled gap|
	// Variance-to-mean ratio of requests per bin: 1 for Poisson, 0 for equal gaps.
	Dispersion1ms   float64 `json:"dispersion1ms"`
	Dispersion10ms  float64 `json:"dispersion10ms"`
	Dispersion100ms float64 `json:"dispersion100ms"`
}

// Autocorrelation is the correlation of response times in send order, from a contiguous sample.
type Autocorrelation struct {
	Samples int64   `json:"samples"`
	Lag1    float64 `json:"lag1"` // of ranks (Spearman), between neighbors
	// share of independent responses with the same uncertainty of p99
	EffectiveShare float64 `json:"effectiveShare"`
}

// noisyShare is the share of independent responses below which Worth applies it. A larger one may
// be due to chance, so Worth then counts all responses.
const noisyShare = 0.5

// Worth returns the share of independent responses that has the same uncertainty as all; 1 if the
// share is not clearly smaller. known is false if correlation was not measured; 1 is then an
// assumption.
func (m Autocorrelation) Worth() (share float64, known bool) {
	if m.EffectiveShare > 0 && m.EffectiveShare < noisyShare {
		return m.EffectiveShare, true
	}
	return 1, m.EffectiveShare > 0
}

// Dist is a distribution of durations. The histogram is authoritative; the fields are for
// convenience.
type Dist struct {
	Count  int64   `json:"count"`
	MinNs  int64   `json:"minNs"`
	MeanNs float64 `json:"meanNs"`
	P50Ns  int64   `json:"p50Ns"`
	P90Ns  int64   `json:"p90Ns"`
	P99Ns  int64   `json:"p99Ns"`
	P999Ns int64   `json:"p999Ns"`
	MaxNs  int64   `json:"maxNs"`
	HDR    string  `json:"hdr,omitempty"` // HdrHistogram V2, compressed, base64; 3 digits, ns
}

// Series is columnar: each column has one value per interval.
type Series struct {
	IntervalNs int64   `json:"intervalNs"`
	Scheduled  []int64 `json:"scheduled,omitempty"`
	Sent       []int64 `json:"sent,omitempty"`
	Done       []int64 `json:"done,omitempty"`
	Failed     []int64 `json:"failed,omitempty"`
	P50Ns      []int64 `json:"p50Ns,omitempty"` // of response times, by arrival of the response
	P99Ns      []int64 `json:"p99Ns,omitempty"`
	MaxNs      []int64 `json:"maxNs,omitempty"`
}

// Gen is the generator's resource use and state in the window.
type Gen struct {
	Engine          string  `json:"engine"`
	EngineReason    string  `json:"engineReason"`
	Pacing          string  `json:"pacing"`                // how it waits for the next arrival
	SpinNs          int64   `json:"spinNs,omitempty"`      // CPU time of polling, in CPUNs
	Wakeup          Dist    `json:"wakeup,omitzero"`       // delay of its timer, before the load
	Iterations      int64   `json:"iterations,omitempty"`  // of its loop in the window
	BatchMax        int64   `json:"batchMax,omitempty"`    // most responses per iteration
	StallMaxNs      int64   `json:"stallMaxNs,omitempty"`  // longest delay of an iteration
	MemoryBytes     int64   `json:"memoryBytes,omitempty"` // resident, of its process
	CPUNs           int64   `json:"cpuNs"`                 // user and system of the load threads
	CPUPerRequestNs float64 `json:"cpuPerRequestNs"`
	CPUShare        float64 `json:"cpuShare"`   // of one core, by the busiest thread
	RunDelayNs      int64   `json:"runDelayNs"` // runnable but not running, schedstat
	SwitchesForced  int64   `json:"switchesForced"`
	Priority        string  `json:"priority"` // scheduling policy of the load threads

	DatagramsLost int64 `json:"datagramsLost,omitempty"` // because a UDP socket's buffer was full
}

// Usage is the resource use of all the service's processes in the window.
type Usage struct {
	Source                 string  `json:"source"` // "cgroup v1", "cgroup v2" or "proc"
	WindowNs               int64   `json:"windowNs"`
	CPUNs                  int64   `json:"cpuNs"`
	UserNs                 int64   `json:"userNs"`
	SystemNs               int64   `json:"systemNs"`
	CPUPerRequestNs        float64 `json:"cpuPerRequestNs"`
	CPUShare               float64 `json:"cpuShare"` // of the cores it may use
	RSSMaxBytes            int64   `json:"rssMaxBytes"`
	RSSEndBytes            int64   `json:"rssEndBytes"`
	PSSEndBytes            int64   `json:"pssEndBytes"` // 0 if the kernel does not report it
	ThreadsMax             int     `json:"threadsMax"`
	SwitchesVoluntary      int64   `json:"switchesVoluntary"`
	SwitchesForced         int64   `json:"switchesForced"`
	SwitchesPerRequest     float64 `json:"switchesPerRequest"`
	RunDelayNs             int64   `json:"runDelayNs"`
	ThrottledNs            int64   `json:"throttledNs"`
	ThrottledPeriods       int64   `json:"throttledPeriods"`
	PageFaultsMajor        int64   `json:"pageFaultsMajor"`
	NetworkBytes           int64   `json:"networkBytes"` // both directions
	NetworkBytesPerRequest float64 `json:"networkBytesPerRequest"`
	Roles                  *Roles  `json:"roles,omitempty"` // nil: thread names show none
	Parts                  []Part  `json:"parts,omitempty"` // per process of a system
}

// Roles are the parts of Usage.CPUNs that threads with other purposes than requests used, by thread
// names. They are lower bounds, because the use of a thread after its last sample is unknown.
type Roles struct {
	CompilerNs     int64 `json:"compilerNs"`
	CompilerWaitNs int64 `json:"compilerWaitNs"` // no CPU time: waiting for a core
	GCNs           int64 `json:"gcNs"`
	CompilerOrGCNs int64 `json:"compilerOrGCNs,omitempty"` // of V8's workers, which do both
}

// Part is the share of one process of a system, including its children, in Usage.
type Part struct {
	Name     string `json:"name"`
	CPUNs    int64  `json:"cpuNs"`    // -1: unknown, for example if it ended in the window
	RSSBytes int64  `json:"rssBytes"` // at the window's end
	Threads  int    `json:"threads"`  // at the window's end
}

// Host is the machine's activity in the window.
type Host struct {
	StealShare     float64 `json:"stealShare"`     // share of all cores, by the hypervisor
	OtherCPUShare  float64 `json:"otherCPUShare"`  // share of all cores, by other processes
	PressureCPU    float64 `json:"pressureCPU"`    // PSI some, share of the window; -1: unknown
	PressureMemory float64 `json:"pressureMemory"` // PSI some, share of the window; -1: unknown
	PressureIO     float64 `json:"pressureIO"`     // PSI some, share of the window; -1: unknown
	// EnergyJ is the energy of all processors of the machine, in joules, by hardware counters; 0:
	// there are none.
	EnergyJ float64 `json:"energyJ,omitempty"`
}

// Cost is the resource use of Prony's sampler over the whole trial.
type Cost struct {
	Samples  int64   `json:"samples"`
	PeriodNs int64   `json:"periodNs"`
	CPUNs    int64   `json:"cpuNs"`
	CPUShare float64 `json:"cpuShare"` // share of one core
}

// IdlePolls is the Provenance.Idle of trials in which idle cores polled for work instead of
// halting.
const IdlePolls = "poll"

// Provenance is what is needed to verify and repeat the trial.
type Provenance struct {
	Prony     string   `json:"prony"`  // version of this program
	Commit    string   `json:"commit"` // of the checkout with the services
	Dirty     bool     `json:"dirty"`
	Command   []string `json:"command"`
	Seed      uint64   `json:"seed"`
	SuiteHash string   `json:"suiteHash"`
	PlanHash  string   `json:"planHash"`
	// of scenario, timeout and warm-up
	ScenarioHash string            `json:"scenarioHash,omitempty"`
	Tools        map[string]string `json:"tools"`
	OS           string            `json:"os"`
	Kernel       string            `json:"kernel"`
	Arch         string            `json:"arch"`
	CPUModel     string            `json:"cpuModel"`
	Cores        int               `json:"cores"`
	MemoryBytes  int64             `json:"memoryBytes"`
	Governor     string            `json:"governor"` // "none" if the kernel has no governor
	Cgroup       string            `json:"cgroup"`   // "v1", "v2", "none"
	Hypervisor   bool              `json:"hypervisor"`
	Idle         string            `json:"idle,omitempty"`       // IdlePolls; empty: they halt
	ServiceArgs  []string          `json:"serviceArgs"`          // the command line of the service
	VariantEnv   []string          `json:"variantEnv,omitempty"` // NAME=value, set by the variant
	Agents       []Agent           `json:"agents,omitempty"`
}
