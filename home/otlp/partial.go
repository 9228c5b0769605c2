package otlp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"prony.example/record"
)

// partialAnswer is an encoded answer. The receiver's own answers cannot name rejected items.
type partialAnswer []byte

// partial returns OTLP's answer for a partial success.
func (f *faults) partial(signal string, asJSON bool) ([]byte, error) {
	var answer interface {
		MarshalProto() ([]byte, error)
		MarshalJSON() ([]byte, error)
	}
	switch signal {
	case record.Spans:
		r := ptraceotlp.NewExportResponse()
		r.PartialSuccess().SetRejectedSpans(f.items)
		r.PartialSuccess().SetErrorMessage(f.text("spans"))
		answer = r
	case record.Points:
		r := pmetricotlp.NewExportResponse()
		r.PartialSuccess().SetRejectedDataPoints(f.items)
		r.PartialSuccess().SetErrorMessage(f.text("data points"))
		answer = r
	default:
		r := plogotlp.NewExportResponse()
		r.PartialSuccess().SetRejectedLogRecords(f.items)
		r.PartialSuccess().SetErrorMessage(f.text("log records"))
		answer = r
	}
	if asJSON {
		return answer.MarshalJSON()
	}
	return answer.MarshalProto()
}

// topKeys are the keys of OTLP's requests in JSON.
var topKeys = map[string]string{record.Spans: "resourceSpans", record.Points: "resourceMetrics",
	record.Logs: "resourceLogs"}

// missingKey returns what is wrong with the outermost object of a request in JSON, or "". OTLP has
// receivers ignore unknown keys, but a request with only such keys has no content at all, and its
// sender would never find out.
func missingKey(v *visit, kind string, body []byte) string {
	want := topKeys[v.signal]
	if v.zipkin || want == "" || !strings.Contains(kind, "json") {
		return ""
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil {
		return fmt.Sprintf("the body is not an object in JSON: %v", err)
	} else if top == nil {
		return fmt.Sprintf("the body is null; send an object with the key %q", want)
	}
	if keys := slices.Sorted(maps.Keys(top)); len(keys) > 0 && top[want] == nil {
		return fmt.Sprintf("the body lacks the key %q, and has %.100q", want, keys[0])
	}
	list := string(top[want])
	if list != "" && list != "null" && list[0] != '[' {
		return fmt.Sprintf("the value of %q must be a list", want)
	}
	v.filled = strings.Contains(list, "{")
	return ""
}
