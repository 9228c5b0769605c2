package agent

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"prony/internal/pattern"
	"prony/internal/suite"
)

// Words stand in an agent's variables for what the lab decides when a process is started.
var Words = slices.Concat(suite.AgentWords, suite.RideWords)

var (
	word     = pattern.New(`\{([A-Za-z][A-Za-z0-9_-]*)\}`)
	variable = pattern.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
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
		out[name] = variable.ReplaceAllStringFunc(text, func(found string) string {
			value, _ := lookup(found[2 : len(found)-1]) // it is set, as lacks said
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
			missing = append(missing, fmt.Sprintf("needs the variable %s: not set", match[1]))
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
