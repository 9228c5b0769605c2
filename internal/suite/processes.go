package suite

import (
	"fmt"
	"slices"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/strictyaml"
)

// Process is a process that is started before its target's command, which receives the requests.
type Process struct {
	Name    string          `yaml:"name"`
	Command string          `yaml:"command"`
	Env     map[string]Text `yaml:"env"`   // overrides the target's
	Ready   string          `yaml:"ready"` // path that answers 200; empty: its first connection
	Share   float64         `yaml:"share"` // parts of the memory, of which the command has one
	Backing bool            `yaml:"backing"`
}

// UnmarshalYAML sets defaults.
func (p *Process) UnmarshalYAML(decode func(any) error) error {
	type plain Process
	return defaulted("project.targets.NAME.processes[].", (*plain)(p), decode)
}

// processForm matches the names of processes, which are also parts of file names and placeholders.
var processForm = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// processParameters are the keys of a target's processes, and of the counters of their calls.
var processParameters = slices.Concat([]parameter{
	{key: "project.targets.NAME.processes", max: 16,
		about: "processes that Prony starts before the command, one after the other, each when " +
			"the one before is ready; all processes except backing ones share the target's limits"},
	{key: "project.targets.NAME.processes[].name", required: true, form: processForm, such: "db",
		about: "name of the process; `{db.port}` is the port of process db in every command and " +
			"variable of the target"},
	{key: "project.targets.NAME.processes[].command", required: true,
		about: "command that starts the process in the folder of the target; `$PORT` or `{port}` " +
			"is its port"},
	{key: "project.targets.NAME.processes[].env", max: 100, form: envForm, such: "GOGC",
		about: "environment variables of this process, which override the target's variables"},
	{key: "project.targets.NAME.processes[].ready",
		about: "path that returns status 200 when the process is ready; without this key, the " +
			"process is ready when it accepts a connection"},
	{key: "project.targets.NAME.processes[].share", def: "1", min: 0.01, max: 100,
		about: "relative share of the target's memory; the share of the command is 1"},
	{key: "project.targets.NAME.processes[].backing",
		about: "`true`: a backing service that is not measured, such as a database. It has a " +
			"core of its own and as much memory as the target, outside of the target's limits, " +
			"if the machine has enough; otherwise it shares the limits"},
}, counterParameters)

// portOf matches the port of another process in a command or variable.
var portOf = lazyregexp.New(`\{([A-Za-z0-9][A-Za-z0-9._-]*)\.port\}`)

// processes checks the processes of a target, and that all referenced ports are theirs.
func (c *checker) processes(keyPath string, s Source) {
	if len(s.Processes) > 0 && s.Command == "" {
		c.Wrong(
			keyPath+".processes",
			"add a command to the target",
			"processes start before the target's command, but target %s has no command",
			last(keyPath),
		)
	}
	names := namesOf(s.Processes, func(p Process) string { return p.Name })
	c.unique(keyPath+".processes", ".name", names)
	texts := map[string]string{keyPath + ".command": s.Command}
	env := func(key string, table map[string]Text) {
		for name, value := range table {
			texts[step(key+".env", name)] = string(value)
		}
	}
	env(keyPath, s.Env)
	for name, k := range s.Counters {
		here := step(keyPath+".counters", name)
		texts[here+".postgres"], texts[here+".metrics"] = k.Postgres, k.Metrics
	}
	for i, p := range s.Processes {
		here := fmt.Sprintf("%s.processes[%d]", keyPath, i)
		texts[here+".command"] = p.Command
		env(here, p.Env)
		if p.Name == last(keyPath) {
			c.Wrong(here+".name", "give the process another "+
				"name", "a process has the name of its target, "+
				"%s", p.Name)
		}
		if p.Ready != "" && !strings.HasPrefix(p.Ready, "/") {
			c.Wrong(here+".ready", "write a path such as /health, or remove ready to wait for "+
				"the first connection",
				"ready %q is not a path that begins with /", p.Ready)
		}
	}
	for _, key := range sortedNames(texts) {
		for _, port := range portOf.FindAllStringSubmatch(texts[key], -1) {
			if len(names) > 0 && !slices.Contains(names, port[1]) {
				c.Wrong(key, strictyaml.Meant(port[1], names, "the processes of the target are "+
					strings.Join(names, ", ")), "%s names a process that the target does not "+
					"have", port[0])
			}
		}
	}
}

// asksMost is the maximum number of backend calls of one request.
const asksMost = 10_000

// counterParameters are the keys of counters.
var counterParameters = []parameter{
	{key: "project.targets.NAME.counters", max: 16, form: processForm, such: "database",
		about: "backends of the target and the counters of their calls, by the names in a " +
			"request's `backendCalls`; see [backend " +
			"calls](../project.md#a-service-that-answers-without-asking)"},
	{key: "project.targets.NAME.counters.NAME.postgres",
		about: "address of a PostgreSQL, such as " +
			"`postgres://USER:PASSWORD@127.0.0.1:{db.port}/NAME`: Prony counts its transactions"},
	{key: "project.targets.NAME.counters.NAME.statements",
		about: "count statements instead of transactions, from `pg_stat_statements`"},
	{key: "project.targets.NAME.counters.NAME.metrics",
		about: "address of a page in Prometheus' text format, such as " +
			"`http://127.0.0.1:{stock.port}/metrics`"},
	{key: "project.targets.NAME.counters.NAME.series",
		about: "counter on the metrics page, such as `requests_total` or " +
			"`requests_total{path=\"/a\"}`; Prony adds up all series with these labels"},
}

// counters checks the counters of a target.
func (c *checker) counters(keyPath string, s Source) {
	for _, name := range sortedNames(s.Counters) {
		k, here := s.Counters[name], step(keyPath+".counters", name)
		if key, hint, text := k.Wrong(name); text != "" {
			c.Wrong(here+key, hint, "%s", text)
		}
	}
}

// asks checks the number of a request's backend calls.
func (c *checker) asks(keyPath string, r *Request) {
	for _, name := range sortedNames(r.BackendCalls) {
		if n := r.BackendCalls[name]; n < 1 || n > asksMost {
			c.Wrong(
				step(keyPath+".backendCalls", name),
				"",
				"the request has %s: %d backend calls, outside of the range 1 to %d",
				name,
				n,
				asksMost,
			)
		}
	}
	if len(r.BackendCalls) > 0 && r.Setup != "" {
		c.Wrong(keyPath+".backendCalls", "remove backendCalls", "a setup request cannot have "+
			"backendCalls: setup is not part of a window")
	}
}

// counted returns an error if requests name counters that no target has, because nothing would
// check these calls.
func (p *Project) counted(s *Suite, doc *strictyaml.Document) error {
	var names []string
	for _, t := range p.Targets {
		names = append(names, sortedNames(t.Counters)...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for i, sc := range s.Scenarios {
		for j, r := range sc.Requests {
			for _, name := range sortedNames(r.BackendCalls) {
				if slices.Contains(names, name) {
					continue
				}
				return doc.Problem(fmt.Sprintf("scenarios[%d].requests[%d].backendCalls", i, j),
					"no target has the counter "+name, strictyaml.Meant(name, names, "add the "+
						"counter to the targets that call this backend"))
			}
		}
	}
	return nil
}
