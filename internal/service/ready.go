package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"prony.example/internal/base/address"
	"prony.example/internal/base/clock"
)

// The wait between two requests is a tenth of the time since the start, within these limits, so
// that polling disturbs little and the result is about 10 % late at most.
const (
	readyPollMin = time.Millisecond
	readyPollMax = 20 * time.Millisecond
	// readyAnswerLimit limits one request: the kernel accepts connections for a process that is
	// still starting, and may have dropped a connection because its queue was full.
	readyAnswerLimit = 2 * time.Second
)

// ErrExited is the error of WaitReady for a service that ended before it was ready.
var ErrExited = errors.New("the service exited before it was ready")

// WaitReady requests the readiness path of a starting service until it answers 200. It returns the
// times in ns from startNs, a reading of clock.Mono, until the first accepted connection and until
// the first 200; without a path it waits only for the first connection. It ends early with
// ErrExited when exited is closed (nil: never), and with ctx; both errors include the last failure.
// A nil dial means TCP.
func WaitReady(ctx context.Context, dial Dial, addr, path string, startNs int64,
	exited <-chan struct{}) (listenNs, readyNs int64, err error) {
	return WaitReadyIn(ctx, nil, dial, addr, path, startNs, exited)
}

// WaitReadyIn is WaitReady in the protocol of a speaker; nil: HTTP/1.1 over TCP.
func WaitReadyIn(ctx context.Context, speak Speaker, dial Dial, addr, path string, startNs int64,
	exited <-chan struct{}) (listenNs, readyNs int64, err error) {
	w := newReadyWait(dial, speak, startNs)
	if t, ok := w.transport.(*http.Transport); ok {
		defer t.CloseIdleConnections()
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with asking, which is cancelled on return
		select {
		case <-exited:
			cancel()
		case <-asking.Done():
		}
	}()
	last := errors.New("not requested yet")
	for {
		err := w.ask(asking, addr, path)
		if err == nil {
			return w.listenNs(), clock.Mono() - startNs, nil
		}
		if asking.Err() == nil {
			last = err
		}
		select {
		case <-time.After(readyPoll(time.Duration(clock.Mono() - startNs))):
			continue
		case <-asking.Done():
		}
		cause := cmp.Or(context.Cause(ctx), ErrExited)
		subject := fmt.Sprintf("GET %s on %s returns status 200", path, addr)
		if path == "" {
			subject = "a process listens on " + addr
		}
		return w.listenNs(), 0, fmt.Errorf("wait until %s: %w; last: %w", subject, cause, last)
	}
}

// readyPoll returns the wait after a request, given the time since the start.
func readyPoll(elapsed time.Duration) time.Duration {
	return min(max(elapsed/10, readyPollMin), readyPollMax)
}

// Asker sends requests in a protocol. Connect opens a connection with all handshakes.
type Asker interface {
	http.RoundTripper
	Connect(ctx context.Context) error
}

// Speaker returns an Asker that connects through dial.
type Speaker func(dial Dial) Asker

type readyWait struct {
	transport http.RoundTripper
	connect   func(ctx context.Context, addr string) error
	startNs   int64
	mu        sync.Mutex
	listens   bool  // it has accepted a connection
	listened  int64 // ns after startNs
}

func newReadyWait(dial Dial, speak Speaker, startNs int64) *readyWait {
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	w := &readyWait{startNs: startNs}
	noted := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil && network != "udp" { // a UDP socket exists before any answer
			w.heard()
		}
		return conn, err
	}
	if speak != nil {
		asker := speak(noted)
		w.transport = asker
		w.connect = func(ctx context.Context, _ string) error { return asker.Connect(ctx) }
		return w
	}
	w.transport = &http.Transport{DisableCompression: true, DialContext: noted}
	w.connect = func(ctx context.Context, addr string) error {
		conn, err := noted(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	return w
}

// heard records the first accepted connection.
func (w *readyWait) heard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.listens {
		w.listens, w.listened = true, clock.Mono()-w.startNs
	}
}

func (w *readyWait) listenNs() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.listened
}

// ask returns nil after a 200, or after a connection if there is no path.
func (w *readyWait) ask(ctx context.Context, addr, path string) error {
	ctx, cancel := context.WithTimeout(ctx, readyAnswerLimit)
	defer cancel()
	if path == "" {
		err := w.connect(ctx, addr)
		if err == nil {
			w.heard()
		}
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+address.WithoutZone(addr)+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "prony")
	response, err := w.transport.RoundTrip(request)
	if _, plain := w.transport.(*http.Transport); err != nil && plain {
		return otherProtocol(err)
	}
	if err != nil {
		return err
	}
	w.heard()
	defer func() { _ = response.Body.Close() }()
	// After reading the body, within limits, the connection can be reused.
	_, _ = io.CopyN(io.Discard, response.Body, largeBytes)
	if response.StatusCode != http.StatusOK {
		return &StatusError{response.StatusCode, response.Header.Get("Location")}
	}
	return nil
}

// otherProtocol adds the option for a service that seems to speak another protocol than HTTP/1.1.
func otherProtocol(err error) error {
	switch {
	case strings.Contains(err.Error(), "malformed HTTP response"): // net/http has no type for it
		return fmt.Errorf("%w; the service does not answer in HTTP/1.1: for HTTP/2 without TLS, "+
			"use --protocol h2c", err)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%w; the service closed the connection without an answer: if it "+
			"expects TLS, use --protocol https", err)
	}
	return err
}

// StatusError is a response with another status than 200 on the readiness path.
type StatusError struct {
	Status   int
	Location string // header field; empty: there is none
}

// Error implements error.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("status %d", e.Status)
	if e.Location != "" {
		text += fmt.Sprintf(" (Location: %.200s)", e.Location)
	}
	return text
}
