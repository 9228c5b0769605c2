package suite

import (
	"fmt"
	"slices"
)

// Variant is something that rides along with targets, such as an agent: each target runs with it
// in trials of its own, beside those of the bare one.
type Variant struct {
	Name      string          `yaml:"name" json:"name"`
	Env       map[string]Text `yaml:"env" json:"env,omitempty"`
	Runtimes  []string        `yaml:"runtimes" json:"runtimes,omitempty"`   // none: all
	Processes []string        `yaml:"processes" json:"processes,omitempty"` // of systems; none: all
}

// variants are what a target runs with: nothing, and each variant that its runtime can have.
func (s *Suite) variants(t Target) []string {
	names := []string{none}
	for _, v := range s.Variants {
		if len(v.Runtimes) == 0 || slices.Contains(v.Runtimes, t.Runtime) {
			names = append(names, v.Name)
		}
	}
	return names
}

// Variant returns the variant of that name; that of a bare target has nothing in it.
func (s *Suite) Variant(name string) Variant {
	i := slices.IndexFunc(s.Variants, func(v Variant) bool { return v.Name == name })
	if i < 0 {
		return Variant{Name: none}
	}
	return s.Variants[i]
}

// variant checks what the rows of the table cannot.
func (c *checker) variant(at string, v Variant) {
	if v.Name == none {
		c.found(at+".name", "every target runs bare anyway", "variant %q is no variant", none)
	}
	if len(v.Env) == 0 {
		c.found(at, "an agent of the JVM rides in JAVA_TOOL_OPTIONS", "variant %q changes nothing",
			v.Name)
	}
	for i, p := range v.Processes {
		if slices.Index(v.Processes, p) < i {
			c.found(fmt.Sprintf("%s.processes[%d]", at, i), "", "process %q is there twice", p)
		}
	}
}
