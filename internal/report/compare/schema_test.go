package compare

import (
	"flag"
	"testing"

	"prony.example/internal/dev/schema"
)

var update = flag.Bool("update", false, "write the schemas in docs/formats")

func TestSchemas(t *testing.T) {
	for _, d := range []schema.Document{
		{Name: "compare", Title: "A comparison: prony compare --format json", Of: document{},
			Version: jsonVersion, Printed: true},
		{Name: "gate", Title: "A gate's answer: prony gate --format json", Of: gateDocument{},
			Version: jsonVersion, Printed: true},
	} {
		schema.Publish(t, *update, d)
	}
}
