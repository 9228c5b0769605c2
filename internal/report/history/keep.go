package history

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"prony.example/internal/analysis/table"
)

// part is a Series with the fields that its documents omit.
type part struct {
	Series
	Label   string
	Aspects table.Method
	Points  []point `json:"points"`
}

type point struct {
	Point
	Value number `json:"value"`
	Lo    number `json:"lo"`
	Hi    number `json:"hi"`
}

// number is written as text, which can represent NaN.
type number float64

func (n number) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

func (n *number) UnmarshalText(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	*n = number(x)
	return err
}

// Keep writes series from Of in a format that only Kept of the same program can read, because it
// changes with the types.
func Keep(w io.Writer, series []Series) error {
	parts := make([]part, len(series))
	for i, s := range series {
		parts[i] = part{Series: s, Label: s.Label, Aspects: s.method}
		for _, p := range s.Points {
			parts[i].Points = append(parts[i].Points,
				point{p, number(p.Value), number(p.Lo), number(p.Hi)})
		}
	}
	if err := json.NewEncoder(w).Encode(parts); err != nil {
		return fmt.Errorf("keep series: %w", err)
	}
	return nil
}

// Kept reads the output of Keep.
func Kept(r io.Reader) ([]Series, error) {
	var parts []part
	if err := json.NewDecoder(r).Decode(&parts); err != nil {
		return nil, fmt.Errorf("read series: %w", err)
	}
	out := make([]Series, len(parts))
	for i, p := range parts {
		s := p.Series
		s.Label, s.method = p.Label, p.Aspects
		for _, q := range p.Points {
			p := q.Point
			p.Value, p.Lo, p.Hi = float64(q.Value), float64(q.Lo), float64(q.Hi)
			s.Points = append(s.Points, p)
		}
		out[i] = s
	}
	return out, nil
}
