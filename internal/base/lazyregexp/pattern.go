// Package lazyregexp holds regular expressions that are compiled when they are first asked. To
// compile all that the readers of foreign formats know was a fifth of the program's start, and
// every launch of a service is a start of this program.
//
// It is for expressions of ours, as package variables: a test compiles them at once, so that none
// is wrong. (The Go toolchain's own internal/lazyregexp does the same, and may not be imported.)
// Non-goals: expressions that somebody else has written, which can be wrong.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// Pattern is a regular expression; its methods are those of regexp.Regexp.
type Pattern struct{ compiled func() *regexp.Regexp }

// New makes a pattern. At its first use, in a test at once, it panics if it is wrong.
func New(expression string) *Pattern {
	p := &Pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
	if len(os.Args) > 0 && strings.HasSuffix(os.Args[0], ".test") {
		p.compiled()
	}
	return p
}

// MatchString is regexp.Regexp's, as are all below.
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
