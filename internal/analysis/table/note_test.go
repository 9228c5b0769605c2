package table

import (
	"strings"
	"testing"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

var (
	noCPU = metric.Named(metric.CPU, units.Ns).Missing
	alike = Shared{{"1", []string{"a", "b"}}, {"2", []string{"c"}}}
)

// noteExample is the text of a kind of note, of the arguments that it has.
type noteExample struct {
	want string
	args []any
}

var noteExamples = map[NoteKind][]noteExample{
	NoteNone:         {{"", nil}},
	NoteVerbatim:     {{"100 % of it", []any{"100 % of it"}}},
	NoteInSomeTrials: {{"in 2 of 3 trials " + noCPU, []any{OfTrials{2, 3}, Lack(metric.CPU)}}},
	NoteSearchEnded: {{"at least 300/s, because in the only trial the search for the capacity " +
		"ended early (late)",
		[]any{Rate(300), OfTrials{1, 1}, "late"}}},
	NoteNoRateHeld: {{"in 1 of 2 trials no rate met the objectives: late",
		[]any{OfTrials{1, 2}, "late"}}},
	NoteBacklogGrew: {{"500/s were offered and 70 % of these requests ended in the window: the " +
		"backlog grew by 150/s, so latency depends on the length of the test (offer less than " +
		"the capacity)",
		[]any{Rate(500), Percent(0.7), Rate(150)}}},
	// (381 + 3 sqrt(381))/380 x 10 s is 11.57 s, and ten times as many 82.5 s of 101 s.
	NoteFewAnswers: {{"an interval needs n ≥ 381 responses in each trial; n was 380 (raise " +
		"--measure to 12s)",
		[]any{Count(381), Count(380), Longer{"--measure", 381, 380, 10e9}}},
		{"an interval needs n ≥ 3,838 responses in each trial; n was 0",
			[]any{Count(3838), Count(0), Longer{"--measure", 3838, 0, 10e9}}}},
	NoteFewIndependent: {{"an interval needs n ≥ 381 independent responses; n was 40",
		[]any{Count(381), Count(40), Longer{"--for", 381, 40, 0}}}},
	NoteNeverAnswered: {{"7 of 1,000 requests got no response, more than the share of requests " +
		"above this percentile", []any{Count(7), Count(1000)}}},
	NoteUnanswered: {{"in a trial 7 of 9 requests got no response, more than the share of " +
		"requests above this percentile", []any{Count(7), Count(9)}}},
	NoteBelowLower: {{"it would be below p99, which leaves out other arrivals near stalls " +
		"(measure on a quieter machine; prony report --stalls keep includes all arrivals)",
		[]any{"p99"}}},
	NoteNoAnswers: {{"no response time was recorded", nil}},
	NoteNoHistogram: {{"no histogram of response times, or a damaged one, in b1, b2",
		[]any{Names{"b1", "b2"}}}},
	NoteAllInvalid:    {{"every trial that offered half is INVALID", []any{"half"}}},
	NoteNotOffered:    {{"no trial of this target offered that load", nil}},
	NoteNeverOffered:  {{"no trial was offered this load", nil}},
	NoteNoTrial:       {{"no trial is usable", nil}},
	NoteNoneGood:      {{"no trial has usable numbers", nil}},
	NoteNoCommonBlock: {{"no value of this target can be paired with a value of b", []any{"b"}}},
	NoteOneTrial:      {{"no interval from a single trial (raise --blocks)", nil}},
	NoteFewStarts: {{"an interval needs at least 2 starts, but the run has 1 (raise --blocks)",
		[]any{2, 1}}},
	NoteFewLive: {{"an interval of a run that was ended early needs at least 4 starts, but the " +
		"run has 3", []any{4, 3}}},
	NoteWideStarts: {{"the interval from 2 starts is valid, but wide (raise --blocks to 4 or more)",
		[]any{2, 4}}},
	NoteNoInterval: {{"no interval: n ≥ 6", []any{Warning("n >= 6")}}},
	NoteIntervalWide: {{"unknown: too few trials, the interval spans more than a factor of 3 " +
		"(raise --blocks)", nil}},
	NoteDifferenceWide: {{"unknown: too few trials, differences below a factor of 3 are not " +
		"detected (raise --blocks)", nil}},
	NoteUnknowns: {{"Unknown: the interval spans more than a factor of 3 (raise --blocks).",
		nil}},
	NoteLackInSome: {{"No value of CPU, RSS (–): in at least one trial " + noCPU + ".",
		[]any{Columns{{Label: "CPU"}, {Label: "RSS"}}, Lack(metric.CPU)}}},
	NoteNoneHeldInSome: {{"No value of req/s (–): in at least one trial no rate met the " +
		"objectives (late).",
		[]any{Columns{{Label: "req/s"}}, "late"}}},
	NoteNoneKnown: {{"No p99 ratio is known: the interval spans more than a factor of 3 (raise " +
		"--blocks).", []any{Columns{{Label: "p99", Role: RoleRatio}}}}},
	NoteStallsReason: {{"Stalls cannot be left out of some values: many stalls are too short to " +
		"be recorded (measure on a quieter machine; prony report --stalls keep includes all " +
		"arrivals).", []any{Stalled{stats.UnrecordedStalls, 0.9}.general()}},
		{"Stalls cannot be left out of some values: less than 60 % of arrivals remain after " +
			"those near stalls are left out (measure on a quieter machine; prony report " +
			"--stalls keep includes all arrivals).",
			[]any{Stalled{stats.TooMuchExcluded, 0.45}.general()}}},

	NoteTrialsMissing: {{"missing in blocks 1–3: the trial was planned, but has no record",
		[]any{Blocks{"block", []int{3, 1, 2}}}},
		{"missing in start 4: the trial was planned, but has no record",
			[]any{Blocks{"start", []int{4}}}}},
	NoteTrialsDoubted: {{"half INVALID in block 2, kept: errors (7 of 9)", []any{fated{&doubt{
		load: "half", grade: "INVALID", blocks: []int{2}, trials: 3, repeat: "block",
		events: []event{{2, "errors", observed{words: "7 of 9"}}}}, kept}}}},
	NoteMayBeOff: {{"half may be off: p99 by up to 41 % (lag, steal), mean by up to more than " +
		"twice its size (lag)", []any{LoadOf("half"), Offs{
		{"p99", units.Ns, 0.4001, []string{"lag", "steal"}, false, ""},
		{"mean", units.Ns, 2.1, []string{"lag"}, false, ""}}}},
		{"peak may be off: req/s ratio by up to 4.0 % (idle work), CPU/request ratio (control)",
			[]any{LoadOf("peak"), Offs{
				{metric.Throughput, units.PerS, 0.04, []string{"idle work"}, true, ""},
				{metric.CPU, units.Ns, 0, []string{"control"}, true, ""}}}},
		{"may be off: ready by up to 9.0 % (steal)", []any{LoadOf(""),
			Offs{{metric.Ready, units.Ns, 0.09, []string{"steal"}, false, ""}}}}},
	NoteRemarked: {{"peak, half: no counter (ask it)",
		[]any{Loads{"peak", "half"}, "no counter", "ask it"}}},
	NoteWarned: {{"all ratios are equal", []any{"all ratios are equal"}}},
	NoteFalseAlarm: {{"a false alarm: the interval excludes 1 although nothing differs. By " +
		"design, one interval in 20 does so; a higher share would mean that the method is broken",
		[]any{Odds(1 / (1 - 0.95))}}},
	NoteVaries: {{"varies in kernel: 6.1 | 6.2", []any{"kernel", Differing{"6.1", "6.2"}}}},
	NoteNoGoodTrial: {{"no good trial: no trial is usable; no trial has usable numbers",
		[]any{Footnote{NoteOf(NoteNoTrial), NoteOf(NoteNoneGood)}}}},
	NoteSkipped: {{"skipped: no compiler", []any{"no compiler"}}},

	NoteRowsVary: {{"Rows differ in kernel, so they are not comparable: 1 (a, b); 2 (c).",
		[]any{"kernel", alike}}},
	NoteRowsSweep: {{"Rows have different loads, as requested: 1 (a, b); 2 (c).", []any{alike}}},
	NoteToolsVary: {{"Rows have different versions of go, which is part of their difference: " +
		"1 (a, b); 2 (c).", []any{"go", alike}}},
	NoteRatios: {{"Each ratio is a target's value divided by that of bare, paired within blocks.",
		[]any{Over{Versus{VersusBaseline, "bare"}, "block"}}},
		{"Each ratio is a target's value divided by that of main, paired within blocks.",
			[]any{Over{Versus{VersusOrigin, "main"}, "block"}}},
		{"Each ratio is the value of a target with its variant divided by its value without " +
			"(bare), " +
			"paired within blocks.",
			[]any{Over{Versus{Kind: VersusBare}, "block"}}},
		{"Each ratio is the value of a target in a container or pod divided by its value as a " +
			"plain process, paired within blocks.",
			[]any{Over{Versus{Kind: VersusProcess}, "block"}}},
		{"Each ratio is arm b's value divided by arm a's of the same target, paired within " +
			"blocks: " +
			"differences from 1 are noise.", []any{Over{Versus{Kind: VersusArm}, "block"}}},
		{"Each ratio is a target's value divided by that of the same target (arm b by arm a, " +
			"with " +
			"its variant by bare, in a container or pod by a plain process, or by the other " +
			"checkout), paired within blocks.", []any{Over{Versus{Kind: VersusMixed}, "block"}}}},
	NoteOnStarts: {{"SUSPECT: b differs in peak throughput by −5.0 % in slices, but by +10 % in " +
		"windows (the lead-in may be too short, or the machine changed between slices and " +
		"windows: run more starts).", []any{OnStarts{Rule: "levels",
		Grade: record.Suspect, Load: "peak",
		Facts: record.Facts{Name: "b", Subject: metric.Throughput, Expected: 0.95,
			Observed: 1.1}}}},
		{"1 of 9 starts excluded, most because b failed (read the target's log: a failure while " +
			"slices run excludes the start for all targets).", []any{OnStarts{Rule: "starts",
			Grade: record.Valid,
			Facts: record.Facts{Name: "b", Count: 1, Total: 9}}}}},
	NoteCopies: {{"Unlike the other targets, these had no fresh copy of their files in each " +
		"start: b (its folder is too large to copy), c (it runs in a container, copying its " +
		"folder failed). Intervals of their ratios do not cover the effect of where these files " +
		"are in memory.", []any{Uncopied{{"b", []string{record.NoCopyLarge}},
		{"c", []string{record.NoCopyContainer, record.NoCopyFailed}}}}}},
	NoteStartNoise: {{"Noise of peak req/s within starts explains 29 % of the scatter of ratios " +
		"between starts; more starts would help, longer slices would not.",
		[]any{LoadOf("peak"),
			"req/s", Percent(0.29), StartAdvice(0.71)}},
		{"Noise of req/s within starts explains 50 % of the scatter of ratios between starts; " +
			"more starts would help most, longer slices (--slices) somewhat.",
			[]any{LoadOf(""),
				"req/s", Percent(0.5), StartAdvice(0.5)}},
		{"Noise of req/s within starts explains 100 % of the scatter of ratios between starts; " +
			"longer slices (--slices) would help as much as more starts.",
			[]any{LoadOf(""),
				"req/s", Percent(1), StartAdvice(0)}}},
	NoteHighScatter: {{"Ratios of peak req/s vary by more than 10 % between blocks (standard " +
		"deviation; up to 5 % is acceptable): b, c. prony doctor reports possible causes.",
		[]any{LoadOf("peak"), "req/s", "block", Names{"b", "c"}}}},
	NoteControlScatter: {{"Intervals of b, c use the scatter of the control, which is " +
		"significantly larger than their own.", []any{Names{"b", "c"}}}},
	NoteRarest: {{"Events that are rarer than one in 0.8 s of load are too rare for these " +
		"starts: their cost is not measured.", []any{0.8}}},
	NoteStartsLost: {{"too many starts were excluded, because a target failed in them", nil}},
	NoteStalled: {
		{
			"unknown without the machine's stalls: many stalls are too short to be recorded " +
				"(measure on a quieter machine; prony report --stalls keep includes all arrivals)",
			[]any{Stalled{stats.UnrecordedStalls, 0.9}},
		},
		{
			"unknown without the machine's stalls: 45 % of arrivals remain after those near " +
				"stalls are left out, but at least 60 % are needed (measure on a quieter " +
				"machine; prony report --stalls keep includes all arrivals)",
			[]any{Stalled{stats.TooMuchExcluded, 0.45}},
		},
		{
			"unknown without the machine's stalls: stalls occur more often, or less often, while " +
				"the service pauses (measure on another machine; prony report --stalls keep " +
				"includes all arrivals)", []any{Stalled{stats.StallsDepend, 0.9}},
		},
	},
	NoteDiscards: {
		{"Response times of half leave out 2 rounds of slices, in which the machine stalled for " +
			"more than 10 % of the time; as many more were measured.",
			[]any{"half", Discards{Rounds: 2}}},
		{"Response times of half leave out 1 round of slices and 3 windows, in which the machine " +
			"stalled for more than 10 % of the time; as many more were measured.",
			[]any{"half", Discards{1, 3}}},
		{"Response times of half leave out 1 window, in which the machine stalled for more than " +
			"10 % of the time; as many more were measured.",
			[]any{"half", Discards{Windows: 1}}},
	},
	NoteStallsInSlices: {{"Ratios of response times of half leave out the arrivals near stalls " +
		"of the machine in slices: stalls took 4.1 % of the time, and 7.0 % of arrivals are left " +
		"out; with them, p99.9 of b is 11.4 ms instead of 230 µs.", []any{"half",
		StallsFound{0.041, 0.07, "b", 0.999, 0.23e6, 11.4e6}}}},
	NoteStallsInWindows: {
		{"The values of p50, p99 in windows of half leave out the arrivals near " +
			"stalls of the machine: stalls took 4.1 % of the time, and 7.0 % of arrivals are " +
			"left out; with them, p99 of b is 11.4 ms instead of 230 µs.",
			[]any{Names{"p50", "p99"}, "half",
				StallsFound{0.041, 0.07, "b", 0.99, 0.23e6, 11.4e6}}},
	},
	NoteStallsRemain: {
		{"The values of p99, p99.9 in windows of half include the machine's stalls, because " +
			"without them those of b are unknown.",
			[]any{Names{"p99", "p99.9"}, "half", "b"}},
	},
	NoteWithStalls: {{"includes the machine's stalls, because without them it is unknown: 45 % " +
		"of arrivals remain after those near stalls are left out, but at least 60 % are needed " +
		"(measure on a quieter machine; prony report --stalls keep includes all arrivals)",
		[]any{Stalled{stats.TooMuchExcluded, 0.45}}}},
	NoteStalledBelow:    {{"unknown without the machine's stalls", nil}},
	NoteWithStallsBelow: {{"includes the machine's stalls", nil}},
	NoteStallsMissing: {{"Response times of half include the machine's stalls, which were not " +
		"recorded (prony doctor reports why).", []any{"half"}}},
	NoteStallsInClosed: {{"Stalls of the machine took, in windows of peak, 4.1 % of the time; " +
		"with them, throughput of b is 51.2k/s, and 53.4k/s (53.1k/s to 53.62k/s) in the time in " +
		"which all cores ran.", []any{"peak", StallsCost{0.041, "b", 51200, 53390, 53100, 53620}}}},
	NoteEqualRate: {
		{"Ratios of half p50, half p99 compare response times at the same rate for all targets " +
			"(1.40k/s to 1.50k/s); the absolute values beside them are at the load's own rate.",
			[]any{MetricsOf{{Load: "half", Name: "p50"}, {Load: "half", Name: "p99"}}, Rate(1400),
				Rate(1500)}},
	},
	NoteSliced: {{"Ratios and tiers of peak req/s, half p99 come from slices, in which the " +
		"targets of a start take turns on the same cores (7 of 8 starts, 280 rounds, 118 s); all " +
		"other numbers come from windows in which each target is loaded alone.",
		[]any{MetricsOf{{Load: "peak", Name: metric.Throughput}, {Load: "half", Name: "p99"}},
			&Starts{Count: 8, Rounds: 280, ElapsedNs: 118e9, Lost: []int{3}}}}},
	NotePlanned: {{"The scatter of ratios between the first starts determined the number of " +
		"starts (14 planned, from the first 6); the intervals of these ratios use that scatter.",
		[]any{14, 6}}},
	NoteGroups: {{"Targets ran in 2 groups that share a: b, c; d. Targets of different groups " +
		"are compared through a, with the errors of both ratios.",
		[]any{2, "a", GroupNames{{"b", "c"}, {"d"}}, "a"}}},
	NoteTiers: {{"Targets in one tier do not differ significantly with these blocks, after " +
		"correcting for all pairs.",
		[]any{"block"}}},
	NoteTiersOfOne: {
		{"Targets in one tier do not differ significantly with these blocks: a " +
			"comparison needs at least 2 blocks.", []any{"block"}},
	},
	NoteTiersPlan: {
		{"Targets in one tier do not differ significantly with these blocks, " +
			"after correcting for all pairs; detecting a " +
			"difference of 3 % would take about 3 more blocks.",
			[]any{"block", Plan{0.03, 8, 5, "block"}}},
		{
			"Targets in one tier do not differ significantly with these blocks, " +
				"after correcting for all pairs; this number is " +
				"enough to detect a difference of 3 %.",
			[]any{"block", Plan{0.03, 5, 5, "block"}},
		},
		{"Targets in one tier do not differ significantly with these blocks, " +
			"after correcting for all pairs; at this noise, no " +
			"sensible number of blocks detects a difference of 3 %.",
			[]any{"block", Plan{0.03, 1001, 5, "block"}}},
	},
	NoteNoiseBetween: {{"Noise of peak req/s: 70 % of it is between trials; longer windows would " +
		"not help, more trials would.", []any{"peak", Percent(0.7), Advice(0.7)}},
		{"Noise of peak req/s: 31 % of it is between trials; more trials would help most, longer " +
			"windows somewhat.", []any{"peak", Percent(0.31), Advice(0.31)}},
		{"Noise of peak req/s: 30 % of it is between trials; longer windows would help as much " +
			"as more trials.", []any{"peak", Percent(0.3), Advice(0.3)}}},
	NoteLogNormal: {{"Intervals from so few trials assume log-normal trials.", nil}},
	NoteModerated: {{"Intervals from so few trials assume log-normal trials and share noise " +
		"estimates between targets (moderated variances).", nil}},
	NoteChanges: {{"Rows below a bare target show changes against that target, paired " +
		"within blocks, with their 99.5 % interval. An interval that includes 0 " +
		"shows no significant difference. A change is unknown if its interval includes 0 and " +
		"spans more than a factor of 3; more blocks make it narrower.",
		[]any{"block", Confidence(0.995)}}},
	NoteUsersThink: {{"half is a closed load whose users think: its throughput follows from its " +
		"response times alone (users / (response + think time)), so it does not show the " +
		"capacity. A slower target also gets fewer requests.", []any{"half"}}},
	NoteLoadIsClosed: {{"peak is a closed load: its req/s is the capacity with that number of " +
		"connections, and its response times include waits for the service.", []any{"peak"}}},
	NoteTelemetry: {{"Values are medians of whole trials, from start to stop, including the " +
		"warm-up. Bytes are OTLP before compression, per request of the loads and the warm-up. " +
		"Not kept: telemetry that was counted, but not stored. CPU of the telemetry collector " +
		"(home): 100 % is one processor, which is not one of the service's.", nil}},
	NoteSlicesUnread: {{"The slices of 2 starts cannot be used, the first of them start 3: no " +
		"file. Rare events and the balance of steal time are not checked there.",
		[]any{"2 starts", 3, "no file"}}},
	NoteNotWhole:   {{"Incomplete: b1 (it is gone).", []any{"b1", "it is gone"}}},
	NoteStepFailed: {{"b1 failed in step ready: no.", []any{"b1", "ready", "no"}}},
	NoteProcesses: {{"Values are medians of the trials, at peak. CPU: 100 % is one processor. " +
		"Ready: time from the exec of that process until it is ready.", []any{"peak"}}},
	NoteResolves: {{"Resolves: the smallest difference between two targets that this number " +
		"of blocks detects in 80 % of runs, at 95 % confidence and with the noise of this run.",
		[]any{"block", Percent(0.8), Confidence(0.95)}}},
}

func TestNoteTexts(t *testing.T) {
	for kind := range noteTexts {
		if len(noteExamples[NoteKind(kind)]) == 0 {
			t.Errorf("no text is tested of the kind %d, %q", kind, noteTexts[kind])
		}
		for _, row := range noteExamples[NoteKind(kind)] {
			if got := NoteOf(NoteKind(kind), row.args...).String(); got != row.want {
				t.Errorf("kind %d of %v reads\n%s\nwant\n%s", kind, row.args, got, row.want)
			}
		}
	}
}

// A row's reason for a missing number names the columns, unless its text begins with their load.
func TestNotesNameColumns(t *testing.T) {
	lost := Note{Kind: NoteTrialsDoubted, Load: "half", Args: []any{"half INVALID"}}
	kept := Note{Kind: NoteTrialsDoubted, Load: "cost", Args: []any{"cost INVALID"}}
	half, cost := Group{GroupLoad, "half", "half"}, Group{Kind: GroupCost, Load: "half"}
	columns := []Column{{Group: half, Label: "p50"}, {Group: half, Label: "p99"},
		{Group: cost, Label: "CPU"}, {Group: cost, Label: "RSS"}}
	bound := withheld(NoteOf(NoteSearchEnded, Rate(3), OfTrials{1, 2}, "late"))
	bound.AtLeast = 3
	for _, row := range []struct {
		want  string
		cells []Cell
	}{
		{"[half INVALID]", []Cell{withheld(lost), withheld(lost)}},
		{"[cost CPU, RSS: half INVALID]", []Cell{withheld(lost), withheld(lost), withheld(lost),
			withheld(lost)}},
		// The columns of cost have no load, whatever a load is called.
		{"[cost CPU: cost INVALID]", []Cell{named("a"), named("b"), withheld(kept)}},
		{"[half p99: no trial is usable]", []Cell{named("a"), withheld(NoteOf(NoteNoTrial))}},
		{"[at least 3.00/s, because in 1 of 2 trials the search for the capacity ended early " +
			"(late)]", []Cell{bound}},
	} {
		r := Row{Cells: row.cells}
		got := "[" + strings.Join(Texts(r.notes(columns)), "; ") + "]"
		if got != row.want {
			t.Errorf("%s, want %s", got, row.want)
		}
	}
}

// A baseline may have any name, also one that a heading gives to references of a kind.
func TestVersusByAnyName(t *testing.T) {
	for _, name := range []string{"bare", "itself", "process", "its own"} {
		records := append(rates(name, 100, 101), rates("a", 50, 52)...)
		study := analyze(records, Options{Baseline: name})
		sc := study.Scenarios[0]
		if want := (Versus{VersusBaseline, name}); sc.Versus != want {
			t.Errorf("versus %+v, want %+v", sc.Versus, want)
		}
		if got := Texts(sc.ratioNote()); len(got) != 1 ||
			got[0] != "Each ratio is a target's value divided by that of "+name+", paired "+
				"within blocks." {
			t.Errorf("%q", got)
		}
	}
}
