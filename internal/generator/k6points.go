package generator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// k6Points sums k6's points: one for each value of each metric, in the order in which k6 collects
// them. A request has a point in http_reqs and one in http_req_duration, with the same tags.
type k6Points struct {
	rows
	durations int64 // the number of points of http_req_duration
	requests  int64
}

// k6Point is a point of a request's duration.
type k6Point struct {
	end, elapsed     int64  // end and duration in ns
	expected, status string // tags; empty: k6 was told not to write them
	reason           string // of a failure
}

// duration books a point of http_req_duration. Its time is the end of the request.
func (p *k6Points) duration(o k6Point) error {
	good := false
	status, err := strconv.Atoi(o.status)
	switch {
	case o.expected != "" && o.expected != "true" && o.expected != "false":
		return errors.New("the tag expected_response is neither true nor false")
	case o.expected == "" && err != nil:
		return errors.New("the point has neither the tag expected_response nor a status, so it " +
			"is unknown whether the request failed")
	case o.expected == "true", o.expected == "" && status >= 200 && status < 400:
		p.good++
		good = true
	case err != nil || status == 0:
		reason := o.reason
		if reason == "" {
			reason = "a request received no response"
		}
		blame(&p.errors, reason, 1)
	default:
		p.errors.Status++
		example(&p.errors, "status %d", status)
	}
	p.durations++
	p.add(o.end-o.elapsed, o.elapsed, good)
	return nil
}

// close checks the sums, and adds notes.
func (p *k6Points) close() (*tally, error) {
	missing := p.requests - p.durations
	cut := slices.ContainsFunc(p.notes, func(n Note) bool { return n.Kind == NoteCutRow })
	if p.requests > 0 && missing != 0 && !(cut && missing == 1) {
		return nil, fmt.Errorf("the k6 points have %d requests in http_reqs, but %d in "+
			"http_req_duration", p.requests, p.durations)
	}
	t := p.sum()
	k6Notes(t)
	t.note(NoteSpanOfRequests)
	return t, nil
}

// total adds a point of a counter.
func (p *k6Points) total(name string, value float64) error {
	into := map[string]*int64{"http_reqs": &p.requests, "dropped_iterations": &p.dropped,
		"data_received": &p.bytesIn, "data_sent": &p.bytesOut}[name]
	if value > countMax || float64(*into)+value > countMax {
		return errors.New("the number is too large for a count")
	}
	*into += int64(value)
	return nil
}

// k6Counters are the metrics of total.
var k6Counters = []string{"http_reqs", "dropped_iterations", "data_received", "data_sent"}

// k6JSON is a line of k6 run --out json.
type k6JSON struct {
	Type, Metric string
	Data         struct {
		Time  string
		Value json.RawMessage
		Tags  struct {
			Status           string
			ExpectedResponse string `json:"expected_response"`
			Error            string
		}
	}
}

// importK6JSON reads the points of k6 run --out json. A last line without a line end may be cut.
func importK6JSON(text string) (*tally, error) {
	p, clock := &k6Points{}, &moments{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if strings.TrimSpace(line) == "" {
			continue
		}
		var o k6JSON
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			if !strings.HasSuffix(line, "\n") && number > 1 {
				p.note(NoteCutRow)
				break
			}
			return nil, fmt.Errorf("line %d is not a JSON object of k6: %w", number, err)
		}
		if err := p.json(&o, clock); err != nil {
			if m, ok := errors.AsType[*Misread](err); ok {
				m.Line = number
				return nil, m
			}
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return p.close()
}

func (p *k6Points) json(o *k6JSON, clock *moments) error {
	switch o.Type {
	case "Point":
	case "Metric": // what a metric is
		return nil
	default:
		return &Misread{Column: `"type"`, Text: o.Type, Reason: "it is neither Point nor Metric"}
	}
	value := func() (float64, error) {
		v, err := number(string(bytes.TrimSpace(o.Data.Value)))
		if err != nil {
			return 0, &Misread{Column: `"value"`, Text: string(o.Data.Value), Reason: err.Error()}
		}
		return v, nil
	}
	if o.Metric != "http_req_duration" {
		if !slices.Contains(k6Counters, o.Metric) {
			return nil
		}
		v, err := value()
		if err != nil {
			return err
		}
		return p.total(o.Metric, v)
	}
	v, err := value()
	if err != nil {
		return err
	}
	end, err := clock.ns(o.Data.Time)
	if err != nil {
		return &Misread{Column: `"time"`, Text: o.Data.Time, Reason: err.Error()}
	}
	elapsed, err := scaled(v, 1e6)
	if err == nil && elapsed > histMax {
		err = errTooLong
	}
	if err != nil {
		return &Misread{Column: `"value"`, Text: string(o.Data.Value), Reason: err.Error()}
	}
	tags := &o.Data.Tags
	return p.duration(k6Point{end, elapsed, tags.ExpectedResponse, tags.Status, tags.Error})
}

// importK6Rows reads the points of k6 run --out csv, whose times are whole seconds by default.
func importK6Rows(text string) (*tally, error) {
	s, err := openSheet(text, []string{"metric_name", "timestamp", "metric_value"},
		[]string{"expected_response", "status", "error"})
	if err != nil {
		return nil, err
	}
	p, clock := &k6Points{}, &moments{}
	for s.next() {
		switch name := s.cells[0]; {
		case name == "http_req_duration":
			o := k6Point{s.moment(1, clock), s.span(2, 1e6), s.cells[3], s.cells[4], s.cells[5]}
			if s.err == nil {
				if err := p.duration(o); err != nil {
					s.fail(0, err)
				}
			}
		case slices.Contains(k6Counters, name):
			s.fail(2, p.total(name, s.number(2)))
		}
	}
	if err := s.finish(&p.tally); err != nil {
		return nil, err
	}
	p.coarse(clock)
	return p.close()
}
