package generator

import (
	"errors"
	"fmt"
	"strings"

	"prony.example/internal/base/jsontree"
	"prony.example/internal/base/lazyregexp"
	"prony.example/record"
)

// k6Summary is k6's summary in one of its forms. Its times are milliseconds.
//
//   - handleSummary and --summary-export have an object "metrics" of objects; the first one puts
//     their numbers into "values", the second one mixes them with thresholds.
//   - --new-machine-readable-summary, the default of version 2, has a list "results.metrics".
type k6Summary struct {
	fields
	metrics    map[string]*jsontree.Node // objects with the numbers of each metric
	durationNs int64
	failed     string // the name of the number of failed requests in http_req_failed
}

func openK6(text string) (*k6Summary, error) {
	root, err := document(text)
	if err != nil {
		return nil, err
	}
	s := &k6Summary{metrics: map[string]*jsontree.Node{}}
	if list := root.Path("results", "metrics"); list != nil {
		s.failed = "matches"
		s.durationNs = s.span(root.Path("config", "duration"), 1e9)
		for _, m := range list.Inside {
			name, values := m.Field("name"), m.Field("values")
			if name == nil || values == nil {
				return nil, fmt.Errorf("line %d: a metric needs a name and values", m.Line)
			}
			if s.metrics[name.Text] != nil {
				return nil, fmt.Errorf("line %d: the metric %q occurs twice", m.Line, name.Text)
			}
			s.metrics[name.Text] = values
		}
		return s, s.err
	}
	// The metric is "failed", so its passes are failed requests.
	s.failed = "passes"
	s.durationNs = s.span(root.Path("state", "testRunDurationMs"), 1e6)
	for _, m := range members(root.Field("metrics")) {
		s.metrics[m.Key] = m
		if values := m.Field("values"); values != nil {
			s.metrics[m.Key] = values
		}
	}
	return s, s.err
}

// sum returns the total of a counter; 0 if the summary does not have it.
func (s *k6Summary) sum(name string) int64 { return s.count(s.metrics[name].Field("count")) }

// dist reads a trend of n times. Members other than known statistics, such as thresholds, are left
// out.
func (s *k6Summary) dist(name string, n int64) record.Dist {
	d := record.Dist{Count: n}
	for _, v := range members(s.metrics[name]) {
		if k6Statistic.MatchString(v.Key) {
			put(&d, v.Key, s.span(v, 1e6))
		}
	}
	d.MeanNs = s.number(s.metrics[name].Field("avg")) * 1e6
	if c := s.sum(name); c > 0 {
		d.Count = c
	}
	if d == (record.Dist{Count: d.Count}) { // k6 reports any statistics, also without max
		return record.Dist{}
	}
	return d
}

var k6Statistic = lazyregexp.New(`^(avg|min|med|max|p\([\d.]+\))$`)

func (s *k6Summary) tally() (*tally, error) {
	requests := s.sum("http_reqs")
	if requests == 0 && s.err == nil {
		return nil, errors.New("the k6 summary has no http_reqs, so k6 sent no requests")
	}
	t := &tally{durationNs: s.durationNs, dropped: s.sum("dropped_iterations"),
		bytesIn: s.sum("data_received"), bytesOut: s.sum("data_sent")}
	rate := s.metrics["http_reqs"].Field("rate")
	if v := s.number(rate); t.durationNs == 0 && v > 0 {
		ns, err := scaled(float64(requests)/v, 1e9)
		s.fail(rate, err)
		t.durationNs = ns
	}
	failed := s.metrics["http_req_failed"]
	if failed == nil {
		t.note(NoteK6NoFailed)
	} else {
		s.need(failed, s.failed)
		t.errors.Status = s.count(failed.Field(s.failed))
	}
	if t.errors.Status > requests {
		s.fail(failed.Field(s.failed), fmt.Errorf("only %d requests were sent", requests))
	}
	t.good = requests - t.errors.Status
	t.service = s.dist(k6Good, t.good)
	if t.service.Count == 0 {
		t.service = s.dist("http_req_duration", requests)
		if t.errors.Status > 0 {
			t.note(NoteErrorStatus)
		}
	}
	return t, s.err
}

// k6Notes adds notes. k6 drops iterations only with a schedule, and nothing else in the output
// indicates one.
func k6Notes(t *tally) {
	if t.dropped > 0 {
		t.model = record.Open
		t.note(NoteOpenDropped, t.dropped)
	} else {
		t.note(NoteK6Executor)
	}
	t.note(NoteK6Excludes)
}

// k6Kinds marks failures of unknown kinds.
func k6Kinds(t *tally) {
	if t.errors.Status > 0 {
		example(&t.errors, "http_req_failed")
		t.note(NoteK6Kinds)
	}
}

func importK6(text string) (*tally, error) {
	s, err := openK6(text)
	if err != nil {
		return nil, err
	}
	t, err := s.tally()
	if err != nil {
		return nil, err
	}
	k6Notes(t)
	k6Kinds(t)
	return t, nil
}

// Patterns of k6's text. A line is "name....: values".
var (
	k6Line = lazyregexp.New(
		`(?m)^\s*[✓✗]?\s*(\{ ?expected_response:true ?\}|[a-z_]+)\.+:[ \t]*(.*)$`)
	k6Pair = lazyregexp.New(`(avg|min|med|max|p\(90\)|p\(99\)|p\(99\.9\)|count)=(\S+)`)
	// Before version 1.0 "✓ 27 ✗ 526": the ticked number is the failures, because the metric is
	// "failed".
	k6Share = lazyregexp.New(`(\d+)\s+(?:out of|✗)\s+(\d+)`)
	k6Count = lazyregexp.New(`^(\d+)\s+([\d.]+)/s`)
)

// k6Labels are the lines that the patterns must match.
var k6Labels = labels(
	`^\s*[✓✗]?\s*http_req_duration\.+:`, `:\s*(\S+=(count=)?[\d.]+(ns|µs|us|ms|s|m|h)?\S*\s*)+$`,
	`^\s*[✓✗]?\s*http_req_failed\.+:`, `\d+\s+(out of|✗)\s+\d+$`,
	`^\s*[✓✗]?\s*(http_reqs|dropped_iterations)\.+:`, `:\s*\d+\s+[\d.]+/s$`)

// k6Requests is a line that a summary has once.
var k6Requests = lazyregexp.New(`(?m)^\s*[✓✗]?\s*(http_reqs)\.+:`)

// K6Total returns the part of k6's text to the end of its total, which the numbers of its scenarios
// and groups follow (--summary-mode=full).
func K6Total(text string) string {
	const head = "█ "
	before, total, ok := strings.Cut(text, head+"TOTAL RESULTS")
	if !ok {
		return text
	}
	inside, after, _ := strings.Cut(total, head)
	if strings.Contains(after, head+"TOTAL RESULTS") {
		return text // of several runs
	}
	return before + head + "TOTAL RESULTS" + inside
}

// importK6Text parses the text of k6's summary.
func importK6Text(text string) (*tally, error) {
	t, s := &tally{}, newScan(K6Total(text))
	s.check(k6Labels)
	s.once(k6Requests)
	var requests int64
	var all, good record.Dist
	last, names := "", map[string]bool{}
	for _, m := range s.all(k6Line) {
		name := m.group(1)
		if strings.HasPrefix(name, "{") {
			name = last + "{}"
		}
		last, names[name] = m.group(1), true
		values := s.part(m.positions[4], m.positions[5])
		switch name {
		case "http_req_duration":
			all = values.k6Dist()
		case "http_req_duration{}":
			good = values.k6Dist()
		case "http_req_failed":
			if f := values.find(k6Share); f != nil {
				t.errors.Status = f.count(1)
			}
		case "dropped_iterations":
			t.dropped, _ = values.k6Rate()
		case "http_reqs":
			requests, t.durationNs = values.k6Rate()
		}
	}
	if *s.err == nil && requests == 0 {
		return nil, errors.New(`the k6 output has no line such as "http_reqs....: 1000 100/s"; ` +
			"check that it is complete")
	}
	if *s.err == nil && t.errors.Status > requests {
		return nil, fmt.Errorf("http_req_failed counts %d failed requests of %d", t.errors.Status,
			requests)
	}
	t.good = requests - t.errors.Status
	t.service = good
	if good == (record.Dist{}) || good.Count == 0 && t.errors.Status == 0 {
		t.service = all
	}
	if t.service.Count == 0 && t.service != (record.Dist{}) {
		t.service.Count = t.good
	}
	k6Notes(t)
	k6Kinds(t)
	if !names["http_req_failed"] {
		t.note(NoteK6NoFailed)
	}
	if !names["iterations"] {
		t.note(NoteNoIterations)
	}
	return t, *s.err
}

// k6Rate reads a counter and the time that it and its rate give.
func (s *scan) k6Rate() (n, ns int64) {
	c := s.find(k6Count)
	if c == nil {
		return 0, 0
	}
	n = c.count(1)
	if rate := c.number(2); rate > 0 {
		var err error
		ns, err = scaled(float64(n)/rate, 1e9)
		c.fail(2, err)
	}
	return n, ns
}

func (s *scan) k6Dist() record.Dist {
	d := record.Dist{}
	for _, p := range s.all(k6Pair) {
		if p.group(1) == "count" {
			d.Count = p.count(2)
		} else {
			put(&d, p.group(1), p.nanoseconds(2))
		}
	}
	return d
}
