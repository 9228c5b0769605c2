// Package tidy holds the tests about the code and the docs: what STYLE.md marks with [t]. Each
// check is a pure function from a tree of files to the problems in it; the repository is one such
// tree and the few-line trees of the check's own tests are others, so that every check has been
// seen to fail. Only files that git tracks, or would on the next add, are looked at.
//
// Run all with
//
//	go test ./internal/dev/tidy
//
// and one with, for example, -run Tidy/imports. The tables that say what is allowed stand at the
// top of their files: layers, neighbours and rules in layers_test.go, bans in bans_test.go.
//
// The few exported functions are for other packages' tests; the program itself imports none of
// them.
//
// Not here: what the compiler, go vet or gofmt already say, and taste.
package tidy
