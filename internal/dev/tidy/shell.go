package tidy

import (
	"fmt"
	"strings"

	"prony.example/internal/base/shellwords"
)

// split splits a simple command into words as a POSIX shell does. It returns an error for syntax
// that needs a shell (pipes, redirections, expansions), because the test runs the docs' commands
// without one.
func split(line string) ([]string, error) {
	words, err := shellwords.Split(strings.TrimSpace(line))
	if err != nil {
		return nil, fmt.Errorf("split %q: %w; quote what is meant as it stands",
			strings.TrimSpace(line), err)
	}
	return words, nil
}
