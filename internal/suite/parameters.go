package suite

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
)

// parameter is one key of a suite file. Defaults, ranges, the table in docs/formats/suite.md and
// the JSON Schema are all made from these rows; walk panics at a key that has none.
type parameter struct {
	key      string // as in "loads[].measure"
	def      string // the default as a suite would write it; empty: none
	when     string // says when the default holds; empty: always, and preset sets it
	required bool
	min, max float64  // of numbers, in base units, and of the lengths of lists; both 0: any
	form     string   // regular expression of a text
	such     string   // an example of the form
	choices  []string // all that a text may be
	about    string
}

const (
	second = 1e9 // in ns
	hour   = 3600 * second

	// maxExact keeps seeds and keys whole in every reader of JSON, whose numbers may be doubles.
	maxExact = 1<<53 - 1

	suiteForm = `^[a-z0-9][a-z0-9-]{0,39}$`
	nameForm  = `^[A-Za-z0-9]([A-Za-z0-9 ._-]{0,38}[A-Za-z0-9])?$`
	lineForm  = `^(GET|POST|PUT|PATCH|DELETE) /[!-"$-~]*$`
	typeForm  = `^[a-z0-9.+-]+/[a-z0-9.+-]+(; ?[a-z0-9-]+=[A-Za-z0-9.+-]+)*$`
)

var parameters = []parameter{
	{key: "name", required: true, form: suiteForm, such: "canonical",
		about: "of the suite; records and folders carry it"},
	{key: "question", about: "what the suite is to answer, in one sentence"},
	{key: "contract", required: true, choices: Contracts,
		about: "what the targets must answer; see contract/README.md"},
	{key: "targets", max: 1000,
		about: "globs over names of targets and of services, such as `java-*` or `*/virtual` " +
			"(`*` stops at `/`); none, or `all`: every target that keeps the contract"},
	{key: "baseline", about: "the target that the others are compared with; empty: none"},
	{key: "blocks", def: "3", min: 1, max: 1000,
		about: "passes over all targets and scenarios, each in an order of its own"},
	{key: "seed", def: "42", max: maxExact,
		about: "of the order, the arrivals, the keys and the mix"},
	{key: "limits", about: "what each target may use"},
	{key: "limits.cpus", def: "1", min: 0.1, max: 1024, about: "cores"},
	{key: "limits.memory", def: "1GiB", min: 16 << 20, max: 1 << 40,
		about: "with a binary unit: `1GiB`, `832M` (M is MiB, as Docker has it)"},
	{key: "timeout", def: "5s", min: 1e6, max: hour,
		about: "for one request, from its sending"},
	{key: "warmup", about: "a closed load before the first window, in no result"},
	{key: "warmup.connections", def: "64", min: 1, max: 65535,
		about: "each sends its next request when the last was answered"},
	{key: "warmup.min", def: "1s", max: hour, about: "it lasts at least so long"},
	{key: "warmup.max", def: "5s", max: hour,
		about: "and ends when the rate is steady, or after so long"},
	{key: "scenarios", required: true, min: 1, max: 100,
		about: "each is offered to each target, in trials of its own"},
	{key: "scenarios[].name", required: true, form: nameForm, such: "cached read",
		about: "unique"},
	{key: "scenarios[].keys", max: maxExact,
		about: "first and last of the keys that `{key}` is drawn from, uniformly; wanted exactly " +
			"when `{key}` is used"},
	{key: "scenarios[].connections", min: 1, max: 65535,
		about: "replaces that of the warm-up and of every load"},
	{key: "scenarios[].requests", required: true, min: 1, max: 100,
		about: "one, or a mix that each request is drawn from by weight"},
	{key: "scenarios[].requests[].request", required: true, form: lineForm,
		such: "GET /hello/{mode}?key={key}",
		about: "method and path; `{mode}` is the target's mode, `{key}` a key drawn for each " +
			"request"},
	{key: "scenarios[].requests[].body", about: "sent with it, as it stands"},
	{key: "scenarios[].requests[].type", def: "text/plain", when: "there is a body",
		form: typeForm, such: "application/json", about: "media type of the body"},
	{key: "scenarios[].requests[].weight", def: "1", min: 1, max: 1_000_000,
		about: "its share of the mix is weight / sum of weights"},
	{key: "scenarios[].requests[].expect",
		about: "checked on every answer; at most one of body, size and lorem, and with none of " +
			"them any body is right"},
	{key: "scenarios[].requests[].expect.status", def: "200", min: 200, max: 599,
		about: "any other is an error"},
	{key: "scenarios[].requests[].expect.body", about: "byte for byte, with `{key}` filled in"},
	{key: "scenarios[].requests[].expect.size", max: 1 << 30,
		about: "only the body's length, in bytes"},
	{key: "scenarios[].requests[].expect.lorem", max: 1 << 24,
		about: "byte for byte: the text of contract/lorem.txt, repeated and cut to so many bytes"},
	{key: "loads", required: true, min: 1, max: 20,
		about: "offered one after another in every trial"},
	{key: "loads[].name", required: true, form: nameForm, such: "peak", about: "unique"},
	{key: "loads[].model", required: true, choices: []string{Closed, Open},
		about: "closed: each connection sends its next request when the last was answered. " +
			"open: requests fall due on a schedule, whatever the answers do"},
	{key: "loads[].connections", def: "64", min: 1, max: 65535,
		about: "open: at most so many requests are under way; more wait, and their wait counts"},
	{key: "loads[].rate",
		about: "open only, and wanted there: requests per second, `20000/s` or `20000`, or a " +
			"share of what an earlier closed load of the trial delivered, `50% of peak`"},
	{key: "loads[].arrivals", def: Poisson, when: "open", choices: []string{Poisson, Constant},
		about: "open only: how the gaps fall"},
	{key: "loads[].lead", def: "200ms", max: hour,
		about: "offered before the window and not counted"},
	{key: "loads[].measure", def: "2s", min: second / 10, max: 24 * hour, about: "the window"},
	{key: "loads[].drain", def: "1s", max: hour,
		about: "waited at most, after the window, for answers still under way"},
}

var rows = func() map[string]*parameter {
	m := map[string]*parameter{}
	for i := range parameters {
		m[parameters[i].key] = &parameters[i]
	}
	return m
}()

// walk visits every key of the struct v, which stands at key in the table and at path in the file,
// and all below it. Items of lists are visited as the list has them.
func walk(v reflect.Value, key, path string,
	visit func(row *parameter, v reflect.Value, path string)) {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			continue
		}
		row, f := rows[key+name], v.Field(i)
		if row == nil {
			panic(fmt.Sprintf("suite: the key %s%s has no row in parameters", key, name))
		}
		visit(row, f, path+name)
		if isGroup(f.Type()) {
			walk(f, key+name+".", path+name+".", visit)
		}
		for j := 0; isList(f.Type()) && j < f.Len(); j++ {
			walk(f.Index(j), key+name+"[].", fmt.Sprintf("%s%s[%d].", path, name, j), visit)
		}
	}
}

// isGroup says whether a type's keys have rows of their own: a struct that is not written as one
// text.
func isGroup(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

func isList(t reflect.Type) bool { return t.Kind() == reflect.Slice && isGroup(t.Elem()) }

// preset sets the defaults of the keys of struct v, which stands at key in the table.
func preset(v reflect.Value, key string) {
	walk(v, key, "", func(row *parameter, v reflect.Value, _ string) {
		if row.def == "" || row.when != "" {
			return
		}
		if err := yaml.Unmarshal([]byte(row.def), v.Addr().Interface()); err != nil {
			panic(fmt.Sprintf("suite: the default of %s: %v", row.key, err))
		}
	})
}
