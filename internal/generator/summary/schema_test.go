package summary

import (
	"testing"

	"prony.example/internal/dev/schema"
)

func TestSchema(t *testing.T) {
	schema.Publish(t, *update, schema.Document{Name: "load", Title: "A load: prony load --json",
		Of: document{}})
}
