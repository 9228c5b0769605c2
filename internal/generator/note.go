package generator

import "fmt"

// NoteKind is a kind of fact about the numbers of a tool's output.
type NoteKind int

// Note is a fact that readers of a tool's numbers must know: what its output lacks, or what its
// numbers mean. Args are the values in its sentence.
type Note struct {
	Kind NoteKind
	Args []any
}

// String returns the note as a sentence without a period.
func (n Note) String() string { return fmt.Sprintf(noteTexts[n.Kind], n.Args...) }

// Sentences returns notes as sentences.
func Sentences(notes []Note) (out []string) {
	for _, n := range notes {
		out = append(out, n.String())
	}
	return out
}

// Inconsistent reports whether the tool's times contradict each other.
func (n Note) Inconsistent() bool {
	return n.Kind == NoteFallingPercentile || n.Kind == NoteMeanAboveMax
}

// Kinds of notes. noteTexts has their sentences and the order of their values.
const (
	NoteModelUnknown NoteKind = iota
	NoteClosed
	NoteOpen
	NoteOpenFromSending
	NoteOpenDropped
	NoteFallingPercentile
	NoteMeanAboveMax
	NoteCutRow
	NoteRepeatedHeads
	NoteFewerCounted
	NoteNoIterations
	NoteWholeSeconds
	NoteFewSeconds
	NoteSpanOfRequests
	NoteAllResponses
	NoteErrorStatus
	NoteRatedUnknown
	NoteNoUnanswered

	NoteHeyRated
	NoteHeyResolution
	NoteHeyResponses
	NoteHeyFirst
	NoteHeyFirstOnly

	NoteOhaGoodOnly
	NoteOhaRated
	NoteOhaSuccess

	NoteH2loadNoPercentiles

	NoteK6Executor
	NoteK6Excludes
	NoteK6Kinds
	NoteK6BodyIncluded
	NoteK6NoFailed

	NoteJMeterHost
	NoteJMeterBurst
	NoteJMeterModel
	NoteJMeterMillis
	NoteJMeterBelowMilli
	NoteJMeterKinds
	NoteJMeterNoPercentiles
	NoteJMeterMillisOfAll
	NoteJMeterParents
	NoteJMeterNoSuccess
	NoteJMeterGoodStatus

	NoteVegetaOneKind
	NoteVegetaPacer
	NoteVegetaRate
	NoteVegetaDigest
	NoteVegetaCounts

	NoteWrkStatus
	NoteWrkTimeout
	NoteWrkLate
	NoteWrkBackfilled
	NoteWrkRestored
	NoteWrk2Idle
	NoteWrk2Excluded
	NoteWrk2Calibration
	NoteWrk2Rate
)

const omission = " (coordinated omission)"

// noteTexts are the sentences, as formats of package fmt.
var noteTexts = map[NoteKind]string{
	NoteModelUnknown: "the load model is unknown: in a closed load, a stall would hide the " +
		"requests that it delayed" + omission,
	NoteClosed: "closed load: a connection sends its next request after the last response, so a " +
		"stall hides the requests that it delayed" + omission,
	NoteOpen: "open load: requests are due on a schedule",
	NoteOpenFromSending: "open load: requests are due on a schedule, but times count from when a " +
		"request is sent, without the wait before that",
	NoteOpenDropped: "open load: k6 dropped %d iterations that were due, because no user was " +
		"free; no percentile includes them" + omission,
	NoteFallingPercentile: "a higher percentile has a lower time (%d ns after %d ns), so the " +
		"times are left out",
	NoteMeanAboveMax:  "the mean is larger than the maximum, so the mean is left out",
	NoteCutRow:        "the last line was left out, because it ends before its last cell",
	NoteRepeatedHeads: "lines left out, because they repeat the column heads of joined files: %d",
	NoteFewerCounted: "the rate and the time of the output give about %d requests, but its " +
		"statuses and errors count %d: the output may be cut",
	NoteNoIterations: "the output has no line of iterations, so it may be cut; dropped " +
		"iterations may be missing",
	NoteWholeSeconds: "the points in time are whole seconds, so the duration can be off by 1 s " +
		"and the rate with it",
	NoteFewSeconds: "the points in time are whole seconds, so the duration of less than 10 s is " +
		"left out, and the rate with it",
	NoteSpanOfRequests: "the duration is that from the first request to the last response",
	NoteAllResponses: "the percentiles are of all responses, including responses with an error " +
		"status",
	NoteErrorStatus:  "the times are of all responses, including responses with an error status",
	NoteRatedUnknown: "the %s output does not contain whether the run had a rate (%s)",
	NoteNoUnanswered: "the %s output does not contain requests without a response",

	NoteHeyRated: "the hey output does not contain whether the run had a rate (-q); with a rate, " +
		"hey dropped requests while it waited",
	NoteHeyResolution: "the times of hey have steps of 0.1 ms",
	NoteHeyResponses:  "hey stores only its first %d responses",
	NoteHeyFirst: "hey stores only its first %d responses, but its rate counts about %d; nothing " +
		"more is known of the others, and the mean is omitted because hey divides their times " +
		"by the wrong count",
	NoteHeyFirstOnly: "hey stores only its first %d responses: times and statuses of the last %d " +
		"responses are unknown",

	NoteOhaGoodOnly: "percentiles are of good responses; minimum, mean and maximum are left out, " +
		"because they include failed responses",
	NoteOhaRated: "the oha output does not contain whether the run had a rate (-q) and counted " +
		"times from the schedule (--latency-correction)",
	NoteOhaSuccess: "the success rate of oha counts every response, whatever its status",

	NoteH2loadNoPercentiles: "the h2load output has no percentiles; run h2load with --log-file " +
		"and import the log",

	NoteK6Executor: "the k6 output does not contain whether its executor was closed (users) or " +
		"open (a rate)",
	NoteK6Excludes: "the times of k6 exclude waiting for a connection and connecting",
	NoteK6Kinds: "all failed requests count as status errors, because the k6 output does not " +
		"contain their kinds",
	NoteK6BodyIncluded: "the percentiles include responses with a wrong body",
	NoteK6NoFailed: "the k6 output has no http_req_failed, so it is unknown which requests " +
		"failed; all count as good",

	NoteJMeterHost:  "JMeter sends the Host header field with the port appended",
	NoteJMeterBurst: "JMeter sent the requests that were due in %v within %v",
	NoteJMeterModel: "the JMeter output does not contain whether its threads were closed users " +
		"or open arrivals",
	NoteJMeterMillis: "the times of JMeter are in whole milliseconds",
	NoteJMeterBelowMilli: "the times are in whole milliseconds, so responses in less than 1 ms " +
		"have no time",
	NoteJMeterKinds: "all errors count as status errors, because the JMeter summary does not " +
		"contain their kinds",
	NoteJMeterNoPercentiles: "the JMeter summary has no percentiles; save the log (-l) and " +
		"import the log",
	NoteJMeterMillisOfAll: "the times are in whole milliseconds and of all samples, including " +
		"failed ones",
	NoteJMeterParents: "lines left out, because they sum requests that have lines of their own " +
		"(Transaction Controller): %d",
	NoteJMeterNoSuccess: "the file has no column \"success\", so failed assertions are unknown; " +
		"only the response code decides what is an error",
	NoteJMeterGoodStatus: "responses that count as good although their code is not 2xx or 3xx, " +
		"because JMeter marked them as successful: %d",

	NoteVegetaOneKind: "%d requests received no response; all count as the kind of error of the " +
		"first message",
	NoteVegetaPacer: "vegeta counts times from sending, so delays of its pacer are in no time; " +
		"with -max-workers it was a closed load",
	NoteVegetaRate: "the rate is the achieved rate; the vegeta report does not contain the " +
		"requested rate",
	NoteVegetaDigest: "the percentiles are from a t-digest of all requests, including failed ones",
	NoteVegetaCounts: "vegeta reports %d requests, but its status codes count %d",

	NoteWrkStatus:  "wrk counts every status up to 399 as good, not only %d",
	NoteWrkTimeout: "no percentile includes responses later than the timeout of %v",
	NoteWrkLate:    "no percentile includes responses later than wrk's timeout",
	NoteWrkBackfilled: "the percentiles are synthetic: wrk invents samples below each slow one " +
		"(backfill)",
	NoteWrkRestored: "the percentiles exclude samples that wrk invents (backfill); with those " +
		"samples, wrk prints p99 %s",
	NoteWrk2Idle: "wrk2 counted %d timeouts of connections that may have been idle",
	NoteWrk2Excluded: "the latency excludes the first 10 s and 5 ms for each connection, but the " +
		"counts include them",
	NoteWrk2Calibration: "the counts are of the whole run, but the latency excludes the first %v",
	NoteWrk2Rate:        "the wrk2 output does not contain the requested rate",
}
