package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"prony.example/internal/base/files"
	"prony.example/internal/base/jsontree"
)

// SlicesDir is the folder of a run with one slices file for each start.
const SlicesDir = "slices"

// SlicesVersion is the version of the format of slices files.
const SlicesVersion = 1

// SideBySide describes the start that a trial is part of: all compared targets ran at the same
// time, and the load went to one of them at a time, slice after slice.
type SideBySide struct {
	With     []string `json:"with,omitempty"` // the other trials of the start, in order of launch
	File     string   `json:"file,omitempty"` // slices file, in the run's folder
	Rounds   int      `json:"rounds"`         // each has one slice of every target
	LeadInNs int64    `json:"leadInNs"`       // lead-in of each slice, not counted
	WindowNs int64    `json:"windowNs"`       // shortest counted window; drawn up to twice that
	TurnNs   int64    `json:"turnNs"`         // time in which each connection gets one response
	// Repeats marks a start that was run because an earlier one of its scenario lost a target.
	Repeats bool `json:"repeats,omitempty"`
	// Stage is 1 for the first starts of a run that plans further ones by their scatter, and 2 for
	// the further ones; 0: the number of starts was fixed.
	Stage int `json:"stage,omitempty"`
	// Group is the start's group of targets, from 1, if memory did not suffice for all at once; 0:
	// there are no groups. All groups include the baseline.
	Group int `json:"group,omitempty"`
	// Planned is the number of starts that the first ones planned, including themselves; in stage
	// 2.
	Planned int `json:"planned,omitempty"`
	// Open describes the rounds of open slices, which follow the closed ones; nil: none.
	Open *OpenSlices `json:"open,omitempty"`
	// Freeze is how this target was stopped during slices of others: one of the Freeze names.
	Freeze string `json:"freeze,omitempty"`
	// Clock is the source of its CPU time: ClockGroup or ClockProcess; empty: unknown.
	Clock string `json:"clock,omitempty"`
}

// OpenSlices are rounds in which each target receives arrivals at the same rate, to measure
// response times.
type OpenSlices struct {
	Rounds   int     `json:"rounds"`
	RatePerS float64 `json:"ratePerS"` // of Poisson or evenly spaced arrivals, as the load says
	LeadInNs int64   `json:"leadInNs"` // of each slice, not counted
	WindowNs int64   `json:"windowNs"` // shortest counted window; drawn up to twice that
	// Disturbed is the number of Rounds in which the machine's stalls took more than 10 % of the
	// time. Response times without stalls leave them out, and as many rounds were added.
	Disturbed int `json:"disturbed,omitempty"`
	// Stalls are the machine's stalls in these slices; nil: not recorded.
	Stalls *Stalls `json:"stalls,omitempty"`
}

// MeanNs returns the mean duration of a slice, without the time until its last response.
func (o *OpenSlices) MeanNs() int64 { return o.LeadInNs + o.WindowNs*3/2 }

// MeanNs returns the mean duration of a closed slice. The beginning of the window, within a turn,
// and its length are random.
func (s *SideBySide) MeanNs() int64 { return s.LeadInNs + s.TurnNs/2 + s.WindowNs*3/2 }

// StepPeer is the failed step of a trial without a fault of its own, whose start ended because
// another target failed.
const StepPeer = "peer"

// Ways to stop an idle target.
const (
	FreezeCgroup  = "cgroup"  // the freezer of its control group or container
	FreezeSignals = "signals" // SIGSTOP and SIGCONT to each of its processes
	FreezeEngine  = "engine"  // its container engine paused its containers
	FreezeOff     = "off"     // it was not stopped
)

// Sources of CPU time within a slice. For a running process, their resolution is a scheduler tick.
const (
	ClockGroup   = "cgroup"  // the control group, which counts all processes that ran in it
	ClockProcess = "process" // clock_gettime of each process
)

// Sliced is the result of a target over all slices of a start under one load: sums over the counted
// windows. Ratios between targets of the start are ratios of these sums, so rare events have full
// weight. A window begins and ends at the first completion after its planned moment.
type Sliced struct {
	Slices   int     `json:"slices"`
	RatePerS float64 `json:"ratePerS,omitempty"` // open: equal for all targets; 0: closed
	Requests int64   `json:"requests"`           // good responses in windows
	Failed   int64   `json:"failed"`             // failed requests, including lead-ins
	TimeNs   int64   `json:"timeNs"`             // total length of windows
	CPUNs    int64   `json:"cpuNs"`              // of the target in its windows; -1: unknown
	// IdleCPUNs is the CPU time of the target in slices of others; -1: unknown.
	IdleCPUNs  int64 `json:"idleCPUNs"`
	IdleTimeNs int64 `json:"idleTimeNs"` // total length of those slices
	Reconnects int64 `json:"reconnects,omitempty"`
	// LoadCPUNs is the CPU time of the busiest load thread in windows, without polling; 0: unknown.
	LoadCPUNs int64 `json:"loadCPUNs,omitempty"`
	// StarvedNs bounds the part of LoadCPUNs in which the target may have had fewer requests than
	// cores; -1: unknown, as for open loads.
	StarvedNs    int64 `json:"starvedNs,omitempty"`
	ResponseTime Dist  `json:"responseTime,omitzero"` // open: over all windows
	// PunctualTime is a lower bound of response times without the generator's own delays.
	PunctualTime Dist `json:"punctualTime,omitzero"`
	// StallFree are percentiles of open slices without the machine's stalls.
	StallFree []StallFree `json:"stallFree,omitempty"`
	// Unseen estimates the stalls in open slices that were too short to be recorded.
	Unseen *Unseen `json:"unseen,omitempty"`
}

// ThroughputPerS returns the rate of good responses over all windows; 0 without windows.
func (s *Sliced) ThroughputPerS() float64 {
	if s.TimeNs <= 0 {
		return 0
	}
	return float64(s.Requests) / (float64(s.TimeNs) / 1e9)
}

// CPUPerRequestNs returns the target's CPU time per good response; -1: unknown.
func (s *Sliced) CPUPerRequestNs() float64 {
	if s.CPUNs < 0 || s.Requests <= 0 {
		return -1
	}
	return float64(s.CPUNs) / float64(s.Requests)
}

// IdleTarget is a target that used processor time in the window of another one of its start.
type IdleTarget struct {
	Target string `json:"target"` // as Target.Row
	Freeze string `json:"freeze"` // how it was stopped, one of the Freeze names
	CPUNs  int64  `json:"cpuNs"`
}

// Slice is one slice of one target, a line of a slices file. Times are by CLOCK_MONOTONIC.
type Slice struct {
	Round  int  `json:"round"`          // from 1
	Place  int  `json:"place"`          // in the round, from 1
	Target int  `json:"target"`         // index into SlicesHead.Trials
	Open   bool `json:"open,omitempty"` // part of the open load
	// Disturbed marks the slices of a round that OpenSlices.Disturbed counts.
	Disturbed bool `json:"disturbed,omitempty"`

	BeganNs  int64 `json:"beganNs"`          // start of the lead-in
	OpenedNs int64 `json:"openedNs"`         // first completion after the window's planned opening
	ClosedNs int64 `json:"closedNs"`         // first completion after the window's planned end
	EndedNs  int64 `json:"endedNs"`          // its last response
	Requests int64 `json:"requests"`         // good responses after OpenedNs until ClosedNs
	Failed   int64 `json:"failed,omitempty"` // from BeganNs to EndedNs
	CPUNs    int64 `json:"cpuNs"`            // of its target, OpenedNs to ClosedNs; -1: unknown

	LoadCPUNs int64 `json:"loadCPUNs,omitempty"` // as Sliced.LoadCPUNs
	StarvedNs int64 `json:"starvedNs,omitempty"` // as Sliced.StarvedNs

	// IdleCPUNs is the CPU time of each target, by index, from BeganNs to EndedNs, including the
	// loaded one.
	IdleCPUNs []int64 `json:"idleCPUNs,omitempty"`
	StealNs   int64   `json:"stealNs"`  // of all cores, BeganNs to EndedNs
	OthersNs  int64   `json:"othersNs"` // CPU time of other processes, BeganNs to EndedNs
}

// SlicesHead is the first line of a slices file.
type SlicesHead struct {
	Version int      `json:"version"`
	Trials  []string `json:"trials"` // trial ids of the targets, in order of launch
	SideBySide
}

// SlicesFile returns the slices file of a start, relative to the run's folder.
func SlicesFile(start string) string { return filepath.Join(SlicesDir, start+".ndjson") }

// WriteSlices writes a start's slices file completely or not at all.
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

// ReadSlices reads a slices file, whose name is relative to the run's folder. Errors name the line.
func ReadSlices(dir, file string) (SlicesHead, []Slice, error) {
	var head SlicesHead
	if !filepath.IsLocal(file) {
		return head, nil, fmt.Errorf("read slices: %q is not a file of the run's folder", file)
	}
	text, err := files.Kept(filepath.Join(dir, file), files.Results)
	if err != nil {
		if path, is := errors.AsType[*fs.PathError](err); is { // which names the folder
			err = path.Err
		}
		return head, nil, fmt.Errorf("read slices %s: %w", file, err)
	}
	return readSlices(file, bytes.NewReader(text))
}

// maxSlices bounds the slices of a start: ten hours of 12 targets.
const maxSlices = 1 << 20

func readSlices(file string, in io.Reader) (head SlicesHead, all []Slice, err error) {
	d := json.NewDecoder(in)
	next := func(v any) error {
		var text json.RawMessage
		if err := d.Decode(&text); err != nil {
			return err
		}
		return jsontree.DecodeLine(text, v)
	}
	if err := next(&head); err != nil {
		return head, nil, fmt.Errorf("read slices %s: %w", file, err)
	}
	if head.Version != SlicesVersion {
		return head, nil, fmt.Errorf("read slices %s: version %d, this program reads version %d",
			file, head.Version, SlicesVersion)
	}
	for {
		var s Slice
		err := next(&s)
		if errors.Is(err, io.EOF) {
			return head, all, nil
		}
		if len(all) == maxSlices {
			err = fmt.Errorf("more than %d slices", maxSlices)
		}
		if err == nil && (s.Round < 0 || s.Round > maxSlices) {
			err = fmt.Errorf("round is %d: must be at most %d", s.Round, maxSlices)
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
