// Package faults tests every verb of the real program with faults: an input that is missing,
// endless, torn or too large, a full disk, a signal during the work, an invalid command line.
//
//	verbs × inputs, outputs, signals, arguments ─► the program, a process of its own ─► check
//
// The table is table_test.go: a new verb needs a row, or the tests fail. check in run_test.go has
// the conditions of every row: an exit code of its class, an end within two minutes, bounded
// memory, a sentence that names the cause, and no leftovers.
//
// Non-goals: the package has only tests; each verb tests its own normal behavior.
package faults
