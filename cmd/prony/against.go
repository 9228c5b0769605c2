package main

import (
	"fmt"
	"regexp"
	"strings"

	"prony/internal/cli"
	"prony/internal/service"
)

// rivalName is what stands behind the @ unless the flag says otherwise.
const rivalName = "base"

var rivalNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// rivals are the services of another checkout, named after it. Only services are taken from there:
// suite, contract and program are those of this checkout, or the two would not be comparable.
func (a *app) rivals(f *runFlags) ([]*service.Service, error) {
	if f.against == "" {
		return nil, nil
	}
	name, dir, named := strings.Cut(f.against, "=")
	if !named {
		name, dir = rivalName, f.against
	}
	if !rivalNames.MatchString(name) {
		return nil, cli.Usagef("--against %s: %q is no name; use letters, digits, dots "+
			"and dashes before the =", f.against, name)
	}
	services, err := a.catalog(dir)
	if err != nil {
		return nil, fmt.Errorf("read the checkout to run against: %w", err)
	}
	for _, s := range services {
		s.Origin = name
	}
	return services, nil
}
