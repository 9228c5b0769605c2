package table

import (
	"slices"
	"strings"

	"prony.example/record"
)

// Note is what is said of a table, of a row or of a cell. A program reads Kind and Args; String
// makes the text of them, last.
type Note struct {
	Kind    NoteKind
	Load    string  // the load that the text names first; empty: it names none
	Columns Columns // whose numbers are missing for this reason, and are named before it
	Args    []any   // what the text of the kind has in its places, in their order
}

// NoteKind says what a note is about.
type NoteKind int

// Kinds of notes. Beside each stand its Args.
const (
	NoteNone     NoteKind = iota // there is nothing to say
	NoteVerbatim                 // a text from outside

	// Why there is no number.
	NoteInSomeTrials   // OfTrials, Lack
	NoteSearchEnded    // Rate that met the objectives in all trials, OfTrials, the search's reason
	NoteNoRateHeld     // OfTrials, the search's reason
	NoteBacklogGrew    // Rate, Percent of it that ended, Rate of the backlog
	NoteFewAnswers     // Count needed, Count had, Longer
	NoteNeverAnswered  // Count, Count of all
	NoteUnanswered     // in some trial: the same
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
	NoteNoInterval     // warning of package stats
	NoteIntervalWide   //
	NoteDifferenceWide // a difference
	NoteUnknowns       // what the word unknown stands for
	NoteLackInSome     // Columns, Lack
	NoteNoneHeldInSome // Columns, the search's reason
	NoteNoneKnown      // Columns, load

	// What befell trials and numbers.
	NoteTrialsMissing // Blocks
	NoteTrialsDoubted // what happened
	NoteMayBeOff      // LoadOf, Offs
	NoteRemarked      // Loads, what was observed, hint
	NoteWarned        // warning of package stats
	NoteFalseAlarm    // one in how many is expected
	NoteVaries        // aspect, Differing
	NoteNoGoodTrial   // Notes: how its trials ended
	NoteSkipped       // reason

	// Of a table.
	NoteRowsVary        // aspect, Shared
	NoteRowsSweep       // Shared
	NoteToolsVary       // tool, Shared
	NoteRatios          // Over
	NoteSliced          // MetricsOf that ratios are made of, Starts
	NotePlanned         // starts planned, first starts
	NoteGroups          // groups, baseline, GroupNames, baseline
	NoteStalled         // Stalled
	NoteWithStalls      // Stalled
	NoteStallsInSlices  // load, StallsFound
	NoteStallsInWindows // Names of percentiles, load, StallsFound
	NoteStallsRemain    // Names of percentiles, load, target, Stalled
	NoteStallsMissing   // load
	NoteEqualRate       // MetricsOf open slices, Rate of the slowest start, Rate of the fastest one
	NoteCopies          // Uncopied
	NoteStartNoise      // LoadOf, metric, Percent, StartAdvice
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

// NoteOf is a note of a kind.
func NoteOf(kind NoteKind, args ...any) Note { return Note{Kind: kind, Args: args} }

// Is tells whether there is something to say.
func (n Note) Is() bool { return n.Kind != NoteNone }

// MarshalText makes of a note its text, also in JSON.
func (n Note) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// Texts are the texts of notes.
func Texts(notes []Note) []string {
	out := make([]string, len(notes))
	for i, n := range notes {
		out[i] = n.String()
	}
	return out
}

// Footnote is what one mark stands for.
type Footnote []Note

func (f Footnote) String() string { return strings.Join(Texts(f), "; ") }

// addNotes appends what a list does not say yet, in these words.
func addNotes(to []Note, more ...Note) []Note {
	for _, n := range more {
		if !slices.ContainsFunc(to, n.Same) {
			to = append(to, n)
		}
	}
	return to
}

// Same tells whether two notes read the same: a reader would take a second one for a mistake.
func (n Note) Same(note Note) bool { return n.Kind == note.Kind && n.String() == note.String() }

// noteBook numbers footnotes by first use; those that read the same share a number.
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

// What places of notes hold.
type (
	OfTrials  struct{ K, N int } // so many trials of so many
	Warning   string             // of package stats
	Lack      string             // the metric that has no value
	Rate      float64            // per second
	Percent   float64            // a share
	Count     int64
	Names     []string // of trials, of which the first few are told
	Loads     []string
	Differing []string // that differ from trial to trial
	Blocks    struct {
		Repeat  string // "block" or "start"
		Numbers []int
	}
	Longer struct { // how long to measure for so many answers, where that can be said
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
		Ratio        bool // it is the metric's ratio
	}
	Shared  []Sharing // each value of an aspect, with the rows that have it
	Sharing struct {
		Value string
		Rows  []string
	}
	Plan struct { // how many blocks or starts a difference takes
		Effect       float64
		Needed, Have int
		Repeat       string
	}
	Odds       float64 // one in so many
	Confidence float64
	Over       struct { // what ratios are of
		Versus
		Repeat string
	}
	MetricsOf []Metric
	OnStarts  record.Finding // on all starts together
	Advice    float64        // the share of noise between trials, as what to do about it
)
