package suite

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"prony/internal/pattern"
)

// The forms of values with a unit. The schema publishes the same expressions that the parsers use.
const (
	durationForm = `^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`
	sizeForm     = `^([0-9]+(\.[0-9]+)?)(B|[Kk]|KiB|[Mm]|MiB|[Gg]|GiB)$`
)

var (
	durationRe = pattern.New(durationForm)
	sizeRe     = pattern.New(sizeForm)
)

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
func (d *Duration) UnmarshalYAML(n ast.Node) error { return unmarshal(n, d) }

// Size is a number of bytes, written with a binary unit.
type Size int64

// units of sizes, the largest first: name and exponent of two. One letter means the binary unit, as
// Docker reads it. MB and GB are refused, for some read them as powers of ten.
var units = []struct {
	name  string
	shift int
}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}}

// String gives the size in the largest unit that divides it: "1GiB", "832MiB".
func (s Size) String() string {
	for _, u := range units {
		if s != 0 && s%(1<<u.shift) == 0 {
			return strconv.FormatInt(int64(s>>u.shift), 10) + u.name
		}
	}
	return "0B"
}

// MarshalText gives String's form.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(b []byte) error {
	text := string(b)
	m := sizeRe.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("size %q is not a number with a binary unit (as in 1GiB, 832M)", text)
	}
	number, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return fmt.Errorf("size %q is too large", text)
	}
	for _, u := range units {
		if u.name[:1] != strings.ToUpper(m[3][:1]) {
			continue
		}
		bytes := number * float64(int64(1)<<u.shift)
		if bytes != math.Trunc(bytes) || bytes >= 1<<62 {
			return fmt.Errorf("size %q is no whole number of bytes below 2^62", text)
		}
		*s = Size(bytes)
	}
	return nil
}

// UnmarshalYAML reads the node's text; the error names its line.
func (s *Size) UnmarshalYAML(n ast.Node) error { return unmarshal(n, s) }

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
func (t *Text) UnmarshalYAML(n ast.Node) error { return unmarshal(n, t) }

// unmarshal hands a scalar's text to v. Its errors carry the node's place, which an error from
// UnmarshalText alone would not.
func unmarshal(n ast.Node, v interface{ UnmarshalText([]byte) error }) error {
	if a, ok := n.(*ast.AnchorNode); ok {
		n = a.Value
	}
	var text string
	switch n := n.(type) {
	case *ast.StringNode:
		text = n.Value
	case *ast.LiteralNode:
		text = n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		text = n.GetToken().Value
	default:
		return &yaml.SyntaxError{Token: n.GetToken(), Message: "one plain value is wanted here"}
	}
	if err := v.UnmarshalText([]byte(text)); err != nil {
		return &yaml.SyntaxError{Token: n.GetToken(), Message: err.Error()}
	}
	return nil
}
