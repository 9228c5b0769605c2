// Package rows writes tables for programs that store them in their own formats: a line of JSON that
// describes the columns, then an array per row.
//
// Non-goals: the contents of tables (internal/report), and their storage (home/parquet, which prony
// itself does not link).
package rows

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Kind is the type of a column's values. Each may be null.
type Kind string

// The kinds, with the Go type of a value.
const (
	Text    Kind = "text"    // string
	Count   Kind = "count"   // int64
	Real    Kind = "real"    // float64, finite
	Flag    Kind = "flag"    // bool
	Instant Kind = "instant" // time.Time; in a row, microseconds since 1970 in UTC
)

// Column describes a column of a table.
type Column struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
}

// Head is the first line, before the rows.
type Head struct {
	Table   string   `json:"table"`
	Version int      `json:"version"` // of the record
	Columns []Column `json:"columns"`
}

// Write writes a table with this number of rows. Each row has a value per column: nil, or of the
// column's kind.
func Write(w io.Writer, h Head, rows int, row func(i int) []any) error {
	to := json.NewEncoder(w)
	err := to.Encode(h)
	for i := 0; i < rows && err == nil; i++ {
		values := row(i)
		for k, v := range values {
			if moment, ok := v.(time.Time); ok {
				values[k] = moment.UnixMicro()
			}
		}
		err = to.Encode(values)
	}
	if err != nil {
		return fmt.Errorf("write table %s: %w", h.Table, err)
	}
	return nil
}
