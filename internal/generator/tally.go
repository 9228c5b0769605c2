package generator

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// tally is what a tool's output says, in our terms.
type tally struct {
	model      string // as far as the output tells; empty: it does not
	ratePerS   float64
	durationNs int64 // of its measuring; 0: it does not say
	conns      int   // that it really used; 0: as asked
	threads    int

	good      int64
	errors    record.Errors
	censored  int64 // under way when it stopped
	dropped   int64 // due and never sent
	bytesIn   int64
	bytesOut  int64
	response  record.Dist // from when a request was due
	service   record.Dist // from when it was sent
	firstByte record.Dist
	errored   record.Dist
	connect   record.Dist

	notes []string // what the reader must know of these numbers
}

func (t *tally) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// load books the tally under the model that was asked for.
func (t *tally) load(s *load.Spec) *record.Load {
	t.model = s.Model
	var rate float64
	if s.Model == record.Open {
		rate = s.Schedule.Rate.Mean(int64(s.Lead), int64(s.Lead+s.Window))
		// What was due and never sent was not offered as asked; tools that do not count it let the
		// rate tell.
		if t.dropped == 0 {
			due := int64(math.Round(rate * float64(t.durationNs) / 1e9))
			t.dropped = max(due-t.sent(), 0)
		}
	}
	l := t.imported()
	l.RatePerS, l.DrainNs, l.Churn = rate, int64(s.Drain), s.Churn
	if s.Users != nil {
		l.Users, l.Think = s.Users.Number.String(), s.Users.Think.String()
	}
	if s.Model == record.Open {
		l.Arrivals = s.Schedule.Arrivals
		if !s.Schedule.Rate.IsFlat() {
			l.Shape = s.Schedule.Rate.String()
		}
		if l.WindowNs > 0 {
			ended := l.Done + l.Errors.Total()
			l.BacklogPerS = float64(max(l.Scheduled-ended, 0)) / (float64(l.WindowNs) / 1e9)
		}
	}
	return l
}

// sent counts requests; a failed connect was none yet.
func (t *tally) sent() int64 {
	return t.good + t.errors.Total() - t.errors.Connect + t.censored
}

// imported is the load of which nothing is known but what the output says.
func (t *tally) imported() *record.Load {
	l := &record.Load{
		Model: t.model, RatePerS: t.ratePerS, Connections: t.conns, Threads: t.threads,
		WindowNs: t.durationNs, Sent: t.sent(), Scheduled: t.sent() + t.dropped,
		Done: t.good, Answered: t.good, Censored: t.censored + t.dropped,
		BytesIn: t.bytesIn, BytesOut: t.bytesOut, Errors: t.errors,
		ResponseTime: t.response, ServiceTime: t.service, FirstByte: t.firstByte,
		ErrorTime: t.errored, ConnectTime: t.connect,
	}
	if t.durationNs > 0 {
		l.ThroughputPerS = float64(t.good) / (float64(t.durationNs) / 1e9)
	}
	if t.model == record.Closed {
		// A closed request is due when its connection is free: the two are one.
		l.ResponseTime = l.ServiceTime
	}
	if t.model == record.Open {
		l.Arrivals = pace.Constant
	}
	return l
}

// samples collects durations.
type samples struct {
	h     *hdrhistogram.Histogram
	n     int64
	sum   float64
	least int64
}

// Bounds of a histogram, as the generator's own have.
const (
	histMax    = int64(time.Hour)
	histDigits = 3
)

// add books n times the same duration. What is longer than an hour counts as an hour.
func (s *samples) add(ns, n int64) {
	if s.h == nil {
		s.h, s.least = hdrhistogram.New(1, histMax, histDigits), math.MaxInt64
	}
	ns = min(max(ns, 0), histMax)
	// The value is inside of the bounds, so that recording it cannot fail.
	_ = s.h.RecordValues(ns, n)
	s.n += n
	s.sum += float64(ns) * float64(n)
	s.least = min(s.least, ns)
}

// dist summarises. Percentiles that a coarse clock calls 0 stay unknown, and then there is no
// histogram either, which would say 0 of them.
func (s *samples) dist() record.Dist {
	if s.n == 0 {
		return record.Dist{}
	}
	d := record.Dist{
		Count: s.n, MinNs: s.least, MeanNs: s.sum / float64(s.n), MaxNs: s.h.Max(),
		P50Ns: s.h.ValueAtQuantile(50), P90Ns: s.h.ValueAtQuantile(90),
		P99Ns: s.h.ValueAtQuantile(99), P999Ns: s.h.ValueAtQuantile(99.9),
	}
	if s.least < 1 {
		return d
	}
	// Writing to memory cannot fail.
	b, err := s.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic("driver: encode histogram: " + err.Error())
	}
	d.HDR = string(b)
	return d
}

// blame books failures under the class that their text tells. An unknown text is a read that
// failed, for the tool had something else in hand than an answer.
func blame(e *record.Errors, text string, n int64) {
	low := strings.ToLower(text)
	contains := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) })
	}
	switch {
	case contains("broken pipe"):
		e.Write += n
	case contains("reset", "eof", "closed"):
		e.Read += n
	case contains("timeout", "timed out", "deadline"):
		if contains("dial", "connect timed out", "connection timed out", "tcp connect") {
			e.Connect += n
		} else {
			e.Timeout += n
		}
	case contains("refused", "dial", "connect", "unreachable", "no route"):
		e.Connect += n
	case contains("malformed", "parse", "invalid", "protocol"):
		e.Parse += n
	default:
		e.Read += n
	}
	example(e, "%s", strings.Join(strings.Fields(text), " "))
}

// example keeps the first words about a failure.
func example(e *record.Errors, format string, args ...any) {
	if e.Example == "" {
		e.Example = fmt.Sprintf(format, args...)
	}
}

// answered books n answers of a status, and says whether they are good. Where none was asked for,
// those of 2xx and 3xx are, as the tools themselves have it.
func (t *tally) answered(status, want int, n int64) bool {
	switch {
	case status == want, want == 0 && status >= 200 && status < 400:
		t.good += n
		return true
	case want == 0:
		example(&t.errors, "status %d", status)
	default:
		example(&t.errors, "status %d instead of status %d", status, want)
	}
	t.errors.Status += n
	return false
}

// rows are single answers, as a log has them.
type rows struct {
	tally
	unit        float64 // of the log's numbers, in ns
	ok, bad     samples
	first, last int64 // when the first began and the last ended, in that unit
}

// add books the times of an answer, or of a failure, that began at a moment.
func (r *rows) add(atNs, elapsed int64, good bool) {
	if r.first == 0 || atNs < r.first {
		r.first = atNs
	}
	r.last = max(r.last, atNs+elapsed)
	r.book(scaled(float64(elapsed), r.unit), good)
	r.durationNs = scaled(float64(r.last-r.first), r.unit)
}

func (r *rows) book(ns int64, good bool) {
	if good {
		r.ok.add(ns, 1)
	} else {
		r.bad.add(ns, 1)
	}
}

// sum is the tally of all that was added.
func (r *rows) sum() *tally {
	r.service, r.errored = r.ok.dist(), r.bad.dist()
	return &r.tally
}

// binary are the units of tools that count bytes in powers of 1024.
var binary = map[string]float64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

// Numbers in a tool's text have been found by a pattern. What does not fit into our types all the
// same, or makes no sense, is 0, which is unknown.

// countMax bounds a count: no tool sends more in its life, and sums of them do not overflow.
const countMax = 1e15

func integer(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > countMax || n < 0 {
		return 0
	}
	return n
}

func number(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// nanoseconds reads 1.23ms.
func nanoseconds(s string) int64 {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d < 0 {
		return 0
	}
	return int64(d)
}

func millis(s string) int64 { return scaled(number(s), 1e6) }

// secondsOf reads a number of seconds, as hey and oha print them.
func secondsOf(f float64) int64 { return scaled(f, 1e9) }

// scaled turns a value of some unit into nanoseconds; what is beyond a century is no time.
func scaled(f, unit float64) int64 {
	ns := math.Round(f * unit)
	if !(ns > 0 && ns < 100*365*24*float64(time.Hour)) {
		return 0
	}
	return int64(ns)
}

// put fills in a time under the name that a tool has for it, a percentage for one of the record's
// percentiles; others are left out.
func put(d *record.Dist, name string, ns int64) {
	switch strings.ToLower(name) {
	case "min", "fastest":
		d.MinNs = ns
	case "avg", "mean", "average":
		d.MeanNs = float64(ns)
	case "max", "slowest":
		d.MaxNs = ns
	case "med", "median":
		d.P50Ns = ns
	}
	switch number(strings.Trim(name, "p()%")) {
	case 50:
		d.P50Ns = ns
	case 90:
		d.P90Ns = ns
	case 99:
		d.P99Ns = ns
	case 99.9:
		d.P999Ns = ns
	}
}
