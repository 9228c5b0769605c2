package trial

import (
	"fmt"
	"slices"

	"prony.example/internal/base/lazyregexp"
)

// crash matches the line with which runtimes begin to report why they end the program. Stacks and
// registers follow it: the last line of a program in Go that a signal ended is "gs     0x0".
var crash = lazyregexp.New(`^(panic: |fatal error: |SIG[A-Z]+: |thread '.*' .*panicked at |` +
	`Exception in thread |(Uncaught )?[A-Za-z.]*(Error|Exception): )`)

// crashLines is the number of lines of a log in which a crash is searched.
const crashLines = 500

// lastSaid returns the line of the service's log with the cause of its end, or its last line,
// shortened, for an error message.
func (f *life) lastSaid() string { return cause(f.proc.Log(crashLines)) }

func cause(log []string) string {
	if len(log) == 0 {
		return ""
	}
	for i, line := range slices.Backward(log) {
		if !crash.MatchString(line) {
			continue
		}
		if i+1 < len(log) && line[len(line)-1] == ':' {
			line += " " + log[i+1] // in Rust, the message follows the place
		}
		return fmt.Sprintf("; cause in its log: %.*q", lastLine, line)
	}
	return fmt.Sprintf("; last line of its log: %.*q", lastLine, log[len(log)-1])
}
