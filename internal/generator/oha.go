package generator

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"prony.example/internal/base/lazyregexp"
	"prony.example/record"
)

// oha is github.com/hatoo/oha: a fixed number of workers; with a rate, one task gives out permits
// on a timer of 1 ms, and with --latency-correction time counts from when a permit was given.
var oha = &tool{
	name: "oha", get: "cargo install oha, or brew install oha",
	request: []string{"--version"}, text: "oha", version: lazyregexp.New(`oha (\S+)`),
	can:   ability{closed: true, open: true, counts: true, renew: true, checks: "exact"},
	grain: time.Millisecond,
	measures: "constant, permits from one timer of 1 ms; its clock starts when a permit was " +
		"given, which is after the request was due (closed: before the write)",
	start: startOha,
	read:  readOha,
}

func startOha(j *job) (command, error) {
	s, r := j.spec, &j.requests[0]
	argv := []string{j.path, "--no-tui", "--output-format", "json", "--stats-success-breakdown",
		"-c", strconv.Itoa(s.Connections), "-m", r.Method, "-t", s.Timeout.String(),
		"--redirect", "0", "--disable-compression"}
	var rate []string
	if perS := j.perS(); perS > 0 {
		rate = []string{"--latency-correction", "-q", strconv.FormatFloat(perS, 'f', -1, 64)}
	}
	argv, err := j.common(argv, "--", rate)
	env := []string{"TOKIO_WORKER_THREADS=" + strconv.Itoa(j.threads), "NO_COLOR=1"}
	return command{argv: argv, env: env}, err
}

// ohaSaid is oha's JSON. What it could not compute is null, and stays 0, unknown.
type ohaSaid struct {
	Summary                      *ohaTimes
	LatencyPercentiles           map[string]float64 // in seconds, as all below
	LatencyPercentilesSuccessful map[string]float64
	FirstBytePercentiles         map[string]float64
	Details                      struct{ FirstByte ohaTimes }
	StatusCodeDistribution       map[string]int64
	ErrorDistribution            map[string]int64
}

// ohaTimes are in seconds. Total is the whole run's.
type ohaTimes struct{ Total, Slowest, Fastest, Average, TotalData float64 }

// ohaEnd is what oha calls a request that was under way when its time was up.
const ohaEnd = "aborted due to deadline"

func readOha(j *job, out *output) (*tally, error) {
	t, d, err := parseOha(out.text, j.requests[0].Status)
	if err != nil {
		return nil, err
	}
	if j.spec.Model == record.Open {
		t.response = d
	} else {
		t.service = d
	}
	return t, nil
}

func parseOha(b []byte, want int) (*tally, record.Dist, error) {
	reply := &ohaSaid{}
	if err := json.Unmarshal(b, reply); err != nil {
		return nil, record.Dist{}, fmt.Errorf("its JSON: %w", err)
	}
	if reply.Summary == nil {
		return nil, record.Dist{}, fmt.Errorf("its JSON has no summary")
	}
	t := &tally{durationNs: secondsOf(reply.Summary.Total),
		bytesIn: int64(max(reply.Summary.TotalData, 0))}
	var answers int64
	for status, n := range reply.StatusCodeDistribution {
		answers += max(n, 0)
		t.answered(int(integer(status)), want, max(n, 0))
	}
	for subject, n := range reply.ErrorDistribution {
		if subject == ohaEnd {
			t.censored += max(n, 0)
		} else {
			blame(&t.errors, subject, max(n, 0))
		}
	}
	d := ohaDist(answers, *reply.Summary, reply.LatencyPercentiles)
	if t.errors.Status > 0 && len(reply.LatencyPercentilesSuccessful) > 0 {
		d = ohaDist(t.good, ohaTimes{}, reply.LatencyPercentilesSuccessful)
		t.note("percentiles are of good answers; least, mean and largest were of all: left out")
	} else if t.errors.Status > 0 {
		t.note("its times are of all answers, also of those with an error status")
	}
	if len(reply.FirstBytePercentiles) > 0 {
		t.firstByte = ohaDist(answers, reply.Details.FirstByte, reply.FirstBytePercentiles)
	}
	return t, d, nil
}

func ohaDist(n int64, item ohaTimes, percentiles map[string]float64) record.Dist {
	d := record.Dist{Count: n, MinNs: secondsOf(item.Fastest),
		MeanNs: float64(secondsOf(item.Average)), MaxNs: secondsOf(item.Slowest)}
	for name, v := range percentiles {
		put(&d, name, secondsOf(v))
	}
	return d
}

func importOha(text string) (*tally, error) {
	t, d, err := parseOha([]byte(text), 0)
	if err != nil {
		return nil, err
	}
	t.service = d
	ohaNotes(t)
	return t, nil
}

func ohaNotes(t *tally) {
	t.note("whether it had a rate (-q) and counted from when a permit was given " +
		"(--latency-correction) is not in it")
	if t.errors.Status > 0 {
		t.note("its success rate counts every answer, whatever its status")
	}
}

func importOhaRows(text string) (*tally, error) {
	t, err := importRows(text, "request-start", "request-duration", "status")
	if err != nil {
		return nil, err
	}
	t.note("requests without an answer are not in it")
	ohaNotes(t)
	return t, nil
}

// importOhaText reads oha's summary.
func importOhaText(text string) (*tally, error) {
	t, err := importSummary(text, "sec")
	if err != nil {
		return nil, err
	}
	if t.errors.Status > 0 {
		t.note("its times are of all answers, also of those with an error status")
	}
	ohaNotes(t)
	return t, nil
}
