package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"prony.example/internal/suite"
)

// Edited is an edited text of a suite's file.
type Edited struct {
	Suite string `json:"suite"`
	YAML  string `json:"yaml"`
}

// mostProblems bounds the problems that one response lists.
const mostProblems = 20

// check lists the problems of an edited suite, each with its line. It neither runs nor stores the
// text, and opens no file because of it.
func (*Server) check(r *http.Request, lab Lab) (any, error) {
	var e Edited
	if err := read(r, &e); err != nil {
		return nil, err
	}
	e.Suite = cmp.Or(e.Suite, usualSuite)
	suites, err := lab.Suites()
	if err != nil {
		return nil, err
	}
	index := slices.IndexFunc(suites, func(s Suite) bool { return s.Name == e.Suite })
	if index < 0 {
		return nil, refuse(http.StatusNotFound, "no suite has the name %.80q", e.Suite)
	}
	problems := suites[index].check(e.YAML)
	if more := len(problems) - mostProblems; more > 0 {
		problems = append(problems[:mostProblems], fmt.Sprintf("and %d more", more))
	}
	return map[string][]string{"problems": orNone(problems)}, nil
}

// check lists the problems of an edited text of the suite.
func (s Suite) check(text string) []string {
	if s.Path == "" {
		return []string{s.Name + " is an experiment of a project: edit the experiment in " + s.File}
	}
	return each(suite.CheckEdited(s.Path, []byte(s.YAML), text))
}

// each splits joined errors.
func each(err error) (out []string) {
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) {
		for _, e := range all.Unwrap() {
			out = append(out, e.Error())
		}
	} else if err != nil {
		out = []string{err.Error()}
	}
	return out
}
