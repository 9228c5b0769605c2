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
		about: "started before the command, in this order, each once the one before it is ready; " +
			"all but backing ones share the target's limits"},
	{key: "project.targets.NAME.processes[].name", required: true, form: processForm, such: "db",
		about: "its port stands as `{db.port}` in every command and variable of the target"},
	{key: "project.targets.NAME.processes[].command", required: true,
		about: "starts it, in the folder of the target; its port comes as `$PORT` or `{port}`"},
	{key: "project.targets.NAME.processes[].env", max: 100, form: envForm, such: "GOGC",
		about: "variables of this process, over the target's"},
	{key: "project.targets.NAME.processes[].ready",
		about: "path that answers 200 once it serves; without it its first connection counts"},
	{key: "project.targets.NAME.processes[].share", def: "1", min: 0.01, max: 100,
		about: "parts of the target's memory, of which the command has one"},
	{key: "project.targets.NAME.processes[].backing",
		about: "`true`: a backing service that is not measured, such as a database. It has a " +
			"core of its own and as much memory as the target, outside of its limits, if the " +
			"machine has enough; else it shares them"},
}, counterParameters)

// portOf matches the port of another process in a command or variable.
var portOf = lazyregexp.New(`\{([A-Za-z0-9][A-Za-z0-9._-]*)\.port\}`)

// processes checks the processes of a target, and that all referenced ports are theirs.
func (c *checker) processes(keyPath string, s Source) {
	if len(s.Processes) > 0 && s.Command == "" {
		c.Wrong(
			keyPath+".processes",
			"give it a command",
			"processes are started before a command, "+
				"and %s has none",
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
			c.Wrong(here+".name", "give it another", "%s is the target's own name", p.Name)
		}
		if p.Ready != "" && !strings.HasPrefix(p.Ready, "/") {
			c.Wrong(here+".ready", "as /health, or leave it out for the first connection",
				"ready %q is not a path", p.Ready)
		}
	}
	for _, key := range sortedNames(texts) {
		for _, port := range portOf.FindAllStringSubmatch(texts[key], -1) {
			if len(names) > 0 && !slices.Contains(names, port[1]) {
				c.Wrong(key, strictyaml.Meant(port[1], names, "its processes are "+
					strings.Join(names, ", ")), "%s is of no process", port[0])
			}
		}
	}
}

// asksMost is the maximum number of backend calls of one request.
const asksMost = 10_000

// counterParameters are the keys of counters.
var counterParameters = []parameter{
	{key: "project.targets.NAME.counters", max: 16, form: processForm, such: "database",
		about: "backends of the target and the counters of their calls, by the names of a " +
			"request's `backendCalls`; see [backend " +
			"calls](../project.md#a-service-that-answers-without-asking)"},
	{key: "project.targets.NAME.counters.NAME.postgres",
		about: "a PostgreSQL, as `postgres://USER:PASSWORD@127.0.0.1:{db.port}/NAME`: its " +
			"transactions are counted"},
	{key: "project.targets.NAME.counters.NAME.statements",
		about: "its statements instead, as `pg_stat_statements` has them"},
	{key: "project.targets.NAME.counters.NAME.metrics",
		about: "a page in Prometheus' text format, as `http://127.0.0.1:{stock.port}/metrics`"},
	{key: "project.targets.NAME.counters.NAME.series",
		about: "the counter on that page, as `requests_total` or `requests_total{path=\"/a\"}`; " +
			"the sum of all that have these labels"},
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
				"it calls %s %d times, outside 1 to %d",
				name,
				n,
				asksMost,
			)
		}
	}
	if len(r.BackendCalls) > 0 && r.Setup != "" {
		c.Wrong(keyPath+".backendCalls", "take it out", "calls of a setup are in no window")
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
					"no target has a counter "+name, strictyaml.Meant(name, names, "add it to "+
						"counters of the targets that ask it"))
			}
		}
	}
	return nil
}
