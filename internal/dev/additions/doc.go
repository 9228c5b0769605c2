// Package additions tests the instructions of CONTRIBUTING.md on a copy of the repository: with all
// steps the checks pass, and without any single one they fail.
//
// Non-goals: the package has only tests.
package additions
