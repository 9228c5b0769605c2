package strictyaml

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"prony.example/internal/base/lazyregexp"
)

// SizeForm is the regular expression of a Size.
const SizeForm = `^([0-9]+(\.[0-9]+)?)(B|[Kk]|KiB|[Mm]|MiB|[Gg]|GiB)$`

var sizeRe = lazyregexp.New(SizeForm)

// Size is a number of bytes, written with a binary unit.
type Size int64

// units lists the units of sizes, the largest first: name and exponent of two. One letter means the
// binary unit, as in Docker. MB and GB are errors, because some people read them as powers of ten.
var units = []struct {
	name  string
	shift int
}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}}

// String returns the size in the largest unit that divides it: "1GiB", "832MiB".
func (s Size) String() string {
	for _, u := range units {
		if s != 0 && s%(1<<u.shift) == 0 {
			return strconv.FormatInt(int64(s>>u.shift), 10) + u.name
		}
	}
	return "0B"
}

// MarshalText returns String's form.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses a size.
func (s *Size) UnmarshalText(b []byte) error {
	text := string(b)
	m := sizeRe.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("size %q is not a number with a binary unit, such as 1GiB or 832M", text)
	}
	number, isRead := new(big.Rat).SetString(m[1])
	if !isRead {
		return fmt.Errorf("size %q is too large", text)
	}
	for _, u := range units {
		if u.name[:1] != strings.ToUpper(m[3][:1]) {
			continue
		}
		bytes := number.Mul(number, new(big.Rat).SetInt64(1<<u.shift))
		if !bytes.IsInt() || bytes.Num().BitLen() > 62 {
			return fmt.Errorf("size %q is not a whole number of bytes below 2^62", text)
		}
		*s = Size(bytes.Num().Int64())
		return nil
	}
	return nil
}

// DurationForm is the regular expression of durations.
const DurationForm = `^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`

var (
	durationRe = lazyregexp.New(DurationForm)
	partRe     = lazyregexp.New(`[0-9]+(\.[0-9]+)?|[nuµmsh]+`)
)

// Duration parses a duration as Go writes it. A fraction of a nanosecond is an error.
func Duration(text string) (time.Duration, error) {
	if !durationRe.MatchString(text) {
		return 0, fmt.Errorf("duration %q must be a number with a unit, such as 2s, 200ms or "+
			"1m30s", text)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("duration %q is too long", text)
	}
	sum := new(big.Rat)
	parts := partRe.FindAllString(text, -1)
	for i := 0; i+1 < len(parts); i += 2 {
		unit, err := time.ParseDuration("1" + parts[i+1])
		amount, isRead := new(big.Rat).SetString(parts[i])
		if err != nil || !isRead {
			return 0, fmt.Errorf("duration %q is too long", text)
		}
		sum.Add(sum, amount.Mul(amount, new(big.Rat).SetInt64(int64(unit))))
	}
	if sum.Cmp(new(big.Rat).SetInt64(int64(d))) != 0 {
		return 0, fmt.Errorf("duration %q is not a whole number of nanoseconds", text)
	}
	return d, nil
}

// UnmarshalYAML parses the node's text; errors name its line.
func (s *Size) UnmarshalYAML(n ast.Node) error { return Text(n, s) }

// Text passes a scalar's text to v. Its errors include the node's place, which errors of
// UnmarshalText alone lack.
func Text(n ast.Node, v interface{ UnmarshalText([]byte) error }) error {
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
		return &yaml.SyntaxError{Token: n.GetToken(), Message: "a single plain value is required"}
	}
	if err := v.UnmarshalText([]byte(text)); err != nil {
		return &yaml.SyntaxError{Token: n.GetToken(), Message: err.Error()}
	}
	return nil
}
