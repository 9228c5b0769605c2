package schema

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

type inner struct {
	At time.Time `json:"at"`
}

type sample struct {
	inner
	Number float64        `json:"number"` // of something
	List   []string       `json:"list"`
	Maybe  *inner         `json:"maybe,omitempty"`
	By     map[string]int `json:"by"`
	Plain  uint8
	hidden int
	Left   int `json:"-"`
}

// Null depends on the writer: for lists of encoding/json, and for numbers of internal/base/format.
func TestStructure(t *testing.T) {
	_ = sample{}.hidden
	check := func(printed bool, want string) {
		t.Helper()
		m := maker{Document: Document{Printed: printed}, t: t, definitions: object{},
			words: map[string]map[string]string{"internal/dev/schema": {
				"sample.Number": "of something"}}}
		got, err := json.Marshal(m.structure(reflect.TypeFor[sample]())["properties"])
		if err != nil || string(got) != want {
			t.Errorf("printed %v, error %v:\n%s, want\n%s", printed, err, got, want)
		}
	}
	check(false, `{"Plain":{"type":"integer"},"at":{"format":"date-time","type":"string"},`+
		`"by":{"additionalProperties":{"type":"integer"},"type":["object","null"]},`+
		`"list":{"items":{"type":"string"},"type":["array","null"]},`+
		`"maybe":{"anyOf":[{"$ref":"#/$defs/inner"},{"type":"null"}]},`+
		`"number":{"description":"of something","type":"number"}}`)
	check(true, `{"at":{"format":"date-time","type":"string"},`+
		`"by":{"additionalProperties":{"type":"integer"},"type":"object"},`+
		`"list":{"items":{"type":"string"},"type":"array"},`+
		`"maybe":{"anyOf":[{"$ref":"#/$defs/inner"},{"type":"null"}]},`+
		`"number":{"description":"of something","type":["number","null"]}}`)
	// A comment beside a field is its description.
	if said := comments(t, ".")["Document.Name"]; said != "of docs/formats/NAME.schema.json" {
		t.Errorf("the comment is %q", said)
	}
}
