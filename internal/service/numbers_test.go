package service

import (
	"testing"

	"prony.example/internal/base/strictyaml/numbertest"
)

// Every numeric key of manifests and golden answers holds exactly what its author wrote.
func TestNumbersAreExact(t *testing.T) {
	numbertest.Exact(t, &Service{})
	numbertest.Exact(t, &golden{})
}
