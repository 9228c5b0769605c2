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
		about: "name of the suite in records and folder names"},
	{key: "question", about: "question that the suite answers, in one sentence"},
	{key: "contract", choices: Contracts,
		about: "contract that the targets must give, checked before and after the loads; see " +
			"contract/README.md. Without a contract, Prony checks only the expectations of the " +
			"scenarios"},
	{key: "targets", max: 1000,
		about: "patterns for names of targets and services, such as `java-*` or `*/virtual` (`*` " +
			"does not match `/`); without patterns, or with `all`: every target with the contract"},
	{key: "baseline", about: "target that the others are compared with; empty: no baseline"},
	{key: "blocks", def: "3", min: 1, max: blocksMax,
		about: "number of repetitions: each repetition measures all targets in all scenarios, in " +
			"a random order of its own"},
	{key: "interleave", choices: Interleavings,
		about: "how targets are compared. slices: all targets of a scenario run side by side, " +
			"and Prony loads one at a time for some tens of milliseconds; blocks: Prony runs " +
			"whole trials one after the other; without this key, Prony uses slices if possible"},
	{key: "freeze", choices: Freezing,
		about: "whether Prony stops a target while it loads others in slices. Use off for " +
			"services that fail if they are stopped, such as members of a cluster with " +
			"heartbeats; their work between slices then takes CPU time from the others"},
	{key: "idle", choices: Idling,
		about: "what idle cores do during a run in a virtual machine (default: poll, if Prony is " +
			"permitted to choose). A core that polls responds at once, and a core that halts " +
			"goes back to the hypervisor"},
	{key: "slices", def: "4s", max: hour,
		about: "total time for which each target is loaded in the slices of a start"},
	{key: "seed", def: "42", max: maxExact,
		about: "seed of the random order, arrivals, keys and request mix"},
	{key: "limits", about: "CPU and memory limits of each target"},
	{key: "limits.cpus", def: "1", min: 0.1, max: 1024, about: "cores"},
	{key: "limits.memory", def: "1GiB", min: 16 << 20, max: 1 << 40,
		about: "memory limit with a binary unit, such as `1GiB` or `832M` (M is MiB, as in " +
			"Docker)"},
	{key: "timeout", def: "5s", min: 1e6, max: hour,
		about: "timeout of a request, counted from the moment at which it is sent"},
	{key: "resolution", about: "a possible bias up to this size does not make a number SUSPECT " +
		"(`3%`); see [the method](../method.md#verdict-rules)"},
	{key: "warmup", about: "closed load before the first window, excluded from results"},
	{key: "warmup.connections", def: "64", min: 1, max: connectionsMax,
		about: "number of connections; each sends its next request when the last response is " +
			"complete"},
	{key: "warmup.min", def: "1s", max: hour, about: "least duration"},
	{key: "warmup.minCompiling", max: hour,
		about: "least duration of a service that compiles while it runs (JVM, Node), if longer " +
			"than warmup.min"},
	{key: "warmup.max", def: "5s", max: hour,
		about: "longest warm-up; it ends earlier when the rate is steady and compilers are idle"},
	{key: "warmup.cores", def: "own", late: true, choices: WarmupCores,
		about: "all: a service that compiles while it runs (JVM, Node) also uses the load's " +
			"cores until its compilers are idle, and then only its own cores until its rate is " +
			"steady"},
	{key: "warmup.compilers", def: CompilersFirst, late: true, choices: Turns,
		about: "first: until the first window, the compilers of a JVM or of .NET run before its " +
			"other threads, if Prony may set priorities (as root); equal: no priority, to " +
			"measure time to steady state and warm-up cost"},
	{key: "scenarios", required: true, min: 1, max: 100,
		about: "scenarios; each target runs each scenario in separate trials"},
	{key: "scenarios[].name", required: true, form: nameForm, such: "cached read",
		about: "unique"},
	{key: "scenarios[].flow",
		about: "`true`: the requests are steps that one user sends in order on one connection"},
	{key: "scenarios[].keys", max: maxExact,
		about: "first and last key of the range from which Prony draws `{key}` uniformly; " +
			"required if and only if a request uses `{key}`"},
	{key: "scenarios[].zipf", min: 0.01, max: 10,
		about: "exponent of the Zipf distribution of keys: key number i has a probability " +
			"proportional to 1/i^zipf, so the first key is the most frequent"},
	{key: "scenarios[].connections", min: 1, max: connectionsMax,
		about: "number of connections, which replaces the number of the warm-up and of every load"},
	{key: "scenarios[].cookies",
		about: "each user stores the cookies that responses set, and sends them; see " +
			"[sessions](../sessions.md)"},
	{key: "scenarios[].data", about: "CSV file in or below the suite's folder, at most 16 MiB; " +
		"the first line has the column names, and requests use a column as `{name}`"},
	{key: "scenarios[].rows", def: Sequential, when: "there is data",
		choices: []string{Sequential, Random},
		about: "order of the rows of data. sequential: request or flow number k uses row k, and " +
			"begins again after the last row; random: Prony draws rows by the seed. If each user " +
			"has a setup, user i keeps row i"},
	{key: "scenarios[].protocol", def: "http", late: true, choices: Protocols,
		about: "http: HTTP/1.1; https: over TLS; h2, h2c: HTTP/2 with and without TLS; h3: " +
			"HTTP/3; grpc, grpcs: unary calls; ws, wss: messages of a WebSocket; see " +
			"[the load](../load.md#protocols)"},
	{key: "scenarios[].unix", about: "path of the Unix socket on which the service listens; " +
		"`{port}` in it is the value of $PORT; only with protocol http"},
	{key: "scenarios[].streams", min: 1, max: 1000,
		about: "number of concurrent requests on each connection; only with h2, h2c, h3, grpc " +
			"and grpcs"},
	{key: "scenarios[].tls", about: "certificates that the generator trusts; default: the " +
		"certificates that this machine trusts"},
	{key: "scenarios[].tls.insecure", about: "`true`: accept any certificate"},
	{key: "scenarios[].tls.ca", about: "PEM file with the certificates to trust, in or below the " +
		"suite's folder"},
	{key: "scenarios[].contract", choices: Contracts,
		about: "contract for this scenario instead of the suite's contract; targets without this " +
			"contract do not run the scenario"},
	{key: "scenarios[].variants", max: 20,
		about: "variants of the suite that run in the scenario; empty: all variants. Targets " +
			"without a variant always run"},
	{key: "scenarios[].requests", required: true, min: 1, max: 100,
		about: "one request, or a mix from which each request is drawn by weight, or the steps " +
			"of a flow"},
	{key: "scenarios[].requests[].name", form: nameForm, such: "create owner",
		about: "unique name of the request in results; default: method and path"},
	{key: "scenarios[].requests[].request", required: true, form: lineForm,
		such: "GET /hello/{mode}?key={key}",
		about: "method (GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS) and path, with " +
			"placeholders; `{mode}` is the target's mode, `{key}` is a key drawn for each request"},
	{key: "scenarios[].requests[].headers", max: 100, form: fieldForm, such: "accept",
		about: "mapping of header names to values, with placeholders"},
	{key: "scenarios[].requests[].body", about: "body of the request, with placeholders"},
	{key: "scenarios[].requests[].bodyFile",
		about: "body from a file in or below the suite's folder, at most 16 MiB; Prony sends a " +
			"file that is not UTF-8 unchanged"},
	{key: "scenarios[].requests[].type", def: "text/plain", when: "there is a body",
		form: typeForm, such: "application/json", about: "media type of the body"},
	{key: "scenarios[].requests[].weight", def: "1", min: 1, max: 1_000_000,
		about: "weight of the request in a mix: its share is weight / sum of weights; not in " +
			"flows"},
	{key: "scenarios[].requests[].expect",
		about: "expectations that Prony checks on every response; at most one of body, size and " +
			"lorem, and without these keys any body is correct"},
	{key: "scenarios[].requests[].expect.status", def: "200", min: 200, max: 616,
		about: "expected status; another status is an error; for a gRPC call that fails, 600 " +
			"plus its code"},
	{key: "scenarios[].requests[].expect.body", about: "expected body, compared byte for byte, " +
		"with placeholders"},
	{key: "scenarios[].requests[].expect.size", max: 1 << 30,
		about: "expected length of the body, in bytes"},
	{key: "scenarios[].requests[].expect.lorem", max: 1 << 24,
		about: "expected body: the text of contract/lorem.txt, repeated and cut to this number " +
			"of bytes"},
	{key: "scenarios[].requests[].checks", max: 50,
		about: "checks of every response: each check has one of json, header, regex and body, " +
			"and one of is, contains, matches and exists"},
}, places("scenarios[].requests[].checks[]."), []parameter{
	{key: "scenarios[].requests[].checks[].is",
		about: "value that the checked part must equal byte for byte, with placeholders"},
	{key: "scenarios[].requests[].checks[].contains", about: "text that the checked part must " +
		"contain, with placeholders"},
	{key: "scenarios[].requests[].checks[].matches",
		about: "regular expression that must match a part of the checked value"},
	{key: "scenarios[].requests[].checks[].exists",
		about: "whether the checked part must exist"},
	{key: "scenarios[].requests[].call", about: "same request as a unary call, for variants with " +
		"gRPC; Prony checks its response only against the call's `expect`"},
	{key: "scenarios[].requests[].call.method", such: "/prony.Hello/Say",
		about: "`/package.Service/Method`"},
	{key: "scenarios[].requests[].call.send",
		about: "encoded message to send, with placeholders: `\"\\n\\u0005{key}\"` is a text of " +
			"five bytes in field 1"},
	{key: "scenarios[].requests[].call.expect",
		about: "expected message of the response, compared byte for byte, with placeholders"},
	{key: "scenarios[].requests[].extract", max: 50, form: varForm, such: "ownerId",
		about: "flows and setup only: values of the response for later steps, by the name of " +
			"their placeholder; a response without the value is an error"},
}, places("scenarios[].requests[].extract.NAME."), []parameter{
	{key: "scenarios[].requests[].setup", choices: []string{SetupRun, SetupUser},
		about: "sent before the load and excluded from results: once in a run, or once by each " +
			"user (connection); all requests may use the values that this request extracts"},
	{key: "scenarios[].requests[].pause", max: hour,
		about: "flows only: pause between the response to this step and the next step"},
	{key: "scenarios[].requests[].backendCalls", max: 16, form: processForm, such: "database",
		about: "smallest number of backend calls per request, by the name of a target's counter. " +
			"A target with fewer calls is INVALID; a target without the counter is not checked"},
	{key: "loads", required: true, min: 1, max: 20,
		about: "loads that every trial runs one after another"},
	{key: "loads[].name", required: true, form: nameForm, such: "peak", about: "unique"},
	{key: "loads[].model", required: true,
		choices: []string{record.Closed, record.Open, record.Capacity},
		about: "closed: each connection sends its next request when the last response is " +
			"complete. open: requests are due on a schedule that does not depend on responses. " +
			"capacity: open loads that search for the highest rate that meets slo"},
	{key: "loads[].connections", def: "64", min: 1, max: connectionsMax,
		about: "number of connections; open: initial number. With users: the largest number of " +
			"users, if this key is missing"},
	{key: "loads[].maxConnections", min: 1, max: connectionsMax,
		about: "open only: Prony opens more connections if needed, up to this number and the " +
			"limit of open files. Without this key, requests that find all connections busy " +
			"wait, and the wait counts as response time. Opening connections costs CPU time of " +
			"service and generator at the busiest moments"},
	{key: "loads[].generators", min: 1, max: generatorsMost,
		about: "number of processes that send the load together: each sends every n-th request " +
			"of the common schedule and has its part of the connections; see [many " +
			"generators](../generators.md). Default: one"},
	{key: "loads[].users",
		about: "closed only: number of virtual users over time, each with its own connection, " +
			"such as `ramp 0..700 in 5m, 700 for 5m, ramp 700..0 in 3m20s`; without this key, " +
			"every connection is a user for the whole load"},
	{key: "loads[].think",
		about: "closed only: pause of a user between a response and the next request: `1s`, " +
			"`uniform 500ms..1500ms` or `exponential 1s` (its mean)"},
	{key: "loads[].rate",
		about: "open only, required: requests per second (`20000/s` or `20000`), or a share of " +
			"the throughput of an earlier closed load of the trial (`50% of peak`), or a shape " +
			"of either (`ramp 100..2000 in 30s` or `ramp 10..90 in 30s % of peak`)"},
	{key: "loads[].arrivals", def: Poisson, when: record.Open,
		choices: []string{Poisson, Constant, Replay},
		about: "open only: distribution of the time between requests; replay uses the times of " +
			"a trace"},
	{key: "loads[].trace",
		about: "replay only, required: trace file in or below the suite's folder, at most 256 " +
			"MiB; see [traces](trace.md)"},
	{key: "loads[].slo", such: "p99<50ms",
		about: "capacity only, required: objectives to meet, such as `p99<50ms,errors<0.1%`; see " +
			"[`prony capacity`](../capacity.md)"},
	{key: "loads[].budget", def: "1m", when: record.Capacity, max: 24 * hour,
		about: "capacity only: time for the whole search; if the search finds no capacity in " +
			`this time, the report says "at least"`},
	{key: "loads[].churn", max: 1_000_000,
		about: "number of requests after which Prony renews a connection; 0: never"},
	{key: "loads[].pacing", def: "precise", late: true, choices: Pacings,
		about: "how the generator waits for the next request: frugal sleeps, and sends late by " +
			"the time of a wake-up; precise also polls shortly before, which uses a whole core"},
	{key: "loads[].engine", def: "auto", late: true, choices: Engines,
		about: "engine of the generator; auto uses epoll if system and protocol permit it, " +
			"otherwise nethttp"},
	{key: "loads[].leadIn", def: "200ms", max: hour,
		about: "load before the window, excluded from results"},
	{key: "loads[].measure", def: "2s", min: second / 10, max: 24 * hour,
		about: "length of the window; in a capacity load, the shortest length of a step"},
	{key: "loads[].drain", def: "1s", max: hour,
		about: "longest wait after the window for outstanding responses"},
	{key: "network", max: 5,
		about: "networks that Prony's generator simulates: `none`, `delay 5ms` or `delay 5ms ± " +
			"1ms`, the time added to each round trip. Every load runs over each network, with " +
			"the delay in its name; see [the load](../load.md#network)"},
	{key: "drivers", def: "[prony]", late: true, max: 20, choices: Drivers,
		about: "generators of the loads: Prony's generator or other tools, each in separate " +
			"trials"},
	{key: "launchers", def: "[process]", late: true, max: 5, choices: Launchers,
		about: "ways to start targets, each in separate trials: as processes, as containers on " +
			"their own network, as containers on the host's network, as pods of a Kubernetes " +
			"cluster, or as pods behind a Kubernetes service"},
	{key: "variants", max: 20,
		about: "additions to targets, such as an agent, each in separate trials; ratios refer to " +
			"the target without the addition"},
	{key: "variants[].name", def: "the agent's name, with dashes", when: "there is one",
		form: suiteForm, such: "agent", about: "unique"},
	{key: "variants[].agent", form: agentForm, such: "otel-java/full",
		about: "agent of [agents.yaml](agents.md) and its level"},
	{key: "variants[].env", max: 100, form: envForm, such: "JAVA_TOOL_OPTIONS",
		about: "environment variables of the target's processes, which override the variables of " +
			"its manifest"},
	{key: "variants[].protocol", choices: Protocols,
		about: "protocol of the targets with this variant, instead of HTTP/1.1, with the " +
			"service's own implementation: as in `scenarios[].protocol`. Targets whose service " +
			"does not support the protocol run only without the variant"},
	{key: "variants[].streams", min: 1, max: 1000,
		about: "number of concurrent requests on each connection; the number of connections is " +
			"divided by this number; default: 1"},
	{key: "variants[].runtimes", max: 10, choices: runtimes.Names,
		about: "runtimes that support the variant; empty: all. Other targets run only without " +
			"the variant"},
	{key: "variants[].processes", max: 100,
		about: "processes of systems to which the variant applies; empty: all processes"},
	{key: "variants[].observe", about: "observations in the variant's trials, instead of the " +
		"suite's observations"},
}, observations("variants[].observe."), []parameter{
	{key: "capacity", about: "closed load on each target without variants, once before the " +
		"blocks; rates may be shares of its throughput (`50% of capacity`), so every variant of " +
		"a target receives the same load"},
	{key: "capacity.connections", def: "64", late: true, min: 1, max: connectionsMax,
		about: "number of connections; each sends its next request when the last response is " +
			"complete"},
	{key: "capacity.measure", def: "5s", late: true, min: second / 10, max: 24 * hour,
		about: "the window"},
	{key: "observe", about: "additional observations in every trial of the comparison; see " +
		"[observing](../observing.md)"},
}, observations("observe."), []parameter{
	{key: "columns", max: 20, choices: Columns,
		about: "additional columns of the table: for each load mean, p90, max, requests and " +
			"errors; for cost, processors used, threads, and CPU time of compiler and garbage " +
			"collector; for the start, time to listen and to the first response, and memory " +
			"before the load; sizes of artifact and image"},
})

// observations returns the rows of an Observe.
func observations(prefix string) []parameter {
	return []parameter{
		{key: prefix + "telemetry", about: "run the telemetry collector, even if no service " +
			"sends data"},
		{key: prefix + "gc", about: "JVMs log their garbage collections"},
		{key: prefix + "traces", about: "share of the requests that carry a trace id, such as " +
			"`1%`; the record lists the slowest of these requests"},
		{key: prefix + "profile", max: 1, choices: ProfileKinds,
			about: "kind of profile that Prony records during each load, from the beginning of " +
				"its lead-in; one kind at a time"},
		{key: prefix + "profiler", choices: Profilers,
			about: "profiling tool; empty: the best tool for the runtime"},
		{key: prefix + "period", max: second, about: "time between samples of the service's " +
			"resources; 0: 100ms"},
	}
}

// places returns the rows of a Place.
func places(prefix string) []parameter {
	return []parameter{
		{key: prefix + "json", about: "value at this path of the body, such as `pets.0.id`, in " +
			"[GJSON's syntax](https://github.com/tidwall/gjson/blob/master/SYNTAX.md); a string " +
			"has no quotes"},
		{key: prefix + "header", about: "value of this header field"},
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
