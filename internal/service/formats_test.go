package service

import (
	"testing"

	"prony.example/internal/base/strictyaml"
	"prony.example/internal/base/strictyaml/formattest"
)

// Every numeric key of manifests and golden answers holds exactly what its author wrote.
func TestNumbersAreExact(t *testing.T) {
	formattest.Numbers(t, &Service{})
	formattest.Numbers(t, &golden{})
}

// Every key of manifests and golden answers has one name.
func TestKeysHaveOneName(t *testing.T) {
	decode := func(data []byte, v any) error { return strictyaml.Decode("file.yaml", data, v) }
	formattest.Names(t, &Service{}, "yaml", decode)
	formattest.Names(t, &golden{}, "yaml", decode)
}
