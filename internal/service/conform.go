package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"sync/atomic"
	"time"

	"prony/internal/clock"
)

const (
	answerLimit = 10 * time.Second      // for one answer, body included
	logLimit    = 2 * time.Second       // for a line to come out of the service's log
	logPoll     = 10 * time.Millisecond // between two looks at it
)

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Checker is a running service, to be held against its contracts.
type Checker struct {
	Dial Dial            // nil: TCP
	Base string          // host:port
	Mode string          // the target's: platform, virtual or reactive
	Logs func() []string // all lines that the service wrote so far; nil: log cases are skipped
}

// Report is what a check found, in the order of the golden cases.
type Report struct {
	Contract string
	Cases    []Case
}

// Case is one golden case of a report.
type Case struct {
	Name        string
	Request     string   // as "GET /hello/virtual?key=42"; empty for a rule about all requests
	Differences []string // from the golden answer, in words; none: it passed
	Skipped     string   // why it was not asked; empty: it was
	TookNs      int64    // from the request to the end of the answer
}

// Failures gives a line for every difference, as "GET /hello/virtual?key=42: status 500, want 200".
func (r Report) Failures() []string {
	var out []string
	for _, c := range r.Cases {
		what := c.Request
		if what == "" {
			what = c.Name
		}
		for _, difference := range c.Differences {
			out = append(out, what+": "+difference)
		}
	}
	return out
}

// OK says whether every case that was asked passed.
func (r Report) OK() bool { return len(r.Failures()) == 0 }

// Conform asks a running service all golden cases of a contract, over one connection unless the
// service closes it, and reports each difference. Where an answer differs, the report says so and
// the error is nil; the error is for what ended the check: no such contract, no connection, no
// answer within 10 s, or ctx.
func Conform(ctx context.Context, c Checker, contractName string) (Report, error) {
	return conform(ctx, c, contractName, false)
}

// Quick is Conform without the cases that wait, write to the log or move more than 64 KiB, for use
// inside trials: a few milliseconds beside what the service itself takes for /fibonacci.
func Quick(ctx context.Context, c Checker, contractName string) (Report, error) {
	return conform(ctx, c, contractName, true)
}

func conform(ctx context.Context, c Checker, contractName string, quick bool) (Report, error) {
	report := Report{Contract: contractName}
	g, ok := goldens()[contractName]
	if !ok {
		return report, fmt.Errorf("check contract %s: there is no such contract; %s",
			contractName, oneOf(Contracts()))
	}
	k := newCheck(c)
	defer k.transport.CloseIdleConnections()
	for _, gc := range g.Cases {
		gc = gc.filled(c.Mode)
		result := Case{Name: gc.Name, Request: gc.Request}
		switch {
		case quick && !gc.quick():
			result.Skipped = "not part of the quick check"
		case gc.Logs != "" && c.Logs == nil:
			result.Skipped = "the service's log is not at hand"
		default:
			before := k.last
			k.last = len(report.Cases)
			closed, err := k.askCase(ctx, gc, &result)
			if closed {
				last := &report.Cases[before]
				last.Differences = append(last.Differences, notKept)
			}
			if err != nil {
				report.Cases = append(report.Cases, result)
				return report, fmt.Errorf("check contract %s: %s: %w", contractName, gc.Request,
					err)
			}
		}
		report.Cases = append(report.Cases, result)
	}
	if c.Logs != nil && !quick {
		report.Cases = k.judgeLogs(ctx, report.Cases)
	}
	return report, nil
}

// check is one run through the cases of a contract.
type check struct {
	Checker
	transport *http.Transport
	keep      bool // the last answer was one after which the connection must be kept
	last      int  // index of the case that was asked last
	asked     int  // requests
	linesAt   int  // lines in the log at the start
	logged    []logged
}

// logged is a case that makes the service log a line.
type logged struct {
	index  int
	line   *regexp.Regexp
	before int // matching lines at the start
}

func newCheck(c Checker) *check {
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := c.Dial(ctx, network, address)
		if err != nil {
			return nil, noConnection{err}
		}
		return conn, nil
	}
	k := &check{Checker: c, transport: &http.Transport{
		DialContext: dial, DisableCompression: true,
		// Head and small body leave in one write: a service that answers without reading the body
		// may have closed the connection before a second one.
		WriteBufferSize: 16 << 10,
	}}
	if c.Logs != nil {
		k.linesAt = len(c.Logs())
	}
	return k
}

// noConnection is a failed dial, apart from what may go wrong on a connection.
type noConnection struct{ error }

func (e noConnection) Unwrap() error { return e.error }

// notKept is said of the answer before the request that found its connection closed.
const notKept = "the connection was closed after the answer, want keep-alive"

// askCase asks one case and fills in the result. It says whether the connection, which the case
// before should have left open, was closed.
func (k *check) askCase(ctx context.Context, c goldenCase, result *Case) (closed bool, err error) {
	if c.Logs != "" {
		l := logged{index: k.last, line: regexp.MustCompile(`^(?:` + c.Logs + `)$`)}
		l.before = l.count(k.Logs())
		k.logged = append(k.logged, l)
	}
	first, closed, err := k.ask(ctx, c, result)
	if err != nil || !c.Differs || len(result.Differences) > 0 {
		return closed, err
	}
	second, closedAgain, err := k.ask(ctx, c, result)
	if closedAgain {
		result.Differences = append(result.Differences, notKept)
	}
	if err == nil && bytes.Equal(first, second) {
		result.Differences = append(result.Differences,
			"the same body twice, want it drawn anew on every request")
	}
	return closed, err
}

// ask sends one request and judges its answer. An answer that breaks off is a difference; none at
// all within the limit, or no connection, ends the check.
func (k *check) ask(ctx context.Context, c goldenCase, result *Case) (body []byte, closed bool,
	err error) {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	wrong := func(text string) {
		if text != "" {
			result.Differences = append(result.Differences, text)
		}
	}
	kept := k.keep
	k.keep = false
	k.asked++
	began := clock.Mono()
	response, fresh, err := k.send(limited, c)
	closed = kept && fresh
	if err != nil {
		return nil, closed, k.broken(ctx, limited, err, wrong)
	}
	defer func() { _ = response.Body.Close() }()
	result.Differences = append(result.Differences, headDifferences(c, response)...)
	if response.StatusCode != c.Status {
		head := make([]byte, excerptBytes)
		n, _ := fill(response.Body, head) // the status says it all; the words help
		wrong(fmt.Sprintf("status %d, want %d; the body begins %q", response.StatusCode, c.Status,
			head[:n]))
		return nil, closed, nil
	}
	difference, body, err := c.readBody(response.Body)
	if err != nil {
		return nil, closed, k.broken(ctx, limited, err, wrong)
	}
	result.TookNs = clock.Mono() - began
	wrong(difference)
	wrong(timeDifference(c, time.Duration(result.TookNs)))
	// Bodies that were sent may stay unread, and errors may be answered in haste: after both a
	// service may close. After an ordinary answer it keeps the connection (contract, rule 1).
	ordinary := len(c.sends()) == 0 && c.Status == http.StatusOK && response.ProtoMinor == 1
	if ordinary && response.Close {
		wrong("Connection: close, want keep-alive")
	}
	k.keep = ordinary && !response.Close && difference == ""
	return body, closed, nil
}

// send gives the answer's head, and whether it came over a new connection. A request that finds its
// connection closed by the service without having got a byte is sent again, once (RFC 9112, 9.3.1).
func (k *check) send(ctx context.Context, c goldenCase) (r *http.Response, fresh bool, err error) {
	method, target, _ := bytes.Cut([]byte(c.Request), []byte(" "))
	for try := 0; ; try++ {
		var reused bool
		var answered atomic.Bool // told by the goroutine that reads
		trace := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn:              func(info httptrace.GotConnInfo) { reused = info.Reused },
			GotFirstResponseByte: func() { answered.Store(true) },
		})
		var body io.Reader
		if sends := c.sends(); len(sends) > 0 {
			body = bytes.NewReader(sends)
		}
		request, err := http.NewRequestWithContext(trace, string(method),
			"http://"+k.Base+string(target), body)
		if err != nil {
			return nil, false, err
		}
		request.Header.Set("User-Agent", "prony")
		r, err := k.transport.RoundTrip(request)
		if err != nil && reused && !answered.Load() && try == 0 && ctx.Err() == nil {
			k.transport.CloseIdleConnections()
			continue
		}
		return r, !reused, err
	}
}

// broken sorts an error of the connection: into a difference of the case, or into the end of the
// check, where asking on would only wait on.
func (k *check) broken(ctx, limited context.Context, err error, wrong func(string)) error {
	var unconnected noConnection
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		wrong(fmt.Sprintf("no whole answer within %v", answerLimit))
		return fmt.Errorf("no whole answer within %v", answerLimit)
	case errors.As(err, &unconnected):
		wrong("no connection: " + unconnected.Error())
		return unconnected.error
	}
	wrong("the answer broke off: " + err.Error())
	return nil
}
