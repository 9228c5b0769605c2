package suite

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/strictyaml"
)

// Matrix defines sweeps over settings of a target, which becomes one target for each combination of
// values.
type Matrix struct {
	Connections []int             `yaml:"connections"` // of its loads and its warm-up
	Body        []strictyaml.Size `yaml:"body"`        // of requests that have one
	Env         map[string][]Text `yaml:"env"`         // by variable
	Args        map[string][]Text `yaml:"args"`        // by axis: appended, or at {AXIS}
}

const (
	// rowsOfMatrix limits the targets of a matrix, because each is started in every block.
	rowsOfMatrix = 64
	// nameMax is the longest name of a row, which names up to four axes. Labels of Kubernetes and
	// parts of host names have the same limit (RFC 1123).
	nameMax = 63
	// connectionsAxis and bodyAxis are the axes of those keys.
	connectionsAxis = "connections"
	bodyAxis        = "body"
	// connectionsMax is the maximum of a load: the number of ports of one address.
	connectionsMax = 65535
)

// unnamed matches the parts of a value that a target's name cannot contain.
var unnamed = lazyregexp.New(`[^A-Za-z0-9._]+`)

// matrixParameters are the keys of a Matrix.
var matrixParameters = []parameter{
	{key: "project.targets.NAME.matrix", about: "replaces the target by one target for each " +
		"combination of these values, at most 64 targets, with names such as `app-GOGC-50`; the " +
		"target's own name selects all of them"},
	{key: "project.targets.NAME.matrix.connections", max: rowsOfMatrix,
		about: "numbers of connections, which replace the number in the loads and the warm-up"},
	{key: "project.targets.NAME.matrix.body", max: rowsOfMatrix,
		about: "sizes of the body, for requests that have a body; the content of a size is " +
			"always the same"},
	{key: "project.targets.NAME.matrix.env", max: 8, form: envForm, such: "GOGC",
		about: "lists of values for environment variables"},
	{key: "project.targets.NAME.matrix.args", max: 8, form: varForm, such: "gc",
		about: "lists of arguments; an argument replaces its placeholder such as `{gc}` in the " +
			"command, otherwise Prony appends the argument to the command"},
}

// expand replaces each target that has a matrix by its rows.
func (p *Project) expand(c *checker) {
	names := p.Names
	p.Names, p.rows = nil, map[string][]string{}
	for _, name := range names {
		source := p.Targets[name]
		keyPath := step("targets", name) + ".matrix"
		if c.Node(keyPath) == nil {
			p.Names = append(p.Names, name)
			continue
		}
		rows := c.rows(keyPath, row{name, source}, p.doc)
		delete(p.Targets, name)
		for _, r := range rows {
			if _, exists := p.Targets[r.name]; exists || slices.Contains(names, r.name) {
				c.Wrong(keyPath, "give one of the two targets another name or value",
					"two targets have the name %s", r.name)
			}
			if len(r.name) > nameMax {
				c.Wrong(keyPath, "shorten the name of the target or of its axes",
					"the name %s is longer than %d characters", r.name, nameMax)
			}
			p.Targets[r.name] = r.source
			p.Names = append(p.Names, r.name)
			p.rows[name] = append(p.rows[name], r.name)
		}
	}
}

// row is one target of a matrix.
type row struct {
	name   string
	source Source
}

// rows returns the combinations of the matrix at the path; the last axis varies fastest.
func (c *checker) rows(keyPath string, base row, doc *strictyaml.Document) []row {
	m := base.source.Matrix
	base.source.Matrix, base.source.Built = Matrix{}, base.name
	out := []row{base}
	sweep := func(kind, axis string, values []Text, set func(to *Source, value string)) {
		here := step(strings.TrimSuffix(keyPath+"."+kind, "."), axis)
		n := len(out) * len(values)
		if n == 0 || n > rowsOfMatrix {
			c.Wrong(here, fmt.Sprintf("a matrix can make 1 to %d targets", rowsOfMatrix),
				"with the axis %s, the matrix makes %d targets", axis, n)
			return
		}
		var next []row
		for _, r := range out {
			for _, value := range values {
				to := r
				set(&to.source, string(value))
				to.name = strings.Trim(r.name+"-"+axis+"-"+
					strings.Trim(unnamed.ReplaceAllString(string(value), "-"), "-"), "-")
				next = append(next, to)
			}
		}
		out = next
	}
	c.loaded(keyPath, m, sweep)
	for _, axis := range doc.Names(keyPath + ".env") {
		if _, exists := base.source.Env[axis]; exists || base.source.URL != "" {
			c.Wrong(step(keyPath+".env", axis), "remove the variable from env or from the matrix",
				"the target itself sets the variable %s, or the target is a running service", axis)
		}
		sweep("env", axis, m.Env[axis], func(to *Source, value string) {
			env := map[string]Text{axis: Text(value)}
			maps.Copy(env, to.Env)
			to.Env = env
		})
	}
	for _, axis := range doc.Names(keyPath + ".args") {
		if base.source.Command == "" || axis == "port" {
			c.Wrong(step(keyPath+".args", axis), "choose another axis name, or use env",
				"args need a command, and an axis cannot have the name port because Prony sets "+
					"{port}")
		}
		sweep("args", axis, m.Args[axis], func(to *Source, value string) {
			if place := "{" + axis + "}"; strings.Contains(to.Command, place) {
				to.Command = strings.ReplaceAll(to.Command, place, value)
			} else {
				to.Command = strings.TrimSpace(to.Command + " " + value)
			}
		})
	}
	if m.Connections == nil && m.Body == nil && len(m.Env)+len(m.Args) == 0 {
		c.Wrong(keyPath, "add env, args, connections or body to the "+
			"matrix", "the matrix has no axis")
	}
	return out
}

// loaded sweeps the settings of loads by the values of the matrix at the path.
func (c *checker) loaded(keyPath string, m Matrix, sweep func(kind, axis string, values []Text,
	set func(to *Source, value string))) {
	if m.Connections != nil {
		var values []Text
		for i, n := range m.Connections {
			if n < 1 || n > connectionsMax {
				c.Wrong(fmt.Sprintf("%s.connections[%d]", keyPath, i), fmt.Sprintf("write a "+
					"number of connections from 1 to %d",
					connectionsMax), "a load cannot have %d connections", n)
			}
			values = append(values, Text(strconv.Itoa(n)))
		}
		sweep("", connectionsAxis, values, func(to *Source, value string) {
			to.Connections, _ = strconv.Atoi(value) // written a few lines above
		})
	}
	if m.Body != nil {
		sizes := map[string]strictyaml.Size{}
		var values []Text
		for i, n := range m.Body {
			if n < 1 || n > bodyMax {
				c.Wrong(fmt.Sprintf("%s.body[%d]", keyPath, i), fmt.Sprintf("write a body size "+
					"from 1B to %v",
					strictyaml.Size(bodyMax)), "the generator cannot make a body of %v", n)
			}
			sizes[n.String()] = n
			values = append(values, Text(n.String()))
		}
		sweep("", bodyAxis, values, func(to *Source, value string) { to.Body = sizes[value] })
	}
}

// sized returns an error for targets with their own body sizes in an experiment in which these
// would change nothing, or break the requests.
func (p *Project) sized(s *Suite, doc *strictyaml.Document) error {
	for _, name := range p.Names {
		if p.Targets[name].Body == 0 || !s.measures(name) {
			continue
		}
		for i := range s.Scenarios {
			sc := &s.Scenarios[i]
			if strings.HasPrefix(sc.Protocol, "grpc") {
				return doc.Problem("scenarios", fmt.Sprintf("the matrix of %s changes the body, "+
					"but scenario %s sends gRPC messages, whose size cannot be "+
					"changed", p.Targets[name].Built, sc.Name),
					"remove body from the matrix, or measure this target in another suite")
			}
			if !slices.ContainsFunc(sc.Requests, func(r Request) bool { return r.sizes() }) {
				return doc.Problem("scenarios", fmt.Sprintf("the matrix of %s changes the body, "+
					"but no request of scenario %s has a body", p.Targets[name].Built, sc.Name),
					"add a body to requests whose size is to change, such as body: x")
			}
		}
	}
	return nil
}

// connected returns an error for a number of connections of a matrix that a load cannot have.
func (p *Project) connected(s *Suite, doc *strictyaml.Document) error {
	for _, name := range p.Names {
		if n := p.Targets[name].Connections; n > 0 && s.measures(name) {
			if key, hint, problem := s.misfit(Scenario{Connections: n}); key != "" {
				return doc.Problem(key, "target "+name+": "+problem, hint)
			}
		}
	}
	return nil
}

// swept replaces a target with a matrix by its rows in an experiment. If it is the baseline, its
// first row takes its place.
func (p *Project) swept(s *Suite) {
	var out []string
	for _, pattern := range s.Targets {
		if rows := p.rows[pattern]; rows != nil {
			out = append(out, rows...)
		} else {
			out = append(out, pattern)
		}
	}
	s.Targets = out
	if rows := p.rows[s.Baseline]; rows != nil {
		s.Baseline = rows[0]
	}
}
