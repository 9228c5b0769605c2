package template

import (
	"fmt"

	"prony.example/internal/base/lazyregexp"
)

// envRe is a variable of the environment: ${NAME}, in capitals, so that it is no placeholder behind
// a dollar. A second dollar in front makes it the text itself.
var envRe = lazyregexp.New(`^\$?\$\{([A-Z_][A-Z0-9_]*)\}`)

// environment reads the ${NAME} that s begins with: how long it is, and the name, or "" for one
// that is the text itself.
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

// Environment lists the variables of the environment that the text wants, in order.
func (t *Text) Environment() (names []string) {
	for i := range t.parts {
		if t.parts[i].kind == envKind {
			names = append(names, t.parts[i].name)
		}
	}
	return names
}

// Fill gives the text with the values of its variables of the environment, which are sent as they
// are: nothing in them is a placeholder. What is drawn does not change by them. The error tells a
// name, never a value.
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

// filled gives the text with the values of those placeholders of which there is one already.
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

// Constant reports whether the text has no placeholder but variables of the environment.
func (t *Text) Constant() bool { return len(t.Environment()) == len(t.parts) }

// Render parses a text, fills in what it has of the environment, and renders it once: outside of
// loads, which parse a text once for all.
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
