package suite

import (
	"fmt"
	"slices"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/strictyaml"
)

// Variant is an addition to targets, such as an agent: each target runs with it in trials of its
// own, beside those of the bare target.
type Variant struct {
	Name string `yaml:"name" json:"name"`
	// Agent is an agent of agents.yaml with its level, such as otel-java/full. Env overrides its
	// environment.
	Agent string          `yaml:"agent" json:"agent,omitempty"`
	Env   map[string]Text `yaml:"env" json:"env,omitempty"`
	// Protocol is the protocol of targets instead of HTTP/1.1 in the clear. Streams is the number
	// of concurrent requests on each connection, by which the number of connections is divided.
	Protocol string `yaml:"protocol" json:"protocol,omitempty"`
	Streams  int    `yaml:"streams" json:"streams,omitempty"`

	Runtimes  []string `yaml:"runtimes" json:"runtimes,omitempty"`   // none: all
	Processes []string `yaml:"processes" json:"processes,omitempty"` // of systems; none: all
	Observe   Observe  `yaml:"observe" json:"observe,omitzero"`      // replaces the suite's

	// Data of the agent, set by Attach.
	Version   string   `yaml:"-" json:"version,omitempty"`
	Languages []string `yaml:"-" json:"languages,omitempty"` // that it fits; none: all
	Build     string   `yaml:"-" json:"build,omitempty"`     // replaces the service's own
	Scrape    string   `yaml:"-" json:"scrape,omitempty"`    // path of a metrics page
	Home      bool     `yaml:"-" json:"home,omitempty"`      // it needs the telemetry collector
	// UserEnv are the texts of Env that contain ${NAME}, with the values of the user's environment,
	// which may be secret: they are never written.
	UserEnv map[string]Text `yaml:"-" json:"-"`
}

// OwnEnv are the variables that the lab sets in a target's environment. RideWords are the
// placeholders for values of the process in a variant's environment. docs/formats/service.md
// describes both.
var (
	OwnEnv = []string{"HOST", "PORT", "CPUS", "MEMORY_MIB"}
	// SpokenEnv are the variables that the lab sets for a variant with a protocol.
	SpokenEnv = []string{"PROTOCOL", "TLS_CERT", "TLS_KEY"}
	RideWords = []string{"dir", "host", "port", "cpus", "memoryMiB", "heapMiB"}
	// AgentWords are further placeholders, for agents: see docs/formats/agents.md.
	AgentWords = []string{"agent", "files", "platform", "otlpGrpc", "otlpHttp", "zipkin",
		"metricsHost", "metricsPort", "service", "run", "trial", "target", "variant", "out"}
	braced = lazyregexp.New(`\{([A-Za-z][A-Za-z0-9_-]*)\}`)
)

// sends reports whether the variant's environment contains an address of the telemetry collector.
func (v Variant) sends() bool {
	for _, text := range v.Env {
		for _, door := range []string{"{otlpGrpc}", "{otlpHttp}", "{zipkin}"} {
			if strings.Contains(string(text), door) {
				return true
			}
		}
	}
	return false
}

// variants returns the variants of a target: none, and each that fits it.
func (s *Suite) variants(t Target) []string {
	names := []string{none}
	for _, v := range s.Variants {
		if v.fits(t) {
			names = append(names, v.Name)
		}
	}
	return names
}

// fits reports whether a target can have the variant.
func (v Variant) fits(t Target) bool {
	switch {
	case v.Protocol != "" && !slices.Contains(t.Protocols, v.Protocol),
		len(v.Runtimes) > 0 && !slices.Contains(v.Runtimes, t.Runtime),
		len(v.Languages) > 0 && !slices.Contains(v.Languages, t.Language),
		v.Build != "" && (t.Build == v.Build || !slices.Contains(t.Builds, v.Build)):
		return false
	}
	return len(v.Processes) == 0 || len(t.Processes) == 0 ||
		slices.ContainsFunc(v.Processes, func(p string) bool {
			return slices.Contains(t.Processes, p)
		})
}

// fits checks that every variant fits a target, and that its processes exist in a system.
func (s *Suite) fits(targets []Target) error {
	for i, v := range s.Variants {
		keyPath := fmt.Sprintf("variants[%d]", i)
		if !slices.ContainsFunc(targets, v.fits) {
			return s.source.Problem(
				keyPath,
				fmt.Sprintf("no target supports variant %q", v.Name),
				"",
			)
		}
		var names []string
		for _, t := range targets {
			names = append(names, t.Processes...)
		}
		for k, p := range v.Processes {
			if slices.Contains(names, p) {
				continue
			}
			return s.source.Problem(fmt.Sprintf("%s.processes[%d]", keyPath, k),
				fmt.Sprintf("no target has the process %q", p), strictyaml.Meant(p, names, ""))
		}
	}
	return nil
}

// Variant returns the variant with a name; the bare target's is empty except for its name.
func (s *Suite) Variant(name string) Variant {
	for _, v := range slices.Concat(s.Variants, s.Watching) {
		if v.Name == name {
			return v
		}
	}
	return Variant{Name: none}
}

// variant checks the conditions that the rows of the table cannot express.
func (c *checker) variant(keyPath string, v Variant) {
	if v.Name == "" {
		c.Wrong(keyPath, "add name, or add agent", "the variant has neither a name nor an "+
			"agent")
	}
	if v.Name == none {
		c.Wrong(keyPath+".name", "remove this variant: every target also runs without "+
			"variants", "%q cannot be the name of a "+
			"variant: it means a target without variants", none)
	}
	if len(v.Env) == 0 && v.Agent == "" && v.Protocol == "" && v.Observe.IsZero() {
		c.Wrong(keyPath, "set agent, or set JAVA_TOOL_OPTIONS in env to attach an agent to a JVM",
			"variant %q has no effect: it has no env, agent, protocol or observe", v.Name)
	}
	for _, name := range sortedNames(v.Env) {
		location := keyPath + ".env." + name
		if slices.Contains(slices.Concat(OwnEnv, SpokenEnv), name) {
			c.Wrong(location, "", "Prony itself sets the variable %s, so a variant cannot set "+
				"it", name)
		}
		for _, match := range braced.FindAllStringSubmatch(string(v.Env[name]), -1) {
			words := slices.Concat(RideWords, AgentWords)
			if !slices.Contains(words, match[1]) {
				c.Wrong(location, "use one of "+
					strings.Join(words, ", "), "{%s} is not a "+
					"placeholder that a variant can use",
					match[1])
			}
		}
	}
	c.observe(keyPath+".observe", v.Observe)
	for i, p := range v.Processes {
		if slices.Index(v.Processes, p) < i {
			c.Wrong(fmt.Sprintf("%s.processes[%d]", keyPath, i), "", "the list contains process "+
				"%q twice", p)
		}
	}
}
