package generator

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"prony.example/internal/base/lazyregexp"
)

// scan finds values in a tool's text by patterns, and keeps the first one that cannot be read.
type scan struct {
	text  string
	lines int // before the text
	err   *error
}

func newScan(text string) *scan { return &scan{text: text, err: new(error)} }

// part returns a scan of a part of the text with the same error.
func (s *scan) part(from, to int) *scan {
	return &scan{s.text[from:to], s.lines + strings.Count(s.text[:from], "\n"), s.err}
}

// cut returns the parts before and after a mark; the second one is nil without the mark.
func (s *scan) cut(mark string) (before, after *scan) {
	i := strings.Index(s.text, mark)
	if i < 0 {
		return s, nil
	}
	return s.part(0, i), s.part(i+len(mark), len(s.text))
}

// fail records an error about the text at a position.
func (s *scan) fail(offset int, text string, err error) {
	if err == nil || *s.err != nil {
		return
	}
	start := strings.LastIndexByte(s.text[:offset], '\n') + 1
	*s.err = &Misread{s.lines + strings.Count(s.text[:offset], "\n") + 1,
		strconv.Itoa(utf8.RuneCountInString(s.text[start:offset]) + 1), text, err.Error()}
}

// match is one match of a pattern with the positions of its groups.
type match struct {
	*scan
	positions []int
}

// find returns the first match; nil if there is none.
func (s *scan) find(p *lazyregexp.Pattern) *match {
	positions := p.FindStringSubmatchIndex(s.text)
	if positions == nil {
		return nil
	}
	return &match{s, positions}
}

func (s *scan) all(p *lazyregexp.Pattern) (out []*match) {
	for _, positions := range p.FindAllStringSubmatchIndex(s.text, -1) {
		out = append(out, &match{s, positions})
	}
	return out
}

// group returns the text of a group; "" if it did not take part.
func (m *match) group(i int) string {
	if m.positions[2*i] < 0 {
		return ""
	}
	return m.text[m.positions[2*i]:m.positions[2*i+1]]
}

func (m *match) fail(i int, err error) { m.scan.fail(m.positions[2*i], m.group(i), err) }

func (m *match) count(i int) int64 {
	n, err := integer(m.group(i))
	m.fail(i, err)
	return n
}

func (m *match) number(i int) float64 {
	f, err := number(m.group(i))
	m.fail(i, err)
	return f
}

// nanoseconds reads a time with its unit.
func (m *match) nanoseconds(i int) int64 {
	ns, err := nanoseconds(m.group(i))
	m.fail(i, err)
	return ns
}

// span reads a number of units.
func (m *match) span(i int, unit float64) int64 {
	if without.MatchString(m.group(i)) {
		return 0
	}
	ns, err := span(m.group(i), unit)
	m.fail(i, err)
	return ns
}

// label is a line of a tool's text: sign finds it by its words, and full matches it only if the
// tool's numbers follow.
type label struct{ sign, full *lazyregexp.Pattern }

func labels(patterns ...string) (out []label) {
	for i := 0; i+1 < len(patterns); i += 2 {
		out = append(out, label{lazyregexp.New(patterns[i]), lazyregexp.New(patterns[i+1])})
	}
	return out
}

// check fails at the first line that has the words of a label without its numbers, such as one
// with decimal commas or one that is cut. Without this check a pattern would pass over the line.
func (s *scan) check(all []label) {
	offset := 0
	for line := range strings.Lines(s.text) {
		text := strings.TrimRight(line, " \t\r\n")
		for _, l := range all {
			if l.sign.MatchString(text) && !l.full.MatchString(text) {
				s.fail(offset, text, errors.New("the line does not have the numbers that the tool "+
					"prints there, with decimal points"))
				return
			}
		}
		offset += len(line)
	}
}

// ends fails unless the text has one of the marks, which the tool prints at its end.
func (s *scan) ends(mark string) {
	if *s.err == nil && !strings.Contains(s.text, mark) {
		*s.err = fmt.Errorf("the output has no line %q, so its end is missing; check that it is "+
			"complete", mark)
	}
}

// errSeveral is the reason for a file in which numbers of several runs would be mixed.
var errSeveral = errors.New("the file has the outputs of several runs; save each of them in a " +
	"file of its own")

// once fails at the second match of a pattern that a tool's output matches once: values of two
// outputs would be mixed. The pattern's first group is the text of the error.
func (s *scan) once(p *lazyregexp.Pattern) {
	if all := s.all(p); len(all) > 1 {
		all[1].fail(1, errSeveral)
	}
}
