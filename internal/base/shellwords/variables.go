package shellwords

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// variables are those of a script that it assigns once, a text that is known without running it.
type variables struct {
	script    string
	expansion func(source, value string) string
	values    map[string]string        // by name
	unsplit   map[syntax.WordPart]bool // expansions whose blanks do not separate words
	budget    int                      // bytes that values may still add
}

// budgetMax is far above what scripts have, and bounds the memory for hostile ones, such as of
// steps like B=$A$A, each of which doubles a value.
const budgetMax = 1 << 20

// named is an expansion of a variable that a script can assign, other than $1 and $?.
var named = regexp.MustCompile(`^\$\{?([A-Za-z_]\w*)\}?$`)

func variablesOf(file *syntax.File, script string,
	expansion func(source, value string) string) *variables {
	v := &variables{script, expansion, map[string]string{}, map[syntax.WordPart]bool{},
		budgetMax}
	count := map[string]int{}
	join := func(w *syntax.Word) {
		if w != nil {
			v.mark(w.Parts)
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DblQuoted:
			v.mark(n.Parts)
		case *syntax.Redirect:
			join(n.Hdoc)
			join(n.Word)
		case *syntax.WordIter:
			count[n.Name.Value] += 2
		case *syntax.CallExpr:
			for _, a := range n.Assigns { // of this command alone, or of the script
				count[a.Name.Value] += min(1, len(n.Args))
			}
			for _, w := range n.Args {
				if n.Args[0].Lit() == "read" {
					count[w.Lit()] += 2
				}
			}
		case *syntax.Assign:
			if n.Name != nil && !n.Naked {
				count[n.Name.Value]++
				join(n.Value)
			}
		}
		return true
	})
	syntax.Walk(file, func(n syntax.Node) bool {
		a, is := n.(*syntax.Assign)
		if !is || a.Name == nil || a.Value == nil || a.Append || a.Index != nil ||
			count[a.Name.Value] > 1 || !v.known(a.Value.Parts) {
			return true
		}
		if value, err := text(a.Value.Parts, false, v.assigned); err == nil {
			v.values[a.Name.Value] = value
		}
		return true
	})
	return v
}

func (v *variables) mark(parts []syntax.WordPart) {
	for _, p := range parts {
		v.unsplit[p] = true
	}
}

// known reports whether parts of a word are texts and variables, perhaps with a text for one that
// is not set.
func (v *variables) known(parts []syntax.WordPart) bool {
	return !slices.ContainsFunc(parts, func(part syntax.WordPart) bool {
		switch p := part.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
			return false
		case *syntax.DblQuoted:
			return !v.known(p.Parts)
		case *syntax.ParamExp:
			_, is := instead(p)
			return !is && v.name(p) == ""
		}
		return true
	})
}

// name is that of $NAME or ${NAME}; "": it is another expansion.
func (v *variables) name(part syntax.WordPart) string {
	if m := named.FindStringSubmatch(v.source(part)); m != nil {
		return m[1]
	}
	return ""
}

func (v *variables) source(p syntax.WordPart) string {
	return v.script[p.Pos().Offset():p.End().Offset()]
}

// instead is the text that ${NAME:-text} has for a variable that is not set.
func instead(p *syntax.ParamExp) (string, bool) {
	if p.Exp == nil || p.Exp.Word == nil ||
		p.Exp.Op != syntax.DefaultUnset && p.Exp.Op != syntax.DefaultUnsetOrNull {
		return "", false
	}
	word := p.Exp.Word.Lit()
	return word, word != ""
}

// expand returns what an expansion stands for.
func (v *variables) expand(part syntax.WordPart) string {
	value := v.values[v.name(part)]
	if !v.unsplit[part] && strings.ContainsAny(value, " \t\n") || len(value) > v.budget {
		value = "" // several words, or too much
	}
	v.budget -= len(value)
	return v.expansion(v.source(part), value)
}

// assigned returns what an expansion in the value of a variable stands for.
func (v *variables) assigned(part syntax.WordPart) string {
	if p, is := part.(*syntax.ParamExp); is {
		if word, is := instead(p); is {
			return word
		}
	}
	return v.expand(part)
}
