package collector

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/jsontree"
	"prony.example/internal/base/portguard"
	"prony.example/internal/telemetry"
	"prony.example/record"
)

// Limits on the body of a control request: hundreds of pages to scrape take some KiB, 600 seconds
// of all of Prony's metrics for a load half a MiB.
const (
	maxOrder = 1 << 20
	maxOwn   = 8 << 20
)

func (h *Home) handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /prony/health", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	m.HandleFunc("GET /prony/endpoints", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, h.Endpoints(), nil)
	})
	m.HandleFunc("GET /prony/stats", func(w http.ResponseWriter, r *http.Request) {
		h.writing.Lock()
		s := h.stats(r.Context())
		h.writing.Unlock()
		answer(w, s, nil)
	})
	orders := func(path string, do http.HandlerFunc) {
		m.Handle("POST /prony/"+path, h.lab(do))
	}
	orders("trial", order(maxOrder, done(h.begin)))
	orders("scrape", order(maxOrder, done(h.scrape)))
	orders("mark", order(maxOrder, done(h.mark)))
	orders("end", order(maxOrder, func(ctx context.Context, o telemetry.Over) (any, error) {
		kept, err := h.end(ctx, o.Trial)
		if err != nil {
			return nil, err
		}
		return kept, nil
	}))
	orders("points", order(maxOwn, done(h.own)))
	m.Handle("/", h.stores.Handler())
	return portguard.Guard(portguard.Protected(m)) // queries need no token
}

// lab checks the token of control requests, because they make the collector fetch pages and change
// a trial's record.
func (h *Home) lab(next http.Handler) http.Handler {
	want := []byte(telemetry.Bearer + h.c.Token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := []byte(r.Header.Get("Authorization"))
		if h.c.Token == "" || subtle.ConstantTimeCompare(got, want) != 1 {
			portguard.Deny(w, r)
			http.Error(w, "only the run that started this collector may send commands, with the "+
				"collector's token",
				http.StatusUnauthorized)
			return
		}
		portguard.Admit(r)
		next.ServeHTTP(w, r)
	})
}

// order decodes a control request. It requires the media type of JSON, because a web page can send
// requests of other simple types here without a preflight.
func order[T any](most int64, do func(context.Context, T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" {
			http.Error(w, "commands must have the type application/json",
				http.StatusUnsupportedMediaType)
			return
		}
		var in T
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
		if err == nil {
			err = jsontree.Strict(text, &in)
		}
		if err != nil {
			http.Error(w, fmt.Sprintf("read the command: %v", err), http.StatusBadRequest)
			return
		}
		out, err := do(r.Context(), in)
		answer(w, out, err)
	}
}

// done adapts a request without an answer.
func done[T any](do func(context.Context, T) error) func(context.Context, T) (any, error) {
	return func(ctx context.Context, in T) (any, error) { return nil, do(ctx, in) }
}

func answer(w http.ResponseWriter, out any, err error) {
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusConflict)
		return
	case out == nil:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // the client has gone
}

// begin stores the counts, so that the trial's counts start from here.
func (h *Home) begin(_ context.Context, t telemetry.Trial) error {
	if t.ID == "" {
		return errors.New("begin a trial: the trial has no id")
	}
	now := h.counted()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.find(t.ID) != nil {
		return fmt.Errorf("begin trial %s: the trial has already begun", t.ID)
	}
	u := &telemetry.Under{Trial: t, Before: plus(h.base, now), BeganNs: clock.KernelNow()}
	for _, other := range h.under {
		with := "trials ran side by side: counts are sums over all of them"
		for _, side := range []*telemetry.Under{u, other} {
			if !strings.Contains(side.Partial, with) {
				side.Partial = telemetry.Also(side.Partial, with)
			}
		}
	}
	h.under = append(h.under, u)
	if err := errors.Join(h.stores.Begin(t), h.log(beginRecord, u)); err != nil {
		u.Partial = telemetry.Also(u.Partial, err.Error())
	}
	return nil
}

// scrape starts to read a trial's pages, and records them for a restarted collector.
func (h *Home) scrape(_ context.Context, t telemetry.Trial) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.find(t.ID)
	if u == nil {
		return fmt.Errorf("scrape trial %s: the trial is not running", t.ID)
	}
	u.Trial.Scrape = t.Scrape
	return errors.Join(h.stores.Scrape(u.Trial), h.log(scrapeRecord, u.Trial))
}

func (h *Home) find(id string) *telemetry.Under {
	for _, u := range h.under {
		if u.Trial.ID == id {
			return u
		}
	}
	return nil
}

// again begins a trial of an earlier collector in the stores.
func (h *Home) again(u *telemetry.Under) {
	err := h.stores.Begin(u.Trial)
	for _, m := range u.Marks {
		h.open.turn(u.Trial, m) // the earlier collector has sent these marks
		err = errors.Join(err, h.stores.Mark(m))
	}
	if err != nil {
		u.Partial = telemetry.Also(u.Partial, err.Error())
	}
}

// maxMarks limits the marks of one trial.
const maxMarks = 10_000

func (h *Home) mark(ctx context.Context, m telemetry.Mark) error {
	if !slices.Contains([]string{telemetry.Phase, telemetry.Open, telemetry.Close}, m.Kind) {
		return fmt.Errorf("unknown mark %q: the kinds of marks are phase, open and close", m.Kind)
	}
	h.mu.Lock()
	u := h.find(m.Trial)
	if u == nil {
		h.mu.Unlock()
		return fmt.Errorf("mark %s %s: trial %q is not running", m.Kind, m.Name, m.Trial)
	}
	if len(u.Marks) >= maxMarks {
		h.mu.Unlock()
		return fmt.Errorf("mark %s %s: trial %s already has the maximum of %d marks",
			m.Kind, m.Name, m.Trial,
			maxMarks)
	}
	u.Marks = append(u.Marks, m)
	err := errors.Join(h.stores.Mark(m), h.log(markRecord, m))
	h.mu.Unlock()
	return errors.Join(err, h.tellMark(ctx, u.Trial, m), h.write(ctx))
}

// end waits until senders are silent, and returns the report.
func (h *Home) end(ctx context.Context, id string) (*telemetry.Report, error) {
	if err := quiet(ctx, silence, patience, h.intake.Last, h.intake.Busy); err != nil {
		return nil, fmt.Errorf("end trial %s: %w", id, err)
	}
	return h.finish(ctx, id)
}

// EndEarlier ends the trials that an earlier, killed collector has left, so that their traces and
// logs can be read.
func (h *Home) EndEarlier(ctx context.Context) error {
	h.mu.Lock()
	var ids []string
	for _, u := range h.under {
		ids = append(ids, u.Trial.ID)
	}
	h.mu.Unlock()
	var errs []error
	for _, id := range ids {
		_, err := h.finish(ctx, id)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (h *Home) finish(ctx context.Context, id string) (*telemetry.Report, error) {
	phases := h.closePhases(ctx, id)
	h.mu.Lock()
	u := h.find(id)
	if u == nil {
		h.mu.Unlock()
		return nil, fmt.Errorf("end trial %q: the trial is not running", id)
	}
	ending := h.logEnd(false, id)
	h.under = slices.DeleteFunc(h.under, func(o *telemetry.Under) bool { return o == u })
	loads, fates, err := h.stores.End(id)
	base := h.base
	h.mu.Unlock()
	t := minus(plus(base, h.counted()), u.Before)
	fill(t.Signals, fates, h.c.ForwardOnly)
	settle(t.Signals)
	if ns := clock.KernelNow() - u.BeganNs; ns > 0 {
		t.Collector.CPUShare = float64(t.Collector.CPUNs) / float64(ns)
	}
	t.Partial = u.Partial
	for _, err := range []error{ending, err, phases, h.write(ctx), h.renew()} {
		if err != nil {
			t.Partial = telemetry.Also(t.Partial, err.Error())
		}
	}
	return &telemetry.Report{Telemetry: t, Loads: loads}, nil
}

// settle makes a trial's counts consistent: what belongs to no trial, or was lost with a killed
// collector, counts as dropped.
func settle(signals []record.Signal) {
	for i := range signals {
		s := &signals[i]
		s.Kept = min(s.Kept, s.Received)
		s.Dropped = s.Received - s.Kept
	}
}

// quiet waits until nothing has arrived for a while and no request is in progress, up to a limit.
func quiet(ctx context.Context, silence, patience time.Duration, last, busy func() int64) error {
	end := clock.Mono() + int64(patience)
	for {
		now := clock.Mono()
		left := int64(silence) - (now - last())
		if now >= end || left <= 0 && busy() == 0 {
			return nil
		}
		if left <= 0 {
			left = int64(silence) / 10 // a request is in progress
		}
		select {
		case <-time.After(time.Duration(min(left, end-now))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
