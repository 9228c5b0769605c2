// Package agents knows what may ride along with a service and watch it from inside: agents of the
// JVM, instrumentations of Node and Python, a service's own instrumented build. agents.yaml
// (docs/formats/agents.md) declares each once, with the levels at which it can work, so that a
// suite or a flag only names one.
//
// The way goes Read, Catalog.Find, Agent.Variant, Fetcher.Fetch; what is left in braces then,
// internal/service fills in for each process. All but fetching is pure.
//
// Non-goals: nothing is started here and nothing that an agent sends is received. Which registry a
// package comes from is the business of the tools that fetch it, mvn, npm and pip, and of how their
// user has set them up.
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

// Catalog is what agents.yaml declares.
type Catalog struct {
	Agents []Agent `yaml:"agents"`
}

// Agent is one thing that may ride along.
type Agent struct {
	Name  string `yaml:"name"`
	About string `yaml:"about"`
	// Runtimes and Languages are those of targets that can have it; no languages: all.
	Runtimes  []string `yaml:"runtimes"`
	Languages []string `yaml:"languages"`
	Fetch     Fetch    `yaml:"fetch"`
	// SHA256 is that of the file that Maven fetches, in hex.
	SHA256 string `yaml:"sha256"`
	// Env are variables of the target's processes, with placeholders.
	Env map[string]string `yaml:"env"`
	// Scrape is the path of a page in Prometheus' format on {metricsPort}; empty: there is none.
	Scrape string `yaml:"scrape"`
	// NeedsTelemetry reports whether it sends to the lab's telemetry collector, without which it
	// does nothing.
	NeedsTelemetry bool    `yaml:"needsTelemetry" was:"needsHome"`
	Levels         []Level `yaml:"levels"` // none: it has only one, without a name
}

// Fetch is where an agent comes from: at most one of them; none: there is nothing to fetch.
type Fetch struct {
	Maven string `yaml:"maven"` // group:artifact:version, or with :classifier
	// Unpack makes {agent} the folder with the content of Maven's file.
	Unpack bool   `yaml:"unpack"`
	Npm    string `yaml:"npm"` // a folder with package.json and package-lock.json
	Pip    string `yaml:"pip"` // a folder with requirements.txt, every line pinned
	// Package is the one among those of npm or pip whose version is the agent's.
	Package string `yaml:"package"`
	Path    string `yaml:"path"`  // ${NAME}: a file that the user has
	Build   string `yaml:"build"` // the service's own build of this name, instead of its bare one
}

// Level is one way in which an agent can work.
type Level struct {
	Name  string            `yaml:"name"`
	About string            `yaml:"about"`
	Env   map[string]string `yaml:"env"` // over the agent's
}

// Ride is an agent at one of its levels.
type Ride struct {
	Agent
	Name string            // as Catalog.Find takes it, "otel-java/sampled-10"
	Env  map[string]string // with placeholders: Words, and ${NAME}, see Own
}

// Variant is the agent at one of its levels.
func (a Agent) Variant(l Level) Ride {
	env := map[string]string{}
	maps.Copy(env, a.Env)
	maps.Copy(env, l.Env)
	return Ride{a, a.Full(l), env}
}

// Full is the name of a level, "otel-java/sampled-10"; that of an agent without levels is its own.
func (a Agent) Full(l Level) string {
	if l.Name == "" {
		return a.Name
	}
	return a.Name + "/" + l.Name
}

// Rungs are an agent's levels: those declared, or the one without a name.
func (a Agent) Rungs() []Level {
	if len(a.Levels) == 0 {
		return []Level{{About: a.About}}
	}
	return a.Levels
}

// Names lists all that Find finds, in the file's order.
func (c *Catalog) Names() (out []string) {
	for _, a := range c.Agents {
		for _, l := range a.Rungs() {
			out = append(out, a.Full(l))
		}
	}
	return out
}

// Find looks up NAME/LEVEL, or NAME for an agent without levels. The error says what was probably
// meant.
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

// Pick looks up one agent by its name alone.
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

// Words stand in an agent's variables for what the lab decides when a process is started.
var Words = slices.Concat(suite.AgentWords, suite.RideWords)

var (
	word     = lazyregexp.New(`\{([A-Za-z][A-Za-z0-9_-]*)\}`)
	variable = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// Own puts what is the same for every process on this machine: for ${NAME} what lookup
// (os.LookupEnv) says of the user's own environment, for {platform} the machine's name. The other
// words stay as they are. A variable that is not set is an error, which wraps ErrMissing.
func (r Ride) Own(lookup func(string) (string, bool)) (map[string]string, error) {
	if lacks := r.lacks(lookup); len(lacks) > 0 {
		return nil, fmt.Errorf("agent %s: %w: %s", r.Name, ErrMissing, strings.Join(lacks, "; "))
	}
	out := map[string]string{}
	for name, text := range r.Env {
		text = strings.ReplaceAll(text, "{platform}", Platform())
		out[name] = variable.ReplaceAllStringFunc(text, func(match string) string {
			value, _ := lookup(match[2 : len(match)-1]) // it is set, as lacks said
			return value
		})
	}
	return out, nil
}

// lacks says which variables of the user's environment the level needs and are not set.
func (r Ride) lacks(lookup func(string) (string, bool)) (missing []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		missing = append(missing, unset(r.Env[name], lookup)...)
	}
	return missing
}

// unset says which variables in a text have no value.
func unset(text string, lookup func(string) (string, bool)) (missing []string) {
	for _, match := range variable.FindAllStringSubmatch(text, -1) {
		if value, ok := lookup(match[1]); !ok || value == "" {
			missing = append(missing, fmt.Sprintf("needs the environment variable %s, which is "+
				"not set", match[1]))
		}
	}
	return missing
}

// Platform is async-profiler's name for the system and processor that this is; empty: it has none.
func Platform() string {
	switch runtime.GOOS + "/" + runtime.GOARCH {
	case "linux/amd64":
		return "linux-x64"
	case "linux/arm64":
		return "linux-arm64"
	}
	return ""
}
