package strictyaml

import (
	"fmt"
	"math"
	"strconv"
	"strings"

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
			return fmt.Errorf("size %q is not a whole number of bytes below 2^62", text)
		}
		*s = Size(bytes)
	}
	return nil
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
