// Package traces reads stored traces: Read returns them, Tree orders the spans of one, Waterfall
// draws it, and WriteOTLP writes traces in their original format.
//
// Non-goals: it does not store traces (spanstore does).
package traces

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Limits of texts of one span. Cut texts are marked.
const (
	MaxValueBytes = 16 << 10 // of a value: a Java stack trace fits
	MaxNameBytes  = 1 << 10
)

// Classes of stored traces, the most important first. A trace may have several.
const (
	Asked   = "asked"   // its id was sent with a request of the load
	Failed  = "error"   // one of its spans has an error
	Slow    = "slow"    // among the slowest of its window
	Uniform = "uniform" // in a uniform sample of all
)

// Trace is a stored trace, a line of spans.ndjson. Times are Unix times in ns.
type Trace struct {
	Trial      string   `json:"trial"`
	Target     string   `json:"target"`
	Window     string   `json:"window,omitempty"` // in which its root began; empty: between windows
	Classes    []string `json:"classes"`          // why it was stored, the most important first
	TraceID    string   `json:"traceId"`          // 32 hexadecimal digits
	Service    string   `json:"service"`          // of its root
	Name       string   `json:"name"`             // of its root
	StartNs    int64    `json:"startNs"`
	DurationNs int64    `json:"durationNs"` // of its root
	Errors     int      `json:"errors"`     // spans whose status is an error
	// Cut is the number of spans left out because the trace had too many.
	Cut int64 `json:"cut,omitempty"`
	// Roots is the number of spans without a parent; above 1: spans are missing.
	Roots int    `json:"roots"`
	Spans []Span `json:"spans"`
}

// Span is one span of a trace. Kind and Status are lower-case words of OTLP: "server", "error".
type Span struct {
	ID         string     `json:"id"`               // 16 hexadecimal digits
	Parent     string     `json:"parent,omitempty"` // 16 hexadecimal digits
	Service    string     `json:"service"`
	Name       string     `json:"name"`
	Kind       string     `json:"kind"`
	StartNs    int64      `json:"startNs"`
	DurationNs int64      `json:"durationNs"`
	Status     string     `json:"status,omitempty"` // empty: unset
	Message    string     `json:"message,omitempty"`
	State      string     `json:"tracestate,omitempty"`
	Attributes Attributes `json:"attributes,omitempty"`
	Cut        int64      `json:"cut,omitempty"` // attributes, events and links left out
	Events     []Event    `json:"events,omitempty"`
	Links      []Link     `json:"links,omitempty"`
}

// EndNs returns the time at which the span ended.
func (s *Span) EndNs() int64 { return s.StartNs + s.DurationNs }

// Event is something that happened in a span, such as an exception.
type Event struct {
	Ns         int64      `json:"ns"` // Unix time
	Name       string     `json:"name"`
	Attributes Attributes `json:"attributes,omitempty"`
}

// Link refers to a span of another trace.
type Link struct {
	TraceID    string     `json:"traceId"`
	SpanID     string     `json:"spanId"`
	Attributes Attributes `json:"attributes,omitempty"`
}

// Attributes are values by name: string, bool, int64, float64, []any or map[string]any.
type Attributes map[string]any

// UnmarshalJSON keeps integers exact: a float64 would change ids of 64 bits.
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
			return string(v) // too large for a float64; its text is better than an infinity
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

// CutText cuts a text to at most n bytes, between characters, and appends a mark. Texts of up to
// markBytes more stay unchanged, and the mark is shorter, so cutting twice has no effect.
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

// kinds and statuses are the words for OTLP's numbers.
var (
	kinds    = []string{"unspecified", "internal", "server", "client", "producer", "consumer"}
	statuses = []string{"", "ok", "error"}
)

// Kind returns the word for a span's kind in OTLP, and Status that for its status.
func Kind(number int32) string   { return word(kinds, number) }
func Status(number int32) string { return word(statuses, number) }

func word(words []string, i int32) string {
	if i < 0 || int(i) >= len(words) {
		return words[0]
	}
	return words[i]
}
