package suite_test

import (
	"testing"

	"prony.example/internal/base/strictyaml"
	"prony.example/internal/base/strictyaml/formattest"
	"prony.example/internal/suite"
)

// Every numeric key of suites, scenarios and prony.yaml holds exactly what its author wrote.
func TestNumbersAreExact(t *testing.T) {
	formattest.Numbers(t, &suite.Suite{})
	formattest.Numbers(t, &suite.Scenario{})
	formattest.Numbers(t, &suite.Project{})
}

// Every key of suites, scenarios and prony.yaml has one name.
func TestKeysHaveOneName(t *testing.T) {
	decode := func(data []byte, v any) error { return strictyaml.Decode("file.yaml", data, v) }
	formattest.Names(t, &suite.Suite{}, "yaml", decode)
	formattest.Names(t, &suite.Scenario{}, "yaml", decode)
	formattest.Names(t, &suite.Project{}, "yaml", decode)
}
