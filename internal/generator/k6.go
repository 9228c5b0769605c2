package generator

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"prony.example/internal/base/lazyregexp"
	"prony.example/load/pace"
	"prony.example/record"
)

// k6Script is the constant script of all runs.
//
//go:embed k6.js
var k6Script string

// k6 is github.com/grafana/k6: virtual users that run a script. An open load starts iterations on a
// schedule and drops iterations for which no user is free.
var k6 = &tool{
	name: "k6", get: "go install go.k6.io/k6@latest, or brew install k6",
	request: []string{"version"}, version: lazyregexp.New(`k6 v(\S+)`), text: "k6 v",
	can: ability{closed: true, open: true, shaped: true, users: true, counts: true, keys: true,
		mix: true, renew: true, checks: "exact"},
	grain: time.Millisecond, least: time.Second,
	// 99 is the status of a failed threshold: the run had no good response.
	status: []int{99},
	measures: "a schedule that drops iterations without a free user; time counts from when k6 " +
		"writes the request, without the wait for a connection and without connecting",
	start: startK6,
	read:  readK6,
}

// k6Request is a request in the form that the script reads.
type k6Request struct {
	request
	Index   int   `json:"index"`
	Want    texts `json:"want"`
	HasWant bool  `json:"hasWant"`
}

func startK6(j *job) (command, error) {
	s := j.spec
	scenario, err := j.k6Scenario()
	if err != nil {
		return command{}, err
	}
	spec := map[string]any{ // what the script reads
		"options": map[string]any{"scenarios": map[string]any{"load": scenario},
			"noConnectionReuse": s.Churn == 1, "discardResponseBodies": false},
		"base": "http://" + s.Address.String(), "timeoutMs": s.Timeout.Milliseconds(),
		"keyLo": s.Scenario.KeyLo, "keyHi": s.Scenario.KeyHi,
	}
	if s.Users != nil && s.Users.Think.Kind != "" {
		th := s.Users.Think // in seconds
		spec["think"] = map[string]any{"kind": th.Kind, "lo": th.Lo.Seconds(),
			"hi": th.Hi.Seconds()}
	}
	var requests []k6Request
	for i, r := range j.requests {
		to := k6Request{request: r, Index: i, HasWant: s.Scenario.Requests[i].HasWant}
		if to.Want, err = split(s.Scenario.Requests[i].Want); err != nil {
			return command{}, err
		}
		requests = append(requests, to)
	}
	spec["requests"] = requests
	b, err := json.Marshal(spec)
	if err != nil {
		return command{}, err
	}
	script := filepath.Join(j.dir, "load.js")
	if err := os.WriteFile(filepath.Join(j.dir, "spec.json"), b, 0o600); err != nil {
		return command{}, err
	}
	if err := os.WriteFile(script, []byte(k6Script), 0o600); err != nil {
		return command{}, err
	}
	// k6 connects only to the service: without usage reports, lookup of extensions, or an open
	// port.
	return command{
		argv: []string{j.path, "run", "--quiet", "--no-usage-report", "--address", "", "--no-color",
			script},
		env: []string{"GOMAXPROCS=" + strconv.Itoa(j.threads), "K6_NO_USAGE_REPORT=true",
			"K6_AUTO_EXTENSION_RESOLUTION=false"},
	}, nil
}

// k6Scenario returns the executor for the load.
func (j *job) k6Scenario() (map[string]any, error) {
	s, length := j.spec, j.length.String()
	out := map[string]any{"gracefulStop": s.Drain.String()}
	set := func(pairs ...any) map[string]any {
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i].(string)] = pairs[i+1]
		}
		return out
	}
	switch {
	case s.Model == record.Open:
		set("preAllocatedVUs", s.Connections, "maxVUs", s.Connections)
		if s.Schedule.Rate.IsFlat() {
			// It takes whole rates, so a fraction needs a longer unit of time.
			return set("executor", "constant-arrival-rate", "duration", length,
				"rate", int64(math.Round(j.perS()*1000)), "timeUnit", "1000s"), nil
		}
		first, stages, err := stages(s.Schedule.Rate, j.length, 1000)
		return set("executor", "ramping-arrival-rate", "startRate", first, "timeUnit", "1000s",
			"stages", stages), err
	case s.Requests > 0:
		return set("executor", "shared-iterations", "vus", s.Connections, "iterations", s.Requests,
			"maxDuration", length), nil
	case s.Users != nil && !s.Users.Number.IsFlat():
		first, stages, err := stages(s.Users.Number, j.length, 1)
		return set("executor", "ramping-vus", "startVUs", first, "stages", stages,
			"gracefulRampDown", s.Drain.String()), err
	case s.Users != nil:
		n := int(s.Users.Number.At(0))
		return set("executor", "constant-vus", "vus", n, "duration", length), nil
	}
	return set("executor", "constant-vus", "vus", s.Connections, "duration", length), nil
}

// stagesMax limits the stages of a cyclic profile in a long window.
const stagesMax = 10000

type k6Stage struct {
	Duration string `json:"duration"`
	Target   int64  `json:"target"`
}

// stages converts a profile to k6's linear stages, in integer multiples of 1/unit. A jump is a
// stage of length 0.
func stages(p pace.Profile, length time.Duration, unit float64) (int64, []k6Stage, error) {
	rounded := func(v float64) int64 { return int64(math.Round(v * unit)) }
	atNs := rounded(p.At(0))
	first, out, remaining := atNs, []k6Stage{}, int64(length)
	for i := 0; remaining > 0; i++ {
		if i == len(p.Pieces) && !p.Cycles {
			return first, append(out, k6Stage{time.Duration(remaining).String(), atNs}), nil
		}
		if len(out) > stagesMax {
			return 0, nil, fmt.Errorf("the rate shape needs more than %d stages in k6; use "+
				"prony", stagesMax)
		}
		piece := p.Pieces[i%len(p.Pieces)]
		if from := rounded(piece.From); from != atNs {
			out = append(out, k6Stage{"0s", from})
		}
		long, to := piece.ForNs, piece.To
		if long > remaining {
			to = piece.From + (piece.To-piece.From)*float64(remaining)/float64(long)
			long = remaining
		}
		atNs = rounded(to)
		if long > 0 {
			out = append(out, k6Stage{time.Duration(long).String(), atNs})
		}
		remaining -= long
	}
	return first, out, nil
}

const k6Good = "http_req_duration{expected_response:true}"

func readK6(j *job, out *output) (*tally, error) {
	b, err := os.ReadFile(filepath.Join(j.dir, "summary.json"))
	if err != nil {
		return nil, fmt.Errorf("the k6 script wrote no summary: %w; end of its output: "+
			"%s", err, out.tail())
	}
	s, err := openK6(string(b))
	if err != nil {
		return nil, err
	}
	t, err := s.tally()
	if err != nil {
		return nil, err
	}
	t.errors = record.Errors{Connect: s.sum("prony_connect"), Write: s.sum("prony_write"),
		Read: s.sum("prony_read"), Timeout: s.sum("prony_timeout"),
		Status: s.sum("prony_status"), Body: s.sum("prony_body")}
	if n := t.errors.Total(); n > 0 {
		example(&t.errors, "%d of %d requests failed; run k6 by hand to see the "+
			"reasons", n, s.sum("http_reqs"))
	}
	t.good = max(s.sum("http_reqs")-t.errors.Total(), 0)
	if t.errors.Body > 0 {
		t.note(NoteK6BodyIncluded)
	}
	return t, s.err
}
