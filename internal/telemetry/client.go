package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Limits on waiting for a collector: one that hangs must not block a trial.
const (
	beginWait = 5 * time.Second
	markWait  = 2 * time.Second
	endWait   = 15 * time.Second // it waits up to 3 s for silence, then stores open items
	ownWait   = 5 * time.Second
	markQueue = 256
	maxAnswer = 64 << 20
)

// Bearer precedes the token in the Authorization header (RFC 6750, 2.1).
const Bearer = "Bearer "

// Client reports trials to a collector. A collector that does not answer fails no trial: errors are
// in Telemetry.Partial of the report.
type Client struct {
	base  string
	token string
	http  *http.Client
	queue chan func(context.Context) // marks to send
	stop  context.CancelFunc
	done  sync.WaitGroup

	dropped atomic.Int64

	mu       sync.Mutex
	began    string   // id of the trial
	why      []string // errors since then
	deaf     bool     // it did not accept Prony's own metrics and gets no more
	lost     string   // reason for deaf, until a report includes it
	reported bool     // the next report includes lost
}

// NewClient returns a client of the collector at query, "host:port", with this token.
func NewClient(query, token string) *Client {
	ctx, stop := context.WithCancel(context.Background())
	c := &Client{base: "http://" + query, token: token, stop: stop,
		queue: make(chan func(context.Context), markQueue),
		// No proxy: it would be used for this very machine.
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}}
	c.done.Go(func() { c.send(ctx) })
	return c
}

// Close ends the client. It drops queued marks.
func (c *Client) Close() {
	c.stop()
	c.done.Wait()
	c.http.CloseIdleConnections()
}

// Begin announces a trial, before its processes are started. Its error may be ignored: the trial's
// report includes it.
func (c *Client) Begin(ctx context.Context, t Trial) error {
	c.mu.Lock()
	c.began, c.why = t.ID, nil
	c.mu.Unlock()
	c.dropped.Store(0)
	return c.tell(ctx, "/prony/trial", "trial", t)
}

// Scrape makes the collector read a trial's pages until the trial ends. Its error may be ignored,
// like that of Begin.
func (c *Client) Scrape(ctx context.Context, t Trial) error {
	return c.tell(ctx, "/prony/scrape", "pages of trial", t)
}

func (c *Client) tell(ctx context.Context, path, subject string, t Trial) error {
	err := c.post(ctx, path, beginWait, t, nil)
	if err != nil {
		err = fmt.Errorf("notify the telemetry collector of %s %s: %w", subject, t.ID, err)
		c.failed(err)
	}
	return err
}

// Mark sends a mark in the background and returns at once. Marks keep their order.
func (c *Client) Mark(m Mark) {
	notify := func(ctx context.Context) {
		if err := c.post(ctx, "/prony/mark", markWait, m, nil); err != nil {
			c.failed(fmt.Errorf("mark %s %s: %w", m.Kind, m.Name, err))
		}
	}
	select {
	case c.queue <- notify:
	default:
		c.dropped.Add(1)
	}
}

// End sends the remaining marks and returns the report of the trial that began last.
// Telemetry.Partial says what is missing.
func (c *Client) End(ctx context.Context) Report {
	c.drain(ctx)
	c.mu.Lock()
	over := Over{Trial: c.began}
	c.mu.Unlock()
	var r Report
	if err := c.post(ctx, "/prony/end", endWait, over, &r); err != nil {
		c.failed(fmt.Errorf("read the telemetry collector's report: %w", err))
	}
	if n := c.dropped.Load(); n > 0 {
		c.failed(fmt.Errorf("%d marks were not sent, because the telemetry collector did not "+
			"keep up", n))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Telemetry.Partial = Also(r.Telemetry.Partial, strings.Join(c.why, "; "))
	r.Telemetry.Partial = Also(r.Telemetry.Partial, c.lost)
	c.lost = ""
	return r
}

// Points sends Prony's own metrics, between windows. The next report includes the first error,
// once. After a request without an answer Points sends no more, since every later trial would have
// to wait.
func (c *Client) Points(ctx context.Context, o Own) {
	c.mu.Lock()
	deaf := c.deaf
	c.mu.Unlock()
	if deaf {
		return
	}
	err := c.post(ctx, "/prony/points", ownWait, o, nil)
	if err == nil {
		return
	}
	var no refusal
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf = c.deaf || !errors.As(err, &no)
	if !c.reported {
		c.reported = true
		c.lost = fmt.Sprintf("send Prony's own measurements of %s to the telemetry collector: %v",
			o.Trial.ID, err)
	}
}

// drain waits until all marks are sent, for beginWait at most, so that the next request gets its
// full time.
func (c *Client) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, beginWait)
	defer cancel()
	reached := make(chan struct{})
	select {
	case c.queue <- func(context.Context) { close(reached) }:
		select {
		case <-reached:
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
}

// Also appends a reason to a list of reasons.
func Also(reasons, more string) string {
	if reasons == "" || more == "" {
		return reasons + more
	}
	return reasons + "; " + more
}

func (c *Client) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case notify := <-c.queue:
			notify(ctx)
		}
	}
}

// failed records an error, up to a few for each trial.
func (c *Client) failed(err error) {
	const atMost = 3
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.why) < atMost:
		c.why = append(c.why, err.Error())
	case len(c.why) == atMost:
		c.why = append(c.why, "and further errors occurred")
	}
}

// refusal is an error answer of a collector.
type refusal string

func (r refusal) Error() string { return string(r) }

func (c *Client) post(ctx context.Context, path string, wait time.Duration, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path,
		bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", Bearer+c.token)
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return err
	case res.StatusCode >= http.StatusBadRequest:
		return refusal(strings.TrimSpace(string(answer)))
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}
