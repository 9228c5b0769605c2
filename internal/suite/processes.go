package suite

import (
	"fmt"
	"slices"
	"strings"

	"prony/internal/config"
	"prony/internal/pattern"
)

// Process is started before the command of its target, which takes the requests.
type Process struct {
	Name    string          `yaml:"name"`
	Command string          `yaml:"command"`
	Env     map[string]Text `yaml:"env"`   // over the target's
	Ready   string          `yaml:"ready"` // path that answers 200; empty: its first connection
	Share   float64         `yaml:"share"` // parts of the memory, of which the command has one
	Backing bool            `yaml:"backing"`
}

// UnmarshalYAML fills in defaults.
func (p *Process) UnmarshalYAML(decode func(any) error) error {
	type plain Process
	return defaulted("project.targets.NAME.processes[].", (*plain)(p), decode)
}

// processForm is that of names of processes: they name files and ports.
var processForm = pattern.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// processParameters are the keys of the processes of a target, and of what counts asks of them.
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
		about: "`true`: what the target leans on and nobody measures, such as a database, has a " +
			"core of its own and as much memory as the target, outside of its limits, where " +
			"there are enough; else it shares them"},
}, counterParameters)

// portOf is where a command or a variable has the port of another process.
var portOf = pattern.New(`\{([A-Za-z0-9][A-Za-z0-9._-]*)\.port\}`)

// processes checks those of a target, and that every port which is asked for is one of theirs.
func (c *checker) processes(at string, s Source) {
	if len(s.Processes) > 0 && s.Command == "" {
		c.Wrong(at+".processes", "give it a command", "processes are started before a command, "+
			"and %s has none", last(at))
	}
	names := []string{}
	texts := map[string]string{at + ".command": s.Command}
	env := func(at string, of map[string]Text) {
		for name, value := range of {
			texts[step(at+".env", name)] = string(value)
		}
	}
	env(at, s.Env)
	for name, k := range s.Counters {
		here := step(at+".counters", name)
		texts[here+".postgres"], texts[here+".metrics"] = k.Postgres, k.Metrics
	}
	c.unique(at+".processes", ".name", len(s.Processes),
		func(i int) string { return s.Processes[i].Name })
	for i, p := range s.Processes {
		here := fmt.Sprintf("%s.processes[%d]", at, i)
		names = append(names, p.Name)
		texts[here+".command"] = p.Command
		env(here, p.Env)
		if p.Name == last(at) {
			c.Wrong(here+".name", "give it another", "%s is the target's own name", p.Name)
		}
		if p.Ready != "" && !strings.HasPrefix(p.Ready, "/") {
			c.Wrong(here+".ready", "as /health, or leave it out for the first connection",
				"ready %q is no path", p.Ready)
		}
	}
	for at, text := range texts {
		for _, port := range portOf.FindAllStringSubmatch(text, -1) {
			if len(names) > 0 && !slices.Contains(names, port[1]) {
				c.Wrong(at, config.Meant(port[1], names, "its processes are "+
					strings.Join(names, ", ")), "%s is of no process", port[0])
			}
		}
	}
}
