// Package faults asks every verb of the real program the same questions: what does it do with an
// input that is missing, endless, torn or made to burst it, on a full disk, with a signal while
// it works, with a command line that makes no sense?
//
//	verbs × inputs, outputs, signals, arguments ─► the program, a process of its own ─► check
//
// The table is table_test.go: a new verb is a row there, and one that is in none fails the tests.
// What holds for every row is check in run_test.go: an exit code of its class, an end within
// a minute, memory within a bound, a sentence that names the cause, and nothing left behind.
//
// Non-goals: it has no code but tests; what a verb does when all is well is that verb's to test.
package faults
