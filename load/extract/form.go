package extract

import "fmt"

// Form is a finder in JSON, from which another process creates the same finder.
type Form struct {
	Kind    string `json:"kind"` // json, header, regex or body
	Text    string `json:"text,omitempty"`
	Pattern string `json:"pattern,omitempty"` // of a header's value
}

// CheckForm is a check in JSON, from which another process creates the same check.
type CheckForm struct {
	Of   Form   `json:"of"`
	Verb string `json:"verb"` // is, contains, matches or exists
	Text string `json:"text,omitempty"`
	Not  bool   `json:"not,omitempty"`
}

var (
	finderNames = [...]string{ofJSON: "json", ofHeader: "header", ofRegex: "regex", ofBody: "body"}
	checkNames  = [...]string{is: "is", contains: "contains", matches: "matches", exists: "exists"}
)

// Form returns the arguments that created the finder.
func (f *Finder) Form() Form {
	out := Form{Kind: finderNames[f.kind], Text: f.text}
	if f.kind == ofHeader && f.re != nil {
		out.Pattern = f.re.String()
	}
	return out
}

// Finder creates the finder. It fails if the form is invalid.
func (x Form) Finder() (*Finder, error) {
	switch {
	case x.Kind == finderNames[ofJSON]:
		return JSON(x.Text)
	case x.Kind == finderNames[ofHeader] && x.Pattern != "":
		return HeaderRegex(x.Text, x.Pattern)
	case x.Kind == finderNames[ofHeader]:
		return Header(x.Text)
	case x.Kind == finderNames[ofRegex]:
		return Regex(x.Text)
	case x.Kind == finderNames[ofBody]:
		return Body(), nil
	}
	return nil, fmt.Errorf("find by %q: there is no such way", x.Kind)
}

// Form returns the arguments that created the check.
func (c *Check) Form() CheckForm {
	return CheckForm{Of: c.Of.Form(), Verb: checkNames[c.kind], Text: c.text, Not: c.not}
}

// Check creates the check; vars are those of template.Parse for the whole load. It fails if the
// form is invalid.
func (x CheckForm) Check(vars []string) (Check, error) {
	finder, err := x.Of.Finder()
	if err != nil {
		return Check{}, err
	}
	switch x.Verb {
	case checkNames[is]:
		return Is(finder, x.Text, vars)
	case checkNames[contains]:
		return Contains(finder, x.Text, vars)
	case checkNames[matches]:
		return Matches(finder, x.Text)
	case checkNames[exists]:
		return Exists(finder, !x.Not), nil
	}
	return Check{}, fmt.Errorf("check by %q: there is no such way", x.Verb)
}
