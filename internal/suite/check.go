package suite

import (
	"fmt"
	"maps"
	"math"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/strictyaml"
	"prony.example/record"
)

// checker checks a suite or a scenario.
type checker struct {
	strictyaml.Check
	noMode bool // {mode} has no value
	// files collects the files that are read, unless it is nil. If sealed, no other file is opened.
	files  map[named][]byte
	sealed bool
}

// named is a file that a suite names, with its maximum size in bytes.
type named struct {
	name  string
	limit int64
}

// check reports the problems of the suite, one error per problem, in the order of the file's keys:
// first each value by its row, then the combinations of values.
func (s *Suite) check(c *checker) error {
	walk(reflect.ValueOf(s).Elem(), "", "", c.value)
	for i, least := range []Duration{s.Warmup.Min, s.Warmup.MinCompiling} {
		if key := []string{"warmup.min", "warmup.minCompiling"}[i]; least > s.Warmup.Max {
			c.Wrong(key, "", "%s %v exceeds warmup.max %v", key, least, s.Warmup.Max)
		}
	}
	c.widens(s)
	if s.For > 0 && s.AA {
		c.Wrong("blocks", "replace --for by "+
			"--blocks", "--for cannot be combined with --aa: a run for a time "+
			"ends when the targets differ, and with --aa each target is compared with itself")
	}
	for i, pattern := range s.Targets {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			c.Wrong(fmt.Sprintf("targets[%d]", i), "", "target pattern %q is malformed", pattern)
		}
	}
	c.unique("scenarios", ".name", namesOf(s.Scenarios, sceneName))
	for i := range s.Scenarios {
		c.scenario(fmt.Sprintf("scenarios[%d].", i), &s.Scenarios[i])
		c.speaks(fmt.Sprintf("scenarios[%d].", i), s, &s.Scenarios[i])
		c.rides(fmt.Sprintf("scenarios[%d].", i), s, &s.Scenarios[i])
	}
	c.unique("loads", ".name", namesOf(s.Loads, loadName))
	for i := range s.Loads {
		c.load(fmt.Sprintf("loads[%d]", i), &s.Loads[i], s.Loads[:i])
		c.objects(fmt.Sprintf("loads[%d].slo", i), s.Loads[i].SLO, s.Scenarios)
	}
	c.unique("drivers", "", s.Drivers)
	c.unique("launchers", "", s.Launchers)
	c.unique("variants", ".name", namesOf(s.Variants, variantName))
	for i, v := range s.Variants {
		c.variant(fmt.Sprintf("variants[%d]", i), v)
		c.spoken(fmt.Sprintf("variants[%d]", i), s, v)
	}
	c.capacity(s)
	c.observe("observe", s.Observe)
	c.together(s)
	c.podded(s)
	c.networked(s)
	foreign := others(s.Drivers, Drivers[0])
	if s.Observe.Traces > 0 && foreign {
		c.Wrong("observe.traces", "remove drivers", "only Prony's generator can send trace ids")
	}
	if foreign && slices.ContainsFunc(s.Loads, func(l Load) bool {
		return l.Model == record.Capacity
	}) {
		c.Wrong("drivers", "remove drivers", "only Prony's generator can search for a capacity")
	}
	c.unique("columns", "", s.Columns)
	return c.Err()
}

// others reports whether a list contains anything except the given value.
func others(list []string, usual string) bool {
	return slices.ContainsFunc(list, func(x string) bool { return x != usual })
}

// misfit returns the first load that cannot have its number of connections in a scenario, and why;
// empty: there is none. Every generator needs one, and an open load begins with no more than its
// largest number.
func (s *Suite) misfit(sc Scenario) (key, hint, problem string) {
	for i, l := range s.LoadsOf(sc) {
		switch {
		case l.Generators > l.Connections:
			return fmt.Sprintf("loads[%d].generators", i), "raise the number of connections",
				fmt.Sprintf("%d connections of load %q are too few for %d generators: each "+
					"generator needs at least one connection", l.Connections, l.Name, l.Generators)
		case l.Model == record.Open && l.Most != 0 && l.Most < l.Connections:
			return fmt.Sprintf("loads[%d].maxConnections", i), "raise maxConnections, or remove it",
				fmt.Sprintf("open load %q begins with %d connections, which exceeds "+
					"maxConnections %d", l.Name, l.Connections, l.Most)
		}
	}
	return "", "", ""
}

// together checks that every load can have its connections, and that all generators are Prony's.
func (c *checker) together(s *Suite) {
	for _, sc := range append([]Scenario{{}}, s.Scenarios...) {
		if key, hint, problem := s.misfit(sc); key != "" {
			c.Wrong(key, hint, "%s", problem)
			return
		}
	}
	many := slices.ContainsFunc(s.Loads, func(l Load) bool { return l.Generators > 0 })
	if many && others(s.Drivers, Drivers[0]) {
		c.Wrong("drivers", "remove drivers", "only Prony's generator can divide a load among "+
			"several generators")
	}
}

// podded checks that the suite requests nothing that pods cannot have.
func (c *checker) podded(s *Suite) {
	if !slices.ContainsFunc(s.Launchers, Pods) {
		return
	}
	if s.Observe.Telemetry || slices.ContainsFunc(s.Variants,
		func(v Variant) bool { return v.Home }) ||
		s.Observed && Pods(s.Launchers[0]) {
		c.Wrong("launchers", "start services that send telemetry as processes, or in Docker",
			"pods cannot reach Prony's telemetry collector yet")
	}
}

// widens checks that a warm-up on all cores is possible and useful.
func (c *checker) widens(s *Suite) {
	wrong := func(hint, text string, args ...any) {
		c.Wrong("warmup.cores", hint, "warmup.cores "+AllCores+": "+text, args...)
	}
	contained := slices.IndexFunc(s.Launchers, func(l string) bool { return l != Launchers[0] })
	switch {
	case s.Warmup.Cores != AllCores:
	case contained >= 0:
		wrong("remove warmup.cores", "targets of launcher %s cannot be moved to other cores",
			s.Launchers[contained])
	case s.Limits.CPUs != math.Trunc(s.Limits.CPUs):
		wrong("remove warmup.cores, or set limits.cpus to a whole "+
			"number", "limits.cpus %g is a CPU quota, which "+
			"additional cores do not raise", s.Limits.CPUs)
	}
}

// value checks one value by its row. A key that the file omits and that is not required is valid;
// an explicit zero is checked like any other value.
func (c *checker) value(row *parameter, v reflect.Value, keyPath string) {
	name, isSet := last(keyPath), c.Node(keyPath) != nil
	switch {
	case v.IsZero() && row.required && !isSet:
		c.Wrong(keyPath, "", "%s is missing", name)
		return
	case v.IsZero() && !row.required && !isSet && (row.def == "" || row.when != "" || row.late):
		return
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Slice:
		for i := 0; i < v.Len() && len(row.choices) > 0; i++ {
			c.text(row, v.Index(i).String(), fmt.Sprintf("%s[%d]", keyPath, i))
		}
	case reflect.Map:
		for _, name := range keysOf(v) {
			c.text(row, name, step(keyPath, name))
		}
	default:
		c.text(row, v.String(), keyPath)
	}
	c.bounds(row, v, keyPath)
}

// text checks a text, or the name of an entry, by the row of its key.
func (c *checker) text(row *parameter, text, keyPath string) {
	name := last(row.key)
	if len(row.choices) > 0 && !slices.Contains(row.choices, text) {
		c.Wrong(keyPath, strictyaml.Meant(text, row.choices, ""), "%s %q is not one of "+
			"%s", name, text,
			strings.Join(row.choices, ", "))
	}
	if row.form != nil && !row.form.MatchString(text) {
		c.Wrong(keyPath, "", "%s %q does not have the form of %q", name, text, row.such)
	}
}

func (c *checker) bounds(row *parameter, v reflect.Value, keyPath string) {
	if row.min == 0 && row.max == 0 {
		return
	}
	n, text := number(v)
	if n >= row.min && n <= row.max { // also false for NaN
		return
	}
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		c.Wrong(
			keyPath,
			"",
			"%s has %s items, but must have %s",
			last(keyPath),
			text,
			row.bounds(v.Type()),
		)
		return
	}
	c.Wrong(keyPath, "", "%s %s is outside of the range "+
		"%s", last(keyPath), text, row.bounds(v.Type()))
}

// number returns a value's number for the bounds of its row, and its text: for a list its length,
// for keys the last one.
func number(v reflect.Value) (float64, string) {
	if k, ok := v.Interface().(Keys); ok {
		return float64(max(k[0], k[1])), fmt.Sprint(k)
	}
	text := fmt.Sprint(v.Interface())
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return float64(v.Len()), fmt.Sprint(v.Len())
	case reflect.Float64:
		return v.Float(), text
	case reflect.Uint64:
		return float64(v.Uint()), text
	}
	return float64(v.Int()), text
}

// bounds formats the row's range in the units of the type.
func (p *parameter) bounds(t reflect.Type) string {
	show := func(n float64) string {
		switch t {
		case reflect.TypeFor[Duration]():
			return Duration(n).String()
		case reflect.TypeFor[strictyaml.Size]():
			return strictyaml.Size(n).String()
		}
		if n == float64(int64(n)) {
			return fmt.Sprint(int64(n))
		}
		return fmt.Sprint(n)
	}
	return show(p.min) + " to " + show(p.max)
}

// unique checks that the names of a list's items, found at list[i] and key, are unique.
func (c *checker) unique(list, key string, names []string) {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			c.Wrong(fmt.Sprintf("%s[%d]%s", list, i, key), "",
				"%s contains %q twice; names must be unique", list, name)
		}
	}
}

// newChecker parses a suite or scenario file, which must be one YAML document without tags.
func newChecker(file string, data []byte) (*checker, error) {
	d, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil, err
	}
	bodies := d.Bodies()
	if len(bodies) == 0 || bodies[0] == nil {
		return nil, &strictyaml.Error{File: file, Problem: "it is empty"}
	}
	if len(bodies) > 1 {
		return nil, &strictyaml.Error{File: file, Problem: "the file contains several YAML " +
			"documents",
			Hint: "keep one document and remove the lines ---"}
	}
	var tags tagFinder
	ast.Walk(&tags, bodies[0])
	if len(tags) > 0 {
		return nil, &strictyaml.Error{File: file, Line: tags[0].Start.Position.Line,
			Problem: fmt.Sprintf("YAML tags such as %s are not allowed", tags[0].Start.Value),
			Hint:    "quote the value if it begins with an exclamation mark"}
	}
	return &checker{Check: strictyaml.Check{Document: d}}, nil
}

// tagFinder collects tags. A tag would change a value's type without the decoder's knowledge, and a
// tag before a missing list makes the decoder panic.
type tagFinder []*ast.TagNode

// Visit collects the node if it is a tag.
func (f *tagFinder) Visit(n ast.Node) ast.Visitor {
	if t, ok := n.(*ast.TagNode); ok {
		*f = append(*f, t)
	}
	return f
}

// last returns the last named step of a path: rate of loads[1].rate, loads of loads[1], a.b of
// targets.'a.b'.
func last(path string) string {
	if quoted, is := strings.CutSuffix(path, "'"); is {
		return quoted[strings.LastIndex(quoted, "'")+1:]
	}
	path = path[strings.LastIndex(path, ".")+1:]
	name, _, _ := strings.Cut(path, "[")
	return name
}

// plainName matches the names that a path can contain.
var plainName = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

// dotted matches the names that a path contains in quotes.
var dotted = lazyregexp.New(`^[A-Za-z0-9._-]+$`)

// step returns the path of an entry of the mapping at a path, or of the mapping if no path can
// contain the entry's name.
func step(keyPath, name string) string {
	switch {
	case plainName.MatchString(name):
		return keyPath + "." + name
	case dotted.MatchString(name):
		return keyPath + ".'" + name + "'"
	}
	return keyPath
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
