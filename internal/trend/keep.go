package trend

import (
	"encoding/gob"
	"fmt"
	"io"

	"prony/internal/table"
)

// part is a Series with what its documents do not say.
type part struct {
	Series Series
	Method table.Method
}

// Keep writes series so that the same program reads them again with Kept. It is no format for
// others: it has numbers that are none, which JSON cannot say, and it changes with the types.
func Keep(w io.Writer, of []Series) error {
	parts := make([]part, len(of))
	for i, s := range of {
		parts[i] = part{s, s.method}
	}
	if err := gob.NewEncoder(w).Encode(parts); err != nil {
		return fmt.Errorf("keep series: %w", err)
	}
	return nil
}

// Kept reads what Keep wrote.
func Kept(r io.Reader) ([]Series, error) {
	var parts []part
	if err := gob.NewDecoder(r).Decode(&parts); err != nil {
		return nil, fmt.Errorf("read series: %w", err)
	}
	out := make([]Series, len(parts))
	for i, p := range parts {
		out[i] = p.Series
		out[i].method = p.Method
	}
	return out, nil
}
