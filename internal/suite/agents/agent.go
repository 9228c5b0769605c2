// Package agents reads the agents that can be attached to a service to observe it from inside: JVM
// agents, instrumentations of Node and Python, a service's own instrumented build. agents.yaml
// (docs/formats/agents.md) declares each once with its levels, so that a suite or a flag only names
// one.
//
// The order of calls is Read, Catalog.Find, Agent.Variant, Fetcher.Fetch. internal/service fills in
// the remaining placeholders for each process. Only fetching has side effects.
//
// Non-goals: this package starts nothing and receives no telemetry. The tools that fetch packages,
// mvn, npm and pip, choose the registries by their user's settings.
package agents

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/strictyaml"
	"prony.example/internal/suite"
)

// Catalog is the content of agents.yaml.
type Catalog struct {
	Agents []Agent `yaml:"agents"`
}

// Agent is a program that can be attached to services.
type Agent struct {
	Name  string `yaml:"name"`
	About string `yaml:"about"`
	// Runtimes and Languages are those of targets to which it can be attached; no languages: all.
	Runtimes  []string `yaml:"runtimes"`
	Languages []string `yaml:"languages"`
	Fetch     Fetch    `yaml:"fetch"`
	// SHA256 is the digest of Maven's file, in hex.
	SHA256 string `yaml:"sha256"`
	// Env are variables of the target's processes, with placeholders.
	Env map[string]string `yaml:"env"`
	// Scrape is the path of a page in Prometheus' format on {metricsPort}; empty: there is none.
	Scrape string `yaml:"scrape"`
	// NeedsTelemetry reports whether it sends to the lab's telemetry collector, without which it
	// does nothing.
	NeedsTelemetry bool    `yaml:"needsTelemetry"`
	Levels         []Level `yaml:"levels"` // empty: one level without a name
}

// Fetch describes where an agent comes from, in at most one field of several; none: nothing to
// fetch.
type Fetch struct {
	Maven string `yaml:"maven"` // group:artifact:version, or with :classifier
	// Unpack makes {agent} the folder with the content of Maven's file.
	Unpack bool   `yaml:"unpack"`
	Npm    string `yaml:"npm"` // a folder with package.json and package-lock.json
	Pip    string `yaml:"pip"` // a folder with requirements.txt, every line pinned
	// Package is the package of npm or pip whose version is the agent's.
	Package string `yaml:"package"`
	Path    string `yaml:"path"`  // ${NAME}: a file of the user
	Build   string `yaml:"build"` // name of a build of the service that replaces its plain build
}

// Level is one way in which an agent can work.
type Level struct {
	Name  string            `yaml:"name"`
	About string            `yaml:"about"`
	Env   map[string]string `yaml:"env"` // overrides the agent's
}

// Ride is an agent at one of its levels.
type Ride struct {
	Agent
	Name string            // as for Catalog.Find, such as "otel-java/sampled-10"
	Env  map[string]string // with placeholders: Words, and ${NAME}, see Own
}

// Variant returns the agent at one of its levels.
func (a Agent) Variant(l Level) Ride {
	env := map[string]string{}
	maps.Copy(env, a.Env)
	maps.Copy(env, l.Env)
	return Ride{a, a.Full(l), env}
}

// Full returns the name of a level, such as "otel-java/sampled-10", or that of an agent without
// levels.
func (a Agent) Full(l Level) string {
	if l.Name == "" {
		return a.Name
	}
	return a.Name + "/" + l.Name
}

// Rungs returns an agent's levels: the declared ones, or a single one without a name.
func (a Agent) Rungs() []Level {
	if len(a.Levels) == 0 {
		return []Level{{About: a.About}}
	}
	return a.Levels
}

// Names lists all names that Find accepts, in the file's order.
func (c *Catalog) Names() (out []string) {
	for _, a := range c.Agents {
		for _, l := range a.Rungs() {
			out = append(out, a.Full(l))
		}
	}
	return out
}

// Find returns the agent and level of NAME/LEVEL, or of NAME for an agent without levels. The error
// suggests the nearest name.
func (c *Catalog) Find(name string) (Agent, Level, error) {
	for _, a := range c.Agents {
		for _, l := range a.Rungs() {
			if a.Full(l) == name {
				return a, l, nil
			}
		}
	}
	subject, _, _ := strings.Cut(name, "/")
	known := c.Names()
	if i := slices.IndexFunc(c.Agents, func(a Agent) bool { return a.Name == subject }); i >= 0 {
		known = (&Catalog{Agents: c.Agents[i : i+1]}).Names()
	}
	return Agent{}, Level{}, absent(name, known)
}

// Pick returns an agent by its name alone.
func (c *Catalog) Pick(name string) (Agent, error) {
	var known []string
	for _, a := range c.Agents {
		if a.Name == name {
			return a, nil
		}
		known = append(known, a.Name)
	}
	return Agent{}, absent(name, known)
}

func absent(name string, known []string) error {
	return fmt.Errorf("agent %q does not exist; %s", name,
		strictyaml.Meant(name, known, "there are "+strings.Join(known, ", ")))
}

// Words are the placeholders in an agent's variables that are filled in when a process starts.
var Words = slices.Concat(suite.AgentWords, suite.RideWords)

var (
	word     = lazyregexp.New(`\{([A-Za-z][A-Za-z0-9_-]*)\}`)
	variable = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// Own fills in the placeholders that are equal for all processes on this machine. In written, only
// {platform} is filled in: records contain it. In resolved are the texts with ${NAME}, which may be
// secret, filled in by lookup (os.LookupEnv) from the user's environment. The other words stay as
// they are. If a variable is not set, the error wraps ErrMissing.
func (r Ride) Own(lookup func(string) (string, bool)) (written, resolved map[string]string,
	err error) {
	if lacks := r.lacks(lookup); len(lacks) > 0 {
		return nil, nil, fmt.Errorf("agent %s: %w: %s", r.Name, ErrMissing,
			strings.Join(lacks, "; "))
	}
	written, resolved = map[string]string{}, map[string]string{}
	for name, text := range r.Env {
		text = strings.ReplaceAll(text, "{platform}", Platform())
		written[name] = text
		if !variable.MatchString(text) {
			continue
		}
		resolved[name] = variable.ReplaceAllStringFunc(text, func(match string) string {
			value, _ := lookup(match[2 : len(match)-1]) // it is set, because lacks found none
			return value
		})
	}
	return written, resolved, nil
}

// lacks returns which variables of the user's environment the level needs and are not set.
func (r Ride) lacks(lookup func(string) (string, bool)) (missing []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		missing = append(missing, unset(r.Env[name], lookup)...)
	}
	return missing
}

// unset returns which variables in a text have no value.
func unset(text string, lookup func(string) (string, bool)) (missing []string) {
	for _, match := range variable.FindAllStringSubmatch(text, -1) {
		if value, ok := lookup(match[1]); !ok || value == "" {
			missing = append(missing, fmt.Sprintf("needs the environment variable %s, which is "+
				"not set", match[1]))
		}
	}
	return missing
}

// Platform returns async-profiler's name of this system and processor; empty: it has none.
func Platform() string {
	switch runtime.GOOS + "/" + runtime.GOARCH {
	case "linux/amd64":
		return "linux-x64"
	case "linux/arm64":
		return "linux-arm64"
	}
	return ""
}
