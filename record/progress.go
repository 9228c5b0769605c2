package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"prony.example/internal/base/files"
)

// Files beside the records: the progress for other processes, and their reason to stop the run.
const (
	ProgressFile = "progress.ndjson"
	StopFile     = "stop.txt"
)

// Kinds of Progress.
const (
	Begins    = "begin" // the plan and the process; repeated if a run is resumed
	Says      = "log"   // a line of the lab's log
	Steps     = "step"  // a step of a trial, or a load, begins
	Pulses    = "tick"  // progress of the current load, or of the rounds of a start
	Ratios    = "ratio" // ratio of two targets after a start; valid at any end of the run
	TrialEnds = "trial" // a trial's record is on disk
	Ends      = "end"   // the run ends
)

// Outcomes of a run.
const (
	Done    = "done"
	Stopped = "stopped" // by a signal
	Broke   = "failed"  // by an error outside of trials
)

// Progress is a line of ProgressFile, for programs that follow a run. Results do not depend on it,
// and a run continues if it cannot be written.
type Progress struct {
	Seq  int64     `json:"seq"` // number of the line, from 1
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`

	PID int `json:"pid,omitempty"` // begin
	// begin: start of the process; distinguishes it from a later one with the same PID
	ProcessStart string `json:"processStart,omitempty"`
	Suite        string `json:"suite,omitempty"`
	// begin: the unit of repetition: "start" if targets run side by side, otherwise "block"
	Repeat string `json:"repeat,omitempty"`
	// begin: bounds of the estimated duration, without builds
	EstimateMinNs int64 `json:"estimateMinNs,omitempty"`
	EstimateMaxNs int64 `json:"estimateMaxNs,omitempty"`
	// begin; absent if the run has a time limit instead
	Planned []Planned `json:"trials,omitempty"`

	Text string `json:"text,omitempty"` // say, trial, end

	Trial      string `json:"trial,omitempty"`
	Step       string `json:"step,omitempty"` // step and tick: name of the step or load
	ExpectedNs int64  `json:"expectedNs,omitempty"`

	PerS   float64 `json:"ratePerS,omitempty"` // tick: good responses since the last tick
	P50Ns  int64   `json:"p50Ns,omitempty"`    // tick: response times; 0: no responses
	P99Ns  int64   `json:"p99Ns,omitempty"`
	Failed int64   `json:"errors,omitempty"`
	Round  int     `json:"round,omitempty"`  // tick: completed rounds
	Rounds int     `json:"rounds,omitempty"` // step and tick: rounds of the start

	Ratio *LiveRatio `json:"ratio,omitempty"`

	Row     string       `json:"row,omitempty"` // trial: its target's name in tables
	Results []LiveResult `json:"results,omitempty"`

	Grade   string `json:"grade,omitempty"` // trial
	Ended   int    `json:"ended,omitempty"` // trial: number of trials with a record
	Total   int    `json:"total,omitempty"` // trial: number of all trials; 0: unknown
	Outcome string `json:"outcome,omitempty"`
}

// LiveResult is a number of a finished trial, for figures of the run so far.
type LiveResult struct {
	Load   string  `json:"load"`
	Metric string  `json:"metric"` // throughput of a closed load, p99 of an open one, or capacity
	Unit   string  `json:"unit"`
	Value  float64 `json:"value,omitempty"` // absent if the trial has none
	// Objective of a search for a capacity, and whether a rate met it.
	Objective string `json:"objective,omitempty"`
	Met       bool   `json:"met,omitempty"`
}

// LiveRatio compares two targets by the slices of the starts so far. Its interval contains the true
// ratio in 95 % of cases, at whatever moment and for whatever reason the run ends.
type LiveRatio struct {
	Scenario string  `json:"scenario"`
	Target   string  `json:"target"` // name in tables
	Baseline string  `json:"baseline"`
	Metric   string  `json:"metric"` // cpu_per_request or throughput
	Starts   int     `json:"starts"` // in the ratio
	Center   float64 `json:"center"` // the target's value divided by the baseline's
	Lo       float64 `json:"lo"`
	Hi       float64 `json:"hi"`
}

// Bounds of a run's progress file: long log lines are cut, and ticks are omitted when the file is
// full.
const (
	progressMost = 16 << 20
	progressText = 2 << 10
)

// ProgressLog writes a run's progress.
type ProgressLog struct {
	f    *os.File
	seq  int64
	size int64
}

// FollowUp opens a run's progress file to append to it. It fails if the file is not a regular one.
func FollowUp(dir string) (*ProgressLog, error) {
	name := filepath.Join(dir, ProgressFile)
	if _, err := os.Lstat(name); err == nil && !regular(name) {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	previous, err := files.Read(name, 2*progressMost)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	l := &ProgressLog{
		f:    f,
		seq:  int64(bytes.Count(previous, []byte{'\n'})),
		size: int64(len(previous)),
	}
	if n := len(previous); n > 0 && previous[n-1] != '\n' { // the last writer was killed
		l.seq++
		if _, err := f.Write([]byte{'\n'}); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return l, nil
}

// Append writes a line with its number. It omits ticks when the file is full.
func (l *ProgressLog) Append(p Progress) error {
	if p.Kind == Pulses && l.size > progressMost {
		return nil
	}
	l.seq++
	p.Seq = l.seq
	p.Text = strings.ToValidUTF8(p.Text[:min(len(p.Text), progressText)], "")
	b, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("write progress: %w", err)
	}
	n, err := l.f.Write(append(b, '\n'))
	l.size += int64(n)
	return err
}

// Close closes the file, and removes it if the run has no head and thus no results.
func (l *ProgressLog) Close() error {
	err := l.f.Close()
	if _, gone := os.Stat(filepath.Join(filepath.Dir(l.f.Name()), RunFile)); gone != nil {
		err = errors.Join(err, os.Remove(l.f.Name()))
	}
	return err
}

// stopMost bounds the bytes of a reason.
const stopMost = 500

// StopReason returns the reason that another process gave for stopping the run, and removes the
// file; empty: none.
func StopReason(dir string) string {
	name := filepath.Join(dir, StopFile)
	b, err := files.Read(name, stopMost)
	if err != nil {
		return ""
	}
	_ = os.Remove(name) // the head has the reason from now on
	printable := func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}
	text := strings.Map(printable, strings.ToValidUTF8(string(b), ""))
	return strings.Join(strings.Fields(text), " ")
}

// Remark adds a note to the head of a run, which every report shows. It does nothing if the run has
// no head yet.
func Remark(dir, note string) error {
	if !regular(filepath.Join(dir, RunFile)) {
		return nil
	}
	head, err := readHead(dir)
	if err != nil {
		return err
	}
	head.Notes = append(head.Notes, note)
	return putHead(dir, head)
}
