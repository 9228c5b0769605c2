package suite_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"prony.example/internal/suite"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile("../../docs/formats/suite.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate checks YAML against the schema, by way of JSON as editors do.
func validate(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return err // not YAML
	}
	asJSON, err := json.Marshal(value)
	if err != nil {
		return err // a number that JSON cannot express
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(asJSON)))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

func TestSuitesKeepTheSchema(t *testing.T) {
	s := compiled(t)
	files, err := filepath.Glob("../../suites/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no suites found: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, s, text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		got, err := suite.Read(file, text)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.TrimSuffix(filepath.Base(file), ".yaml"); got.Name != want {
			t.Errorf("%s holds the suite %q, want the file's name", file, got.Name)
		}
	}
}

// The schema must find the errors that the rows mark, and must accept what Read accepts.
func TestSchemaAgreesWithRead(t *testing.T) {
	s := compiled(t)
	if err := validate(t, s, []byte(whole)); err != nil {
		t.Errorf("the schema refuses a good suite: %v", err)
	}
	for _, row := range mistakes {
		err := validate(t, s, []byte(strings.Replace(whole, row.old, row.new, 1)))
		if (err != nil) != row.schema {
			t.Errorf("%s: the schema says %v; does it find the mistake: want %v", row.name, err,
				row.schema)
		}
	}
}

// TestSchemaOfNetworks checks that networks are texts in the schema, as in a suite.
func TestSchemaOfNetworks(t *testing.T) {
	s := compiled(t)
	for line, good := range map[string]bool{"network: [none, delay 5ms ± 1ms, delay 1ms]": true,
		"network: [lag 5ms]": false, "network: [{delay: 5ms}]": false} {
		text := strings.Replace(whole, "blocks: 2", "blocks: 2\n"+line, 1)
		if err := validate(t, s, []byte(text)); (err == nil) != good {
			t.Errorf("%s: the schema says %v", line, err)
		}
	}
}
