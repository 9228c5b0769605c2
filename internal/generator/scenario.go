package generator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"prony.example/contract"
	"prony.example/internal/suite"
	"prony.example/load"
	"prony.example/load/extract"
	"prony.example/load/template"
)

// Scenario converts a scenario of a suite for a target's mode. It returns an error only for
// scenarios that the suite's check rejects.
func Scenario(s suite.Scenario, mode string) (load.Scenario, error) {
	out := load.Scenario{Flow: s.Flow, KeyLo: s.Keys[0], KeyHi: s.Keys[1], Zipf: s.Zipf}
	out.Cookies, out.Drawn = s.Cookies, s.Rows == suite.Random
	out.Columns, out.Rows = s.Table()
	names, known := s.Variables()
	for i, r := range s.Requests {
		req, err := converted(r, mode, names[:known[i]])
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

// converted returns a request; vars are the variables that it may use.
func converted(r suite.Request, mode string, vars []string) (load.Request, error) {
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
		out.Want, out.HasWant = template.Escape(lorem), true
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
