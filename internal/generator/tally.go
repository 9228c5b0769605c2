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

// tally holds the numbers of a tool's output.
type tally struct {
	model      string // empty: not in the output
	ratePerS   float64
	durationNs int64 // of its measurement; 0: not in the output
	conns      int   // connections in use; 0: as requested
	threads    int

	good      int64
	errors    record.Errors
	censored  int64 // in progress at the end
	dropped   int64 // due but never sent
	bytesIn   int64
	bytesOut  int64
	response  record.Dist // since a request was due
	service   record.Dist // since it was sent
	firstByte record.Dist
	errored   record.Dist
	connect   record.Dist

	notes []Note // for readers of these numbers
}

func (t *tally) note(kind NoteKind, args ...any) {
	t.notes = append(t.notes, Note{kind, args})
}

// load returns the tally as a load with the requested model.
func (t *tally) load(s *load.Spec) *record.Load {
	t.model = s.Model
	var rate float64
	if s.Model == record.Open {
		rate = s.Schedule.Rate.Mean(int64(s.Lead), int64(s.Lead+s.Window))
		// Requests that were due but never sent are missing. If a tool does not count them, they
		// follow from the rate.
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

// sent counts requests, without failed connects.
func (t *tally) sent() int64 {
	return t.good + t.errors.Total() - t.errors.Connect + t.censored
}

// imported returns a load that has only the output's numbers.
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

// Bounds of a histogram, equal to the own generator's.
const (
	histMax    = int64(time.Hour)
	histDigits = 3
)

// add adds a duration n times. Durations above an hour count as an hour.
func (s *samples) add(ns, n int64) {
	if s.h == nil {
		s.h, s.least = hdrhistogram.New(1, histMax, histDigits), math.MaxInt64
	}
	ns = min(max(ns, 0), histMax)
	// Recording cannot fail, because the value is within the bounds.
	_ = s.h.RecordValues(ns, n)
	s.n += n
	s.sum += float64(ns) * float64(n)
	s.least = min(s.least, ns)
}

// dist summarizes the samples. Percentiles that a coarse clock reports as 0 stay unknown; then the
// histogram, which would report 0, is left out.
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

// blame adds failures to the class that their text indicates. An unknown text counts as a failed
// read.
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

// example keeps the first description of a failure.
func example(e *record.Errors, format string, args ...any) {
	if e.Example == "" {
		e.Example = fmt.Sprintf(format, args...)
	}
}

// answered counts n responses with a status, and reports whether they are good. If no status is
// expected (want is 0), 2xx and 3xx are good, as in the tools themselves.
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

// rows collects single responses from a log.
type rows struct {
	tally
	ok, bad     samples
	first, last int64 // begin of the first and end of the last, in ns
}

// add adds the times of a response or failure that began at a time, in ns.
func (r *rows) add(at, elapsed int64, good bool) {
	if r.ok.n+r.bad.n == 0 || at < r.first {
		r.first = at
	}
	if r.ok.n+r.bad.n == 0 || at+elapsed > r.last {
		r.last = at + elapsed
	}
	r.book(elapsed, good)
	r.durationNs = r.last - r.first
}

func (r *rows) book(ns int64, good bool) {
	if good {
		r.ok.add(ns, 1)
	} else {
		r.bad.add(ns, 1)
	}
}

// coarse adds a note if the times of a log are whole seconds. A duration that this can change by
// more than a tenth stays unknown.
func (r *rows) coarse(clock *moments) {
	switch {
	case !clock.coarse:
	case r.durationNs < int64(10*time.Second):
		r.durationNs = 0
		r.note(NoteFewSeconds)
	default:
		r.note(NoteWholeSeconds)
	}
}

// sum returns the tally of all rows.
func (r *rows) sum() *tally {
	r.service, r.errored = r.ok.dist(), r.bad.dist()
	return &r.tally
}

// binary lists the units of tools that count bytes in powers of 1024.
var binary = map[string]float64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

// percentile reads the number in a tool's name of a percentile, such as p(90); 0 for other names.
func percentile(name string) float64 {
	f, err := strconv.ParseFloat(strings.Trim(name, "p()%"), 64)
	if err != nil {
		return 0
	}
	return f
}

// put sets the field for a tool's name of a time, or for a percentile; it ignores other names.
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
	switch percentile(name) {
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
