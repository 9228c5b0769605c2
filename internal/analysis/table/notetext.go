package table

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
)

// noteTexts has the texts of notes. The types of the placeholders format themselves.
var noteTexts = [...]string{
	NoteNone: "", NoteVerbatim: "%s",

	NoteInSomeTrials: "in %s %s",
	NoteSearchEnded:  "at least %s, because in %s the search for the capacity ended early (%s)",
	NoteNoRateHeld:   "in %s no rate met the objectives: %s",
	NoteBacklogGrew: "%s were offered and %s of these requests ended in the window: the backlog " +
		"grew by %s, so latency depends on the length of the test (offer less than the capacity)",
	NoteFewAnswers:    "an interval needs n ≥ %s responses in each trial; n was %s%s",
	NoteNeverAnswered: neverAnswered, NoteUnanswered: "in a trial " + neverAnswered,
	NoteBelowLower: "it would be below %s, which leaves out other arrivals near stalls (measure " +
		"on a quieter machine; prony report --stalls keep includes all arrivals)",
	NoteFewIndependent: "an interval needs n ≥ %s independent responses; n was %s%s",
	NoteNoAnswers:      "no response time was recorded",
	NoteNoHistogram:    "no histogram of response times, or a damaged one, in %s",
	NoteAllInvalid:     "every trial that offered %s is INVALID",
	NoteNotOffered:     "no trial of this target offered that load",
	NoteNeverOffered:   "no trial was offered this load",
	NoteNoTrial:        "no trial is usable",
	NoteNoneGood:       "no trial has usable numbers",
	NoteNoCommonBlock:  "no value of this target can be paired with a value of %s",
	NoteStartsLost:     "too many starts were excluded, because a target failed in them",
	NoteOneTrial:       "no interval from a single trial (raise --blocks)",
	NoteFewStarts:      "an interval needs at least %d starts, but the run has %d (raise --blocks)",
	NoteFewLive: "an interval of a run that was ended early needs at least %d starts, but the " +
		"run has %d",
	NoteWideStarts: "the interval from %d starts is valid, but wide (raise --blocks to %d or " +
		"more)",
	NoteNoInterval:   "no interval: %s",
	NoteIntervalWide: notKnown + ", " + spansTooMuch,
	NoteDifferenceWide: fmt.Sprintf(notKnown+", differences below a factor of %d are not "+
		"detected (raise --blocks)", tooWide),
	NoteUnknowns:   "Unknown: " + spansTooMuch + ".",
	NoteLackInSome: "No value of %s (–): in at least one trial %s.",
	NoteNoneHeldInSome: "No value of %s (–): in at least one trial no rate met the objectives " +
		"(%s).",
	NoteStallsReason: "Stalls cannot be left out of some values: %s.",
	NoteNoneKnown:    "No %s is known: " + spansTooMuch + ".",

	NoteTrialsMissing: MissingGrade + " in %s: the trial was planned, but has no record",
	NoteTrialsDoubted: "%s",
	NoteMayBeOff:      "%smay be off: %s",
	NoteRemarked:      "%s: %s (%s)",
	NoteWarned:        "%s",
	NoteFalseAlarm: "a false alarm: the interval excludes 1 although nothing differs. By design, " +
		"one interval in %s does so; a higher share would mean that the method is broken",
	NoteVaries:      "varies in %s: %s",
	NoteNoGoodTrial: "no good trial: %s",
	NoteSkipped:     "skipped: %s",

	NoteRowsVary:  "Rows differ in %s, so they are not comparable: %s.",
	NoteRowsSweep: "Rows have different loads, as requested: %s.",
	NoteToolsVary: "Rows have different versions of %s, which is part of their difference: %s.",
	NoteRatios:    "Each ratio is %s.",
	NoteSliced: "Ratios and tiers of %s come from slices, in which the targets of a start take " +
		"turns on the same cores (%s); all other numbers come from windows in which each target " +
		"is loaded alone.",
	NotePlanned: "The scatter of ratios between the first starts determined the number of starts " +
		"(%d planned, from the first %d); the intervals of these ratios use that scatter.",
	NoteSlicesUnread: "The slices of %s cannot be used, the first of them start %d: %s. Rare " +
		"events and the balance of steal time are not checked there.",
	NoteGroups: "Targets ran in %d groups that share %s: %s. Targets of different groups are " +
		"compared through %s, with the errors of both ratios.",
	NoteStalled:         StalledText + ": %s",
	NoteWithStalls:      withStalls + ", because without them it is unknown: %s",
	NoteStalledBelow:    StalledText,
	NoteWithStallsBelow: withStalls,
	NoteStallsInSlices: "Ratios of response times of %s leave out the arrivals near stalls of " +
		"the machine in slices: %s.",
	NoteStallsInWindows: "The values of %s in windows of %s leave out the arrivals near stalls " +
		"of the machine: %s.",
	NoteStallsRemain: "The values of %s in windows of %s include the machine's stalls, because " +
		"without them those of %s are unknown.",
	NoteStallsMissing: "Response times of %s include the machine's stalls, which were not " +
		"recorded (prony doctor reports why).",
	NoteDiscards: "Response times of %s leave out %s, in which the machine stalled for more " +
		"than 10 %% of the time; as many more were measured.",
	NoteStallsInClosed: "Stalls of the machine took, in windows of %s, %s.",
	NoteEqualRate: "Ratios of %s compare response times at the same rate for all targets (%s to " +
		"%s); the absolute values beside them are at the load's own rate.",
	NoteCopies: "Unlike the other targets, these had no fresh copy of their files in each start: " +
		"%s. Intervals of their ratios do not cover the effect of where these files are in memory.",
	NoteStartNoise: "Noise of %s%s within starts explains %s of the scatter of ratios between " +
		"starts; %s.",
	NoteHighScatter: "Ratios of %s%s vary by more than 10 %% between %ss (standard deviation; up " +
		"to 5 %% is acceptable): %s. prony doctor reports possible causes.",
	NoteControlScatter: "Intervals of %s use the scatter of the control, which is significantly " +
		"larger than their own.",
	NoteRarest: "Events that are rarer than one in %v s of load are too rare for these starts: " +
		"their cost is not measured.",
	NoteOnStarts: "%s",
	NoteTiers: "Targets in one tier do not differ significantly with these %ss, after " +
		"correcting for all pairs.",
	NoteTiersOfOne: "Targets in one tier do not differ significantly with these %[1]ss: a " +
		"comparison needs at least 2 %[1]ss.",
	NoteTiersPlan: "Targets in one tier do not differ significantly with these %ss, after " +
		"correcting for all pairs; %s.",
	NoteNoiseBetween: "Noise of %s req/s: %s of it is between trials; %s.",
	NoteLogNormal:    "Intervals from so few trials assume log-normal trials.",
	NoteModerated: "Intervals from so few trials assume log-normal trials and share noise " +
		"estimates between targets (moderated variances).",
	NoteChanges: fmt.Sprintf("Rows below a bare target show changes against that target, paired "+
		"within %%[1]ss, with their %%[2]s interval. An interval that includes 0 shows no "+
		"significant difference. A change is unknown if its interval includes 0 and spans more "+
		"than a factor of %d; more %%[1]ss make it narrower.", tooWide),
	NoteUsersThink: "%s is a closed load whose users think: its throughput follows from its " +
		"response times alone (users / (response + think time)), so it does not show the " +
		"capacity. A slower target also gets fewer requests.",
	NoteLoadIsClosed: "%s is a closed load: its req/s is the capacity with that number of " +
		"connections, and its response times include waits for the service.",
	NoteTelemetry: "Values are medians of whole trials, from start to stop, including the " +
		"warm-up. Bytes are OTLP before compression, per request of the loads and the warm-up. " +
		"Not kept: telemetry that was counted, but not stored. CPU of the telemetry collector " +
		"(home): 100 % is one processor, which is not one of the service's.",
	NoteNotWhole:   "Incomplete: %s (%s).",
	NoteStepFailed: "%s failed in step %s: %s.",
	NoteProcesses: "Values are medians of the trials, at %s. CPU: 100 %% is one processor. " +
		"Ready: time from the exec of that process until it is ready.",
	NoteResolves: "Resolves: the smallest difference between two targets that this number of " +
		"%ss detects in %s of runs, at %s confidence and with the noise of this run.",
}

// Parts that several texts share.
const notKnown = "unknown: too few trials"

// StalledText is the note, without the reason, on a ratio that is unknown without stalls.
const StalledText = "unknown without the machine's stalls"

const withStalls = "includes the machine's stalls"

const neverAnswered = "%s of %s requests got no response, more than the share of requests above " +
	"this percentile"

var spansTooMuch = fmt.Sprintf("the interval spans more than a factor of %d (raise --blocks)",
	tooWide)

// String returns the note's text: "time to steady: in 2 of 3 trials no …".
func (n Note) String() string {
	text := noteTexts[n.Kind]
	if len(n.Args) > 0 {
		text = fmt.Sprintf(text, n.Args...)
	}
	if len(n.Columns) > 0 {
		text = n.Columns.String() + ": " + text
	}
	return text
}

func (o OfTrials) String() string {
	if o.N == 1 {
		return "the only trial"
	}
	return fmt.Sprintf("%d of %d trials", o.K, o.N)
}

func (l Lack) String() string { return metric.Named(string(l), "").Missing }

func (r Rate) String() string { return units.Rate(float64(r)) + "/s" }

func (p Percent) String() string { return units.Percent(float64(p)) }

func (c Count) String() string { return units.Count(int64(c)) }

func (w Warning) String() string { return strings.ReplaceAll(string(w), ">=", "≥") }

func (n Names) String() string { return units.Few(n, mostMissing) }

func (l Loads) String() string { return strings.Join(l, ", ") }

func (v Differing) String() string { return strings.Join(v, " | ") }

func (m MetricsOf) String() string {
	var names []string
	for _, q := range m {
		names = append(names, strings.TrimSpace(q.Load+" "+shortName(q.Name, q.Unit)))
	}
	return strings.Join(names, ", ")
}

// String describes the extent of a measurement: "8 starts, 320 rounds, 118 s".
func (s *Starts) String() string {
	text := units.Plural(s.Count-len(s.Lost), "start")
	if len(s.Lost) > 0 {
		text = fmt.Sprintf("%d of %s", s.Count-len(s.Lost), units.Plural(s.Count, "start"))
	}
	elapsed := time.Duration(s.ElapsedNs)
	lasted := fmt.Sprintf("%.0f s", elapsed.Seconds())
	if elapsed >= 10*time.Minute {
		lasted = units.Roughly(elapsed)
	}
	text = fmt.Sprintf("%s, %s, %s", text, units.Plural(s.Rounds, "round"), lasted)
	if s.Interrupted {
		text += "; " + livePrice(s.Count-len(s.Lost))
	}
	return text
}

// Repeat returns what a run repeats over all targets: "start" if they ran side by side, else
// "block".
func (s *Starts) Repeat() string {
	if s == nil {
		return inBlocks
	}
	return "start"
}

// inBlocks is the unit of repetition if targets did not run side by side.
const inBlocks = "block"

func (f OnStarts) String() string { return wording.Sentence(record.Finding(f)) }

func (b Blocks) String() string { return blocksText(b.Repeat, b.Numbers) }

func (o Odds) String() string { return fmt.Sprintf("%.0f", float64(o)) }

func (c Confidence) String() string { return fmt.Sprintf("%g %%", math.Round(float64(c)*1000)/10) }

func (l LoadOf) String() string {
	if l == "" {
		return ""
	}
	return string(l) + " "
}

func (c Columns) String() string {
	var headings []string
	var group Group
	for _, column := range c {
		heading := column.Heading()
		if column.Group != group { // "half p99, p99.9"
			group, heading = column.Group, column.FullHeading()
		}
		headings = append(headings, heading)
	}
	return strings.Join(headings, ", ")
}

// String returns a hint on how to measure a percentile: the window, in whole seconds, in which the
// same rate yields enough samples even if a Poisson count is three deviations low.
func (l Longer) String() string {
	if l.WindowNs == 0 || l.Had == 0 {
		return ""
	}
	want := float64(l.Needs) + 3*math.Sqrt(float64(l.Needs))
	seconds := math.Ceil(want / float64(l.Had) * float64(l.WindowNs) / 1e9)
	return fmt.Sprintf(" (raise %s to %s)", l.Flag, wholeSeconds(seconds))
}

// wholeSeconds formats 90 as "90s" and 600 as "10m", as the flag expects.
func wholeSeconds(s float64) string {
	if s >= 600 {
		return fmt.Sprintf("%.0fm", math.Ceil(s/60))
	}
	return (time.Duration(s) * time.Second).String()
}

func (o Offs) String() string {
	var texts []string
	for _, off := range o {
		name := shortName(off.Metric, off.Unit)
		if off.Ratio {
			name += " ratio"
		}
		if off.By > 0 {
			name += " by up to " + atMost(off.By)
		}
		texts = append(texts, fmt.Sprintf("%s (%s)", name, strings.Join(off.Rules, ", ")))
	}
	return strings.Join(texts, ", ")
}

// shortName returns a metric's short name, or its name.
func shortName(name, unit string) string {
	return cmp.Or(metric.Named(name, unit).Short, name)
}

// atMost formats a bound; beyond twice the number it is only "more than twice its size".
func atMost(amount float64) string {
	if amount > 2 {
		return "more than twice its size"
	}
	return units.AtMost(amount)
}

func (s Shared) String() string {
	var words []string
	for _, p := range s {
		words = append(words, fmt.Sprintf("%s (%s)", p.Value, units.Few(p.Rows, 3)))
	}
	return strings.Join(words, "; ")
}

func (p Plan) String() string {
	effect := fmt.Sprintf("%.3g %%", 100*p.Effect)
	switch more := p.Needed - p.Have; {
	case p.Needed > planBlocks:
		return fmt.Sprintf("at this noise, no sensible number of %ss detects a difference of %s",
			p.Repeat, effect)
	case more > 0:
		return fmt.Sprintf("detecting a difference of %s would take about %s", effect,
			units.Plural(more, "more "+p.Repeat))
	}
	return "this number is enough to detect a difference of " + effect
}

// String returns the name of the references in a heading.
func (v Versus) String() string {
	switch v.Kind {
	case VersusArm:
		return "itself"
	case VersusBare:
		return "bare"
	case VersusProcess:
		return "process"
	case VersusMixed:
		return "its own"
	}
	return v.Name
}

func (o Over) String() string {
	switch o.Kind {
	case VersusArm:
		return "arm b's value divided by arm a's of the same target, paired within " +
			o.Repeat + "s: differences from 1 are noise"
	case VersusMixed:
		return "a target's value divided by that of the same target (arm b by arm a, with its " +
			"variant by bare, in a container or pod by a plain process, or by the other " +
			"checkout), paired within " + o.Repeat + "s"
	case VersusProcess:
		return "the value of a target in a container or pod divided by its value as a plain " +
			"process, paired within " + o.Repeat + "s"
	case VersusBare:
		return "the value of a target with its variant divided by its value without (bare), " +
			"paired within " +
			o.Repeat + "s"
	}
	return "a target's value divided by that of " + o.Name + ", paired within " + o.Repeat + "s"
}

// Shares of noise between trials. From mostlyBetween on a longer window hardly helps, and up to
// mostlyWithin it helps as much as another block, because it only reduces the noise within trials.
const (
	mostlyBetween = 0.7
	mostlyWithin  = 0.3
)

func (a Advice) String() string {
	switch {
	case a >= mostlyBetween:
		return "longer windows would not help, more trials would"
	case a > mostlyWithin:
		return "more trials would help most, longer windows somewhat"
	}
	return "longer windows would help as much as more trials"
}
