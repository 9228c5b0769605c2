package generator

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/load/template"
	"prony.example/record"
)

// cannot returns an error for a load with properties that the tool does not support. It ignores
// none of them.
func (t *tool) cannot(s *load.Spec) error {
	can := &t.can
	rate := 0.0
	if s.Model == record.Open && len(s.Schedule.Rate.Pieces) > 0 {
		rate = s.Schedule.Rate.Pieces[0].From
	}
	shaped := s.Model == record.Open && !s.Schedule.Rate.IsFlat() ||
		s.Users != nil && !s.Users.Number.IsFlat()
	poisson := s.Schedule.Arrivals == pace.Poisson
	open := s.Model == record.Open
	for _, c := range []struct {
		want bool
		have bool
		why  string
	}{
		{s.Most > s.Connections, false, "the tool cannot open more connections later; remove " +
			"maxConnections, or use prony"},
		{open, can.open || can.poisson, "the tool has no open model; use wrk2, k6 or prony"},
		{!open, can.closed, "the tool has no closed model, only a rate; use wrk, or set a rate"},
		{open && poisson, can.poisson,
			"the tool cannot send Poisson arrivals; set arrivals: constant, or use prony"},
		{open && s.Schedule.Arrivals == pace.Replay, false, "the tool cannot replay a trace; use " +
			"prony"},
		{open && !poisson && s.Schedule.Arrivals != pace.Constant, false,
			"the tool has no " + s.Schedule.Arrivals + " arrivals; use prony"},
		{shaped, can.shaped, "the tool cannot change its rate over time; use k6 or prony"},
		{shaped && s.Lead > 0, false,
			"the tool cannot send a lead-in before a rate shape; set leadIn to 0 and include it " +
				"in the shape"},
		{open && can.complete && !shaped, rate == float64(int64(rate)),
			"the tool supports only whole rates"},
		{s.Users != nil, can.users, "the tool has no virtual users; use k6 or prony"},
		{s.Requests > 0, can.counts, "the tool cannot end after a number of requests"},
		{s.Churn > 1, false, "the tool cannot renew a connection after several responses; set " +
			"churn to 1"},
		{s.Churn == 1, can.renew,
			"the tool cannot renew a connection for each request; use hey or prony"},
		{s.Trace.Share > 0, false, "the tool cannot send trace ids; use prony"},
		{!s.Network.IsZero(), false, "the tool cannot delay the network; use prony"},
		{s.Pacing == load.Precise, false, "the tool has a fixed pacing; remove pacing"},
		{s.Observer != nil && s.Every > 0, false, "the tool reports no live results"},
		{s.Describe.Protocol != "", false, "Prony runs the tool only over HTTP/1.1 without TLS; " +
			"use prony"},
		{s.Scenario.Flow, false, "the tool cannot send flows; use prony"},
		{len(s.Scenario.Setup)+len(s.Scenario.Rows) > 0 || s.Scenario.Cookies, false,
			"the tool does not support setup, data and cookies; use prony"},
		{len(s.Scenario.Requests) > 1, can.mix, "the tool can send only one kind of request; use " +
			"wrk, k6 or prony"},
		{s.Scenario.Zipf > 0, false, "the tool has no Zipf keys; use prony"},
		{s.Scenario.KeyHi > keyMax, !can.keys, "the tool supports keys only up to 2^53"},
	} {
		if c.want && !c.have {
			return fmt.Errorf("load generator %s cannot run this load: %s", t.name, c.why)
		}
	}
	return t.cannotSend(s)
}

// keyMax is the largest integer range that numbers of Lua and JavaScript represent exactly.
const keyMax = 1 << 53

// cannotSend returns an error for requests or checks that the tool does not support.
func (t *tool) cannotSend(s *load.Spec) error {
	for _, r := range s.Scenario.Requests {
		name := r.Method + " " + r.Path
		switch {
		case len(r.Checks) > 0 || len(r.Extract) > 0:
			return fmt.Errorf("%s cannot check or extract parts of the response to %s; use "+
				"prony", t.name, name)
		case t.can.methods != nil && !slices.Contains(t.can.methods, r.Method):
			return fmt.Errorf("%s cannot send %s; it supports the methods %s", t.name, name,
				strings.Join(t.can.methods, ", "))
		case t.can.waits && r.Method == http.MethodHead:
			return fmt.Errorf("%s waits for a body in the response to %s, which has no body; use "+
				"prony", t.name, name)
		case t.can.checks == "class" && r.Status >= 400:
			return fmt.Errorf("%s counts status %d as an error, but %s expects this "+
				"status", t.name, r.Status,
				name)
		}
	}
	if len(s.Scenario.Requests) == 0 {
		return fmt.Errorf("the scenario has no requests")
	}
	return nil
}

// texts is a text that is split at each {key}.
type texts []string

// fixed reports whether the text has no key.
func (t texts) fixed() bool { return len(t) == 1 }

func (t texts) String() string { return strings.Join(t, "{key}") }

// request is a kind of request in a form for all tools.
type request struct {
	Method  string `json:"method"`
	Path    texts  `json:"path"`
	Headers []head `json:"headers"`
	Body    texts  `json:"body"`
	Weight  int    `json:"weight"`
	Status  int    `json:"status"`
}

type head struct {
	Name  string `json:"name"`
	Value texts  `json:"value"`
}

// preset sets a header field unless the scenario sets it.
func (r *request) preset(name, value string) {
	same := func(h head) bool { return strings.EqualFold(h.Name, name) }
	if !slices.ContainsFunc(r.Headers, same) {
		r.Headers = append(r.Headers, head{name, texts{value}})
	}
}

func (r *request) fixed() bool {
	for _, h := range r.Headers {
		if !h.Value.fixed() {
			return false
		}
	}
	return r.Path.fixed() && r.Body.fixed()
}

// requests converts the scenario's requests. Without keys, a text with {key} is an error.
func requests(s *load.Spec, keys bool) ([]request, error) {
	var out []request
	for _, r := range s.Scenario.Requests {
		to := request{Method: r.Method, Weight: max(r.Weight, 1),
			Status: cmp.Or(r.Status, http.StatusOK), Headers: []head{}}
		var err error
		cut := func(t string) (out texts) {
			if err == nil {
				out, err = split(t)
			}
			return out
		}
		to.Path, to.Body = cut(r.Path), cut(r.Body)
		for _, h := range r.Headers {
			to.Headers = append(to.Headers, head{h.Name, cut(h.Value)})
		}
		if r.Body != "" {
			to.preset("Content-Type", cmp.Or(r.Type, "text/plain"))
		}
		if s.Host != "" && s.Host != s.Address.String() {
			to.preset("Host", s.Host)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
		}
		if !keys && !to.fixed() {
			return nil, fmt.Errorf("the tool cannot draw {key} in %s %s; use wrk, k6, jmeter or "+
				"prony",
				r.Method, r.Path)
		}
		out = append(out, to)
	}
	return out, nil
}

// Number of renderings that find the keys of a text, and a key that no text contains by chance.
const (
	renderings = 32
	mark       = 18446744073709551557
)

// split splits a text at its keys. It finds them by renderings, because only package template knows
// placeholders: text that differs between renderings with equal keys is another placeholder.
func split(s string) (texts, error) {
	t, err := template.Parse(s, nil)
	if err != nil {
		return nil, err
	}
	if names := t.Environment(); len(names) > 0 {
		return nil, fmt.Errorf("the value of ${%s} would be visible in a file or a command line; "+
			"use prony",
			names[0])
	}
	if lab := t.Lab(); lab != "" {
		return nil, fmt.Errorf("only Prony's generator supports %s; use prony", lab)
	}
	first := t.Append(nil, &template.Values{Key: mark})
	for k := range uint64(renderings) {
		v := template.Values{Seed: k * 0x9e3779b97f4a7c15, K: k, Key: mark}
		if !bytes.Equal(first, t.Append(nil, &v)) {
			return nil, fmt.Errorf("other tools can replace only the placeholder {key}; use prony")
		}
	}
	return strings.Split(string(first), strconv.FormatUint(mark, 10)), nil
}

// url returns the URL to which the tool sends a request: the address, because the host's name is a
// header.
func (j *job) url(r *request) string {
	return "http://" + j.spec.Address.String() + r.Path.String()
}

// perS returns the requested flat rate, or 0 for a closed load.
func (j *job) perS() float64 {
	if j.spec.Model != record.Open {
		return 0
	}
	return j.spec.Schedule.Rate.At(0)
}

// seconds prints a duration as integer seconds, rounded up.
func seconds(ns int64) string { return strconv.FormatInt((ns+1e9-1)/1e9, 10) }
