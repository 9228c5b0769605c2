package table

import (
	"slices"
	"strings"

	"prony.example/record"
)

// Note is a remark on a table, a row or a cell. Programs read Kind and Args; String formats the
// text as the last step.
type Note struct {
	Kind    NoteKind
	Load    string  // the load that the text names first; empty: none
	Columns Columns // columns without numbers for this reason, which the text names first
	Args    []any   // the values of the text's placeholders, in order
}

// NoteKind is the subject of a note.
type NoteKind int

// Kinds of notes, each with its Args.
const (
	NoteNone     NoteKind = iota // no note
	NoteVerbatim                 // a text from outside

	// Reasons for a missing number.
	NoteInSomeTrials   // OfTrials, Lack
	NoteSearchEnded    // Rate that met the objectives in all trials, OfTrials, the search's reason
	NoteNoRateHeld     // OfTrials, the search's reason
	NoteBacklogGrew    // Rate, Percent of it that ended, Rate of the backlog
	NoteFewAnswers     // Count needed, Count had, Longer
	NoteNeverAnswered  // Count, Count of all
	NoteUnanswered     // the same in some trial
	NoteBelowLower     // the lower percentile
	NoteFewIndependent // Count needed, Count had, Longer
	NoteNoAnswers      //
	NoteNoHistogram    // Names of trials
	NoteAllInvalid     // load
	NoteNotOffered     // by this target
	NoteNeverOffered   // in any trial of its side
	NoteNoTrial        // of its side is usable
	NoteNoneGood       // no trial of the target
	NoteNoCommonBlock  // the other target
	NoteStartsLost     // Starts
	NoteOneTrial       //
	NoteFewStarts      // starts needed, starts there
	NoteFewLive        // the same, of a run that was ended early
	NoteWideStarts     // starts there, starts that are enough
	NoteNoInterval     // warning of package stats
	NoteIntervalWide   //
	NoteDifferenceWide // a difference
	NoteUnknowns       // meaning of the word unknown
	NoteLackInSome     // Columns, Lack
	NoteNoneHeldInSome // Columns, the search's reason
	NoteStallsReason   // Stalled
	NoteNoneKnown      // Columns

	// Events in trials and numbers.
	NoteTrialsMissing // Blocks
	NoteTrialsDoubted // the events
	NoteMayBeOff      // LoadOf, Offs
	NoteRemarked      // Loads, what was observed, hint
	NoteWarned        // warning of package stats
	NoteFalseAlarm    // one in how many is expected
	NoteVaries        // aspect, Differing
	NoteNoGoodTrial   // Notes: how its trials ended
	NoteSkipped       // reason

	// Notes on a table.
	NoteRowsVary        // aspect, Shared
	NoteRowsSweep       // Shared
	NoteToolsVary       // tool, Shared
	NoteRatios          // Over
	NoteSliced          // MetricsOf slices, Starts
	NotePlanned         // starts planned, first starts
	NoteSlicesUnread    // "2 starts", first of them, why
	NoteGroups          // groups, baseline, GroupNames, baseline
	NoteStalled         // Stalled
	NoteWithStalls      // Stalled
	NoteStalledBelow    // the reason is below the table
	NoteWithStallsBelow // the reason is below the table
	NoteStallsInSlices  // load, StallsFound
	NoteStallsInWindows // Names of percentiles, load, StallsFound
	NoteStallsRemain    // Names of percentiles, load, target
	NoteStallsMissing   // load
	NoteDiscards        // load, Discards
	NoteStallsInClosed  // load, StallsCost
	NoteEqualRate       // MetricsOf open slices, Rate of the slowest start, Rate of the fastest one
	NoteCopies          // Uncopied
	NoteStartNoise      // LoadOf, metric, Percent, StartAdvice
	NoteHighScatter     // LoadOf, metric, repeat, Names of targets
	NoteControlScatter  // Names of targets
	NoteRarest          // seconds
	NoteOnStarts        // OnStarts
	NoteTiers           // repeat
	NoteTiersOfOne      // repeat
	NoteTiersPlan       // repeat, Plan
	NoteNoiseBetween    // load, Percent, Advice
	NoteLogNormal       //
	NoteModerated       //
	NoteChanges         // repeat, Confidence
	NoteUsersThink      // load
	NoteLoadIsClosed    // load
	NoteTelemetry       //
	NoteNotWhole        // trial, why
	NoteStepFailed      // trial, step, error
	NoteProcesses       // load
	NoteResolves        // repeat, Percent of runs, Confidence
)

// NoteOf returns a note of a kind with its arguments.
func NoteOf(kind NoteKind, args ...any) Note { return Note{Kind: kind, Args: args} }

// onMethod are the notes that describe how numbers are made, or how a run could find out more.
var onMethod = []NoteKind{NoteSliced, NoteEqualRate, NotePlanned, NoteStartNoise, NoteRarest,
	NoteTiers, NoteTiersPlan, NoteNoiseBetween, NoteLogNormal, NoteModerated, NoteResolves}

// OnMethod reports whether the note describes how numbers are made. No number of the table needs it
// to be read correctly.
func (n Note) OnMethod() bool { return slices.Contains(onMethod, n.Kind) }

// Is reports whether the note has a text.
func (n Note) Is() bool { return n.Kind != NoteNone }

// MarshalText returns the note's text, also for JSON.
func (n Note) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// Texts returns the texts of notes.
func Texts(notes []Note) []string {
	out := make([]string, len(notes))
	for i, n := range notes {
		out[i] = n.String()
	}
	return out
}

// Footnote is the text of one footnote mark.
type Footnote []Note

func (f Footnote) String() string { return strings.Join(Texts(f), "; ") }

// addNotes appends the notes whose text a list does not have yet.
func addNotes(to []Note, more ...Note) []Note {
	for _, n := range more {
		if !slices.ContainsFunc(to, n.Same) {
			to = append(to, n)
		}
	}
	return to
}

// Same reports whether two notes have the same text, which readers would take for a mistake. A
// reason for stalls is the same with and without a share of arrivals.
func (n Note) Same(note Note) bool {
	if n.Kind == NoteStallsReason && note.Kind == n.Kind {
		x, _ := n.Args[0].(Stalled)
		y, _ := note.Args[0].(Stalled)
		return x.Reason == y.Reason
	}
	return n.Kind == note.Kind && n.String() == note.String()
}

// noteBook numbers footnotes by first use; footnotes with the same text share a number.
type noteBook []Footnote

func (b *noteBook) refs(notes ...Note) []int {
	index := slices.IndexFunc(*b, func(f Footnote) bool {
		return slices.EqualFunc(f, notes, Note.Same)
	})
	if index < 0 {
		index, *b = len(*b), append(*b, notes)
	}
	return []int{index + 1}
}

// Types of the placeholders' values.
type (
	OfTrials  struct{ K, N int } // K trials of N
	Warning   string             // of package stats
	Lack      string             // the metric that has no value
	Rate      float64            // per second
	Percent   float64            // a share
	Count     int64
	Names     []string // of trials; the text has the first few
	Loads     []string
	Differing []string // values that differ between trials
	Blocks    struct {
		Repeat  string // "block" or "start"
		Numbers []int
	}
	Longer struct { // how long to measure for enough responses, if that is known
		Flag       string
		Needs, Had int64
		WindowNs   int64
	}
	Columns []Column
	LoadOf  string // a load's name, before a sentence on it; empty: a whole trial
	Offs    []Off  // of one load
	Off     struct {
		Metric, Unit string
		By           float64 // at most, as a share; 0: the effect is unknown
		Rules        []string
		Ratio        bool   // whether the number is the metric's ratio
		Key          string // of its column
	}
	Shared  []Sharing // each value of an aspect, with its rows
	Sharing struct {
		Value string
		Rows  []string
	}
	Plan struct { // how many blocks or starts a difference needs
		Effect       float64
		Needed, Have int
		Repeat       string
	}
	Odds       float64 // one in Odds
	Confidence float64
	Over       struct { // numerator and denominator of ratios
		Versus
		Repeat string
	}
	MetricsOf []Metric
	OnStarts  record.Finding // on all starts together
	Advice    float64        // the share of noise between trials, printed as advice
)
