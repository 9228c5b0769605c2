package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"prony.example/internal/base/files"
)

// Stalls are the times in which the machine did not run a core in use, within the open slices of a
// start or the window of a load. docs/stalls.md describes how they are recorded.
type Stalls struct {
	Way        string `json:"way,omitempty"`        // what recorded them; empty: nothing could
	Missing    string `json:"missing,omitempty"`    // why nothing could
	ShortestNs int64  `json:"shortestNs,omitempty"` // shortest stall that is always recorded
	TimeNs     int64  `json:"timeNs"`               // that was watched
	StalledNs  int64  `json:"stalledNs"`            // of it, in which a core was stalled, at most
	Count      int    `json:"count"`
	LostTicks  int    `json:"lostTicks,omitempty"` // of the clock; their time counts as stalled
	// Unseen estimates the stalls that were too short to be recorded; nil: nothing recorded stalls.
	Unseen *Unseen `json:"unseen,omitempty"`
	// Causes are the reasons, the longest first.
	Causes []StallCause `json:"causes,omitempty"`
}

// Unseen estimates how much time stalls took that were too short to be recorded (stats.Unseen). The
// estimate of one window is mostly chance, and may be negative. Analyses sum it over windows.
type Unseen struct {
	Ns     int64 `json:"ns"`
	ErrNs  int64 `json:"errNs"`  // standard error
	TimeNs int64 `json:"timeNs"` // that was watched
}

// WithoutStalls is the throughput of a closed load in the time in which both the service's cores
// and the load's ran.
type WithoutStalls struct {
	PerS float64 `json:"perS"` // if it is unknown, only to show
	// LowestPerS and HighestPerS are the ends of its 95 % interval.
	LowestPerS  float64 `json:"lowestPerS"`
	HighestPerS float64 `json:"highestPerS"`
	RanShare    float64 `json:"ranShare"`          // of the window, in which all these cores ran
	Unknown     string  `json:"unknown,omitempty"` // one of stats' reasons; empty: it is known
}

// StallCause is why a core did not run what it should.
type StallCause struct {
	Cause string `json:"cause"`          // hypervisor, process, kernel, unknown or unrecorded
	Name  string `json:"name,omitempty"` // of the process
	Count int    `json:"count"`
	Ns    int64  `json:"ns"`
}

// StallFree is a quantile of response times without what stalls did to them: arrivals that were due
// near a stall do not count, whatever their response times are.
type StallFree struct {
	Quantile   float64 `json:"quantile"`   // 0.99 is p99
	Ns         int64   `json:"ns"`         // if it is unknown, only to show
	RawNs      int64   `json:"rawNs"`      // of all arrivals
	PunctualNs int64   `json:"punctualNs"` // the quantile without the load's own lateness
	KeptShare  float64 `json:"keptShare"`  // of the arrivals
	// IgnoredStalls is how many stalls left no arrivals out, because too few would have remained.
	IgnoredStalls int `json:"ignored,omitempty"`
	// LowestNs is the least that the quantile may be without stalls that left no arrivals out.
	LowestNs int64 `json:"lowestNs"`
	// LowerFrom has, for each of stats.LowerSteps, the share of the time from which on unrecorded
	// stalls can have made so much of a difference; none if there are too few arrivals.
	LowerFrom []float64 `json:"lowerFrom,omitempty"`
	// HalfNs and DoubleNs are the quantile with half of the time around stalls, and with twice it.
	HalfNs   int64  `json:"halfNs"`
	DoubleNs int64  `json:"doubleNs"`
	Unknown  string `json:"unknown,omitempty"` // one of stats' reasons; empty: it is known
}

// TooHigh bounds the share of the value by which it may be too high because of stalls that were too
// short to be recorded.
func (x *StallFree) TooHigh() float64 {
	if x.Ns <= 0 {
		return 0
	}
	return min(max(1-float64(x.LowestNs)/float64(x.Ns), 0), 1)
}

// StallFreeOf returns the entry of a quantile, or nil if its value is unknown for another reason
// than those that are accepted.
func StallFreeOf(all []StallFree, quantile float64, accepted ...string) *StallFree {
	for i := range all {
		if math.Abs(all[i].Quantile-quantile) < 1e-9 &&
			(all[i].Unknown == "" || slices.Contains(accepted, all[i].Unknown)) {
			return &all[i]
		}
	}
	return nil
}

// Stall is a line of a file of stalls. Times are by clock.Mono, as those of slices.
type Stall struct {
	BeginNs int64 `json:"beginNs"` // it began at this time or later
	EndNs   int64 `json:"endNs"`   // and ended at this time or earlier
	LeastNs int64 `json:"leastNs"` // how long it was at least
	// UnseenNs is its part in an estimate of the time of stalls too short to be recorded.
	UnseenNs int64 `json:"unseenNs,omitempty"`
	// MeanNs estimates the time of this stall and of similar ones too short to be recorded.
	MeanNs int64  `json:"meanNs,omitempty"`
	Core   int    `json:"core"`
	Cause  string `json:"cause"`
	Name   string `json:"name,omitempty"`
}

// StallsFile is the file of a start's stalls, relative to the run's folder.
func StallsFile(start string) string { return filepath.Join(SlicesDir, start+".stalls.ndjson") }

// WriteStalls writes a file of stalls whole, or not at all.
func WriteStalls(dir, file string, all []Stall) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	var errs []error
	for i := range all {
		errs = append(errs, e.Encode(&all[i]))
	}
	errs = append(errs, files.Put(filepath.Join(dir, file), text.Bytes()))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("write stalls: %w", err)
	}
	return nil
}
