package generator

import (
	"encoding/json"
	"fmt"

	"prony.example/record"
)

// ohaSaid is oha's JSON. Values that it could not compute are null, and stay 0, unknown.
type ohaSaid struct {
	Summary                      *ohaTimes
	LatencyPercentiles           map[string]float64 // in seconds, as are all below
	LatencyPercentilesSuccessful map[string]float64
	FirstBytePercentiles         map[string]float64
	Details                      struct{ FirstByte ohaTimes }
	StatusCodeDistribution       map[string]int64
	ErrorDistribution            map[string]int64
}

// ohaTimes are in seconds. Total is the duration of the run.
type ohaTimes struct{ Total, Slowest, Fastest, Average, TotalData float64 }

// ohaEnd is oha's name for a request in progress at the end of its time.
const ohaEnd = "aborted due to deadline"

// importOha parses the JSON of github.com/hatoo/oha.
func importOha(text string) (*tally, error) {
	reply := &ohaSaid{}
	if err := json.Unmarshal([]byte(text), reply); err != nil {
		return nil, fmt.Errorf("its JSON: %w", err)
	}
	if reply.Summary == nil {
		return nil, fmt.Errorf("the JSON of oha has no summary")
	}
	t := &tally{durationNs: secondsOf(reply.Summary.Total),
		bytesIn: int64(max(reply.Summary.TotalData, 0))}
	var answers int64
	for status, n := range reply.StatusCodeDistribution {
		answers += max(n, 0)
		t.answered(int(integer(status)), 0, max(n, 0))
	}
	for subject, n := range reply.ErrorDistribution {
		if subject == ohaEnd {
			t.censored += max(n, 0)
		} else {
			blame(&t.errors, subject, max(n, 0))
		}
	}
	t.service = ohaDist(answers, *reply.Summary, reply.LatencyPercentiles)
	if t.errors.Status > 0 && len(reply.LatencyPercentilesSuccessful) > 0 {
		t.service = ohaDist(t.good, ohaTimes{}, reply.LatencyPercentilesSuccessful)
		t.note("percentiles are of good responses; minimum, mean and maximum are left out, " +
			"because they include failed responses")
	} else if t.errors.Status > 0 {
		t.note("the times are of all responses, including responses with an error status")
	}
	if len(reply.FirstBytePercentiles) > 0 {
		t.firstByte = ohaDist(answers, reply.Details.FirstByte, reply.FirstBytePercentiles)
	}
	ohaNotes(t)
	return t, nil
}

func ohaDist(n int64, item ohaTimes, percentiles map[string]float64) record.Dist {
	d := record.Dist{Count: n, MinNs: secondsOf(item.Fastest),
		MeanNs: float64(secondsOf(item.Average)), MaxNs: secondsOf(item.Slowest)}
	for name, v := range percentiles {
		put(&d, name, secondsOf(v))
	}
	return d
}

func ohaNotes(t *tally) {
	t.note("the oha output does not contain whether the run had a rate (-q) and counted times " +
		"from the schedule (--latency-correction)")
	if t.errors.Status > 0 {
		t.note("the success rate of oha counts every response, whatever its status")
	}
}

func importOhaRows(text string) (*tally, error) {
	t, err := importRows(text, "request-start", "request-duration", "status")
	if err != nil {
		return nil, err
	}
	t.note("the oha output does not contain requests without a response")
	ohaNotes(t)
	return t, nil
}

// importOhaText parses oha's text.
func importOhaText(text string) (*tally, error) {
	t, err := importSummary(text, "sec")
	if err != nil {
		return nil, err
	}
	if t.errors.Status > 0 {
		t.note("the times are of all responses, including responses with an error status")
	}
	ohaNotes(t)
	return t, nil
}
