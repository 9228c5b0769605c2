package boards

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// Kinds of spans in OTLP.
const (
	serverSpan = 2
	clientSpan = 3
)

// spansOf returns traces of a run: in each, a client's span calls a server's of each service. The
// durations are above the limit of the panel of slow requests.
func spansOf(services []string, run string, now time.Time) any {
	var resources []any
	for range 10 {
		trace, parent := id(16), id(8)
		begin := now.Add(-time.Minute)
		resources = append(resources, spanOf("stack-check", run, map[string]any{
			"traceId": trace, "spanId": parent, "name": "GET", "kind": clientSpan,
			"startTimeUnixNano": nanos(begin),
			"endTimeUnixNano":   nanos(begin.Add(60 * time.Millisecond))}))
		for _, service := range services {
			if service == "" || service == "prony" {
				continue
			}
			resources = append(resources, spanOf(service, run, map[string]any{
				"traceId": trace, "spanId": id(8), "parentSpanId": parent, "name": "GET /hello",
				"kind": serverSpan, "startTimeUnixNano": nanos(begin.Add(time.Millisecond)),
				"endTimeUnixNano": nanos(begin.Add(50 * time.Millisecond)),
				"attributes":      []any{attribute("http.route", "/hello")}}))
		}
	}
	return map[string]any{"resourceSpans": resources}
}

func spanOf(service, run string, span map[string]any) any {
	return map[string]any{
		"resource": map[string]any{"attributes": []any{attribute("service.name", service),
			attribute("prony.run", run)}},
		"scopeSpans": []any{map[string]any{"spans": []any{span}}},
	}
}

// logsOf returns a line of each service, and a mark of the run.
func logsOf(services []string, run string, now time.Time) any {
	var resources []any
	for _, service := range services {
		record := map[string]any{"timeUnixNano": nanos(now.Add(-time.Minute)),
			"severityText": "INFO",
			"body":         map[string]any{"stringValue": "known line of " + service}}
		if service == "prony" {
			record["eventName"] = "prony.mark"
			record["attributes"] = []any{attribute("kind", "phase"), attribute("run", run),
				attribute("name", "measure"), attribute("target", "stack-check")}
		}
		resources = append(resources, map[string]any{
			"resource":  map[string]any{"attributes": []any{attribute("service.name", service)}},
			"scopeLogs": []any{map[string]any{"logRecords": []any{record}}},
		})
	}
	return map[string]any{"resourceLogs": resources}
}

// id returns a random id in hexadecimal, as OTLP's JSON has it.
func id(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) //nolint:errcheck // it never fails
	return hex.EncodeToString(b)
}
