package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/files"
	"prony.example/record"
)

// Bounds of what is asked of a held target by hand.
const (
	askBound    = 30 * time.Second
	mostAnswer  = 64 << 10 // of a body that is shown, bytes
	mostRead    = 16 << 20 // of one that is read
	mostConns   = 256
	mostSeconds = 10
	logLines    = 1000
	resultBytes = 8 << 20 // of a load's result
)

// place is a path that goes to the held target and nowhere else.
func place(base, path string) (string, error) {
	u, err := url.Parse(base + path)
	if err != nil || !strings.HasPrefix(path, "/") || base+u.RequestURI() != base+path ||
		"http://"+u.Host != base || strings.ContainsAny(path, "{}") {
		return "", refuse(http.StatusBadRequest, "path: %.200q is none: want one such as "+
			"/hello?key=1, without a fragment", path)
	}
	return u.String(), nil
}

// Answer is that of a held target to a request by hand.
type Answer struct {
	Status   int         `json:"status"`
	Protocol string      `json:"protocol"`
	Headers  [][2]string `json:"headers"` // by name
	Body     string      `json:"body"`    // the beginning of it, as text
	Bytes    int64       `json:"bytes"`   // of all of it
	Cut      bool        `json:"cut"`
	TookS    float64     `json:"tookS"` // to the last byte
}

// plainly asks without what a browser does by itself: each answer is shown as it came.
var plainly = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{DisableCompression: true, DisableKeepAlives: true},
}

// request asks the held target once.
func (s *Server) request(r *http.Request) (any, error) {
	base, err := s.holder.running()
	if err != nil {
		return nil, err
	}
	var request struct {
		Method  string            `json:"method"`
		Path    string            `json:"path"`
		Body    string            `json:"body"`
		Headers map[string]string `json:"headers"`
	}
	if err := read(r, &request); err != nil {
		return nil, err
	}
	to, err := place(base, request.Path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), askBound)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, request.Method, to, strings.NewReader(request.Body))
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "method: %v", err)
	}
	for name, value := range request.Headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, refuse(http.StatusBadRequest, "headers: %.80q is no header field", name)
		}
		q.Header.Set(name, value)
	}
	began := clock.Mono()
	got, err := plainly.Do(q)
	if err != nil {
		return nil, refuse(http.StatusBadGateway, "the target did not answer: %v",
			errors.Unwrap(err))
	}
	defer func() { _ = got.Body.Close() }() // all that is wanted was read
	var text strings.Builder
	n, err := io.Copy(&text, io.LimitReader(got.Body, mostAnswer))
	if err == nil {
		var more int64
		more, err = io.Copy(io.Discard, io.LimitReader(got.Body, mostRead-n))
		n += more
	}
	if err != nil {
		return nil, refuse(http.StatusBadGateway, "the target's answer broke off: %v", err)
	}
	a := Answer{Status: got.StatusCode, Protocol: got.Proto, Headers: [][2]string{}, Bytes: n,
		Body: strings.ToValidUTF8(text.String(), "\uFFFD"), Cut: n > int64(text.Len()),
		TookS: float64(clock.Mono()-began) / 1e9}
	for _, name := range slices.Sorted(maps.Keys(got.Header)) {
		for _, value := range got.Header[name] {
			a.Headers = append(a.Headers, [2]string{name, value})
		}
	}
	return a, nil
}

// Loaded is what a short load came to, of docs/formats/load-json.md.
type Loaded struct {
	PerS      float64  `json:"ratePerS"`
	Requests  int64    `json:"requests"` // answered well
	Errors    int64    `json:"errors"`
	P50Ns     *int64   `json:"p50Ns"` // null: it is withheld
	P99Ns     *int64   `json:"p99Ns"`
	MaxNs     int64    `json:"maxNs"`
	Verdict   string   `json:"verdict"`
	Findings  []string `json:"findings"`
	Reproduce string   `json:"reproduce"`
}

// short offers the held target a short load, by the verb load.
func (s *Server) short(r *http.Request) (any, error) {
	base, err := s.holder.running()
	if err != nil {
		return nil, err
	}
	var request struct {
		Path        string `json:"path"`
		Connections int    `json:"connections"`
		Seconds     int    `json:"seconds"`
	}
	if err := read(r, &request); err != nil {
		return nil, err
	}
	to, err := place(base, request.Path)
	switch {
	case err != nil:
		return nil, err
	case request.Connections < 1 || request.Connections > mostConns:
		return nil, refuse(http.StatusBadRequest, "connections: want 1 to %d", mostConns)
	case request.Seconds < 1 || request.Seconds > mostSeconds:
		return nil, refuse(http.StatusBadRequest, "seconds: want 1 to %d", mostSeconds)
	}
	if !s.holder.measure(true) {
		return nil, refuse(http.StatusConflict, "a load is under way")
	}
	defer s.holder.measure(false)
	args := []string{"load", to, fmt.Sprintf("--connections=%d", request.Connections),
		fmt.Sprintf("--duration=%ds", request.Seconds)}
	if cores := s.holder.left(); cores != "" {
		args = append(args, "--cores="+cores)
	}
	verb, err := s.Lab.Verb(append(args, "--output=json"))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(verb.Out, resultBytes))
	_, _ = io.Copy(io.Discard, verb.Out) // it ends by itself, at its bound
	if err = errors.Join(err, verb.In.Close()); err != nil {
		return nil, err
	}
	ended := verb.Wait()
	l, err := loaded(text)
	if err != nil { // an INVALID load has a result, too
		return nil, refuse(http.StatusBadGateway, "the load has no result: %v",
			errors.Join(ended, err))
	}
	l.Reproduce = "prony " + strings.Join(args, " ")
	return l, nil
}

// measure begins or ends a load; false: one is under way.
func (h *holder) measure(enabled bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if enabled && h.doc.Measuring {
		return false
	}
	h.doc.Measuring = enabled
	return true
}

// left are the cores that a load has, as a flag takes them; empty: not known.
func (h *holder) left() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var items []string
	for _, c := range h.cores {
		items = append(items, strconv.Itoa(c))
	}
	return strings.Join(items, ",")
}

func loaded(text []byte) (l Loaded, err error) {
	var item struct {
		Load        record.Load
		Verdict     record.Verdict
		Percentiles []struct {
			Of, Name string
			Ns       *int64
		}
	}
	if err := json.Unmarshal(text, &item); err != nil {
		return l, fmt.Errorf("read the load's result: %w", err)
	}
	l = Loaded{PerS: item.Load.ThroughputPerS, Requests: item.Load.Done,
		Errors: item.Load.Errors.Total(), MaxNs: item.Load.ResponseTime.MaxNs,
		Verdict: item.Verdict.Grade, Findings: []string{}}
	for _, p := range item.Percentiles {
		switch p.Of + " " + p.Name {
		case "responseTime p50":
			l.P50Ns = p.Ns
		case "responseTime p99":
			l.P99Ns = p.Ns
		}
	}
	for _, f := range item.Verdict.Findings {
		if f.Grade != record.Valid {
			l.Findings = append(l.Findings, f.Rule+": "+wording.Finding(f).Observed)
		}
	}
	return l, nil
}

// heldLog is the end of what the held target wrote.
func (s *Server) heldLog(w http.ResponseWriter, _ *http.Request) error {
	s.holder.mu.Lock()
	name := s.holder.log
	s.holder.mu.Unlock()
	asText(w)
	// Of one that has ended its log went with it.
	_, err := io.WriteString(w, strings.Join(files.Tail(name, logLines), "\n"))
	return ignore(err)
}
