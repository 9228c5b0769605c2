// Package lazyregexp provides regular expressions that are compiled at their first use. Compiling
// all expressions of the readers of foreign formats took a fifth of the program's start, and every
// launch of a service starts this program.
//
// It is for constant expressions in package variables: tests compile them at once, so that mistakes
// are found. (The Go toolchain's internal/lazyregexp does the same, and cannot be imported.)
// Non-goals: expressions from users, which may be invalid.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// Pattern is a regular expression. Its methods do what those of regexp.Regexp do.
type Pattern struct{ compiled func() *regexp.Regexp }

// New returns a pattern. An invalid expression panics at its first use, in tests at once.
func New(expression string) *Pattern {
	p := &Pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
	if len(os.Args) > 0 && strings.HasSuffix(os.Args[0], ".test") {
		p.compiled()
	}
	return p
}

// MatchString is regexp.Regexp's method, as are all below.
func (p *Pattern) MatchString(s string) bool { return p.compiled().MatchString(s) }

func (p *Pattern) String() string { return p.compiled().String() }

func (p *Pattern) FindString(s string) string { return p.compiled().FindString(s) }

func (p *Pattern) FindStringSubmatch(s string) []string {
	return p.compiled().FindStringSubmatch(s)
}

func (p *Pattern) FindStringSubmatchIndex(s string) []int {
	return p.compiled().FindStringSubmatchIndex(s)
}

func (p *Pattern) FindAllString(s string, n int) []string {
	return p.compiled().FindAllString(s, n)
}

func (p *Pattern) FindAllStringIndex(s string, n int) [][]int {
	return p.compiled().FindAllStringIndex(s, n)
}

func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compiled().FindAllStringSubmatch(s, n)
}

func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.compiled().FindAllStringSubmatchIndex(s, n)
}

func (p *Pattern) ReplaceAllString(s, with string) string {
	return p.compiled().ReplaceAllString(s, with)
}

func (p *Pattern) ReplaceAllStringFunc(s string, with func(string) string) string {
	return p.compiled().ReplaceAllStringFunc(s, with)
}
