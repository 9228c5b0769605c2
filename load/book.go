package load

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/load/arrivalcheck"
	"prony.example/load/engine/socket"
	"prony.example/record"
)

// class is a way in which a request can fail.
type class uint8

const (
	failConnect class = iota
	failWrite
	failRead
	failTimeout
	failParse
	failStatus
	failBody
	unasked    // bytes without a request; fails no request
	failClosed // the server did not process it, and it must not be sent twice
	classes
)

// Classes is the number of ways in which a request can fail.
const Classes = int(classes)

// ClassNames are the names of the failure classes as in record.Errors, in the order of
// Totals.Errors.
var ClassNames = [Classes]string{"connect", "write", "read", "timeout", "parse", "status", "body",
	"unsolicited", "closed"}

// reason is why a request or a connect failed.
type reason struct {
	text  string       // empty: the class implies it
	party socket.Party // that caused it
}

// because returns a reason that the service caused.
func because(text string) reason { return reason{text: text} }

// Histograms cover 1 ns to 18 minutes with three significant digits; longer times count as the
// longest. Pages of a range without values are never touched and cost no memory.
const (
	histMax    = 1 << 40
	histDigits = 3
)

func newHist() *hdrhistogram.Histogram { return hdrhistogram.New(1, histMax, histDigits) }

// recordNs records a duration. It clamps values outside the range instead of dropping them, because
// a dropped value would make the distribution look faster.
func recordNs(h *hdrhistogram.Histogram, ns int64) {
	if ns < 1 {
		ns = 1
	} else if ns > histMax {
		ns = histMax
	}
	// The value is in range, so RecordValue cannot fail.
	_ = h.RecordValue(ns)
}

// book accumulates what one worker measured. A request belongs to the window if it was due in it
// (in a closed load: sent in it). Throughput counts responses by arrival time. Neither rule
// excludes slow requests.
type book struct {
	openAt, closeAt int64
	endedAt         int64 // the window's end, or an earlier end of the load
	openedAt        int64 // when the thread first ran in the open window; 0: not yet
	boundary        int64 // when cross must be called next

	total     int64 // good responses ever, for the progress line
	all       Totals
	sentInWin int64 // due in the window and sent before its end
	dueInWin  int64 // due in the window and sent at all
	doneInWin int64 // good responses that came inside the window
	answered  int64 // good responses to requests due in the window
	failures  [classes]int64
	exampleOf string
	unnamed   bool   // the protocol is not the one that request lines name
	party     string // that caused the example; empty: the service
	inBytes   int64
	outBytes  int64
	early     int64 // responses that were complete before their request was sent
	renewed   int64
	retried   int64 // repeated sends of requests that were due in the window
	waited    int64
	carriedNs int64 // time in the window spent on requests that were due before it
	leftNs    int64 // time after the window spent on requests that were due in it
	area      int64 // ∫ requests under way dt over the window, ns
	levelAt   int64
	flows     flowCounts // of flows that were due in the window
	spinNs    int64
	strain    strain
	turns     int64
	batchMax  int64
	stillNs   int64 // longest delay of a turn of the loop, from the window's opening on

	response, service, first, lag, ownLag, errored, connectT *hdrhistogram.Histogram

	punctual *hdrhistogram.Histogram // response time minus the bound of own delays

	flowTime *hdrhistogram.Histogram // nil: no flows
	routes   []routeBook             // empty if there is only one route, because response covers it
	shown    *part                   // since the last progress report; nil: nobody reads it
	sample   arrivalcheck.Times      // of the window's first requests
	traced   *shelves                // nil: no request is traced

	grid      grid
	cur       int
	curEnd    int64
	intervals []interval

	cpuOpen, cpuClose threadUsage
	usage             func() threadUsage
}

// interval is one step of the window's series.
type interval struct {
	sent, done, failed int64
	ended              int64                   // turns that ended, successfully or not
	response           *hdrhistogram.Histogram // by arrival of the response
}

// flowCounts counts the flows that were due in the window by outcome.
type flowCounts struct{ begun, ended, good int64 }

// routeBook accumulates what one kind of request, or one step of a flow, measured.
type routeBook struct {
	sent, answered, failed int64
	response, service      *hdrhistogram.Histogram
}

// sampleMax bounds the requests whose times are kept one by one: the first ones of the window.
const sampleMax = 1 << 16

func newBook(g grid, usage func() threadUsage) *book {
	b := &book{
		openAt: never, closeAt: never, boundary: never, grid: g, usage: usage,
		response: newHist(), service: newHist(), first: newHist(), lag: newHist(),
		ownLag: newHist(), errored: newHist(), connectT: newHist(), punctual: newHist(),
	}
	b.intervals = make([]interval, g.count())
	for i := range b.intervals {
		b.intervals[i].response = newHist()
	}
	return b
}

// schedule sets the book's window. It drops an example from before, which belongs to no count.
func (b *book) schedule(openAt, closeAt int64) {
	b.exampleOf, b.party = "", ""
	b.openAt, b.closeAt, b.boundary = openAt, closeAt, openAt
	b.curEnd = openAt + b.grid.end(0)
	b.levelAt = openAt
	b.spinNs, b.strain.handled, b.strain.starving = 0, 0, 0
}

// cross records the thread's own CPU time at both ends of the window.
func (b *book) cross(now int64) {
	if b.boundary == b.openAt {
		b.openedAt, b.cpuOpen, b.boundary = now, b.usage(), b.closeAt
	}
	if now >= b.closeAt {
		b.cpuClose, b.boundary = b.usage(), never
	}
}

// end closes the book with n requests under way. They get no response that would change the level,
// so end books their time up to now.
func (b *book) end(now int64, n int) {
	b.level(now, n)
	b.endedAt = min(now, b.closeAt)
	if b.boundary == b.closeAt { // stopped inside the window
		b.cpuClose, b.boundary = b.usage(), never
	}
}

func (b *book) inside(t int64) bool { return t >= b.openAt && t < b.closeAt }

// at returns the interval of a moment inside the window. Moments must be about in order.
func (b *book) at(t int64) *interval {
	for t >= b.curEnd && b.cur < len(b.intervals)-1 {
		b.cur++
		b.curEnd = b.openAt + b.grid.end(b.cur)
	}
	return &b.intervals[b.cur]
}

// level adds to the time integral that n requests were under way since the last call. An engine
// that queues events can report moments out of order; the difference is then negative and corrects
// the sum.
func (b *book) level(now int64, n int) {
	inside := func(t int64) int64 { return min(max(t, b.openAt), b.closeAt) }
	b.area += int64(n) * (inside(now) - inside(b.levelAt))
	b.levelAt = now
}

// extend allocates what only flows, mixes or progress reports need.
func (b *book) extend(p *plan, samples int, show bool) {
	if len(p.routes) > 1 {
		b.routes = make([]routeBook, len(p.routes))
		for i := range b.routes {
			b.routes[i].response, b.routes[i].service = newHist(), newHist()
		}
	}
	if p.flow {
		b.flowTime = newHist()
	}
	if show {
		b.shown = newPart()
	}
	b.sample = arrivalcheck.Times{
		Due: make([]int64, 0, samples), Left: make([]int64, 0, samples),
		Response: make([]int64, 0, samples),
	}
}

// sent books a request that leaves now. Its connection has been free since c.since.
func (b *book) sent(c *conn, now int64) {
	b.all.Sent++
	if b.shown != nil {
		recordNs(b.shown.lag, now-c.due)
	}
	if b.inside(now) {
		b.at(now).sent++
		b.outBytes += int64(len(c.out))
	}
	c.sample = 0
	due := c.due
	if !b.inside(due) {
		return
	}
	b.dueInWin++
	if now < b.closeAt {
		b.sentInWin++
	}
	if b.routes != nil {
		b.routes[c.route.index].sent++
	}
	recordNs(b.lag, now-due)
	if c.since > due {
		b.waited++
		due = c.since
	}
	recordNs(b.ownLag, now-due)
	if n := len(b.sample.Due); n < cap(b.sample.Due) {
		c.sample = int32(n) + 1
		b.sample.Due = append(b.sample.Due, c.due)
		b.sample.Left = append(b.sample.Left, c.due+now-due)
		b.sample.Response = append(b.sample.Response, 0)
	}
}

// sentAgain books a repeated send. Only the first send counts as the request.
func (b *book) sentAgain(c *conn) {
	if b.inside(c.sent) {
		b.outBytes += int64(len(c.out))
	}
	if b.inside(c.due) {
		b.retried++
	}
}

// unsent corrects the bytes sent by those of a request that never left.
func (b *book) unsent(c *conn, n int) {
	if b.inside(c.sent) {
		b.outBytes -= int64(n)
	}
}

// answeredEarly books a response that was complete before its request was sent.
func (b *book) answeredEarly(c *conn) {
	if b.inside(c.due) {
		b.early++
	}
}

// began books a flow that was due.
func (b *book) began(due int64) {
	if b.inside(due) {
		b.flows.begun++
	}
}

// ended books the end of a flow. The flow is good if all its responses were.
func (b *book) ended(c *conn, now int64, good bool) {
	if b.inside(now) {
		b.at(now).ended++
	}
	if !b.inside(c.begun) {
		return
	}
	b.flows.ended++
	if good {
		b.flows.good++
		recordNs(b.flowTime, now-c.begun)
	}
}

// turn books a turn of the loop that processed n pieces of responses. Before it, a number of
// requests was under way.
func (b *book) turn(now, n, under int64) {
	if b.inside(now) {
		b.turns++
		b.batchMax = max(b.batchMax, n)
		b.strain.count(n)
	}
	b.strain.n, b.strain.under = n, under
}

// stood books a turn of the loop that began later than planned. The loop and its engine never wait
// longer than a tick, so the whole thread was not running meanwhile. Requests under way when the
// window closes are delayed too, so the time after it counts.
func (b *book) stood(from, to int64) { b.stillNs = max(b.stillNs, to-max(from, b.openAt)) }

// longestPollNs bounds what a poll counts. A longer poll was interrupted: other threads used the
// time, and it is not part of this thread's CPU time.
const longestPollNs = 20_000

// spun books the time of a poll that found nothing.
func (b *book) spun(from, to int64) {
	if b.inside(from) {
		b.spinNs += min(to-from, longestPollNs)
	}
}

func (b *book) bytesIn(now int64, n int) {
	b.all.BytesIn += int64(n)
	if b.inside(now) {
		b.inBytes += int64(n)
	}
}

// edges books how much of a request's time lies outside the window, or came into it from before.
// Without both, the mean number of requests under way would not match the times of the requests
// that count (Little's law).
func (b *book) edges(c *conn, now int64) {
	if b.openAt == never {
		return
	}
	if c.due < b.openAt {
		b.carriedNs += max(min(now, b.closeAt)-max(c.sent, b.openAt), 0)
	} else if c.due < b.closeAt {
		b.leftNs += max(now-max(c.sent, b.closeAt), 0)
	}
}

func (b *book) done(c *conn, now int64) {
	b.total++
	b.edges(c, now)
	if b.shown != nil {
		recordNs(b.shown.response, now-c.due)
	}
	if b.inside(now) {
		b.doneInWin++
		iv := b.at(now)
		iv.done++
		recordNs(iv.response, now-c.due)
	}
	if b.inside(c.due) {
		b.answered++
		recordNs(b.first, c.first-c.sent)
		b.took(c, now)
		if b.routes != nil {
			b.routes[c.route.index].answered++
		}
		if c.traced {
			b.traced.note(c, now, false, true)
		}
	}
}

// took books how long a response took, or how long the request waited before it timed out. A
// request that never left has no service time.
func (b *book) took(c *conn, now int64) {
	recordNs(b.response, now-c.due)
	recordNs(b.punctual, now-c.due-c.late)
	if !c.pending {
		recordNs(b.service, now-c.sent)
	}
	if c.sample > 0 {
		b.sample.Response[c.sample-1] = max(now-c.due, 1)
	}
	if b.routes != nil {
		r := &b.routes[c.route.index]
		recordNs(r.response, now-c.due)
		if !c.pending {
			recordNs(r.service, now-c.sent)
		}
	}
}

// failed books a request that failed. A timeout enters the response times at its bound: the
// response took at least that long, and leaving it out would flatter the tail.
func (b *book) failed(c *conn, now int64, f class, why reason) {
	b.all.Failed++
	b.all.Errors[f]++
	b.edges(c, now)
	if b.inside(now) {
		b.at(now).failed++
	}
	if !b.inside(c.due) {
		return
	}
	b.failures[f]++
	recordNs(b.errored, now-c.due)
	if b.routes != nil {
		b.routes[c.route.index].failed++
	}
	if f == failTimeout {
		b.took(c, now)
		if b.shown != nil {
			recordNs(b.shown.response, now-c.due)
		}
	}
	if c.traced {
		b.traced.note(c, now, true, f == failTimeout)
	}
	if b.exampleOf == "" {
		b.exampleOf, b.party = b.example(f, c, why)
	}
}

func (b *book) connected(ns int64) { recordNs(b.connectT, ns) }

// refused books a connect that failed. Like stray bytes, it is not a request, so no interval counts
// it: the backlog is arrivals that did not end, and a refused connect ends none. Before the window
// is scheduled, it explains why the load cannot begin.
func (b *book) refused(now int64, why reason) {
	b.beside(now, failConnect, reason{"connect: " + why.text, why.party})
}

// stray books bytes that belong to no response. A server can send them after a response to HEAD,
// which must have no body (RFC 9110, section 9.3.2).
func (b *book) stray(now int64, n int, afterHead bool) {
	subject := "an unsolicited response ("
	if afterHead {
		subject = "bytes after a response to HEAD ("
	}
	b.beside(now, unasked, because(subject+strconv.Itoa(n)+" bytes)"))
}

func (b *book) beside(now int64, f class, why reason) {
	b.all.Errors[f]++
	if b.inside(now) {
		b.failures[f]++
	} else if b.openAt != never {
		return
	}
	if b.exampleOf == "" {
		b.exampleOf, b.party = why.text, string(why.party)
	}
}

func (b *book) reconnected(now int64) {
	if b.inside(now) {
		b.renewed++
	}
}

// example describes a failure and returns the party that caused it. Only the first is kept, so it
// may allocate.
func (b *book) example(f class, c *conn, why reason) (text, party string) {
	line := c.out
	for i, x := range line {
		if x == '\r' {
			line = line[:i]
			break
		}
	}
	if b.unnamed { // engines translate the request
		line = bytes.TrimSuffix(line, []byte(" HTTP/1.1"))
	}
	switch f {
	case failStatus:
		why = c.unlike()
	case failBody:
		if why.text != "" {
			break
		}
		why.text = fmt.Sprintf("body of %d bytes is not the expected one (%d bytes)",
			c.resp.Bytes, max(int64(len(c.want)), c.route.size)) + c.difference()
	case failTimeout:
		why.text = "no whole answer within the timeout"
	}
	return fmt.Sprintf("%s: %s", line, why.text), string(why.party)
}

// difference describes at which byte a compared body differs from the expected one, and how.
func (c *conn) difference() string {
	want := c.want[c.pos:min(len(c.want), c.pos+oddMax)]
	switch {
	case c.dirty && len(want) > 0:
		return fmt.Sprintf(": byte %d begins %q, want %q", c.pos+1, c.odd[:c.odds], want)
	case c.dirty:
		return fmt.Sprintf(": it goes on with %q", c.odd[:c.odds])
	case len(want) > 0:
		return fmt.Sprintf(": it lacks %q", want)
	}
	return ""
}

func (b *book) errors() record.Errors {
	out := ErrorsOf(b.failures)
	out.Example, out.Party = b.exampleOf, b.party
	return out
}

// ErrorsOf names failures by class, such as Totals.Errors.
func ErrorsOf(f [Classes]int64) record.Errors {
	return record.Errors{
		Connect: f[failConnect], Write: f[failWrite], Read: f[failRead], Timeout: f[failTimeout],
		Parse: f[failParse], Status: f[failStatus], Body: f[failBody], Unsolicited: f[unasked],
		Closed: f[failClosed],
	}
}

// threadUsage is the CPU time that one thread has used since it began.
type threadUsage struct {
	cpuNs    int64 // user and system, getrusage(2)
	delayNs  int64 // runnable but waiting for a processor, /proc/thread-self/schedstat
	switches int64 // involuntary
}

func (u threadUsage) minus(v threadUsage) threadUsage {
	return threadUsage{u.cpuNs - v.cpuNs, u.delayNs - v.delayNs, u.switches - v.switches}
}
