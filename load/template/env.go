package template

import (
	"fmt"

	"prony.example/internal/base/lazyregexp"
)

// envRe matches an environment variable: ${NAME}, in capitals, to distinguish it from a placeholder
// after a dollar sign. A second dollar sign in front escapes it.
var envRe = lazyregexp.New(`^\$?\$\{([A-Z_][A-Z0-9_]*)\}`)

// environment parses the ${NAME} that s begins with. It returns its length and the name, or "" if
// it is escaped.
func environment(s string) (length int, name string) {
	if s[0] != '$' {
		return 0, ""
	}
	m := envRe.FindStringSubmatch(s)
	switch {
	case m == nil:
		return 0, ""
	case s[1] == '$':
		return len(m[0]), ""
	}
	return len(m[0]), m[1]
}

// Environment lists the environment variables that the text needs, in order.
func (t *Text) Environment() (names []string) {
	for i := range t.parts {
		if t.parts[i].kind == envKind {
			names = append(names, t.parts[i].name)
		}
	}
	return names
}

// Fill returns the text with the values of its environment variables. Values are literal:
// placeholders in them have no effect, and draws do not depend on them. The error quotes a name,
// never a value.
func (t *Text) Fill(environment func(name string) (string, bool)) (*Text, error) {
	return t.filled(func(p *part) (string, bool, error) {
		if p.kind != envKind {
			return "", false, nil
		}
		value, ok := environment(p.name)
		if !ok {
			return "", false, fmt.Errorf("the environment has no %s, which ${%s} stands for; "+
				"export it", p.name, p.name)
		}
		return value, true, nil
	})
}

// filled returns the text with the values of those placeholders for which pick returns one.
func (t *Text) filled(pick func(*part) (value string, is bool, err error)) (*Text, error) {
	out := &Text{vars: t.vars}
	var literal []byte
	for _, p := range t.parts {
		literal = append(literal, p.before...)
		value, is, err := pick(&p)
		if err != nil {
			return nil, err
		}
		if !is {
			p.before, literal = literal, nil
			out.parts = append(out.parts, p)
			continue
		}
		literal = append(literal, value...)
	}
	out.tail = append(literal, t.tail...)
	return out, nil
}

// Constant reports whether environment variables are the only placeholders of the text.
func (t *Text) Constant() bool { return len(t.Environment()) == len(t.parts) }

// Render parses a text, fills in environment variables, and renders it once. Loads instead parse
// each text once and render it for every request.
func Render(s string, vars []string, v *Values, environment func(string) (string, bool)) (string,
	error) {
	t, err := Parse(s, vars)
	if err == nil {
		t, err = t.Fill(environment)
	}
	if err != nil {
		return "", err
	}
	return string(t.Append(nil, v)), nil
}
