package suite_test

import (
	"testing"

	"prony.example/internal/base/strictyaml/numbertest"
	"prony.example/internal/suite"
)

// Every numeric key of suites, scenarios and prony.yaml holds exactly what its author wrote.
func TestNumbersAreExact(t *testing.T) {
	numbertest.Exact(t, &suite.Suite{})
	numbertest.Exact(t, &suite.Scenario{})
	numbertest.Exact(t, &suite.Project{})
}
