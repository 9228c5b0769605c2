// Package traces has the traces that were kept of what services told of their requests, and reads
// them: Read finds kept traces, Tree orders one, Waterfall draws it, WriteOTLP writes them as what
// they came as.
//
// Non-goals: keeping them, which is spanstore.
package traces

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Bounds of the texts that are kept of one span. What is cut is told beside it.
const (
	MaxValueBytes = 16 << 10 // of a value: a stack trace of Java fits
	MaxNameBytes  = 1 << 10
)

// Classes of kept traces, the weightiest first. A trace may be of several.
const (
	Asked   = "asked"   // a request of the load carried its id
	Failed  = "error"   // a span in it says that it failed
	Slow    = "slow"    // among the slowest of its window
	Uniform = "uniform" // of a sample in which every trace had the same chance
)

// Trace is a kept trace, one line of spans.ndjson. Times are Unix time in ns.
type Trace struct {
	Trial      string   `json:"trial"`
	Target     string   `json:"target"`
	Window     string   `json:"window,omitempty"` // that its root began in; empty: between them
	Classes    []string `json:"classes"`          // why it was kept, the weightiest first
	TraceID    string   `json:"traceId"`          // 32 hexadecimal digits
	Service    string   `json:"service"`          // of its root
	Name       string   `json:"name"`             // of its root
	StartNs    int64    `json:"startNs"`
	DurationNs int64    `json:"durationNs"` // of its root
	Errors     int      `json:"errors"`     // spans whose status is an error
	// Cut is how many spans came and are not here, because there were too many of them.
	Cut int64 `json:"cut,omitempty"`
	// Roots is how many spans have no parent here; more than one: some spans never came.
	Roots int    `json:"roots"`
	Spans []Span `json:"spans"`
}

// Span is one span of a trace. Kind and Status are lower-case words of OTLP: "server", "error".
type Span struct {
	ID         string     `json:"id"`               // 16 hexadecimal digits
	Parent     string     `json:"parent,omitempty"` // likewise
	Service    string     `json:"service"`
	Name       string     `json:"name"`
	Kind       string     `json:"kind"`
	StartNs    int64      `json:"startNs"`
	DurationNs int64      `json:"durationNs"`
	Status     string     `json:"status,omitempty"` // empty: unset
	Message    string     `json:"message,omitempty"`
	State      string     `json:"tracestate,omitempty"`
	Attributes Attributes `json:"attributes,omitempty"`
	Cut        int64      `json:"cut,omitempty"` // attributes, events and links that are not here
	Events     []Event    `json:"events,omitempty"`
	Links      []Link     `json:"links,omitempty"`
}

// EndNs is when the span ended.
func (s *Span) EndNs() int64 { return s.StartNs + s.DurationNs }

// Event is something that happened in a span, such as an exception.
type Event struct {
	Ns         int64      `json:"ns"` // Unix time
	Name       string     `json:"name"`
	Attributes Attributes `json:"attributes,omitempty"`
}

// Link names a span of another trace.
type Link struct {
	TraceID    string     `json:"traceId"`
	SpanID     string     `json:"spanId"`
	Attributes Attributes `json:"attributes,omitempty"`
}

// Attributes are values by name: string, bool, int64, float64, []any or map[string]any.
type Attributes map[string]any

// UnmarshalJSON keeps whole numbers whole: ids of 64 bits would not survive a float64.
func (a *Attributes) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var raw map[string]any
	if err := d.Decode(&raw); err != nil {
		return err
	}
	for k, v := range raw {
		raw[k] = number(v)
	}
	*a = raw
	return nil
}

func number(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return string(v) // beyond any float64; its text says more than an infinity
		}
		return f
	case []any:
		for i := range v {
			v[i] = number(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = number(v[k])
		}
	}
	return v
}

// CutText cuts a text to at most n bytes, between characters, and marks that it did. The mark is
// shorter than markBytes, and what is no longer than that beyond n stays whole, so that cutting
// again changes nothing.
func CutText(s string, n int) string {
	const markBytes = 64
	if len(s) <= n+markBytes {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s… (cut from %d bytes)", s[:n], len(s))
}

// kinds and statuses, by their numbers in OTLP.
var (
	kinds    = []string{"unspecified", "internal", "server", "client", "producer", "consumer"}
	statuses = []string{"", "ok", "error"}
)

// Kind is the word for a span's kind by its number in OTLP, Status that for how it ended.
func Kind(number int32) string   { return word(kinds, number) }
func Status(number int32) string { return word(statuses, number) }

func word(words []string, i int32) string {
	if i < 0 || int(i) >= len(words) {
		return words[0]
	}
	return words[i]
}
