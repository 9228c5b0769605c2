package audit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/generator"
)

var (
	fenceMark = lazyregexp.New("^\\s*(```+|~~~+)\\s*(\\S*)")
	ruleLine  = lazyregexp.New(`^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$`)
	heading   = lazyregexp.New(`^(#{1,6})\s+(.*?)\s*#*\s*$`)
	runStart  = lazyregexp.New(`(?m)^(Running \d|Summary:)`)
)

// connectionsIn finds the number of connections in a heading, for the table below it.
var connectionsIn = lazyregexp.New(`(?i)(\d[\d,]*) (?:concurrent )?(?:connections|clients)\b`)

// scanner reads a Markdown text and keeps the context of the next table.
type scanner struct {
	doc      *Document
	cols     *Columns
	lines    []string
	headings [7]string
	text     []string   // since the last heading
	commands []*command // since the last heading
	used     bool       // whether a table came after them
	outputs  *Table
}

// readMarkdown finds tables, and output and JSON in fenced blocks.
func readMarkdown(name, text string, cols *Columns) *Document {
	s := &scanner{doc: &Document{File: name, Kind: "Markdown"}, cols: cols,
		lines: strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")}
	for i := 0; i < len(s.lines); {
		i = s.step(i)
	}
	return s.doc
}

// step reads the block that begins at a line and returns the line after it.
func (s *scanner) step(i int) int {
	line := s.lines[i]
	if m := fenceMark.FindStringSubmatch(line); m != nil {
		return s.fence(i, m[1])
	}
	if m := heading.FindStringSubmatch(line); m != nil {
		level := len(m[1])
		s.headings[level] = plain(m[2])
		clear(s.headings[level+1:])
		s.text, s.commands, s.used = nil, nil, false
		return i + 1
	}
	if strings.Contains(line, "|") && i+1 < len(s.lines) && strings.Contains(s.lines[i+1], "-") &&
		ruleLine.MatchString(s.lines[i+1]) {
		return s.table(i)
	}
	s.text = append(s.text, line)
	s.command(i)
	return i + 1
}

func (s *scanner) command(i int) {
	c := commandAt(s.lines[i], i+1, s.lines[i+1:])
	if c == nil {
		return
	}
	if s.used {
		s.commands, s.used = nil, false
	}
	s.commands = append(s.commands, c)
	s.doc.commands = append(s.doc.commands, c)
}

// only returns the command that made the next result, or nil if there are several.
func (s *scanner) only() *command {
	if len(s.commands) != 1 {
		return nil
	}
	return s.commands[0]
}

func (s *scanner) title() string {
	for level := len(s.headings) - 1; level > 0; level-- {
		if s.headings[level] != "" {
			return s.headings[level]
		}
	}
	return ""
}

func (s *scanner) add(t *Table) {
	t.Title = s.title()
	t.context = strings.Join(append(s.headings[:], s.text...), "\n")
	t.Command = cmp.Or(t.Command, s.only())
	for _, r := range t.Rows {
		t.Command.give(r)
		if _, ok := r.get(Connections); !ok && connectionsIn.MatchString(t.Title) {
			v, _ := parseValue(connectionsIn.FindStringSubmatch(t.Title)[1], "", Connections)
			v.Line = t.Line
			r.Values[Connections] = v
		}
	}
	s.used = true
	s.doc.Tables = append(s.doc.Tables, t)
}

func cells(line string) []string {
	line = strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x01")
	line = strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
	parts := strings.Split(line, "|")
	for i, p := range parts {
		parts[i] = strings.TrimSpace(strings.ReplaceAll(p, "\x01", "|"))
	}
	return parts
}

func (s *scanner) table(i int) int {
	g := &grid{heads: cells(s.lines[i]), line: i + 1}
	end := i + 2
	for ; end < len(s.lines) && strings.Contains(s.lines[end], "|"); end++ {
		g.rows = append(g.rows, gridRow{line: end + 1, cells: cells(s.lines[end])})
	}
	switch t := g.table(s.cols); {
	case t == nil:
	case len(t.Rows) > 0:
		s.add(t)
	default:
		for _, u := range t.Unread {
			u.Table = s.title()
			s.doc.Unread = append(s.doc.Unread, u)
		}
	}
	return end
}

// fence reads a fenced block: a command, saved output, or JSON.
func (s *scanner) fence(i int, mark string) int {
	end := i + 1
	for end < len(s.lines) && !strings.HasPrefix(strings.TrimSpace(s.lines[end]), mark) {
		s.command(end)
		end++
	}
	body := strings.Join(s.lines[i+1:end], "\n")
	if begin := strings.TrimSpace(body); begin != "" && (begin[0] == '{' || begin[0] == '[') {
		tables, err := readObjects(body, i+1, s.cols)
		for _, t := range tables {
			s.add(t)
		}
		if err != nil && s.results(body) {
			s.doc.Unread = append(s.doc.Unread, Unread{Line: i + 1, Table: s.title(),
				Reason: "the JSON of this block cannot be read: " + err.Error()})
		}
		return end + 1
	}
	s.output(body, i+2)
	return end + 1
}

// jsonKey matches a key of JSON with a number or a text.
var jsonKey = lazyregexp.New(`"([^"\n]{1,60})"\s*:\s*["\d-]`)

// results reports whether JSON has keys of rates or latencies: other JSON may be shortened.
func (s *scanner) results(body string) bool {
	for _, m := range jsonKey.FindAllStringSubmatch(body, -1) {
		if h, ok := s.cols.headOf(m[1], ""); ok && slices.Contains(measured, h.quantity) {
			return true
		}
	}
	return false
}

// output reads the output of one or several runs; outputs of one document are compared.
func (s *scanner) output(body string, line int) {
	starts := runStart.FindAllStringIndex(body, -1)
	if len(starts) < 2 {
		starts = [][]int{nil}
	}
	starts[0] = []int{0}
	for i, positions := range starts {
		from, end := positions[0], len(body)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		row, err := readSaved(s.title(), body[from:end], line+strings.Count(body[:from], "\n"))
		if bad := (*generator.Unreadable)(nil); errors.As(err, &bad) {
			s.doc.Unread = append(s.doc.Unread, Unread{Table: s.title(),
				Line: line + strings.Count(body[:from], "\n"), Reason: fmt.Sprintf(
					"%s cannot be read; in this block, %v", bad.Format, bad.Err)})
		}
		if row == nil {
			continue
		}
		s.only().give(row)
		s.used = true
		if s.outputs == nil {
			s.outputs = &Table{Line: row.Line}
			s.doc.Tables = append(s.doc.Tables, s.outputs)
		}
		s.outputs.context += "\n" + strings.Join(append(s.headings[:], s.text...), "\n")
		row.Key = s.title()
		s.outputs.Rows = append(s.outputs.Rows, row)
	}
}
