package history

import (
	"flag"
	"testing"

	"prony.example/internal/dev/schema"
)

var update = flag.Bool("update", false, "write the schema in docs/formats")

func TestSchema(t *testing.T) {
	schema.Publish(t, *update, schema.Document{Name: "trend",
		Title: "A trend: prony trend --format json", Of: document{}, Version: jsonVersion,
		Printed: true})
}
