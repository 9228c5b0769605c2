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

// Files beside the records by which others follow a run, and say why they end it.
const (
	ProgressFile = "progress.ndjson"
	StopFile     = "stop.txt"
)

// Kinds of Progress.
const (
	Begins    = "begin" // what is planned, and by which process; once more where a run is resumed
	Says      = "log"   // a line of the lab's log
	Steps     = "step"  // of a trial's life: a step, or a load, begins
	Pulses    = "tick"  // how the load under way goes, or the rounds of a start
	Ratios    = "ratio" // of two targets, after a start; valid whenever the run is ended
	TrialEnds = "trial" // its record is on the disk
	Ends      = "end"   // of the run
)

// Outcomes of a run.
const (
	Done    = "done"
	Stopped = "stopped" // by a signal
	Broke   = "failed"  // by an error that is no trial's
)

// Progress is a line of ProgressFile: how a run gets on, for whoever looks on. No result is made of
// it, and a run goes on where it cannot be written.
type Progress struct {
	Seq  int64     `json:"seq"` // of the line, from 1
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`

	PID int `json:"pid,omitempty"` // begin
	// begin; tells it from a later one of that number
	ProcessStart string `json:"processStart,omitempty"`
	Suite        string `json:"suite,omitempty"`
	// begin: what the run repeats over all targets: "start" if they run side by side, else "block"
	Repeat string `json:"repeat,omitempty"`
	// begin: how long it may take, without builds
	EstimateMinNs int64 `json:"estimateMinNs,omitempty"`
	EstimateMaxNs int64 `json:"estimateMaxNs,omitempty"`
	// begin; none where the run goes on for a time
	Planned []Planned `json:"trials,omitempty"`

	Text string `json:"text,omitempty"` // say, trial, end

	Trial      string `json:"trial,omitempty"`
	Step       string `json:"step,omitempty"` // step and tick: or the load's name
	ExpectedNs int64  `json:"expectedNs,omitempty"`

	PerS   float64 `json:"ratePerS,omitempty"` // tick: good answers since the one before
	P50Ns  int64   `json:"p50Ns,omitempty"`    // tick: response times; 0: nothing was answered
	P99Ns  int64   `json:"p99Ns,omitempty"`
	Failed int64   `json:"errors,omitempty"`
	Round  int     `json:"round,omitempty"`  // tick: rounds that are done
	Rounds int     `json:"rounds,omitempty"` // step and tick: rounds of the start

	Ratio *LiveRatio `json:"ratio,omitempty"`

	Grade   string `json:"grade,omitempty"` // trial
	Ended   int    `json:"ended,omitempty"` // trial: how many have a record
	Total   int    `json:"total,omitempty"` // trial: of so many; 0: nobody knows
	Outcome string `json:"outcome,omitempty"`
}

// LiveRatio compares two targets by the slices of the starts so far. Its interval holds the true
// ratio with 95 %, whenever and for whatever reason the run is ended.
type LiveRatio struct {
	Scenario string  `json:"scenario"`
	Target   string  `json:"target"` // row in tables
	Baseline string  `json:"baseline"`
	Metric   string  `json:"metric"` // cpu_per_request or throughput
	Starts   int     `json:"starts"` // in the ratio
	Center   float64 `json:"center"` // the target's value over the baseline's
	Lo       float64 `json:"lo"`
	Hi       float64 `json:"hi"`
}

// What a run's progress may take: long lines of a log are cut, and the pulses of a run that goes on
// for days are left out when the file is full of them.
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

// FollowUp opens a run's progress to go on with it.
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
	if n := len(previous); n > 0 && previous[n-1] != '\n' { // whoever wrote it was killed
		l.seq++
		if _, err := f.Write([]byte{'\n'}); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return l, nil
}

// Append writes a line, with its number.
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

// Close ends it; what nobody has measured leaves nothing.
func (l *ProgressLog) Close() error {
	err := l.f.Close()
	if _, gone := os.Stat(filepath.Join(filepath.Dir(l.f.Name()), RunFile)); gone != nil {
		err = errors.Join(err, os.Remove(l.f.Name()))
	}
	return err
}

// stopMost bounds a reason.
const stopMost = 500

// StopReason takes away what somebody said about why a run is to end; empty: nothing.
func StopReason(dir string) string {
	name := filepath.Join(dir, StopFile)
	b, err := files.Read(name, stopMost)
	if err != nil {
		return ""
	}
	_ = os.Remove(name) // it is in the head from now on
	printable := func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}
	text := strings.Map(printable, strings.ToValidUTF8(string(b), ""))
	return strings.Join(strings.Fields(text), " ")
}

// Remark adds a note to the head of a run, which every report is to say. A run that has none yet
// has no report.
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
