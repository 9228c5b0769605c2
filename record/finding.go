package record

import (
	"cmp"
	"encoding/json"
)

// Finding is a violated rule, as values; package internal/analysis/wording formats it. A finding
// with grade VALID moves no number by a relevant amount: alone and with all others its effect stays
// below the number's own uncertainty, or it only explains other findings.
type Finding struct {
	Rule  string `json:"rule"`
	Case  string `json:"case,omitempty"` // variant of the rule
	Load  string `json:"load,omitempty"` // the affected load; empty: the trial
	Grade string `json:"grade"`          // the resulting grade of the trial
	// Phase is the affected phase of the load, if the start has slices: one of the Phase names;
	// empty: both, or there were no slices.
	Phase string `json:"phase,omitempty"`
	// Value is the measured value, in Unit, and Limit the rule's limit. Side is the side of the
	// limit on which values violate the rule, Above or Below; empty: there is no limit. A missing
	// number is 0.
	Value float64 `json:"value,omitempty"`
	Limit float64 `json:"limit,omitempty"`
	// one of the units; empty: the finding has no number
	Unit  string `json:"unit,omitempty"`
	Side  string `json:"side,omitempty"`
	Facts Facts  `json:"facts,omitzero"`
	// metrics that it can have changed; empty: the effect is unknown
	PossibleBias []Bias `json:"possibleBias,omitempty"`
	// Note marks information about the service that does not reduce trust in the number.
	Note bool `json:"note,omitempty"`
	// Text is the finding in words, in reports and in records of version 1. Newer records have
	// none.
	Text *Words `json:"text,omitempty"`
}

// Phases of a load in a start with slices.
const (
	PhaseSlices = "slices" // in turns with other targets; source of ratios
	PhaseWindow = "window" // alone; source of levels
)

// Sides of a limit.
const (
	Above = "above"
	Below = "below"
)

// Units of a finding's numbers.
const (
	UnitShare = "share" // usually 0 to 1
	UnitNs    = "ns"
	UnitBytes = "bytes"
	UnitPerS  = "1/s"
	UnitCount = "count" // a count, or a mean of counts
)

// Facts are values of a rule besides its main value. Each rule and case has some of them; the
// others are absent.
type Facts struct {
	Count int64 `json:"count,omitempty"` // affected requests, responses or datagrams
	Total int64 `json:"total,omitempty"` // number of which Count is a part
	// Repeated is the number of starts that were run because others lost a target.
	Repeated int64 `json:"repeated,omitempty"`
	// Closed is how many of Count failed because the service had closed their connections.
	Closed int64 `json:"closed,omitempty"`
	AtNs   int64 `json:"atNs,omitempty"`  // moment from the window's opening, or a lead time
	MaxNs  int64 `json:"maxNs,omitempty"` // the maximum, if the value is a percentile
	// TimesNs are several times, for example percentiles in order, or times of a window's halves.
	TimesNs  []int64 `json:"timesNs,omitempty"`
	MeanNs   float64 `json:"meanNs,omitempty"`
	DriftNs  int64   `json:"driftNs,omitempty"`  // of a clock
	Expected float64 `json:"expected,omitempty"` // the other side of an equation
	Observed float64 `json:"observed,omitempty"` // one side of an equation
	// UnusedShare is the share of the service's available CPU time that was unused.
	UnusedShare float64 `json:"unusedShare,omitempty"`
	// WaitingShare is the share of time in which the threads behind Value waited for a core.
	WaitingShare float64 `json:"waitingShare,omitempty"`
	Others       float64 `json:"others,omitempty"` // use by others, as a share or per second
	BinNs        int64   `json:"binNs,omitempty"`  // bin width for arrivals
	Connections  int     `json:"connections,omitempty"`
	Core         int     `json:"core,omitempty"`
	Generator    int     `json:"generator,omitempty"` // index, if there are several
	// Name is the subject of the finding: a generator, a tool, a counter or a load.
	Name    string `json:"name,omitempty"`
	Subject string `json:"subject,omitempty"` // unit of a counter, a metric, or a way to freeze
	Step    string `json:"step,omitempty"`    // the failed step of the trial
	// Party is what caused the errors of Messages, as Errors.Party.
	Party string `json:"party,omitempty"`
	// Messages are texts from other programs: an error, a service's response, a node's report.
	Messages []string      `json:"messages,omitempty"`
	Hint     string        `json:"hint,omitempty"`   // advice that came with an error
	Limits   []Limit       `json:"limits,omitempty"` // limits that are not in force
	Parts    []PartFinding `json:"parts,omitempty"`  // of a load from many generators
}

// PartFinding is a problem of one of several generators: a fault, or the finding of a rule on its
// part of the load.
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

// Finding converts the part's finding to a Finding.
func (p PartFinding) Finding() Finding {
	return Finding{Rule: p.Rule, Case: p.Case, Value: p.Value, Limit: p.Limit, Unit: p.Unit,
		Side: p.Side, Facts: Facts{Count: p.Count, Total: p.Total, MaxNs: p.MaxNs}}
}

// Words are a finding in words.
type Words struct {
	Observed string `json:"observed"`
	Limit    string `json:"limit,omitempty"` // empty if PossibleBias decides
	Hint     string `json:"hint"`
	// Amount is only the value, as in Observed; empty: it has none. Quantity reports whether Limit
	// is only a number with its unit.
	Amount   string `json:"amount,omitempty"`
	Quantity bool   `json:"quantity,omitempty"`
}

// Bias bounds how far a finding can have moved a number, up or down.
type Bias struct {
	Metric string  `json:"metric"` // the metric's name: "throughput", "p99"
	Share  float64 `json:"share"`  // upper bound, as a share of the number
	// StallFree is the bound for the metric without the machine's stalls; nil: as Share.
	StallFree *float64 `json:"stallFree,omitempty"`
}

// Bound returns the bound for a metric, without the machine's stalls or over all arrivals.
func (b Bias) Bound(stallFree bool) float64 {
	if stallFree && b.StallFree != nil {
		return *b.StallFree
	}
	return b.Share
}

// UnmarshalJSON reads a finding, also of version 1, which was text.
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

// Verdict grades the measurement, not the service.
type Verdict struct {
	Grade    string    `json:"grade"` // VALID, SUSPECT or INVALID
	Findings []Finding `json:"findings,omitempty"`
	// Resolution is the relative difference below which differences do not matter; 0: the default.
	Resolution float64 `json:"resolution,omitempty"`
}

// Resolution is the default resolution: most users look for differences of 3 % or more.
const Resolution = 0.03

// Resolves returns the resolution in force.
func (v *Verdict) Resolves() float64 { return cmp.Or(v.Resolution, Resolution) }

// Grades, in order of trust.
const (
	Valid   = "VALID"
	Suspect = "SUSPECT"
	Invalid = "INVALID"
)
