package suite

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/strictyaml"
	"prony.example/load/pace"
)

// Duration is a time in nanoseconds, written as Go writes it: "200ms", "1m30s".
type Duration time.Duration

// String returns the shortest form that reads back as the same duration: "24h", not "24h0m0s".
func (d Duration) String() string { return pace.Brief(int64(d)) }

// MarshalText returns String's form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a duration. A number without a unit is an error, except 0, because its unit
// would be a guess.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := strictyaml.Duration(string(b))
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

// UnmarshalYAML reads the node's text; errors name its line.
func (d *Duration) UnmarshalYAML(n ast.Node) error { return strictyaml.Text(n, d) }

// Keys are the first and the last key of a range.
type Keys [2]uint64

// UnmarshalYAML reads a list of two integers; errors name its line.
func (k *Keys) UnmarshalYAML(n ast.Node) error {
	var shared []uint64
	if err := yaml.NodeToValue(n, &shared); err != nil || len(shared) != 2 {
		return &yaml.SyntaxError{Token: n.GetToken(),
			Message: "keys must be a list of the first and the last key, such as [1, 50000]"}
	}
	*k = Keys(shared)
	return nil
}

// Text is a string exactly as in the file: 1.50 does not become 1.5, and true stays a string.
type Text string

// UnmarshalText keeps the text.
func (t *Text) UnmarshalText(b []byte) error {
	*t = Text(b)
	return nil
}

// UnmarshalYAML reads the node's text; errors name its line.
func (t *Text) UnmarshalYAML(n ast.Node) error { return strictyaml.Text(n, t) }

// Forms of values that change over time. shapeForm is only the beginning of a shape: package pace
// parses the rest.
const (
	rateForm  = `^([0-9]+(\.[0-9]+)?)(/s|% of ([A-Za-z0-9].*))?$`
	shareForm = `^(.*[^ ]) ?% of ([A-Za-z0-9].*)$`
	shapeForm = `^(repeat )?((ramp|steps|spike|sine) |[0-9][^ ,]*( for |[kM]?(/s)?$))`
	thinkForm = `^((constant |exponential )?(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)|uniform ` +
		`[^ ]+\.\.[^ ]+)$`
)

var (
	rateRe  = lazyregexp.New(rateForm)
	shareRe = lazyregexp.New(shareForm)
)

// Bounds. The maxima catch typing errors.
const (
	ratePerSMax = 10_000_000 // requests/s
	shareMax    = 10         // 1000% of a measured peak
	usersMax    = 65_535
	thinkMax    = Duration(hour)
)

// Rate is the rate of an open load in requests/s: PerS, or a Share of the throughput of the earlier
// load Of in the same trial, or a Shape over time, in requests/s or, with Of, in percent. The zero
// Rate means none.
type Rate struct {
	PerS  float64
	Share float64 // 0.5 for "50% of peak"
	Of    string
	Shape pace.Profile // from the beginning of the lead-in
}

// IsZero reports whether there is no rate.
func (r Rate) IsZero() bool { return r.PerS == 0 && r.Of == "" && len(r.Shape.Pieces) == 0 }

// Profile returns the rate over time. ofPerS is the throughput of the load that it is a share of.
func (r Rate) Profile(ofPerS float64) pace.Profile {
	shaped := len(r.Shape.Pieces) > 0
	switch {
	case shaped && r.Of != "":
		return r.Shape.Scale(ofPerS / 100)
	case shaped:
		return r.Shape
	case r.Of != "":
		return pace.Flat(r.Share * ofPerS)
	}
	return pace.Flat(r.PerS)
}

// String returns "20000/s", "50% of peak", "ramp 100..2000 in 30s", or "" for no rate.
func (r Rate) String() string {
	shaped := len(r.Shape.Pieces) > 0
	switch {
	case shaped && r.Of != "":
		return r.Shape.String() + " % of " + r.Of
	case shaped:
		return r.Shape.String()
	case r.Of != "":
		// Twelve digits hide that 0.07 × 100 is 7.000000000000001 in binary.
		return strconv.FormatFloat(r.Share*100, 'g', 12, 64) + "% of " + r.Of
	case r.PerS != 0:
		return strconv.FormatFloat(r.PerS, 'f', -1, 64) + "/s"
	}
	return ""
}

// MarshalText returns String's form.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a rate: "20000/s", "20000", "50% of peak", a shape of pace.Parse, or a shape
// in percent: "ramp 10..90 in 30s % of peak". An empty text means no rate.
func (r *Rate) UnmarshalText(b []byte) error {
	text := string(b)
	*r = Rate{}
	if text == "" {
		return nil
	}
	m := rateRe.FindStringSubmatch(text)
	if m == nil {
		return r.shape(text)
	}
	number, err := strconv.ParseFloat(m[1], 64)
	switch {
	case err != nil || number == 0:
		return fmt.Errorf("rate %q must be greater than 0", text)
	case m[4] != "" && number > 100*shareMax:
		return fmt.Errorf("rate %q exceeds %d%%", text, 100*shareMax)
	case m[4] != "":
		*r = Rate{Share: number / 100, Of: m[4]}
	case number > ratePerSMax:
		return fmt.Errorf("rate %q exceeds %d/s", text, ratePerSMax)
	default:
		*r = Rate{PerS: number}
	}
	return nil
}

func (r *Rate) shape(text string) error {
	shape, subject, limit, unit := text, "", float64(ratePerSMax), "/s"
	if m := shareRe.FindStringSubmatch(text); m != nil {
		shape, subject, limit, unit = m[1], m[2], 100*shareMax, "%"
	}
	p, err := pace.Parse(shape)
	switch {
	case err != nil:
		return fmt.Errorf("rate %q must be a number of requests per second such as 20000/s, or a "+
			"share of an earlier load such as 50%% of peak, or a shape: %w", text, cause(err))
	case p.Max() == 0:
		return fmt.Errorf("rate %q must be greater than 0", text)
	case p.Max() > limit:
		return fmt.Errorf("rate %q exceeds %.0f%s", text, limit, unit)
	case p.Duration() == 0 && subject == "": // such as 20k
		*r = Rate{PerS: p.Max()}
	case p.Duration() == 0:
		*r = Rate{Share: p.Max() / 100, Of: subject}
	default:
		*r = Rate{Shape: p, Of: subject}
	}
	return nil
}

// cause removes the text of an unreadable profile from an error that already names it.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// UnmarshalYAML reads the node's text; errors name its line.
func (r *Rate) UnmarshalYAML(n ast.Node) error { return strictyaml.Text(n, r) }

// Users are the active users of a closed load over time, from the beginning of the lead-in. The
// zero value means as many as connections, all the time.
type Users struct{ pace.Profile }

// IsZero reports whether no users are given.
func (u Users) IsZero() bool { return len(u.Pieces) == 0 }

// MarshalText returns the form that UnmarshalText reads.
func (u Users) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads a profile of pace.Parse.
func (u *Users) UnmarshalText(b []byte) error {
	p, err := pace.Parse(string(b))
	switch {
	case err != nil:
		return fmt.Errorf("users %q must be a number over time, such as 100 or 'ramp 0..700 in "+
			"5m': %w", b, cause(err))
	case p.Max() < 1:
		return fmt.Errorf("users %q never reach 1", b)
	case p.Max() > usersMax:
		return fmt.Errorf("users %q exceed the maximum of %d", b, usersMax)
	}
	u.Profile = p
	return nil
}

// UnmarshalYAML reads the node's text; errors name its line.
func (u *Users) UnmarshalYAML(n ast.Node) error { return strictyaml.Text(n, u) }

// Kinds of think times.
const (
	Uniform     = "uniform"
	Exponential = "exponential"
)

// Think is the pause of a user between a response and the next request. The zero Think means none.
type Think struct {
	Kind   string   // Constant, Uniform or Exponential
	Lo, Hi Duration // uniform: the ends; otherwise Lo is the value or the mean
}

// String returns "1s", "uniform 500ms..1.5s", "exponential 1s", or "".
func (t Think) String() string {
	switch t.Kind {
	case Uniform:
		return fmt.Sprintf("%s %v..%v", t.Kind, t.Lo, t.Hi)
	case Exponential:
		return fmt.Sprintf("%s %v", t.Kind, t.Lo)
	case Constant:
		return t.Lo.String()
	}
	return ""
}

// MarshalText returns String's form.
func (t Think) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a think time.
func (t *Think) UnmarshalText(b []byte) error {
	text := string(b)
	in := Think{Kind: Constant}
	lo := text
	if kind, tail, ok := strings.Cut(text, " "); ok {
		in.Kind, lo = kind, tail
	}
	switch in.Kind {
	case Constant, Exponential:
	case Uniform:
		first, last, _ := strings.Cut(lo, "..")
		lo = first
		if err := in.Hi.UnmarshalText([]byte(last)); err != nil {
			return fmt.Errorf("think time %q: %w", text, err)
		}
	default:
		return fmt.Errorf("think time %q must have a form such as 1s, uniform 500ms..1500ms or "+
			"exponential 1s",
			text)
	}
	if err := in.Lo.UnmarshalText([]byte(lo)); err != nil {
		return fmt.Errorf("think time %q: %w", text, err)
	}
	switch {
	case in.Kind == Uniform && in.Hi < in.Lo:
		return fmt.Errorf("think time %q: the second time must not be less than the first one, "+
			"got %v to %v", text, in.Lo, in.Hi)
	case max(in.Lo, in.Hi) == 0 || max(in.Lo, in.Hi) > thinkMax:
		return fmt.Errorf("think time %q must be greater than 0 and at most %v", text, thinkMax)
	}
	*t = in
	return nil
}

// UnmarshalYAML reads the node's text; errors name its line.
func (t *Think) UnmarshalYAML(n ast.Node) error { return strictyaml.Text(n, t) }
