package server

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/report/runs"
	"prony.example/internal/suite"
)

// Form is a request for a run. Empty fields have the suite's values.
type Form struct {
	Suite     string   `json:"suite,omitempty"`
	Targets   []string `json:"targets,omitempty"`
	Scenarios []string `json:"scenarios,omitempty"`
	Loads     []string `json:"loads,omitempty"`
	Blocks    int      `json:"blocks,omitempty"`
	For       string   `json:"for,omitempty"` // instead of blocks, such as 5m
	Seed      *uint64  `json:"seed,omitempty"`
	Measure   string   `json:"measure,omitempty"` // such as 10s
	// Interleave is the way in which targets are compared: one of suite.Interleavings.
	Interleave string            `json:"interleave,omitempty"`
	Limits     Limits            `json:"limits,omitzero"`
	Launcher   []string          `json:"launcher,omitempty"`
	Agent      string            `json:"agent,omitempty"` // NAME/LEVEL
	Telemetry  bool              `json:"telemetry,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// Limits are the limits of a target.
type Limits struct {
	CPUs   float64 `json:"cpus,omitempty"`
	Memory string  `json:"memory,omitempty"` // such as 512MiB
}

// Plan describes the run of a form.
type Plan struct {
	Trials   []Planned `json:"trials"`
	Repeat   string    `json:"repeat,omitempty"` // "start" or "block"; empty: unknown
	LeastS   float64   `json:"leastS"`           // the least duration, without builds
	MostS    float64   `json:"mostS"`
	Command  []string  `json:"command"`  // that starts the same run
	Problems []string  `json:"problems"` // reasons why it cannot run
	Notes    []string  `json:"notes"`    // further remarks
}

// Planned is a planned trial.
type Planned struct {
	Trial    string `json:"trial"`
	Target   string `json:"target"`
	Scenario string `json:"scenario"`
	Block    int    `json:"block"`
	Role     string `json:"role,omitempty"`
}

// words matches the values of a form that prony run parses: no space, and no character with a
// meaning in a list of a flag, a shell or a path.
var words = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+/@-]{0,127}$`)

// args returns the form as a command line without "prony". Each value is in the same word as its
// flag, so that none can be interpreted as another flag, and names must exist.
func (f Form) args(suites []Suite, targets []Target) (args, problems []string) {
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	args = []string{"run"}
	index := slices.IndexFunc(suites, func(s Suite) bool { return s.Name == f.Suite })
	if index < 0 {
		wrong("suite: no suite has the name %.80q", f.Suite)
		return args, problems
	}
	s := suites[index]
	if s.Problem != "" {
		wrong("suite: %s", s.Problem)
	}
	if s.Argument != "" {
		args = append(args, s.Argument)
	}
	list := func(flag string, items []string, known func(string) bool) {
		for _, word := range items {
			if !known(word) {
				wrong("%s: unknown value %.80q", flag, word)
			}
		}
		if len(items) > 0 {
			args = append(args, "--"+flag+"="+row(items...))
		}
	}
	list("targets", f.Targets, func(name string) bool {
		return slices.ContainsFunc(targets, func(t Target) bool {
			return t.Name == name || t.Service == name
		})
	})
	exact := func(names []string) func(string) bool { // a pattern is not a name
		return func(name string) bool {
			return slices.Contains(names, name) && !strings.ContainsAny(name, `*?[\`)
		}
	}
	list("scenarios", f.Scenarios, exact(s.Scenarios))
	list("loads", f.Loads, exact(s.Loads))
	list("launcher", f.Launcher, func(name string) bool { return words.MatchString(name) })
	return f.amounts(args, wrong), problems
}

// row returns a line of CSV, the format of flags with lists.
func row(fields ...string) string {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(fields) // into memory
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// amounts adds the flags for the extent of the run, agents and telemetry.
func (f Form) amounts(args []string, wrong func(string, ...any)) []string {
	add := func(flag, value string) { args = append(args, "--"+flag+"="+value) }
	switch {
	case f.Blocks < 0 || f.Blocks > 0 && f.For != "":
		wrong("blocks: must be at least 1, or empty if a time is set")
	case f.Blocks > 0:
		add("blocks", strconv.Itoa(f.Blocks))
	}
	for _, d := range []struct{ flag, value string }{{"for", f.For}, {"measure", f.Measure}} {
		if d.value == "" {
			continue
		}
		if v, err := time.ParseDuration(d.value); err != nil || v <= 0 {
			wrong("%s: %.40q is not a time; use a time such as 10s or 5m", d.flag, d.value)
		}
		add(d.flag, d.value)
	}
	if f.Interleave != "" && !slices.Contains(suite.Interleavings, f.Interleave) {
		wrong("interleave: %.40q is not a way to compare targets; choose %s", f.Interleave,
			strings.Join(suite.Interleavings, " or "))
	} else if f.Interleave != "" {
		add("interleave", f.Interleave)
	}
	if f.Seed != nil {
		add("seed", strconv.FormatUint(*f.Seed, 10))
	}
	if f.Limits.CPUs != 0 {
		add("cpus", strconv.FormatFloat(f.Limits.CPUs, 'g', -1, 64))
	}
	for _, w := range []struct{ flag, value string }{{"memory", f.Limits.Memory},
		{"agent", f.Agent}} {
		if w.value != "" && !words.MatchString(w.value) {
			wrong("%s: %.80q is not a valid value", w.flag, w.value)
		} else if w.value != "" {
			add(w.flag, w.value)
		}
	}
	if f.Telemetry {
		args = append(args, "--telemetry")
	}
	if err := runs.CheckLabels(f.Labels); err != nil {
		wrong("%v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Labels)) {
		if pair := name + "=" + f.Labels[name]; strings.Contains(pair, `"`) {
			wrong("labels: %.80q: a label must not contain quotes", name)
		} else {
			add("label", row(pair))
		}
	}
	return args
}

// plan responds with the plan of a form.
func (*Server) plan(r *http.Request, lab Lab) (any, error) {
	_, p, err := planned(r, lab)
	return p, err
}

// planned reads a form and plans it if it has no problems; then args are its command line.
func planned(r *http.Request, lab Lab) (args []string, p Plan, err error) {
	var f Form
	if err := readForm(r, &f); err != nil {
		return nil, p, err
	}
	suites, err := lab.Suites()
	if err != nil {
		return nil, p, err
	}
	targets, err := lab.Catalog(r.Context())
	if err != nil {
		return nil, p, err
	}
	args, problems := f.args(suites, targets)
	if len(problems) == 0 {
		if p, err = lab.Plan(r.Context(), args); err != nil {
			problems = []string{err.Error()}
		}
	}
	p.Trials, p.Notes, p.Problems = orNone(p.Trials), orNone(p.Notes), orNone(problems)
	p.Command = append([]string{"prony"}, args...)
	return args, p, nil
}

// usualSuite is the suite of a form without one.
const usualSuite = "canonical"

func readForm(r *http.Request, f *Form) error {
	err := read(r, f)
	f.Suite = cmp.Or(f.Suite, usualSuite)
	return err
}
