package tidy

import (
	"fmt"
	"strings"

	"prony.example/internal/base/shellwords"
)

// split cuts a simple command into words as a POSIX shell does. It refuses what only a shell can do
// (pipes, redirections, expansions), because the test runs commands of the docs without one.
func split(line string) ([]string, error) {
	words, err := shellwords.Split(strings.TrimSpace(line))
	if err != nil {
		return nil, fmt.Errorf("split %q: %w; quote what is meant as it stands",
			strings.TrimSpace(line), err)
	}
	return words, nil
}
