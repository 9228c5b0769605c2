package suite

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/runtimes"
	"prony.example/record"
)

// parameter is one key of a suite file. Defaults, ranges, the table in docs/formats/suite.md and
// the JSON Schema are made from these rows. walk panics at a key without a row.
type parameter struct {
	key      string // as in "loads[].measure"
	def      string // default as in a suite file; empty: none
	when     string // when the default applies; empty: always, and preset sets it
	late     bool   // always applies, and plans leave it out: see settle
	required bool
	min, max float64             // in base units, and of lengths of lists; both 0: any
	form     *lazyregexp.Pattern // of a text, or of the names of a mapping; nil: any
	such     string              // an example of the form
	choices  []string            // all values of a text
	former   map[string]string   // earlier names of some of them
	about    string
}

const (
	second = 1e9 // in ns
	hour   = 3600 * second

	// maxExact keeps seeds and keys exact in all readers of JSON, whose numbers may be doubles.
	maxExact = 1<<53 - 1

	blocksMax = 1000

	generatorsMost = 256 // on one machine
)

// Forms of texts.
var (
	suiteForm = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,39}$`)
	nameForm  = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9 ._-]{0,38}[A-Za-z0-9])?$`)
	lineForm  = lazyregexp.New(`^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) ` +
		`/([!-"$-~]|[^\x00-\x7f]|\{[a-z][A-Za-z0-9_]* ([ -z|~]|[^\x00-\x7f])*\})*$`)
	fieldForm = lazyregexp.New("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$") // RFC 9110, section 5.6.2
	agentForm = lazyregexp.New(`^[a-z0-9][a-z0-9-]*(/[a-z0-9][a-z0-9-]*)?$`)
	envForm   = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	varForm   = lazyregexp.New(`^[a-z][A-Za-z0-9_]*$`)
	typeForm  = lazyregexp.New(`^[a-z0-9.+-]+/[a-z0-9.+-]+(; ?[a-z0-9-]+=[A-Za-z0-9.+-]+)*$`)
)

var parameters = slices.Concat([]parameter{
	{key: "name", required: true, form: suiteForm, such: "canonical",
		about: "name of the suite, in records and folders"},
	{key: "question", about: "question that the suite answers, in one sentence"},
	{key: "contract", choices: Contracts,
		about: "contract of the targets, checked before and after the loads; see " +
			"contract/README.md. Without one, only the expectations of the scenarios are checked"},
	{key: "targets", max: 1000,
		about: "globs over names of targets and of services, such as `java-*` or `*/virtual` " +
			"(`*` stops at `/`); none, or `all`: every target that keeps the contract"},
	{key: "baseline", about: "the target that the others are compared with; empty: none"},
	{key: "blocks", def: "3", min: 1, max: blocksMax,
		about: "passes over all targets and scenarios, each in an order of its own"},
	{key: "interleave", choices: Interleavings,
		about: "how targets are compared. slices: all targets of a scenario run side by side and " +
			"are loaded one at a time, for some tens of milliseconds each; blocks: whole trials " +
			"one after the other; without it slices where possible"},
	{key: "freeze", choices: Freezing,
		about: "whether a target is stopped while others are loaded in slices. Use off for " +
			"services that do not work if they are stopped, such as members of a cluster with " +
			"heartbeats; their work between slices then takes time from the others"},
	{key: "slices", def: "4s", max: hour,
		about: "how long each target is loaded in the slices of a start"},
	{key: "seed", def: "42", max: maxExact,
		about: "seed of the order, the arrivals, the keys and the mix"},
	{key: "limits", about: "limits of each target"},
	{key: "limits.cpus", def: "1", min: 0.1, max: 1024, about: "cores"},
	{key: "limits.memory", def: "1GiB", min: 16 << 20, max: 1 << 40,
		about: "with a binary unit: `1GiB`, `832M` (M is MiB, as Docker has it)"},
	{key: "timeout", def: "5s", min: 1e6, max: hour,
		about: "timeout of a request, from its sending"},
	{key: "resolution", about: "a smaller possible bias does not make a number SUSPECT (`3%`); " +
		"see [the method](../method.md#verdict-rules)"},
	{key: "warmup", about: "a closed load before the first window, not measured"},
	{key: "warmup.connections", def: "64", min: 1, max: connectionsMax,
		about: "each sends its next request when the last was answered"},
	{key: "warmup.min", def: "1s", max: hour, about: "least duration"},
	{key: "warmup.max", def: "5s", max: hour,
		about: "largest duration; it ends earlier if the rate is steady and compilers are idle"},
	{key: "warmup.cores", def: "own", late: true, choices: WarmupCores,
		about: "all: a service that compiles while it serves (JVM, Node) also has the cores of " +
			"the load until its compilers are idle, and then only its own until it is steady on " +
			"them"},
	{key: "warmup.compilers", def: CompilersFirst, late: true, choices: Turns,
		about: "first: the compilers of a JVM or of .NET run before its other threads until the " +
			"first window, if Prony may set priorities (as root); equal: no priority, for time " +
			"to steady state and warm-up cost"},
	{key: "scenarios", required: true, min: 1, max: 100,
		about: "scenarios; each target runs each of them, in trials of its own"},
	{key: "scenarios[].name", required: true, form: nameForm, such: "cached read",
		about: "unique"},
	{key: "scenarios[].flow",
		about: "`true`: the requests are steps that one user sends in order on one connection"},
	{key: "scenarios[].keys", max: maxExact,
		about: "first and last of the keys that `{key}` is drawn from, uniformly; wanted exactly " +
			"when `{key}` is used"},
	{key: "scenarios[].zipf", min: 0.01, max: 10,
		about: "key number i is drawn with a probability in proportion to 1/i^zipf, so that the " +
			"first is the most popular"},
	{key: "scenarios[].connections", min: 1, max: connectionsMax,
		about: "replaces that of the warm-up and of every load"},
	{key: "scenarios[].cookies",
		about: "each user keeps the cookies that answers set, and sends them; see " +
			"[sessions](../sessions.md)"},
	{key: "scenarios[].data", about: "a CSV file in or below the suite's folder, at most 16 MiB; " +
		"its first line names the columns, which requests have as `{name}`"},
	{key: "scenarios[].rows", def: Sequential, when: "there is data",
		choices: []string{Sequential, Random},
		former:  map[string]string{"turn": Sequential, "drawn": Random},
		about: "order of its rows. sequential: request or flow number k has row k, and starts " +
			"again after the last; random: drawn by seed. " +
			"If each user has a setup, user i keeps row i"},
	{key: "scenarios[].protocol", def: "http", late: true, choices: Protocols,
		about: "http: HTTP/1.1; https: over TLS; h2, h2c: HTTP/2 with and without TLS; h3: " +
			"HTTP/3; grpc, grpcs: unary calls; ws, wss: messages of a WebSocket; see " +
			"[the load](../load.md#protocols)"},
	{key: "scenarios[].unix", about: "path of the Unix socket that the service listens at, " +
		"`{port}` in it being the port that it would have; http only"},
	{key: "scenarios[].streams", min: 1, max: 1000,
		about: "requests at once on each connection, beside each other; h2, h2c, h3, grpc, grpcs"},
	{key: "scenarios[].tls", about: "certificates to trust; default: those that this machine " +
		"trusts"},
	{key: "scenarios[].tls.insecure", about: "any"},
	{key: "scenarios[].tls.ca", about: "file of the certificates to trust, in PEM, in or below " +
		"the suite's folder"},
	{key: "scenarios[].contract", choices: Contracts,
		about: "contract of the targets instead of the suite's; targets without it are not in " +
			"the scenario"},
	{key: "scenarios[].variants", max: 20,
		about: "variants of the suite in the scenario; none: all. Bare targets are always in it"},
	{key: "scenarios[].requests", required: true, min: 1, max: 100,
		about: "one, or a mix that each request is drawn from by weight, or the steps of a flow"},
	{key: "scenarios[].requests[].name", form: nameForm, such: "create owner",
		about: "in results, unique; without it, method and path"},
	{key: "scenarios[].requests[].request", required: true, form: lineForm,
		such: "GET /hello/{mode}?key={key}",
		about: "method (GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS) and path, with " +
			"placeholders; `{mode}` is the target's mode, `{key}` a key drawn for each request"},
	{key: "scenarios[].requests[].headers", max: 100, form: fieldForm, such: "accept",
		about: "a mapping of names to values, with placeholders"},
	{key: "scenarios[].requests[].body", about: "sent with it, with placeholders"},
	{key: "scenarios[].requests[].bodyFile",
		about: "body from a file in or below the suite's folder, at most 16 MiB; a file that is " +
			"not UTF-8 is sent unchanged"},
	{key: "scenarios[].requests[].type", def: "text/plain", when: "there is a body",
		form: typeForm, such: "application/json", about: "media type of the body"},
	{key: "scenarios[].requests[].weight", def: "1", min: 1, max: 1_000_000,
		about: "its share of the mix is weight / sum of weights; not in flows"},
	{key: "scenarios[].requests[].expect",
		about: "checked on every answer; at most one of body, size and lorem, and with none of " +
			"them any body is right"},
	{key: "scenarios[].requests[].expect.status", def: "200", min: 200, max: 616,
		about: "any other is an error; of a call of gRPC that fails, 600 and its code"},
	{key: "scenarios[].requests[].expect.body", about: "byte for byte, with placeholders"},
	{key: "scenarios[].requests[].expect.size", max: 1 << 30,
		about: "only the body's length, in bytes"},
	{key: "scenarios[].requests[].expect.lorem", max: 1 << 24,
		about: "exact body: the text of contract/lorem.txt, repeated and cut to this number of " +
			"bytes"},
	{key: "scenarios[].requests[].checks", max: 50,
		about: "checks of every answer: each has one of json, header, regex and body, and one of " +
			"is, contains, matches and exists"},
}, places("scenarios[].requests[].checks[]."), []parameter{
	{key: "scenarios[].requests[].checks[].is",
		about: "the value is this, byte for byte, with placeholders"},
	{key: "scenarios[].requests[].checks[].contains", about: "this is in it, with placeholders"},
	{key: "scenarios[].requests[].checks[].matches",
		about: "this regular expression matches somewhere in it"},
	{key: "scenarios[].requests[].checks[].exists",
		about: "whether the value exists"},
	{key: "scenarios[].requests[].call", about: "the same request as a unary call, for variants " +
		"that speak gRPC; its answer is checked against its `expect` only"},
	{key: "scenarios[].requests[].call.method", such: "/prony.Hello/Say",
		about: "`/package.Service/Method`"},
	{key: "scenarios[].requests[].call.send",
		about: "the message as it goes over the wire, with placeholders: `\"\\n\\u0005{key}\"` " +
			"is a text of five bytes in field 1"},
	{key: "scenarios[].requests[].call.expect",
		about: "the answer's message, byte for byte, with placeholders"},
	{key: "scenarios[].requests[].extract", max: 50, form: varForm, such: "ownerId",
		about: "flows and setup only: values for later steps, by the name of the placeholder; an " +
			"answer " +
			"without one is an error"},
}, places("scenarios[].requests[].extract.NAME."), []parameter{
	{key: "scenarios[].requests[].setup", choices: []string{SetupRun, SetupUser},
		about: "sent before the load and not measured: once, or by each user (a connection); all " +
			"requests may use the values that it extracts"},
	{key: "scenarios[].requests[].pause", max: hour,
		about: "flows only: from this step's answer to the next step"},
	{key: "scenarios[].requests[].backendCalls", max: 16, form: processForm, such: "database",
		about: "least number of backend calls per request, by the name of a target's counter. A " +
			"target with fewer calls by that counter is INVALID; a target without the counter is " +
			"not checked"},
	{key: "loads", required: true, min: 1, max: 20,
		about: "offered one after another in every trial"},
	{key: "loads[].name", required: true, form: nameForm, such: "peak", about: "unique"},
	{key: "loads[].model", required: true,
		choices: []string{record.Closed, record.Open, record.Capacity},
		about: "closed: each connection sends its next request when the last was answered. " +
			"open: requests fall due on a schedule, whatever the answers do. capacity: open " +
			"loads in search of the highest rate that keeps slo"},
	{key: "loads[].connections", def: "64", min: 1, max: connectionsMax,
		about: "open: the initial number. With users: the largest number of users, unless it is " +
			"given"},
	{key: "loads[].maxConnections", min: 1, max: connectionsMax,
		about: "open only: more are opened when needed, up to this number and the limit of open " +
			"files. Without it, arrivals that find no connection wait, and their wait counts. " +
			"Opening connections costs service and generator time at the busiest moments"},
	{key: "loads[].generators", min: 1, max: generatorsMost,
		about: "number of processes that offer the load together, each every n-th arrival of the " +
			"common schedule, with its part of the connections; see [many " +
			"generators](../generators.md). Default: one"},
	{key: "loads[].users",
		about: "closed only: virtual users over time, each with a connection of its own, such as " +
			"`ramp 0..700 in 5m, 700 for 5m, ramp 700..0 in 3m20s`; without it, every connection " +
			"is a user from beginning to end"},
	{key: "loads[].think",
		about: "closed only: pause of a user between an answer and the next request, `1s`, " +
			"`uniform 500ms..1500ms` or `exponential 1s` (its mean)"},
	{key: "loads[].rate",
		about: "open only, and wanted there: requests per second, `20000/s` or `20000`, or a " +
			"share of what an earlier closed load of the trial delivered, `50% of peak`, or a " +
			"shape of either, `ramp 100..2000 in 30s` or `ramp 10..90 in 30s % of peak`"},
	{key: "loads[].arrivals", def: Poisson, when: record.Open,
		choices: []string{Poisson, Constant, Replay},
		about:   "open only: how the gaps fall; replay takes them from a trace"},
	{key: "loads[].trace",
		about: "replay only, and wanted there: a file in or below the suite's folder, at most " +
			"256 MiB; see [traces](trace.md)"},
	{key: "loads[].slo", such: "p99<50ms",
		about: "capacity only, and wanted there: the objectives that are kept, " +
			"`p99<50ms,errors<0.1%`; see [`prony capacity`](../capacity.md)"},
	{key: "loads[].budget", def: "1m", when: record.Capacity, max: 24 * hour,
		about: "capacity only: time for the whole search; a capacity that is not found by then " +
			"is reported as \"at least\""},
	{key: "loads[].churn", max: 1_000_000,
		about: "requests after which a connection is renewed; 0: never"},
	{key: "loads[].pacing", def: "precise", late: true, choices: Pacings,
		about: "how the generator waits for the next request: frugal sleeps, and is late by the " +
			"time of a wake-up; precise also polls shortly before, which uses all of its core"},
	{key: "loads[].engine", def: "auto", late: true, choices: Engines,
		former: map[string]string{"stack": "nethttp"},
		about:  "of the generator; auto takes the best that the machine offers"},
	{key: "loads[].leadIn", def: "200ms", max: hour,
		about: "load before the window that does not count"},
	{key: "loads[].measure", def: "2s", min: second / 10, max: 24 * hour,
		about: "length of the window; capacity: least length of a step"},
	{key: "loads[].drain", def: "1s", max: hour,
		about: "longest wait, after the window, for answers still under way"},
	{key: "drivers", def: "[prony]", late: true, max: 20, choices: Drivers,
		about: "generators of the loads: Prony's generator or other tools, each in trials of its " +
			"own"},
	{key: "launchers", def: "[process]", late: true, max: 5, choices: Launchers,
		about: "how targets are started, each way in trials of its own: as processes, as " +
			"containers on a network of their own, as containers on the host's, as pods of a " +
			"Kubernetes cluster, as pods reached through a service of it"},
	{key: "variants", max: 20,
		about: "additions to targets, such as an agent, each in trials of its own; its ratios " +
			"refer to the bare target"},
	{key: "variants[].name", def: "the agent's, with dashes", when: "there is one",
		form: suiteForm, such: "agent", about: "unique"},
	{key: "variants[].agent", form: agentForm, such: "otel-java/full",
		about: "one of [agents.yaml](agents.md), and its level"},
	{key: "variants[].env", max: 100, form: envForm, such: "JAVA_TOOL_OPTIONS",
		about: "variables of the target's processes, over those of its manifest"},
	{key: "variants[].protocol", choices: Protocols,
		about: "protocol of targets with it, by their own means, instead of HTTP/1.1: as in " +
			"`scenarios[].protocol`. Targets whose service does not speak it run bare only"},
	{key: "variants[].streams", min: 1, max: 1000,
		about: "concurrent requests on each connection; the number of connections is divided by " +
			"it; 1 by default"},
	{key: "variants[].runtimes", max: 10, choices: runtimes.Names,
		about: "runtimes that support it; none: all. Other targets run bare only"},
	{key: "variants[].processes", max: 100,
		about: "processes of systems that have it; none: all"},
	{key: "variants[].observe", about: "observations in its trials, instead of the suite's"},
}, observations("variants[].observe."), []parameter{
	{key: "capacity", about: "a closed load that each bare target meets once, before the blocks; " +
		"rates may be shares of what it delivered, `50% of capacity`, so that every variant of a " +
		"target is offered the same"},
	{key: "capacity.connections", def: "64", late: true, min: 1, max: connectionsMax,
		about: "each sends its next request when the last was answered"},
	{key: "capacity.measure", def: "5s", late: true, min: second / 10, max: 24 * hour,
		about: "the window"},
	{key: "observe", about: "observations in every trial of the comparison, beside its samples; " +
		"see [observing](../observing.md)"},
}, observations("observe."), []parameter{
	{key: "columns", max: 20, choices: Columns, former: record.FormerColumns,
		about: "in the table beside the usual ones: of each load mean, p90, max, requests and " +
			"errors; at the cost, processors used, threads, and what compiler and collector " +
			"took of it; of the start, when it listens and " +
			"its first answer; the sizes of artifact and image"},
})

// observations returns the rows of an Observe.
func observations(prefix string) []parameter {
	return []parameter{
		{key: prefix + "telemetry", about: "the telemetry collector runs, even if no service " +
			"sends data"},
		{key: prefix + "gc", about: "JVMs log their collections"},
		{key: prefix + "traces", about: "share of the requests that carry a trace id, such as " +
			"`1%`; the slowest of them are in the record"},
		{key: prefix + "profile", max: 1, choices: ProfileKinds,
			about: "the kind of profile taken during each load, from before its lead-in on; one " +
				"at a time"},
		{key: prefix + "profiler", choices: Profilers,
			about: "the tool; empty: the best one for the runtime"},
		{key: prefix + "period", max: second, about: "between samples of the service; 0: 100ms"},
	}
}

// places returns the rows of a Place.
func places(prefix string) []parameter {
	return []parameter{
		{key: prefix + "json", about: "the value at this path of the body, such as `pets.0.id`, " +
			"in " +
			"[GJSON's syntax](https://github.com/tidwall/gjson/blob/master/SYNTAX.md); a text " +
			"without its quotes"},
		{key: prefix + "header", about: "the value of this header field"},
		{key: prefix + "regex", about: "first match of this regular expression in the body, or " +
			"in the lines of the header field if `header` is also given: " +
			"its first group, or the whole match " +
			"([RE2](https://github.com/google/re2/wiki/Syntax))"},
		{key: prefix + "body", about: "`true`: the whole body"},
	}
}

var rows = func() map[string]*parameter {
	m := map[string]*parameter{}
	for _, list := range [][]parameter{parameters, projectParameters} {
		for i := range list {
			m[list[i].key] = &list[i]
		}
	}
	return m
}()

// walk visits every key of the struct v, found at key in the table and at path in the file, and all
// below it: items of lists in their order, entries of mappings by name.
func walk(v reflect.Value, key, path string,
	visit func(row *parameter, v reflect.Value, path string)) {
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			walk(v.Field(i), key, path, visit)
			continue
		}
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			continue
		}
		row, f := rows[key+name], v.Field(i)
		if row == nil {
			panic(fmt.Sprintf("suite: the key %s%s has no row in parameters", key, name))
		}
		visit(row, f, path+name)
		switch {
		case isGroup(f.Type()):
			walk(f, key+name+".", path+name+".", visit)
		case isList(f.Type()):
			for j := range f.Len() {
				walk(f.Index(j), key+name+"[].", fmt.Sprintf("%s%s[%d].", path, name, j), visit)
			}
		case isMapping(f.Type()):
			for _, k := range keysOf(f) {
				keyPath := step(path+name, k) + "."
				walk(f.MapIndex(reflect.ValueOf(k)), key+name+".NAME.", keyPath, visit)
			}
		}
	}
}

// keysOf returns the sorted names of a mapping.
func keysOf(v reflect.Value) (out []string) {
	for _, k := range v.MapKeys() {
		out = append(out, k.String())
	}
	slices.Sort(out)
	return out
}

// isGroup reports whether a type's keys have rows of their own: a struct that is not written as one
// text.
func isGroup(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

func isList(t reflect.Type) bool { return t.Kind() == reflect.Slice && isGroup(t.Elem()) }

func isMapping(t reflect.Type) bool { return t.Kind() == reflect.Map && isGroup(t.Elem()) }

// usualValue returns the default in the key's type.
func (p *parameter) usualValue(t reflect.Type) reflect.Value {
	d := reflect.New(t)
	if err := yaml.Unmarshal([]byte(p.def), d.Interface()); err != nil {
		panic(fmt.Sprintf("suite: the default of %s: %v", p.key, err))
	}
	return d.Elem()
}

// preset sets the defaults of the keys of struct v, found at key in the table.
func preset(v reflect.Value, key string) {
	walk(v, key, "", func(row *parameter, v reflect.Value, _ string) {
		if row.def == "" || row.when != "" || row.late {
			return
		}
		v.Set(row.usualValue(v.Type()))
	})
}

// defaulted sets the defaults of the keys at key before it decodes the file's keys. into is a
// pointer to a type without a decoder of its own.
func defaulted(key string, into any, decode func(any) error) error {
	preset(reflect.ValueOf(into).Elem(), key)
	return decode(into)
}
