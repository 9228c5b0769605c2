// Package logs has the log records that were kept of what services wrote, and reads them: Read
// finds kept records, ReadFiles the lines of the files that services write themselves.
//
// Non-goals: keeping them, which is logstore, and understanding what a line says.
package logs

import (
	"slices"
	"strings"

	"prony/internal/telemetry/spans"
)

// Classes of kept records. One may be of several.
const (
	Warning = "warning" // of severity WARN or above
	Traced  = "traced"  // belongs to a kept trace
	Uniform = "uniform" // of a sample of the others in which every one had the same chance
)

// Severities by their first number in OTLP's data model divided by four, the least first. The first
// is that of records which do not say.
var Severities = []string{"unspecified", "trace", "debug", "info", "warn", "error", "fatal"}

// Warn is the index of warnings in Severities.
const Warn = 4

// Record is a kept log record, a line of logs.ndjson.
type Record struct {
	Trial      string           `json:"trial"`
	Target     string           `json:"target"`
	Window     string           `json:"window,omitempty"` // that it was written in
	Classes    []string         `json:"classes"`
	Ns         int64            `json:"ns"` // Unix time
	Service    string           `json:"service"`
	Severity   string           `json:"severity"` // one of Severities
	Logger     string           `json:"logger,omitempty"`
	Body       string           `json:"body"`
	TraceID    string           `json:"traceId,omitempty"`
	SpanID     string           `json:"spanId,omitempty"`
	Attributes spans.Attributes `json:"attributes,omitempty"`
	Cut        int64            `json:"cut,omitempty"` // attributes that are not here
}

// Level is the index of a severity by its word, in whatever case, in Severities; -1: there is none.
func Level(word string) int {
	word = strings.ToLower(strings.TrimSpace(word))
	for level, names := range [...]string{"unspecified", "trace", "debug", "info notice",
		"warn warning", "error err severe", "fatal critical panic"} {
		if slices.Contains(strings.Fields(names), word) {
			return level
		}
	}
	return -1
}
