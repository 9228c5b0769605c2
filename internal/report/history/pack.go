package history

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/analysis/table"
)

// Past is a run's part of a history in a short form: texts that the runs of a history share are in
// Shapes.
type Past struct {
	Run   string    `json:"run"`
	Began time.Time `json:"began"` // the start of its first trial
	Rows  []pastRow `json:"rows,omitempty"`
	Bad   []BadLine `json:"bad,omitempty"`
}

// SameValues reports whether the rows of two runs have the same values. Shapes are names within an
// index, and say nothing of a run in another one.
func (p Past) SameValues(q Past) bool {
	return slices.EqualFunc(p.Rows, q.Rows, func(a, b pastRow) bool {
		return a.Commit == b.Commit && a.Values == b.Values
	})
}

// BadLine is a line that is not a record of the run.
type BadLine struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

// pastRow has the values of a target under a scenario.
type pastRow struct {
	Shape  string `json:"shape"`
	Commit string `json:"commit"`
	// Values has the number of trials, the value and the ends of its interval, for each metric.
	Values string `json:"values"`
}

// shape is what the rows of many runs share.
type shape struct {
	Scenario   string       `json:"scenario"`
	Target     string       `json:"target"`
	ConfigHash string       `json:"configHash"`
	Method     table.Method `json:"method"`
	Metrics    []subject    `json:"metrics"`
}

// subject identifies a metric of a row.
type subject struct {
	Load  string `json:"load"`
	Model string `json:"model"`
	Name  string `json:"name"`
	Unit  string `json:"unit"`
	Label string `json:"label"`

	WithoutStalls bool `json:"withoutStalls,omitempty"`
}

// Shapes has the shapes of pasts by their hash.
type Shapes map[string]json.RawMessage

// Add adds a shape by its name.
func (s Shapes) Add(name string, text []byte) { s[name] = text }

// Text returns a shape in its written form; nil without one.
func (s Shapes) Text(name string) []byte { return s[name] }

// Names returns the names of all shapes, in order.
func (s Shapes) Names() []string { return slices.Sorted(maps.Keys(s)) }

// Clone returns a copy.
func (s Shapes) Clone() Shapes { return maps.Clone(s) }

// Have reports whether all shapes of a past are known.
func (s Shapes) Have(p Past) bool {
	return !slices.ContainsFunc(p.Rows, func(r pastRow) bool { return s[r.Shape] == nil })
}

// PastOf returns a run's part of a history without its rows.
func PastOf(r Run) Past {
	p := Past{Run: r.Head.ID, Began: began(r)}
	for _, bad := range r.Bad {
		p.Bad = append(p.Bad, BadLine{bad.Line, bad.Err.Error()})
	}
	return p
}

// Pack returns a run's part of a history, with its series, which Of has made, in the short form.
func Pack(r Run, series []Series) (Past, Shapes, error) {
	p, shapes := PastOf(r), Shapes{}
	for len(series) > 0 {
		first := series[0]
		n := slices.IndexFunc(series, func(s Series) bool {
			return s.Scenario != first.Scenario || s.Target != first.Target
		})
		if n < 0 {
			n = len(series)
		}
		form := shape{Scenario: first.Scenario, Target: first.Target, ConfigHash: first.ConfigHash,
			Method: first.method}
		var values []byte
		for _, s := range series[:n] {
			form.Metrics = append(form.Metrics, subject{s.Load, s.Model, s.Metric, s.Unit, s.Label,
				s.WithoutStalls})
			point := s.Points[0]
			values = strconv.AppendInt(values, int64(point.N), 10)
			for _, x := range []float64{point.Value, point.Lo, point.Hi} {
				values = strconv.AppendFloat(append(values, ' '), x, 'g', -1, 64)
			}
			values = append(values, ' ')
		}
		text, err := json.Marshal(form)
		if err != nil {
			return p, nil, fmt.Errorf("pack run %s: %w", r.Head.ID, err)
		}
		sum := sha256.Sum256(text)
		name := hex.EncodeToString(sum[:8])
		shapes.Add(name, text)
		p.Rows = append(p.Rows, pastRow{name, first.Points[0].Commit, string(values)})
		series = series[n:]
	}
	return p, shapes, nil
}

// Unpacker makes series of pasts.
type Unpacker struct {
	shapes Shapes
	known  map[string]shape
}

// NewUnpacker returns an Unpacker of pasts with these shapes.
func NewUnpacker(shapes Shapes) *Unpacker { return &Unpacker{shapes, map[string]shape{}} }

// Series returns what Of made.
func (u *Unpacker) Series(p Past) (out []Series, err error) {
	for _, row := range p.Rows {
		form, ok := u.known[row.Shape]
		if !ok {
			if err := json.Unmarshal(u.shapes[row.Shape], &form); err != nil {
				return nil, fmt.Errorf("unpack run %s: %w", p.Run, err)
			}
			u.known[row.Shape] = form
		}
		fields := strings.Fields(row.Values)
		if len(fields) != 4*len(form.Metrics) {
			return nil, fmt.Errorf("unpack run %s: %d values of %d metrics", p.Run, len(fields),
				len(form.Metrics))
		}
		for i, m := range form.Metrics {
			point := Point{Run: p.Run, Commit: row.Commit,
				Time: p.Began.UTC().Truncate(time.Second)}
			columns := fields[4*i:]
			point.N, err = strconv.Atoi(columns[0])
			for k, x := range []*float64{&point.Value, &point.Lo, &point.Hi} {
				if err == nil {
					*x, err = strconv.ParseFloat(columns[k+1], 64)
				}
			}
			if err != nil {
				return nil, fmt.Errorf("unpack run %s: %w", p.Run, err)
			}
			out = append(out, Series{Scenario: form.Scenario, Target: form.Target, Load: m.Load,
				Model: m.Model, Metric: m.Name, Unit: m.Unit, Label: m.Label,
				ConfigHash: form.ConfigHash, WithoutStalls: m.WithoutStalls,
				method: form.Method, Points: []Point{point}})
		}
	}
	return out, nil
}
