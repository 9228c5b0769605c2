// Package tidy tests the rules about code and docs that STYLE.md marks with [t]. Each check is a
// pure function from a tree of files to the problems in it. The tree is the repository, or a tree
// of a few lines in the check's own tests, which show that every check can fail. Only files that
// git tracks, or would track on the next add, are read.
//
// Run all with
//
//	go test ./internal/dev/tidy
//
// and one with, for example, -run Tidy/imports. The tables of exceptions are at the top of their
// files: layers, neighbours and rules in layers_test.go, bans in bans_test.go.
//
// The few exported functions are for tests of other packages. The program itself imports none of
// them.
//
// Non-goals: problems that the compiler, go vet or gofmt report, and taste.
package tidy
