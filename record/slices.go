package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"prony.example/internal/base/files"
)

// SlicesDir is the folder of a run that holds one file of slices for each start.
const SlicesDir = "slices"

// SlicesVersion is the version of the format of a file of slices.
const SlicesVersion = 1

// SideBySide describes the start that a trial is part of: all compared targets ran at the same
// time, and the load went to one of them at a time, for one slice after another.
type SideBySide struct {
	With     []string `json:"with,omitempty"` // the other trials of the start, in order of launch
	File     string   `json:"file,omitempty"` // its slices, relative to the run's folder
	Rounds   int      `json:"rounds"`         // each has one slice of every target
	LeadInNs int64    `json:"leadInNs"`       // lead-in of each slice, not counted
	WindowNs int64    `json:"windowNs"`       // shortest counted window; drawn up to twice that
	TurnNs   int64    `json:"turnNs"`         // time in which each connection is answered once
	// Repeats: the start was run because an earlier one of its scenario lost a target.
	Repeats bool `json:"repeats,omitempty"`
	// Stage is 1 for the first starts of a run that plans others by their scatter, and 2 for those
	// others; 0: the number of starts was fixed beforehand.
	Stage int `json:"stage,omitempty"`
	// Group is the start's group of targets, from 1, where memory did not allow all of them at
	// once; 0: there are no groups. Groups share the baseline.
	Group int `json:"group,omitempty"`
	// Planned is the number of starts that the first ones plan, themselves included; in stage 2.
	Planned int `json:"planned,omitempty"`
	// Open describes the rounds of open slices, which follow the closed ones; nil: there are none.
	Open *OpenSlices `json:"open,omitempty"`
	// Freeze is how this target was stopped while others were loaded: one of the Freeze names.
	Freeze string `json:"freeze,omitempty"`
	// Clock is where its processor time was read: ClockProcess; empty: unknown.
	Clock string `json:"clock,omitempty"`
}

// OpenSlices are rounds in which each target receives arrivals at the same rate, for its response
// times.
type OpenSlices struct {
	Rounds   int     `json:"rounds"`
	RatePerS float64 `json:"ratePerS"` // of Poisson or evenly spaced arrivals, as the load says
	LeadInNs int64   `json:"leadInNs"` // of each slice, not counted
	WindowNs int64   `json:"windowNs"` // shortest counted window; drawn up to twice that
	// Stalls are the machine's in these slices; nil: not recorded.
	Stalls *Stalls `json:"stalls,omitempty"`
}

// MeanNs is how long a slice is on average, without the time until its last answer.
func (o *OpenSlices) MeanNs() int64 { return o.LeadInNs + o.WindowNs*3/2 }

// MeanNs is how long a closed slice is on average: both the shift of its window's begin, over a
// turn, and its window's length are drawn.
func (s *SideBySide) MeanNs() int64 { return s.LeadInNs + s.TurnNs/2 + s.WindowNs*3/2 }

// StepPeer is the step of a failure of a trial that went well until another target of its start
// failed, which ended the start for all.
const StepPeer = "peer"

// Ways to stop an idle target.
const (
	FreezeCgroup  = "cgroup"  // the freezer of its control group or container
	FreezeSignals = "signals" // SIGSTOP and SIGCONT to each of its processes
	FreezeEngine  = "engine"  // its containers were paused by their engine
	FreezeOff     = "off"     // it ran on
)

// ClockProcess is where processor time is read within a slice: clock_gettime of each process, to a
// scheduler tick while it runs.
const ClockProcess = "process"

// Sliced is what a target did in all slices of a start under one load: sums over the counted
// windows. Ratios between targets of the start are ratios of these sums, so rare events count in
// full. A window begins and ends at the first completion after its moment.
type Sliced struct {
	Slices   int     `json:"slices"`
	RatePerS float64 `json:"ratePerS,omitempty"` // open: the same for all targets; 0: closed
	Requests int64   `json:"requests"`           // answered well within windows
	Failed   int64   `json:"failed"`             // lead-ins included
	TimeNs   int64   `json:"timeNs"`             // length of all windows
	CPUNs    int64   `json:"cpuNs"`              // of the target within its windows; -1 unknown
	// IdleCPUNs is the processor time that the target used in slices of others; -1 unknown.
	IdleCPUNs    int64 `json:"idleCPUNs"`
	IdleTimeNs   int64 `json:"idleTimeNs"` // length of those slices
	Reconnects   int64 `json:"reconnects,omitempty"`
	ResponseTime Dist  `json:"responseTime,omitzero"` // open: of all windows together
	// PunctualTime is what response times were at least had every request left in time.
	PunctualTime Dist `json:"punctualTime,omitzero"`
	// StallFree are the percentiles of open slices without the machine's stalls.
	StallFree []StallFree `json:"stallFree,omitempty"`
	// Unseen estimates the stalls in open slices that were too short to be recorded.
	Unseen *Unseen `json:"unseen,omitempty"`
}

// ThroughputPerS is the rate of good answers over all windows; 0 without any.
func (s *Sliced) ThroughputPerS() float64 {
	if s.TimeNs <= 0 {
		return 0
	}
	return float64(s.Requests) / (float64(s.TimeNs) / 1e9)
}

// CPUPerRequestNs is the target's processor time for each good answer; -1 where unknown.
func (s *Sliced) CPUPerRequestNs() float64 {
	if s.CPUNs < 0 || s.Requests <= 0 {
		return -1
	}
	return float64(s.CPUNs) / float64(s.Requests)
}

// Slice is one slice of one target, a line in a file of slices. Times are by CLOCK_MONOTONIC.
type Slice struct {
	Round  int  `json:"round"`          // from 1
	Place  int  `json:"place"`          // in the round, from 1
	Target int  `json:"target"`         // index into SlicesHead.Trials
	Open   bool `json:"open,omitempty"` // under the open load

	BeganNs  int64 `json:"beganNs"`          // of its lead-in
	OpenedNs int64 `json:"openedNs"`         // first completion after the window's moment
	ClosedNs int64 `json:"closedNs"`         // first completion after the window's end
	EndedNs  int64 `json:"endedNs"`          // its last answer came
	Requests int64 `json:"requests"`         // answered well after OpenedNs until ClosedNs
	Failed   int64 `json:"failed,omitempty"` // from BeganNs to EndedNs
	CPUNs    int64 `json:"cpuNs"`            // of its target, OpenedNs to ClosedNs; -1 unknown

	// IdleCPUNs is the processor time of each target, by index, between BeganNs and EndedNs; that
	// of the loaded one included.
	IdleCPUNs []int64 `json:"idleCPUNs,omitempty"`
	StealNs   int64   `json:"stealNs"`  // of all cores, between BeganNs and EndedNs
	OthersNs  int64   `json:"othersNs"` // processor time of neither targets nor load, likewise
}

// SlicesHead is the first line of a file of slices.
type SlicesHead struct {
	Version int      `json:"version"`
	Trials  []string `json:"trials"` // of the targets, in order of launch
	SideBySide
}

// SlicesFile is the file of a start's slices, relative to the run's folder.
func SlicesFile(start string) string { return filepath.Join(SlicesDir, start+".ndjson") }

// WriteSlices writes a start's file of slices whole, or not at all.
func WriteSlices(dir, file string, head SlicesHead, all []Slice) error {
	head.Version, head.File = SlicesVersion, ""
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	errs := []error{e.Encode(head)}
	for i := range all {
		errs = append(errs, e.Encode(&all[i]))
	}
	errs = append(errs, os.MkdirAll(filepath.Join(dir, SlicesDir), 0o755),
		files.Put(filepath.Join(dir, file), text.Bytes()))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("write slices: %w", err)
	}
	return nil
}

// ReadSlices reads a file of slices, whose name is relative to the run's folder.
func ReadSlices(dir, file string) (SlicesHead, []Slice, error) {
	var head SlicesHead
	if !filepath.IsLocal(file) {
		return head, nil, fmt.Errorf("read slices: %q is not a file of the run's folder", file)
	}
	f, err := os.Open(filepath.Join(dir, file))
	if err != nil {
		return head, nil, fmt.Errorf("read slices: %w", err)
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	if err := d.Decode(&head); err != nil {
		return head, nil, fmt.Errorf("read slices %s: %w", file, err)
	}
	if head.Version != SlicesVersion {
		return head, nil, fmt.Errorf("read slices %s: version %d, this program reads version %d",
			file, head.Version, SlicesVersion)
	}
	var all []Slice
	for {
		var s Slice
		err := d.Decode(&s)
		if errors.Is(err, io.EOF) {
			return head, all, nil
		}
		if err == nil && (s.Target < 0 || s.Target >= len(head.Trials)) {
			err = fmt.Errorf("target %d of %d", s.Target, len(head.Trials))
		}
		if err != nil {
			return head, nil, fmt.Errorf("read slices %s: line %d: %w", file, len(all)+2, err)
		}
		all = append(all, s)
	}
}
