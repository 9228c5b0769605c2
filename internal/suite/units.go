package suite

import (
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"prony/internal/config"
	"prony/internal/pattern"
)

// The form of durations. The schema publishes the same expression that the parser uses.
const durationForm = `^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`

var durationRe = pattern.New(durationForm)

// Duration is a time in nanoseconds, written as Go writes it: "200ms", "1m30s".
type Duration time.Duration

// String gives the shortest form that reads back as the same duration: "24h", not "24h0m0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText gives String's form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a duration. A number without a unit is an error, 0 excepted: whether it meant
// seconds or milliseconds would be a guess.
func (d *Duration) UnmarshalText(b []byte) error {
	text := string(b)
	if !durationRe.MatchString(text) {
		return fmt.Errorf("duration %q is not numbers with units (as in 2s, 200ms, 1m30s)", text)
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("duration %q is too long", text)
	}
	*d = Duration(v)
	return nil
}

// UnmarshalYAML reads the node's text; the error names its line.
func (d *Duration) UnmarshalYAML(n ast.Node) error { return config.Text(n, d) }

// Keys are the first and the last key of a range.
type Keys [2]uint64

// UnmarshalYAML reads a list of two whole numbers; the error names its line.
func (k *Keys) UnmarshalYAML(n ast.Node) error {
	var both []uint64
	if err := yaml.NodeToValue(n, &both); err != nil || len(both) != 2 {
		return &yaml.SyntaxError{Token: n.GetToken(),
			Message: "keys are not a list of the first and the last (as in [1, 50000])"}
	}
	*k = Keys(both)
	return nil
}

// Text is a text as it stands in the file: 1.50 is not the number 1.5, nor is true anything but
// four letters.
type Text string

// UnmarshalText keeps the text.
func (t *Text) UnmarshalText(b []byte) error {
	*t = Text(b)
	return nil
}

// UnmarshalYAML reads the node's text; the error names its line.
func (t *Text) UnmarshalYAML(n ast.Node) error { return config.Text(n, t) }
