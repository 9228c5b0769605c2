// Package pages types every command of the pages on Docker, Compose, dashboards, Kubernetes,
// clusters and CI into a shell, in order, in a fresh checkout. It prints one line for each.
//
//	docs/*.md ─► commands ─► rules: what a reader has or skips ─► shell ─► results/*.txt
//
// The pages are the script. rules_test.go has what is not on a page: what a reader has before a
// command, values of their own, how long a command may take, and why a command is skipped. Each
// page is a test of the third set that is remembered on its own, so a later run repeats only pages
// that failed or changed:
//
//	PRONY_TEST=long go test ./internal/dev/pages -timeout 2h -v
//
// Non-goals: the package has only tests, and does not read what commands print. Lines that begin
// with "$ prony" are also tested without an engine, by cmd/prony.
package pages
