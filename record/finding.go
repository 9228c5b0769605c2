package record

import "encoding/json"

// Finding is one rule that did not hold, as values; package internal/analysis/wording puts it into
// words. Where its grade is VALID it moves no number by what counts: alone and with the others it
// stays below the number's own uncertainty, or it is only the cause of what others found.
type Finding struct {
	Rule  string `json:"rule"`
	Case  string `json:"case,omitempty"` // in which of its ways the rule does not hold
	Load  string `json:"load,omitempty"` // which of the trial's loads; empty: the trial
	Grade string `json:"grade"`          // what it makes of the trial
	// Phase is the part of a load that the finding is about, where a start has slices: one of the
	// Phase names; empty: both, or there were no slices.
	Phase string `json:"phase,omitempty"`
	// Value is what was found, in Unit, and Limit what it was held to. Side is the side of the
	// limit on which a value is wrong, Above or Below; empty: it was held to no number. A number
	// that is absent is 0.
	Value float64 `json:"value,omitempty"`
	Limit float64 `json:"limit,omitempty"`
	// one of the units; empty: the finding has no number
	Unit  string `json:"unit,omitempty"`
	Side  string `json:"side,omitempty"`
	Facts Facts  `json:"facts,omitzero"`
	// what it can have moved; empty: the effect is unknown
	PossibleBias []Bias `json:"possibleBias,omitempty"`
	// Remark: no doubt, and what the number's reader should know of the service all the same.
	Note bool `json:"note,omitempty"`
	// Text is the finding in words, in documents for readers and in records of version 1. Newer
	// records have none.
	Text *Words `json:"text,omitempty"`
}

// Phases of a load in a start with slices.
const (
	PhaseSlices = "slices" // in turns with other targets; ratios come from them
	PhaseWindow = "window" // alone; levels come from it
)

// Sides of a limit.
const (
	Above = "above"
	Below = "below"
)

// Units of a finding's numbers.
const (
	UnitShare = "share" // 0 to 1, in general
	UnitNs    = "ns"
	UnitBytes = "bytes"
	UnitPerS  = "1/s"
	UnitCount = "count" // of whatever the rule counts, or a mean of such counts
)

// Facts are what a rule found beside its value. Each rule and case has some of them; the rest are
// absent.
type Facts struct {
	Count int64 `json:"count,omitempty"` // of requests, answers or datagrams that it affected
	Total int64 `json:"total,omitempty"` // of so many
	// Repeated is how many starts were run because others lost a target.
	Repeated int64 `json:"repeated,omitempty"`
	// Closed is how many of Count failed since the service had closed their connections.
	Closed int64 `json:"closed,omitempty"`
	AtNs   int64 `json:"atNs,omitempty"`  // when, from the window's opening, or how long before
	MaxNs  int64 `json:"maxNs,omitempty"` // the most, where the value is a percentile
	// TimesNs are several times, such as percentiles in their order, or those of a window's halves.
	TimesNs  []int64 `json:"timesNs,omitempty"`
	MeanNs   float64 `json:"meanNs,omitempty"`
	DriftNs  int64   `json:"driftNs,omitempty"`  // of a clock
	Expected float64 `json:"expected,omitempty"` // what the other side of an equation gives
	Observed float64 `json:"observed,omitempty"` // what its one side was
	// UnusedShare is the share of the service's processor time that was left unused.
	UnusedShare float64 `json:"unusedShare,omitempty"`
	// WaitingShare is for which share of the time who ran for Value waited for a core.
	WaitingShare float64 `json:"waitingShare,omitempty"`
	Others       float64 `json:"others,omitempty"` // what others asked, as a share or a second
	BinNs        int64   `json:"binNs,omitempty"`  // in which arrivals were counted
	Connections  int     `json:"connections,omitempty"`
	Core         int     `json:"core,omitempty"`
	Generator    int     `json:"generator,omitempty"` // of several, its index
	// Name is what the finding is about: a generator, a tool, a counter or a load.
	Name    string `json:"name,omitempty"`
	Subject string `json:"subject,omitempty"` // what a counter counts, a metric, a way to stop
	Step    string `json:"step,omitempty"`    // of the trial, that failed
	// Messages are words of others: an error, a service's answer, a node's account.
	Messages []string      `json:"messages,omitempty"`
	Hint     string        `json:"hint,omitempty"`   // that came with an error
	Limits   []Limit       `json:"limits,omitempty"` // that are not in force
	Parts    []PartFinding `json:"parts,omitempty"`  // of a load from many generators
}

// PartFinding is what is wrong with one of several generators: a fault, or the finding of a rule on
// its part of the load.
type PartFinding struct {
	Generator int     `json:"generator"`
	Name      string  `json:"name"`
	Fault     string  `json:"fault,omitempty"`
	Rule      string  `json:"rule,omitempty"`
	Case      string  `json:"case,omitempty"`
	Value     float64 `json:"value,omitempty"`
	Limit     float64 `json:"limit,omitempty"`
	Unit      string  `json:"unit,omitempty"`
	Side      string  `json:"side,omitempty"`
	Count     int64   `json:"count,omitempty"`
	Total     int64   `json:"total,omitempty"`
	MaxNs     int64   `json:"maxNs,omitempty"`
}

// Finding is the rule's.
func (p PartFinding) Finding() Finding {
	return Finding{Rule: p.Rule, Case: p.Case, Value: p.Value, Limit: p.Limit, Unit: p.Unit,
		Side: p.Side, Facts: Facts{Count: p.Count, Total: p.Total, MaxNs: p.MaxNs}}
}

// Words are a finding in words.
type Words struct {
	Observed string `json:"observed"`
	Limit    string `json:"limit,omitempty"` // empty where Moves says what counts
	Hint     string `json:"hint"`
	// Amount is the value alone, as Observed has it; empty: it has none. Quantity says that Limit
	// is a number with its unit and nothing more.
	Amount   string `json:"amount,omitempty"`
	Quantity bool   `json:"quantity,omitempty"`
}

// Bias is how far a finding can have moved a number, up or down.
type Bias struct {
	Metric string  `json:"metric"` // a metric's name: "throughput", "p99"
	Share  float64 `json:"share"`  // at most, as a share of the number
	// StallFree is the bound for the metric without the machine's stalls; nil: Share.
	StallFree *float64 `json:"stallFree,omitempty"`
}

// Bound returns the bound for a metric: without the machine's stalls, or of all arrivals.
func (b Bias) Bound(stallFree bool) float64 {
	if stallFree && b.StallFree != nil {
		return *b.StallFree
	}
	return b.Share
}

// UnmarshalJSON reads a finding, or one of version 1, which was in words.
func (f *Finding) UnmarshalJSON(data []byte) error {
	var old struct {
		Observed *string `json:"observed"`
	}
	if err := json.Unmarshal(data, &old); err != nil {
		return err
	}
	if old.Observed == nil {
		type plain Finding
		return json.Unmarshal(data, (*plain)(f))
	}
	var item finding1
	if err := json.Unmarshal(data, &item); err != nil {
		return err
	}
	*f = item.finding()
	return nil
}
