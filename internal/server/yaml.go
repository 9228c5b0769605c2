package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"prony.example/internal/suite"
)

// Edited is the text of a suite as somebody would have it.
type Edited struct {
	Suite string `json:"suite"`
	YAML  string `json:"yaml"`
}

// Reading is what a form says to make a suite's file into an edited text.
type Reading struct {
	Form     Form     `json:"form"`     // all but the suite
	Problems []string `json:"problems"` // what no form says so, and what is wrong with the text
}

// mostProblems bounds what is said of one text: another suite's is unlike in all it has.
const mostProblems = 20

// form says which form makes a suite's file into the text that comes. The text itself is never run,
// nor is a file read for it; what the form names is what there is, as of every form.
func (*Server) form(r *http.Request, lab Lab) (any, error) {
	var e Edited
	if err := read(r, &e); err != nil {
		return nil, err
	}
	e.Suite = cmp.Or(e.Suite, usualSuite)
	suites, err := lab.Suites()
	if err != nil {
		return nil, err
	}
	targets, err := lab.Catalog(r.Context())
	if err != nil {
		return nil, err
	}
	var out Reading
	at := slices.IndexFunc(suites, func(s Suite) bool { return s.Name == e.Suite })
	if at < 0 {
		out.Problems = []string{fmt.Sprintf("suite: there is none called %.80q", e.Suite)}
	} else if out.Form, out.Problems = suites[at].asked(e.YAML); len(out.Problems) == 0 {
		of := out.Form
		of.Suite = e.Suite
		_, out.Problems = of.args(suites, targets)
	}
	if more := len(out.Problems) - mostProblems; more > 0 {
		out.Problems = append(out.Problems[:mostProblems], fmt.Sprintf("and %d more", more))
	}
	out.Problems = orNone(out.Problems)
	return out, nil
}

// asked reads a form off an edited text of the suite.
func (s Suite) asked(text string) (f Form, problems []string) {
	if s.Path == "" {
		return f, []string{"yaml: " + s.Name + " is an experiment of a project: edit it in " +
			s.File + " itself"}
	}
	from, err := suite.ReadOriginal(s.Path, []byte(s.YAML))
	if err != nil {
		return f, []string{"suite: " + err.Error()}
	}
	v, others, err := from.Asked(text)
	if err != nil {
		return f, each(err)
	}
	if len(v.Agents) > 1 {
		others = append(others, "variants")
	}
	for _, key := range others {
		problems = append(problems, key+": a form cannot set it so; save the text as "+
			"suites/NAME.yaml, with that name in it, and run that")
	}
	return formOf(v), problems
}

// each are the errors that were joined.
func each(err error) (out []string) {
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) {
		for _, e := range all.Unwrap() {
			out = append(out, e.Error())
		}
		return out
	}
	return []string{err.Error()}
}

// formOf is the form of an override.
func formOf(v suite.Override) Form {
	f := Form{Targets: v.Targets, Scenarios: v.Scenarios, Loads: v.Loads, Blocks: v.Blocks,
		Seed: v.Seed, Launcher: v.Launchers, Limits: Limits{CPUs: v.Limits.CPUs}}
	if v.Limits.Memory != 0 {
		f.Limits.Memory = v.Limits.Memory.String()
	}
	if v.Measure != 0 {
		f.Measure = v.Measure.String()
	}
	if len(v.Agents) == 1 {
		f.Agent = v.Agents[0]
	}
	return f
}

// override is what the form has that a suite's file has keys for.
func (f Form) override() (v suite.Override, err error) {
	v = suite.Override{Targets: f.Targets, Scenarios: f.Scenarios, Loads: f.Loads,
		Blocks: f.Blocks, Seed: f.Seed, Launchers: f.Launcher,
		Limits: suite.Limits{CPUs: f.Limits.CPUs}}
	if f.Limits.Memory != "" {
		if err := v.Limits.Memory.UnmarshalText([]byte(f.Limits.Memory)); err != nil {
			return v, err
		}
	}
	if f.Measure != "" {
		window, err := time.ParseDuration(f.Measure)
		if err != nil {
			return v, err
		}
		v.Measure = suite.Duration(window)
	}
	if f.Agent != "" {
		v.Agents = []string{f.Agent}
	}
	return v, nil
}

// as is the suite's file as a form would have it. What a file has no key for stands above it.
func (s Suite) as(f Form) (string, error) {
	if s.Path == "" {
		return s.YAML, nil
	}
	v, err := f.override()
	if err != nil {
		return s.YAML, err
	}
	from, err := suite.ReadOriginal(s.Path, []byte(s.YAML))
	if err != nil {
		return s.YAML, err
	}
	text, err := from.With(v)
	if err != nil {
		return s.YAML, err
	}
	return f.beside() + text, nil
}

// beside is a comment on what the form says that no suite's file can.
func (f Form) beside() string {
	var said []string
	if f.For != "" {
		said = append(said, "for "+f.For)
	}
	if len(f.Labels) > 0 {
		said = append(said, "labels")
	}
	if f.Telemetry {
		said = append(said, "telemetry")
	}
	if len(said) == 0 {
		return ""
	}
	return "# Of the form alone, since a suite has no keys for it: " + strings.Join(said, ", ") +
		"\n"
}
