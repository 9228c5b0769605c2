// Package shellwords splits command lines into words as a shell does, without running anything.
// mvdan.cc/sh parses them.
package shellwords

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// ErrNeedsShell reports a command that does more than name a program and its arguments.
var ErrNeedsShell = errors.New("the command needs a shell")

// Split returns the words of one POSIX command, variables in front of it included. It returns
// ErrNeedsShell if a shell would do more than remove quotes, such as for pipes, redirections,
// expansions and patterns.
func Split(command string) ([]string, error) {
	if end := len(command) - len(strings.TrimRight(command, `\`)); end%2 == 1 {
		return nil, errors.New("the backslash at the end escapes nothing")
	}
	if strings.ContainsRune(command, '\r') { // a blank to the parser, and part of a word to a shell
		return nil, ErrNeedsShell
	}
	file, err := parse(command, syntax.LangPOSIX)
	if err != nil || len(file.Stmts) == 0 {
		return nil, err
	}
	s := file.Stmts[0]
	call, is := s.Cmd.(*syntax.CallExpr)
	if !is || len(file.Stmts) > 1 || len(s.Redirs) > 0 || s.Negated || s.Semicolon.IsValid() {
		return nil, ErrNeedsShell
	}
	var words []string
	for _, a := range call.Assigns {
		value := ""
		if a.Value != nil {
			if value, err = text(a.Value.Parts, false, nil); err != nil {
				return nil, err
			}
		}
		words = append(words, a.Name.Value+"="+value)
	}
	for _, w := range call.Args {
		word, err := text(w.Parts, false, nil)
		if err != nil {
			return nil, err
		}
		words = append(words, word)
	}
	return words, nil
}

// What a backslash can escape outside of quotes, and in double quotes (POSIX, Shell Command
// Language, 2.2).
var (
	escaped  = regexp.MustCompile(`(?s)\\(.)`)
	inQuotes = regexp.MustCompile("\\\\([$`\"\\\\])")
)

// text returns what the parts of a word stand for. Without a function for expansions, it returns
// ErrNeedsShell for those and for patterns.
func text(parts []syntax.WordPart, quoted bool, expansion func(syntax.WordPart) string) (string,
	error) {
	var b strings.Builder
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if quoted {
				b.WriteString(inQuotes.ReplaceAllString(p.Value, "$1"))
				continue
			}
			plain := escaped.ReplaceAllString(p.Value, "")
			if strings.ContainsAny(plain, typographic) {
				return "", errTypographic
			}
			tilde := i == 0 && strings.HasPrefix(p.Value, "~")
			if expansion == nil && (tilde || strings.ContainsAny(plain, "*?[$")) {
				return "", ErrNeedsShell
			}
			b.WriteString(escaped.ReplaceAllString(p.Value, "$1"))
		case *syntax.SglQuoted:
			if p.Dollar {
				value, err := ansi(p.Value)
				if err != nil {
					return "", err
				}
				b.WriteString(value)
				continue
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			value, err := text(p.Parts, true, expansion)
			if err != nil {
				return "", err
			}
			b.WriteString(value)
		default:
			if expansion == nil {
				return "", ErrNeedsShell
			}
			b.WriteString(expansion(p))
		}
	}
	return b.String(), nil
}

func parse(script string, langVariant syntax.LangVariant) (*syntax.File, error) {
	file, err := syntax.NewParser(syntax.Variant(langVariant)).Parse(strings.NewReader(script), "")
	if wrong, is := errors.AsType[syntax.ParseError](err); is {
		return nil, fmt.Errorf("line %d: %s", wrong.Pos.Line(), wrong.Text)
	}
	return file, err
}
