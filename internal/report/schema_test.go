package report

import (
	"os"
	"testing"

	"prony.example/internal/dev/schema"
)

func TestSchema(t *testing.T) {
	schema.Publish(t, *update, schema.Document{Name: "report",
		Title: "A report: prony report --format json", Of: jsonDocument{}, Version: jsonVersion,
		Printed: true})
	for _, golden := range []string{"testdata/sample.json", "testdata/none.json"} {
		data, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		schema.Valid(t, "report", data)
	}
}
