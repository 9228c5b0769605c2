package generator

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// sheet reads a text with a line of column heads and then a row in each line.
type sheet struct {
	lines    *csv.Reader
	heads    []string
	ended    bool  // whether the text ends with a line end
	required []int // the columns of cell; -1: the file does not have an optional one
	cells    []string
	decimal  byte // '.' or ',' of its numbers, once one was seen
	err      error

	cut, repeated int // rows that were left out
}

// delimiters are the marks between cells, the usual one first.
var delimiters = []rune{',', ';', '\t', '|'}

// openSheet finds the delimiter, and the named columns. Optional ones may be missing. Only the last
// line of a text may be incomplete, because a program that is killed leaves it so.
func openSheet(text string, required, optional []string) (*sheet, error) {
	first, _, _ := strings.Cut(strings.TrimLeft(text, " \t\r\n"), "\n")
	s := &sheet{ended: strings.HasSuffix(text, "\n")}
	for _, d := range delimiters {
		r := csv.NewReader(strings.NewReader(first))
		r.Comma = d
		heads, err := r.Read()
		if err != nil {
			continue
		}
		for i := range heads {
			heads[i] = strings.TrimSpace(heads[i])
		}
		if s.heads == nil || len(heads) > len(s.heads) {
			s.heads, s.lines = heads, csv.NewReader(strings.NewReader(text))
			s.lines.Comma, s.lines.ReuseRecord, s.lines.FieldsPerRecord = d, true, -1
		}
	}
	if s.heads == nil {
		return nil, errors.New("line 1: a quote in the line of column heads is not closed")
	}
	for i, name := range slices.Concat(required, optional) {
		position := slices.Index(s.heads, name)
		if position < 0 && i < len(required) {
			return nil, fmt.Errorf("the file has no column %q; its columns are %s", name,
				shortened(strings.Join(s.heads, ", ")))
		}
		if position >= 0 && slices.Contains(s.heads[position+1:], name) {
			return nil, fmt.Errorf("line 1: the column head %q occurs twice", name)
		}
		s.required = append(s.required, position)
	}
	s.cells = make([]string, len(s.required))
	_, err := s.lines.Read()
	return s, err
}

// next reads the next row; false at the end, and at an error.
func (s *sheet) next() bool {
	for s.err == nil {
		row, err := s.lines.Read()
		if errors.Is(err, io.EOF) {
			return false
		}
		if err != nil {
			s.err = quoted(err)
			return false
		}
		if len(row) != len(s.heads) {
			s.incomplete(row)
			continue
		}
		if s.hidden(row); s.err != nil {
			return false
		}
		if strings.TrimSpace(row[0]) == s.heads[0] && row[len(row)-1] == s.heads[len(row)-1] {
			s.repeated++ // files that were joined
			continue
		}
		for i, c := range s.required {
			s.cells[i] = ""
			if c >= 0 {
				s.cells[i] = strings.TrimSpace(row[c])
			}
		}
		return true
	}
	return false
}

// quoted returns a reader's error with the line on which the row begins.
func quoted(err error) error {
	var p *csv.ParseError
	if !errors.As(err, &p) {
		return err
	}
	return fmt.Errorf("line %d: a quote in the row that begins here is not closed, or is in the "+
		"middle of a cell; the reader stopped at line %d, character %d", p.StartLine, p.Line,
		p.Column)
}

// incomplete leaves out a last row without a line end, and fails at others.
func (s *sheet) incomplete(row []string) {
	line, _ := s.lines.FieldPos(0)
	if len(row) < len(s.heads) && !s.ended {
		if _, err := s.lines.Read(); errors.Is(err, io.EOF) {
			s.cut++
			return
		}
	}
	s.err = fmt.Errorf("line %d: the row has %d cells, but the file has %d column heads", line,
		len(row), len(s.heads))
}

// hidden fails at a quoted cell that holds further rows, because a quote was not closed: from one
// column to the same column of a later row, each line has the delimiters of a row.
func (s *sheet) hidden(row []string) {
	const few = 4 // with fewer columns, a text may have as many delimiters
	for i, cell := range row {
		lines := strings.Count(cell, "\n")
		if lines == 0 || len(row) < few ||
			strings.Count(cell, string(s.lines.Comma)) != lines*(len(row)-1) {
			continue
		}
		line, _ := s.lines.FieldPos(i)
		s.err = fmt.Errorf("line %d: the quoted cell of column %q holds a further row; the quote "+
			"is not closed at its end", line, s.heads[i])
		return
	}
}

// fail records an error about a cell, by its position among the columns of openSheet.
func (s *sheet) fail(i int, err error) {
	if err == nil || s.err != nil {
		return
	}
	line, _ := s.lines.FieldPos(s.required[i])
	s.err = &Misread{line, strconv.Quote(s.heads[s.required[i]]), s.cells[i], err.Error()}
}

func (s *sheet) count(i int) int64 {
	n, err := integer(s.cells[i])
	s.fail(i, err)
	return n
}

// number reads a decimal number. A comma is a decimal mark only if it is not the delimiter, and if
// no number of the file has a point.
func (s *sheet) number(i int) float64 {
	text := s.cells[i]
	if spot := strings.IndexAny(text, ".,"); spot >= 0 {
		mark := text[spot]
		if s.decimal == 0 && (mark == '.' || s.lines.Comma != ',') {
			s.decimal = mark
		}
		if mark == ',' && s.decimal == ',' && strings.Count(text, ",") == 1 {
			text = strings.Replace(text, ",", ".", 1)
		} else if mark == '.' && s.decimal == ',' {
			s.fail(i, errors.New("it has a decimal point, but numbers above it have a comma"))
			return 0
		}
	}
	f, err := number(text)
	s.fail(i, err)
	return f
}

// errTooLong is the reason for a time above the histogram's bound.
var errTooLong = errors.New("the time is longer than an hour, the longest that can be imported")

// offset reads a time since the begin of a run, in units.
func (s *sheet) offset(i int, unit float64) int64 {
	ns, err := scaled(s.number(i), unit)
	s.fail(i, err)
	return ns
}

// span reads the time of a response, in units. A longer one than the histogram holds would count as
// its largest.
func (s *sheet) span(i int, unit float64) int64 {
	ns := s.offset(i, unit)
	if ns > histMax {
		s.fail(i, errTooLong)
	}
	return ns
}

// moment reads a point in time, in the format that all rows have.
func (s *sheet) moment(i int, m *moments) int64 {
	ns, err := m.ns(s.cells[i])
	s.fail(i, err)
	return ns
}

// status reads an HTTP status.
func (s *sheet) status(i int) int {
	n, err := integer(s.cells[i])
	if err == nil && (n < 100 || n > 999) {
		err = errors.New("it is not an HTTP status")
	}
	s.fail(i, err)
	return int(n)
}

// finish adds notes about rows that were left out, and returns the first error.
func (s *sheet) finish(t *tally) error {
	if s.cut > 0 {
		t.note(NoteCutRow)
	}
	if s.repeated > 0 {
		t.note(NoteRepeatedHeads, s.repeated)
	}
	return s.err
}
