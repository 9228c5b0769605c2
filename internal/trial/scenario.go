package trial

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"prony/contract"
	"prony/internal/load"
	"prony/internal/load/extract"
	"prony/internal/load/text"
	"prony/internal/pace"
	"prony/internal/result"
	"prony/internal/suite"
)

// Scenario turns the suite's words into the generator's, for a target of the mode. It fails only
// where the suite's own check would have.
func Scenario(s suite.Scenario, mode string) (load.Scenario, error) {
	out := load.Scenario{Flow: s.Flow, KeyLo: s.Keys[0], KeyHi: s.Keys[1], Zipf: s.Zipf}
	out.Cookies, out.Drawn = s.Cookies, s.Rows == suite.Drawn
	out.Columns, out.Rows = s.Table()
	names, known := s.Variables()
	for i, r := range s.Requests {
		req, err := request(r, mode, names[:known[i]])
		if err != nil {
			return load.Scenario{}, fmt.Errorf("scenario %s: %s: %w", s.Name, r.Request, err)
		}
		if r.Setup != "" {
			out.Setup, out.PerUser = append(out.Setup, req), r.Setup == suite.SetupUser
			continue
		}
		out.Requests = append(out.Requests, req)
	}
	return out, nil
}

// request converts one; vars are the variables that it may use.
func request(r suite.Request, mode string, vars []string) (load.Request, error) {
	method, path := r.Line(mode)
	out := load.Request{
		Name: r.Name, Method: method, Path: path, Body: r.Content(), Type: r.Type,
		Weight: r.Weight, Status: r.Expect.Status, WantSize: -1, Pause: time.Duration(r.Pause),
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		out.Headers = append(out.Headers, load.Header{Name: name, Value: string(r.Headers[name])})
	}
	switch {
	case r.Expect.Body != nil:
		out.Want, out.HasWant = *r.Expect.Body, true
	case r.Expect.Lorem != nil:
		lorem := contract.Lorem(int(*r.Expect.Lorem))
		out.Want, out.HasWant = text.Escape(lorem), true
	case r.Expect.Size != nil:
		out.WantSize = *r.Expect.Size
	}
	for _, k := range r.Checks {
		check, err := k.Make(vars)
		if err != nil {
			return load.Request{}, err
		}
		out.Checks = append(out.Checks, check)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Extract)) {
		from, err := r.Extract[name].Finder()
		if err != nil {
			return load.Request{}, err
		}
		out.Extract = append(out.Extract, extract.Capture{Var: name, From: from})
	}
	return out, nil
}

// model sets what the suite says of how a load is offered, but for its rate. The engine is a wish,
// which the driver fulfils.
func model(spec *load.Spec, l suite.Load) {
	spec.Churn, spec.Pacing, spec.Describe.Name = l.Churn, l.Pacing, l.Engine
	spec.Pacing = cmp.Or(spec.Pacing, load.Precise) // the load has cores of its own
	if spec.Model == result.Open {
		spec.Most = l.Most
	}
	spec.Slow = load.Slow{Clients: l.Slow.Clients, Text: string(l.Slow.Text),
		Drip: time.Duration(l.Slow.Drip)}
	if l.Users.IsZero() && l.Think == (suite.Think{}) {
		return
	}
	spec.Users = &load.Users{Number: pace.Flat(float64(l.Connections)), Think: load.Think{
		Kind: l.Think.Kind, Lo: time.Duration(l.Think.Lo), Hi: time.Duration(l.Think.Hi),
	}}
	if !l.Users.IsZero() {
		spec.Users.Number = l.Users.Profile
	}
}
