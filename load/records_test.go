package load

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/load/pace"
	"prony.example/record"
)

var update = flag.Bool("update", false, "write testdata/records.txt")

// histograms are too long for a text; percentiles stand beside them.
var histograms = regexp.MustCompile(`"hdr":"[^"]*"`)

// hardly answers most requests after 1 to 1.6 ms, and some in every wrong way.
func hardly(c call) reply {
	switch {
	case c.n%97 == 0:
		return reply{} // never
	case c.n%61 == 0:
		return reply{after: time.Millisecond, end: true, op: Reading, err: errors.New("reset")}
	case c.n%53 == 0:
		return reply{after: time.Millisecond, pieces: []string{
			"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno"}}
	case c.n%47 == 0:
		return answer(time.Millisecond, "no")
	case c.n%43 == 0:
		return reply{after: time.Millisecond, pieces: []string{"nonsense\r\n\r\n"}}
	case c.n%41 == 0:
		return reply{after: time.Millisecond, pieces: []string{
			"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"}, end: true}
	case c.n%37 == 0:
		return reply{after: time.Millisecond, gap: 500 * time.Microsecond, pieces: []string{
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "o", "k"}}
	}
	return answer(time.Millisecond+time.Duration(c.n%7)*100*time.Microsecond, "ok")
}

type recordedLoad struct {
	name  string
	serve func(call) reply
	spec  Spec
}

// recorded are loads with a name, in a world that serves them.
func recorded() []recordedLoad {
	get := Request{Method: "GET", Path: "/{key}", Want: "ok", HasWant: true}
	mix := Scenario{KeyHi: 9, Zipf: 1, Requests: []Request{get,
		{Name: "post", Method: "POST", Path: "/", Body: "{seq}", Type: "text/plain", Weight: 3,
			WantSize: -1}}}
	flow := Scenario{Flow: true, KeyHi: 9, Requests: []Request{get, mix.Requests[1]}}
	flow.Requests[0].Pause = 3 * time.Millisecond
	return []recordedLoad{
		{"closed", after(2 * time.Millisecond), Spec{Model: record.Closed, Connections: 3}},
		{"closed, faults", hardly, Spec{Model: record.Closed, Connections: 4}},
		{"closed, mix and churn", hardly, Spec{Model: record.Closed, Connections: 4, Scenario: mix,
			Churn: 5}},
		{"closed, flow", after(2 * time.Millisecond), Spec{Model: record.Closed, Connections: 2,
			Scenario: flow}},
		{"closed, a number", after(2 * time.Millisecond), Spec{Model: record.Closed,
			Connections: 2, Requests: 77, Window: time.Minute}},
		{"open", after(2 * time.Millisecond), Spec{Model: record.Open, Connections: 3,
			Schedule: even(300)}},
		{"open, faults", hardly, Spec{Model: record.Open, Connections: 8,
			Schedule: at(pace.Poisson, 400)}},
		{"open, too much", after(5 * time.Millisecond), Spec{Model: record.Open, Connections: 2,
			Schedule: at(pace.Poisson, 500)}},
		{"open, growing", after(5 * time.Millisecond), Spec{Model: record.Open, Connections: 1,
			Most: 20, Schedule: at(pace.Poisson, 500)}},
		{"open, flow", hardly, Spec{Model: record.Open, Connections: 8, Scenario: flow,
			Schedule: even(100)}},
		{"open, mix", hardly, Spec{Model: record.Open, Connections: 8, Scenario: mix,
			Schedule: at(pace.Poisson, 300)}},
	}
}

// TestRecords checks all fields of the records of some loads in virtual time, apart from the
// generator's own cost.
func TestRecords(t *testing.T) {
	var b strings.Builder
	for _, x := range recorded() {
		x.spec.Lead, x.spec.Drain, x.spec.Timeout = 200*time.Millisecond, time.Second, time.Second
		x.spec.Seed = 3
		w := &world{serve: x.serve, connect: func(n int) (time.Duration, error) {
			if n%11 == 10 {
				return time.Millisecond, errRefused
			}
			return 200 * time.Microsecond, nil
		}}
		l := good(t, w, x.spec).Load
		l.Generator = record.Gen{}
		l.WindowOpenedMonotonicNs, l.WindowOpenedUnixNs = 0, 0
		all, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		all = histograms.ReplaceAll(all, []byte(`"hdr":""`))
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(all, &fields); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "== %s\n%d attempts, %d calls: %q\n", x.name, w.attempts, len(w.calls),
			w.lines()[:min(12, len(w.calls))])
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			fmt.Fprintf(&b, "%s: %s\n", name, fields[name])
		}
	}
	testsets.Golden(t, *update, "testdata/records.txt", b.String())
}
