package service

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/clock"
)

const (
	// answerLimit limits one answer with its body: the first answer of a system whose JVMs share a
	// core takes ten seconds or more.
	answerLimit = 30 * time.Second
	logLimit    = 2 * time.Second       // for a line to appear in the service's log
	logPoll     = 10 * time.Millisecond // between two reads of the log
)

// Dial opens a connection, like net.Dialer.DialContext.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Checker describes a running service to check against its contracts.
type Checker struct {
	Dial Dial            // nil: TCP
	Base string          // host:port
	Mode string          // the target's: platform, virtual or reactive
	Logs func() []string // all lines that the service has logged; nil: log cases are skipped
	Seed uint64          // for random cases; 0: a new seed for each check
	// Ask sends single requests in another protocol than HTTP/1.1; nil: requests are sent in
	// HTTP/1.1, byte for byte like those of the load. Calls says that Ask sends calls of gRPC.
	Ask   http.RoundTripper
	Calls bool
}

// Report is the result of a check, in the order of the golden cases, followed by the random ones.
type Report struct {
	Contract string
	Cases    []Case
	Heads    []Head // of the answers to the requests that suites measure
}

// Case is the result of one golden case.
type Case struct {
	Name        string
	Request     string   // such as "GET /hello/virtual?key=42"; empty for a rule about all requests
	Differences []string // from the golden answer, in words; none: passed
	Skipped     string   // why it was not sent; empty: it was sent
	TookNs      int64    // from the request to the end of the answer
}

// Failures returns a line for every difference: "GET /hello/virtual?key=42: status 500, want 200".
func (r Report) Failures() []string {
	var out []string
	for _, c := range r.Cases {
		for _, difference := range c.Differences {
			out = append(out, cmp.Or(c.Request, c.Name)+": "+difference)
		}
	}
	return out
}

// Conform sends all golden cases of a contract to a running service and reports each difference. So
// that a service cannot detect a check, it sends the same bytes as the load generator, over one
// connection unless the service closes it. It repeats cases that are quick and change nothing over
// a second connection with the headers of other clients: an answer must depend only on the request
// line and the body. Some keys are random.
//
// Differences are in the report and not in the error. The error reports why the check ended early:
// an unknown contract, no connection, no answer within 30 s, or ctx.
func Conform(ctx context.Context, c Checker, contractName string) (Report, error) {
	return conform(ctx, c, contractName, false)
}

// Quick is Conform without cases that wait, write to the log, change data or move more than 64 KiB,
// and with fewer repeated and random requests, for use inside trials: it takes a few milliseconds
// in addition to the service's own time for /fibonacci.
func Quick(ctx context.Context, c Checker, contractName string) (Report, error) {
	return conform(ctx, c, contractName, true)
}

func conform(ctx context.Context, c Checker, contractName string, quick bool) (Report, error) {
	form := contractName
	if c.Calls {
		form = callForm + contractName
	}
	g, ok := goldens()[form]
	if _, known := goldens()[contractName]; known && !ok {
		return Report{Contract: contractName}, nil
	}
	if !ok {
		return Report{Contract: contractName}, fmt.Errorf("check contract %s: the contract does "+
			"not exist; %s", contractName, oneOf(Contracts()))
	}
	k := newCheck(c, contractName, quick)
	c = k.Checker
	defer k.plain.close()
	defer k.second.close()
	for i, gc := range slices.Concat(g.Cases, k.drawnCases(form)) {
		template := gc.Request
		gc = gc.filled(c.Mode)
		k.Cases = append(k.Cases, Case{Name: gc.Name, Request: gc.Request})
		result := &k.Cases[len(k.Cases)-1]
		switch {
		case quick && !gc.quick():
			result.Skipped = "the case is not part of the quick check"
			continue
		case gc.Logs != "" && c.Logs == nil:
			result.Skipped = "the service's log is not available"
			continue
		}
		if err := k.askCase(ctx, gc, template, result); err != nil {
			return k.Report, fmt.Errorf("check contract %s: %s: %w", contractName, gc.Request, err)
		}
		for j := range result.Differences {
			if i >= len(g.Cases) {
				result.Differences[j] += fmt.Sprintf(" (drawn with seed %d)", c.Seed)
			}
		}
	}
	if c.Logs != nil && !quick {
		k.judgeLogs(ctx)
	}
	return k.Report, nil
}

// check is the state of one run through the cases of a contract.
type check struct {
	Checker
	Report
	quick     bool
	plain     *wire // sends requests as the load generator does
	second    *wire // sends requests as other clients do
	dressed   int   // requests as other clients
	headCase  []int // index of the case of each head
	requested int   // all requests
	linesAt   int   // lines in the log at the start
	logged    []logged
}

// logged is a case that makes the service log a line.
type logged struct {
	index  int
	line   *regexp.Regexp
	before int // matching lines at the start
}

func newCheck(c Checker, contractName string, quick bool) *check {
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	for c.Seed == 0 {
		c.Seed = freshSeed()
	}
	k := &check{Checker: c, Report: Report{Contract: contractName}, quick: quick,
		plain: &wire{dial: c.Dial, base: c.Base}, second: &wire{dial: c.Dial, base: c.Base}}
	if c.Logs != nil {
		k.linesAt = len(c.Logs())
	}
	return k
}

// notKept is the difference of the answer before a request that found its connection closed.
const notKept = "the service closed the connection after the response, want keep-alive"

// lateAgain is how often a correct but late answer is requested again: a busy machine delays a
// single answer, a slow service every one.
const lateAgain = 2

// late reports whether an answer is wrong only because it took too long.
func late(c goldenCase, result *Case) bool {
	return len(result.Differences) == 1 && c.TookMax > 0 && result.TookNs > int64(c.TookMax)
}

// askCase sends one case, again if late, and fills in the result.
func (k *check) askCase(ctx context.Context, c goldenCase, template string, result *Case) error {
	if c.Logs != "" {
		l := logged{index: len(k.Cases) - 1, line: regexp.MustCompile(`^(?:` + c.Logs + `)$`)}
		l.before = l.count(k.Logs())
		k.logged = append(k.logged, l)
	}
	a, err := k.ask(ctx, k.plain, c, nil, result)
	for range lateAgain {
		if err != nil || !late(c, result) {
			break
		}
		result.Differences, result.TookNs = nil, 0
		a, err = k.ask(ctx, k.plain, c, nil, result)
	}
	if err != nil || len(result.Differences) > 0 {
		return err
	}
	headline := slices.Contains(headlines[k.Contract], template)
	if headline {
		k.Heads = append(k.Heads, newHead(template, a))
		k.headCase = append(k.headCase, len(k.Cases)-1)
	}
	if c.Differs {
		if err := k.drawAgain(ctx, c, a.body, result); err != nil {
			return err
		}
	}
	return k.askAsOthers(ctx, c, headline, result)
}

// drawsFull and drawsQuick are the numbers of requests for a body that must differ each time: a
// service with a few prepared bodies runs out of them.
const (
	drawsFull  = 12
	drawsQuick = 2
)

func (k *check) drawAgain(ctx context.Context, c goldenCase, first []byte, result *Case) error {
	bodies, draws := [][]byte{first}, drawsFull
	if k.quick {
		draws = drawsQuick
	}
	for len(bodies) < draws && len(result.Differences) == 0 {
		a, err := k.ask(ctx, k.plain, c, nil, result)
		if err != nil {
			return err
		}
		for _, earlier := range bodies {
			if difference := alike(earlier, a.body); difference != "" {
				result.Differences = append(result.Differences, difference)
				break
			}
		}
		bodies = append(bodies, a.body)
	}
	return nil
}

// askAsOthers repeats a passed case as other clients: as all of them for a request that suites
// measure, as one of them in turn otherwise. Inside trials it repeats only the former, as one
// client.
func (k *check) askAsOthers(ctx context.Context, c goldenCase, headline bool, result *Case) error {
	if !c.quick() || len(result.Differences) > 0 || k.quick && !headline {
		return nil
	}
	times := 1
	if headline && !k.quick {
		times = len(dresses)
	}
	first := k.dressed
	if k.quick {
		first += int(k.Seed % uint64(len(dresses)))
	}
	k.dressed += times
	for i := range times {
		d := &dresses[(first+i)%len(dresses)]
		var again Case
		_, err := k.ask(ctx, k.second, c, d, &again)
		for _, difference := range again.Differences {
			result.Differences = append(result.Differences, fmt.Sprintf(
				"with the headers of %s, over another connection: %s", d.name, difference))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answered is an answer that was checked.
type answered struct {
	reply
	body []byte // for cases with a pattern
}

// ask sends one request and checks its answer. A truncated answer is a difference; the check ends
// if no answer comes within the limit, or no connection.
func (k *check) ask(ctx context.Context, w *wire, c goldenCase, d *dress,
	result *Case) (a answered, err error) {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	wrong := func(text string) {
		if text != "" {
			result.Differences = append(result.Differences, text)
		}
	}
	cached, last := w.cached, w.last
	w.cached, w.last = false, len(k.Cases)-1
	k.requested++
	began := clock.Mono()
	method, _, _ := strings.Cut(c.Request, " ")
	if text := requestText(c, k.Base, d); k.Ask != nil {
		a.Response, err = k.roundTrip(limited, text)
	} else {
		a.reply, err = w.send(limited, method, text)
	}
	if cached && a.fresh && began-w.since < int64(idleLimit) {
		k.closed(last)
	}
	if err != nil {
		return a, k.broken(ctx, limited, err, wrong)
	}
	result.Differences = append(result.Differences, headDifferences(c, a.Response)...)
	if a.StatusCode != c.Status {
		head := make([]byte, excerptBytes)
		n, _ := fill(a.Body, head) // the status suffices; the body may explain it
		wrong(fmt.Sprintf("status %d, want %d; the body begins with %q", a.StatusCode, c.Status,
			head[:n]))
		_ = w.finish(a.reply, false) // the body was not read, so its end cannot be checked
		return a, nil
	}
	difference, body, err := c.readBody(a.Body)
	a.body = body
	if err != nil {
		w.close()
		return a, k.broken(ctx, limited, err, wrong)
	}
	result.TookNs = clock.Mono() - began
	wrong(difference)
	wrong(timeDifference(c, time.Duration(result.TookNs)))
	beyond := w.finish(a.reply, difference == "")
	if beyond != nil {
		wrong(beyond.Error())
	}
	// A service may close the connection if it left a body unread, or after an error. After an
	// ordinary answer it must keep the connection (contract, rule 1).
	ordinary := len(c.sends()) == 0 && c.Status == http.StatusOK && a.ProtoMinor == 1 && d == nil
	if ordinary && a.Close {
		wrong("Connection: close, want keep-alive")
	}
	// A connection that this check closed on a timeout says nothing about the service.
	closed := w.conn == nil && beyond == nil
	w.cached, w.since = ordinary && !a.Close && difference == "" && !closed, clock.Mono()
	return a, nil
}

// roundTrip sends the request of the text in another protocol.
func (k *check) roundTrip(ctx context.Context, text []byte) (*http.Response, error) {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
	if err != nil {
		return nil, err
	}
	return k.Ask.RoundTrip(r.WithContext(ctx))
}

// closed reports a connection that the service should have kept after a case.
func (k *check) closed(last int) {
	differences := &k.Cases[last].Differences
	if !slices.Contains(*differences, notKept) {
		*differences = append(*differences, notKept)
	}
	for i, position := range k.headCase {
		if position == last {
			k.Heads[i].Kept = false
		}
	}
}

// broken converts an error of the connection into a difference of the case, or returns it to end
// the check if more requests would also have to wait.
func (k *check) broken(ctx, limited context.Context, err error, wrong func(string)) error {
	var unconnected noConnection
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		wrong(fmt.Sprintf("no complete response within %v", answerLimit))
		return fmt.Errorf("no complete response within %v", answerLimit)
	case errors.As(err, &unconnected):
		wrong("no connection: " + unconnected.Error())
		return unconnected.error
	}
	wrong("the response was incomplete: " + err.Error())
	return nil
}

func (l logged) count(lines []string) int {
	n := 0
	for _, line := range lines {
		if l.line.MatchString(line) {
			n++
		}
	}
	return n
}

// judgeLogs waits for the expected lines until their time limit and adds differences to the cases,
// last the rule that requests log nothing else.
func (k *check) judgeLogs(ctx context.Context) {
	lines := k.awaitLogs(ctx)
	for _, l := range k.logged {
		n := l.count(lines) - l.before
		c := &k.Cases[l.index]
		switch {
		case n < 1:
			c.Differences = append(c.Differences, fmt.Sprintf(
				"log line missing after %v: no line matches %s", logLimit, l.line))
		case n > 1:
			c.Differences = append(c.Differences, fmt.Sprintf("%d log lines match %s, want 1 line",
				n,
				l.line))
		}
	}
	if k.Ask != nil {
		// Here each request has a connection of its own, which the check closes abruptly. A server
		// may log this, but never under load.
		return
	}
	silent := Case{Name: "the log has no unrequested lines"}
	// A runtime may log lines of its own; lines that grow with the requests come from the requests.
	unasked := len(lines) - k.linesAt - len(k.logged)
	if unasked*2 >= k.requested {
		silent.Differences = []string{fmt.Sprintf("%d log lines for %d requests, but only %d "+
			"requests should log a line; the last line: %q",
			unasked+len(k.logged), k.requested, len(k.logged),
			lines[len(lines)-1])}
	}
	k.Cases = append(k.Cases, silent)
}

func (k *check) awaitLogs(ctx context.Context) []string {
	for waited := time.Duration(0); ; waited += logPoll {
		lines := k.Logs()
		complete := true
		for _, l := range k.logged {
			complete = complete && l.count(lines) > l.before
		}
		if complete || waited >= logLimit {
			return lines
		}
		select {
		case <-ctx.Done():
			return lines
		case <-time.After(logPoll):
		}
	}
}
