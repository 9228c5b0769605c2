// Package record is the record of a trial: what was asked, what ran, what was measured, and where
// it came from. A trial ends as exactly one Record, good or failed; statistics and reports are
// functions of records and of nothing else. docs/formats/record.md describes the bytes on disk.
//
// All times are nanoseconds, all sizes bytes, all rates per second.
package record

import (
	"cmp"
	"time"
)

// Version is the format's version; a reader refuses a newer one, and reads older ones (see
// version1.go).
const Version = 2

// Outcomes of a trial.
const (
	Measured = "measured" // every load was offered to its end
	Failed   = "failed"   // a step went wrong; Failure says which
)

// Record is one trial, one line of trials.ndjson.
type Record struct {
	Version  int       `json:"version"`
	Run      string    `json:"run"`   // the run's id, also its folder's name
	Trial    string    `json:"trial"` // unique in the run, e.g. "b1-03-go-nethttp"
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
	// SideBySide says which start the trial is part of; nil: it ran alone.
	SideBySide *SideBySide `json:"sideBySide,omitempty"`
	Limits     Limits      `json:"limits"`
	Pod        *Pod        `json:"pod,omitempty"` // of a launcher that has a cluster start it
	Artifact   Artifact    `json:"artifact"`
	Start      Start       `json:"start"`
	// Processes are those of a system, in the order of their start; the last takes the requests.
	Processes []Started `json:"processes,omitempty"`
	Warmup    Warmup    `json:"warmup"`
	Loads     []Load    `json:"loads,omitempty"`
	// Role is why the trial ran beside the comparison, in whose numbers it is not: one of Roles;
	// empty: it is part of it.
	Role string `json:"role,omitempty"`
	// Resumed is the resumption of the run that the trial is of, from 1; 0: it ran at first.
	Resumed int `json:"resumed,omitempty"`
	// LogDroppedBytes is what was not kept of what the service wrote into its log.
	LogDroppedBytes int64 `json:"logDroppedBytes,omitempty"`

	Instruments []string   `json:"instruments,omitempty"` // beside the usual samples, in words
	Telemetry   *Telemetry `json:"telemetry,omitempty"`
	Profiles    []Profile  `json:"profiles,omitempty"`

	Probe      Cost       `json:"probe"` // what the sampler itself took
	Provenance Provenance `json:"provenance"`
	Verdict    Verdict    `json:"verdict"`
	DurationNs int64      `json:"durationNs"`
}

// Target names what was measured.
type Target struct {
	Name      string `json:"name"` // unique in the catalog, e.g. "java-jdk/virtual"
	Service   string `json:"service"`
	Language  string `json:"language"`
	Framework string `json:"framework"`
	Version   string `json:"version"`
	Runtime   string `json:"runtime"`
	Mode      string `json:"mode"`
	Variant   string `json:"variant"`          // "none" when nothing rides along
	Driver    string `json:"driver,omitempty"` // what offered the loads, where not Prony
	// Launcher is what started it, where it was not started as a plain process: "docker".
	Launcher string `json:"launcher,omitempty"`
	Arm      string `json:"arm,omitempty"` // A/A: "a" or "b", the same target twice a block
	// ControlOf names the target that this one is a second copy of, to show what differs by chance;
	// empty: it is no control.
	ControlOf string `json:"controlOf,omitempty"`
	Origin    string `json:"origin,omitempty"` // of another checkout, e.g. "base"; the name ends so
	// URL is where it ran already: nobody has started it, or seen its processes.
	URL string `json:"url,omitempty"`
	// Matrix is what its row of a matrix asks of the load, as rows beside it ask for more or less.
	Matrix MatrixRow `json:"matrix,omitzero"`
}

// MatrixRow is what a row of a matrix has instead of the suite's; 0: the suite's.
type MatrixRow struct {
	Connections int   `json:"connections,omitempty"`
	BodyBytes   int64 `json:"bodyBytes,omitempty"` // of requests
}

// Failure says where a trial ended early. Step is one of launch, ready, verify, warmup, measure,
// reverify, stop; or StepPeer.
type Failure struct {
	Step  string   `json:"step"`
	Error string   `json:"error"`
	Hint  string   `json:"hint,omitempty"`
	Log   []string `json:"log,omitempty"` // the last lines that the service wrote
	// Interrupted: the run was ended, and the trial with it; nothing was wrong with the target.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Before is the host in the moments before the trial, with nothing of ours running.
type Before struct {
	WindowNs int64 `json:"windowNs"` // looked at
	WaitedNs int64 `json:"waitedNs"` // for quiet, before that
	// of all cores' time, by the hypervisor
	StealShare float64 `json:"stealShare"`
	// likewise, by whatever ran; -1 unknown
	OtherCPUShare  float64 `json:"otherCPUShare"`
	TemperatureC   float64 `json:"temperatureC,omitempty"`   // the hottest sensor; 0 unknown
	ThrottleEvents int64   `json:"throttleEvents,omitempty"` // thermal throttle events since boot
	Quiet          bool    `json:"quiet"`
	Reason         string  `json:"reason,omitempty"` // it was not, or what was waited for
}

// Limits are what was asked for and what the kernel was seen to enforce.
type Limits struct {
	CPUs         float64 `json:"cpus"`
	MemoryBytes  int64   `json:"memoryBytes"`
	ServiceCores []int   `json:"serviceCores"`
	LoadCores    []int   `json:"loadCores"`
	InForce      []Limit `json:"inForce"`           // as read back from the kernel
	Missing      []Limit `json:"missing,omitempty"` // asked for and not enforced, with the reason
	// Privileges are whose process it was and what it might: "user 1000, no capabilities, no new
	// privileges".
	Privileges string `json:"privileges,omitempty"`

	// of the home of telemetry; none: the load's last
	TelemetryCores []int `json:"telemetryCores,omitempty"`
	// BackingCores are those of what the target leans on, such as a database, outside of its
	// limits; none: within them, or there is nothing.
	BackingCores []int `json:"backingCores,omitempty"`
}

// Artifact is what the build made.
type Artifact struct {
	SHA256    string `json:"sha256"`
	SizeBytes int64  `json:"sizeBytes"`
	BuildHash string `json:"buildHash"` // of sources and tool versions: the cache's key
	// Image is the container's image that ran, by name and the engine's identifier; empty: none.
	Image string `json:"image,omitempty"`
	// ImageBytes is the size of its container's image, where one was built; 0: unknown.
	ImageBytes int64 `json:"imageBytes,omitempty"`
	// NoCopy is why the target of a start did not work in a fresh copy of its folder: one of the
	// NoCopy names. Empty: it worked in one, or it was in no start.
	NoCopy       string `json:"noCopy,omitempty"`
	NoCopyDetail string `json:"noCopyDetail,omitempty"` // such as the error of the system
}

// Reasons for which a target of a start works in the folder that was built.
const (
	NoCopyContainer = "container" // it works in its image
	NoCopyAttached  = "attached"  // it runs already
	NoCopyGiven     = "given"     // nothing was built: the command may need what is beside it
	NoCopyLarge     = "large"     // beyond the bounds of a copy
	NoCopyFailed    = "failed"    // such as a full disk
)

// Start is how long the service took to come up, from the exec of its program.
type Start struct {
	ListenNs        int64 `json:"listenNs"`        // until its port accepted a connection
	ReadyNs         int64 `json:"readyNs"`         // until its readiness path answered 200
	FirstResponseNs int64 `json:"firstResponseNs"` // the first request of the contract, alone
}

// Started is a process of a target that is a system.
type Started struct {
	Name    string   `json:"name"`
	Args    []string `json:"args"`
	ReadyNs int64    `json:"readyNs"` // from its own exec until it was ready
}

// Warmup is the load before the first window, closed, never part of a result.
type Warmup struct {
	DurationNs int64 `json:"durationNs"`
	Requests   int64 `json:"requests"`
	Steady     bool  `json:"steady"`             // whether it reached a steady state
	SteadyAtNs int64 `json:"steadyAtNs"`         // when that began; 0 also when it did not
	RatePerS   Rates `json:"ratePerS,omitempty"` // requests/s, a value per interval
	IntervalNs int64 `json:"intervalNs"`

	// What stats.SteadyState says of warm-up and first closed window together.
	Kind     string  `json:"kind,omitempty"`     // one of stats.Kinds
	PeakAtNs int64   `json:"peakAtNs,omitempty"` // until the first interval at the steady level
	CostNs   int64   `json:"costNs,omitempty"`   // steady time that serves what was lost
	Levels   []Level `json:"levels,omitempty"`

	Connections int `json:"connections,omitempty"` // of its load
	// CompilersIdleAtNs is from when on compilers had hardly anything to do; -1: they had; 0: no
	// thread's name tells.
	CompilersIdleAtNs int64 `json:"compilersIdleAtNs,omitempty"`
	// Cores are more than the service's own, which it had until CoresReducedAtNs, with what was
	// then seen to be in force; none: it had no others. Then Kind and Levels are of what came
	// after.
	Cores            []int   `json:"cores,omitempty"`
	InForce          []Limit `json:"inForce,omitempty"`
	CoresReducedAtNs int64   `json:"coresReducedAtNs,omitempty"`
	// PrioritizedThreads is how many threads compiled and went before others until its end; then it
	// took less time than users will see.
	PrioritizedThreads int `json:"prioritizedThreads,omitempty"`
	// ReconnectedAtNs is when its connections were last closed and reopened; 0: they were not.
	ReconnectedAtNs int64 `json:"reconnectedAtNs,omitempty"`
}

// Level is a stretch of a series that keeps one mean.
type Level struct {
	FromNs   int64   `json:"fromNs"`
	ToNs     int64   `json:"toNs"`
	MeanPerS float64 `json:"meanPerS"`
}

// Rates is a series of requests per second at equal intervals.
type Rates []float64

// Load models.
const (
	Closed = "closed" // N connections, the next request when the last was answered
	Open   = "open"   // arrivals on a schedule, whatever the answers do
	// Capacity is a search of open steps, of which the record has the one that decided.
	Capacity = "capacity"
)

// Load is one load of the trial: its model, what was offered, what came back.
type Load struct {
	Name string `json:"name"` // from the suite, e.g. "peak"
	// foreign, with its version: "wrk 4.1.0"
	Driver   string `json:"driver,omitempty"`
	Protocol string `json:"protocol,omitempty"` // empty: HTTP/1.1 without TLS
	// what was negotiated: version, suite, by whom
	TLS   string `json:"tls,omitempty"`
	Model string `json:"model"` // Closed or Open
	// "poisson", "constant" or "replay"
	Arrivals string `json:"arrivals,omitempty"`
	// of the rate over time, where it changes
	Shape string `json:"shape,omitempty"`
	Users string `json:"users,omitempty"` // closed: virtual users over time
	// closed: their pause between requests
	Think string `json:"think,omitempty"`
	// answers after which a connection is renewed
	Churn int `json:"churn,omitempty"`
	// requests at once on one connection
	Streams     int `json:"streams,omitempty"`
	Connections int `json:"connections"` // that it begins with
	// open: opened beyond those, as needed
	ConnectionsAdded int     `json:"connectionsAdded,omitempty"`
	Threads          int     `json:"threads"`
	RatePerS         float64 `json:"ratePerS,omitempty"` // open: asked for, the window's mean
	RateOf           string  `json:"rateOf,omitempty"`   // as the suite has it, e.g. "50% of peak"
	RateBase         string  `json:"rateBase,omitempty"` // the load that the rate is a share of
	Seed             uint64  `json:"seed"`
	TraceHash        string  `json:"traceHash,omitempty"` // open: of the schedule itself

	// Requests are the turns after which the load was to end; 0: it ended with its window.
	Requests int64 `json:"requests,omitempty"`

	WindowNs  int64 `json:"windowNs"`
	LeadInNs  int64 `json:"leadInNs"`  // offered before the window, not counted
	DrainNs   int64 `json:"drainNs"`   // waited after it for answers
	Scheduled int64 `json:"scheduled"` // arrivals due in the window
	Sent      int64 `json:"sent"`      // of them, sent before the window closed
	Done      int64 `json:"done"`      // answers that ended inside the window, good ones
	Answered  int64 `json:"answered"`  // of those scheduled, answered well by the end of the drain
	Censored  int64 `json:"censored"`  // of those scheduled, no answer by the end of the drain
	BytesIn   int64 `json:"bytesIn"`
	BytesOut  int64 `json:"bytesOut"`

	ThroughputPerS float64 `json:"throughputPerS"` // Done / window
	Errors         Errors  `json:"errors"`
	Reconnects     int64   `json:"reconnects"`
	// sent again: the service never took them
	Retried int64 `json:"retried,omitempty"`
	// time integral over the window
	InFlightMean float64 `json:"inFlightMean"`
	// of them, those due before the window
	CarriedInMean  float64 `json:"carriedInMean"`
	CarriedOutMean float64 `json:"carriedOutMean"` // likewise, answered after it
	// open: slope of scheduled - done, per second
	BacklogPerS float64 `json:"backlogPerS"`
	// generator against a null server; 0 unknown
	CeilingPerS  float64 `json:"ceilingPerS"`
	ResponseTime Dist    `json:"responseTime"` // done - scheduled
	ServiceTime  Dist    `json:"serviceTime"`  // done - sent
	FirstByte    Dist    `json:"firstByte"`    // first byte - sent
	Lag          Dist    `json:"lag"`          // sent - scheduled
	// of it, the part after a connection was free
	OwnLag Dist `json:"ownLag"`
	// arrivals that found every connection busy
	Waited int64 `json:"waited"`
	// of failed requests, timeouts at their bound
	ErrorTime Dist `json:"errorTime"`
	// TCP handshake, and TLS's where there is one
	ConnectTime Dist `json:"connectTime"`
	TLSTime     Dist `json:"tlsTime,omitzero"` // TLS handshake alone
	// flows: from due to the last answer
	FlowTime Dist `json:"flowTime,omitzero"`
	// of scenarios with several requests
	Routes []Route `json:"routes,omitempty"`
	// open: whether arrivals came as they should
	ArrivalProcess ArrivalProcess `json:"arrivalProcess,omitzero"`
	// of answers: how much one tells of the next
	Autocorrelation Autocorrelation `json:"autocorrelation,omitzero"`
	Series          Series          `json:"series"`    // per interval of the window
	Generator       Gen             `json:"generator"` // what offering it cost
	Service         Usage           `json:"service"`   // what answering it cost
	// what else happened meanwhile
	Host Host `json:"host"`

	// PunctualTime is what response times were at least had every request left in time: each less
	// the most that own lag can have added. Of an open load without flows, of one thread; of
	// others nobody knows.
	PunctualTime Dist `json:"punctualTime,omitzero"`

	// TLSResumed is how many of the handshakes in TLSTime took up the session of one before.
	TLSResumed int64 `json:"tlsResumed,omitempty"`

	// Unix time of the window's opening
	WindowOpenedUnixNs int64 `json:"windowOpenedUnixNs,omitempty"`
	// likewise, CLOCK_MONOTONIC
	WindowOpenedMonotonicNs int64 `json:"windowOpenedMonotonicNs,omitempty"`
	// of the requests, that carry a trace id
	TraceShare float64 `json:"traceShare,omitempty"`
	// some of them, slowest first
	Traced    []Traced         `json:"traced,omitempty"`
	Telemetry *WindowTelemetry `json:"windowTelemetry,omitempty"`
	GC        *GC              `json:"gc,omitempty"`

	// Slices are what the target did under this load in slices, interleaved with those of others;
	// nil: the load was offered in a window alone only. Ratios between targets come from them.
	Slices *Sliced `json:"slices,omitempty"`
	// Stalls are the machine's in the window of an open load, and StallFree its percentiles without
	// them; nil: not recorded.
	Stalls    *Stalls     `json:"stalls,omitempty"`
	StallFree []StallFree `json:"stallFree,omitempty"`

	Search *Search `json:"search,omitempty"` // that this load was the deciding step of

	Generators []Generator `json:"generators,omitempty"` // where several offered it; else none

	// of each counter that requests are held by
	BackendCalls []BackendCalls `json:"backendCalls,omitempty"`
}

// Search is one for the highest open rate that keeps objectives. Without a Reason it has found it.
type Search struct {
	SLO       string       `json:"slo"`
	RatePerS  float64      `json:"ratePerS,omitempty"` // the rate at which half of the steps hold
	LoPerS    float64      `json:"loPerS,omitempty"`   // its interval, of this trial alone
	HiPerS    float64      `json:"hiPerS,omitempty"`   //
	MetPerS   float64      `json:"metPerS,omitempty"`  // the highest that met the objectives once
	Reason    string       `json:"reason,omitempty"`   // why it ended before there was a rate
	Warnings  []string     `json:"warnings,omitempty"`
	BudgetNs  int64        `json:"budgetNs"`
	ElapsedNs int64        `json:"elapsedNs"`
	Steps     []SearchStep `json:"steps"`
}

// SearchStep is one open step, in the order in which they were offered.
type SearchStep struct {
	Phase    string  `json:"phase"` // of internal/generator/capacity
	RatePerS float64 `json:"ratePerS"`
	WindowNs int64   `json:"windowNs"`
	P99Ns    int64   `json:"p99Ns,omitempty"`
	Outcome  string  `json:"outcome"` // met, missed or invalid
	Reason   string  `json:"reason,omitempty"`
}

// Kind is the load's model, as suites and tables have it: the model of a search, not of its steps.
func (l *Load) Kind() string {
	if l.Search != nil {
		return Capacity
	}
	return l.Model
}

// Roles of trials beside the comparison.
const (
	Pilot    = "pilot"    // finds the rate that all variants of a target are then offered shares of
	Observed = "observed" // runs with agent, traces and profiler, to explain the numbers
)

// Route is one kind of request of a mix, or one step of a flow.
type Route struct {
	Name         string `json:"name"`
	Sent         int64  `json:"sent"`     // due in the window and sent
	Answered     int64  `json:"answered"` // of them, answered well by the end of the drain
	Failed       int64  `json:"failed"`
	ResponseTime Dist   `json:"responseTime"`
	ServiceTime  Dist   `json:"serviceTime"`
}

// ArrivalProcess says how the requests really left, from a contiguous sample of their sending
// times.
type ArrivalProcess struct {
	Samples int64 `json:"samples"`
	// Anderson-Darling's A² of the gaps above 50 µs against the exponential distribution (Poisson),
	// corrected for the estimated mean (Stephens 1974); the 1 % point is 1.957.
	AndersonDarling float64 `json:"andersonDarling,omitempty"`
	GapDeviationNs  int64   `json:"gapDeviationNs,omitempty"` // p99 of |gap - due gap|
	// Variance by mean of the numbers of requests in bins: 1 for Poisson, 0 for equal gaps.
	Dispersion1ms   float64 `json:"dispersion1ms"`
	Dispersion10ms  float64 `json:"dispersion10ms"`
	Dispersion100ms float64 `json:"dispersion100ms"`
}

// Autocorrelation is that of response times in the order of their sending, from a contiguous
// sample.
type Autocorrelation struct {
	Samples int64   `json:"samples"`
	Lag1    float64 `json:"lag1"` // of ranks (Spearman), neighbour to neighbour
	// share of as many independent ones that p99 rests on
	EffectiveShare float64 `json:"effectiveShare"`
}

// noisyShare is how small the share of independent answers must be to count: a larger one may be
// chance, and then all answers do (docs/method.md, "Independent responses").
const noisyShare = 0.5

// Worth is the share of as many independent answers that a load's answers are worth together; 1
// where that is as good as all. known is false where nothing was found out, and then 1 is an
// assumption.
func (m Autocorrelation) Worth() (share float64, known bool) {
	if m.EffectiveShare > 0 && m.EffectiveShare < noisyShare {
		return m.EffectiveShare, true
	}
	return 1, m.EffectiveShare > 0
}

// Dist is a distribution of durations. The histogram is the truth, the fields a convenience.
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

// Series is columnar: one value per interval in each column.
type Series struct {
	IntervalNs int64   `json:"intervalNs"`
	Scheduled  []int64 `json:"scheduled,omitempty"`
	Sent       []int64 `json:"sent,omitempty"`
	Done       []int64 `json:"done,omitempty"`
	Failed     []int64 `json:"failed,omitempty"`
	P50Ns      []int64 `json:"p50Ns,omitempty"` // of response time, by when the answer came
	P99Ns      []int64 `json:"p99Ns,omitempty"`
	MaxNs      []int64 `json:"maxNs,omitempty"`
}

// Gen is the generator's own cost and condition in the window.
type Gen struct {
	Engine          string  `json:"engine"`
	EngineReason    string  `json:"engineReason"`
	Pacing          string  `json:"pacing"`                // how it waits for the next arrival
	SpinNs          int64   `json:"spinNs,omitempty"`      // of CPUNs, polling before deadlines
	Wakeup          Dist    `json:"wakeup,omitzero"`       // lateness of its timer, before the load
	Iterations      int64   `json:"iterations,omitempty"`  // of its loop in the window
	BatchMax        int64   `json:"batchMax,omitempty"`    // most answers taken in one turn
	StallMaxNs      int64   `json:"stallMaxNs,omitempty"`  // longest that its loop stood still
	MemoryBytes     int64   `json:"memoryBytes,omitempty"` // resident, of the whole process
	CPUNs           int64   `json:"cpuNs"`                 // user and system of the load threads
	CPUPerRequestNs float64 `json:"cpuPerRequestNs"`
	CPUShare        float64 `json:"cpuShare"`   // of its cores, the busiest thread
	RunDelayNs      int64   `json:"runDelayNs"` // runnable but not running, schedstat
	SwitchesForced  int64   `json:"switchesForced"`
	Priority        string  `json:"priority"` // scheduling policy of the load threads

	DatagramsLost int64 `json:"datagramsLost,omitempty"` // for want of room in a socket of UDP
}

// Usage is the service's consumption in the window: all its processes together.
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
	PSSEndBytes            int64   `json:"pssEndBytes"` // 0 when the kernel does not say
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
	Roles                  *Roles  `json:"roles,omitempty"` // nil: no thread's name tells one
	Parts                  []Part  `json:"parts,omitempty"` // of a system, by process
}

// Roles are the parts of Usage.CPUNs that threads used which do not serve, by their names: lower
// bounds, since what a thread did between its last sample and its end is not known.
type Roles struct {
	CompilerNs     int64 `json:"compilerNs"`
	CompilerWaitNs int64 `json:"compilerWaitNs"` // no processor time: they waited for a core
	GCNs           int64 `json:"gcNs"`
	CompilerOrGCNs int64 `json:"compilerOrGCNs,omitempty"` // of V8's workers, which do both
}

// Part is what one process of a system, with all that it forked, used of the whole.
type Part struct {
	Name     string `json:"name"`
	CPUNs    int64  `json:"cpuNs"`    // -1 unknown, as when it ended meanwhile
	RSSBytes int64  `json:"rssBytes"` // at the window's end
	Threads  int    `json:"threads"`  // likewise
}

// Host is what the machine did in the window.
type Host struct {
	StealShare     float64 `json:"stealShare"`     // of all cores' time, taken by the hypervisor
	OtherCPUShare  float64 `json:"otherCPUShare"`  // likewise, by processes not of the trial
	PressureCPU    float64 `json:"pressureCPU"`    // PSI some, share of the window; -1 unknown
	PressureMemory float64 `json:"pressureMemory"` // likewise
	PressureIO     float64 `json:"pressureIO"`     // likewise
	// EnergyJ is what all processors of the machine took, in joules, by the hardware's counters; 0:
	// there are none.
	EnergyJ float64 `json:"energyJ,omitempty"`
}

// Cost is what the lab's own watching took over the whole trial.
type Cost struct {
	Samples  int64   `json:"samples"`
	PeriodNs int64   `json:"periodNs"`
	CPUNs    int64   `json:"cpuNs"`
	CPUShare float64 `json:"cpuShare"` // of one core
}

// Provenance is all that is needed to trust and repeat the trial.
type Provenance struct {
	Prony     string   `json:"prony"`  // version of this program
	Commit    string   `json:"commit"` // of the checkout that the services came from
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
	Governor     string            `json:"governor"` // "none" when the kernel offers none
	Cgroup       string            `json:"cgroup"`   // "v1", "v2", "none"
	Hypervisor   bool              `json:"hypervisor"`
	ServiceArgs  []string          `json:"serviceArgs"`          // the command line of the service
	VariantEnv   []string          `json:"variantEnv,omitempty"` // NAME=value, of the variant
	Agents       []Agent           `json:"agents,omitempty"`
}

// Verdict is the judgement on the measurement, not on the service.
type Verdict struct {
	Grade    string    `json:"grade"` // VALID, SUSPECT or INVALID
	Findings []Finding `json:"findings,omitempty"`
	// Resolution is the share of a number below which nobody asked; 0: Resolution.
	Resolution float64 `json:"resolution,omitempty"`
}

// Resolution is the usual one: a difference of 3 % is what people look for.
const Resolution = 0.03

// Resolves is the resolution that holds.
func (v *Verdict) Resolves() float64 { return cmp.Or(v.Resolution, Resolution) }

// Grades, in order of trust.
const (
	Valid   = "VALID"
	Suspect = "SUSPECT"
	Invalid = "INVALID"
)
