package traces

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"prony.example/internal/base/units"
)

// Note is a line beside a span, such as a log line.
type Note struct {
	SpanID string // empty or unknown: below all spans
	Ns     int64  // Unix time
	Text   string
}

// Drawing holds the options of Waterfall.
type Drawing struct {
	Bar   int // columns of the bars; 0: 40
	Rows  int // maximum number of spans; 0: 200
	Notes []Note
}

// Waterfall draws a trace: a line for each span below its parent, with its offset from the root's
// start, its duration, its self time, and a bar with █ on the critical path. Notes and events are
// below their spans.
func Waterfall(w io.Writer, t *Trace, d Drawing) error {
	d.Bar, d.Rows = cmp.Or(d.Bar, 40), cmp.Or(d.Rows, 200)
	roots := Tree(t)
	top := roots[0].Span
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "SPAN\tOFFSET\tDURATION\tSELF\t%s\n", scale(top.DurationNs, d.Bar))
	rows, notes := 0, notesOf(t, d.Notes)
	Walk(roots, func(n *Node) {
		rows++
		if rows > d.Rows {
			return
		}
		s := n.Span
		indent := strings.Repeat("  ", min(n.Depth, maxIndent))
		if n.Depth == 0 && n != roots[0] {
			indent = "? " // its parent is missing
		}
		fmt.Fprintf(out, "%s%s\t%s\t%s\t%s\t%s\n", indent, label(s), offset(s.StartNs-top.StartNs),
			Duration(s.DurationNs), Duration(n.SelfNs), bar(n, top, d.Bar))
		for _, note := range notes[s.ID] {
			fmt.Fprintf(out, "%s  · %s\t%s\t\t\t\n", indent, note.Text, offset(note.Ns-top.StartNs))
		}
		delete(notes, s.ID) // the first of several spans with one id has them
	})
	for _, note := range notes[""] {
		fmt.Fprintf(out, "· %s\t%s\t\t\t\n", note.Text, offset(note.Ns-top.StartNs))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if rows > d.Rows {
		fmt.Fprintf(w, "and %d more spans\n", rows-d.Rows)
	}
	if t.Cut > 0 {
		fmt.Fprintf(w, "the trace had %d more spans than the limit of a trace; they are not "+
			"shown\n", t.Cut)
	}
	if t.Roots > 1 {
		fmt.Fprintf(w, "? marks %d spans whose parent spans were not received\n", t.Roots-1)
	}
	return nil
}

const maxIndent = 30

// notesOf groups notes and events by span, with those of unknown spans under "".
func notesOf(t *Trace, notes []Note) map[string][]Note {
	out := map[string][]Note{}
	known := map[string]bool{}
	for _, s := range t.Spans {
		known[s.ID] = true
		for _, e := range s.Events {
			out[s.ID] = append(out[s.ID], Note{s.ID, e.Ns, eventText(e)})
		}
	}
	for _, n := range notes {
		if !known[n.SpanID] {
			n.SpanID = ""
		}
		out[n.SpanID] = append(out[n.SpanID], n)
	}
	for _, list := range out {
		slices.SortStableFunc(list, func(a, b Note) int { return int(min(1, max(-1, a.Ns-b.Ns))) })
	}
	return out
}

func eventText(e Event) string {
	text := "event " + e.Name
	for _, k := range []string{"exception.type", "exception.message"} {
		if v, ok := e.Attributes[k]; ok {
			text += fmt.Sprintf(" %v", v)
		}
	}
	return Line(text)
}

// Line formats a text as one line without control characters, of at most 160 characters.
func Line(s string) string {
	const most = 160
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return s
}

func label(s *Span) string {
	text := s.Service + " " + s.Name
	switch s.Kind {
	case "client", "producer", "consumer":
		text += " (" + s.Kind + ")"
	}
	if s.Status == "error" {
		text += " ✗"
	}
	return Line(text)
}

// bar draws a span in a number of columns. Each column shows what takes most of its time.
func bar(n *Node, top *Span, columns int) string {
	out := []rune(strings.Repeat(" ", columns))
	fill := func(from, to int64, r rune) {
		if top.DurationNs <= 0 || to < top.StartNs || from > top.EndNs() {
			return
		}
		scale := float64(columns) / float64(top.DurationNs)
		a := int(float64(max(from, top.StartNs)-top.StartNs) * scale)
		b := int(float64(min(to, top.EndNs())-top.StartNs)*scale + .5)
		a = min(a, columns-1)
		for i := a; i < max(b, a+1); i++ {
			out[i] = r
		}
	}
	fill(n.Span.StartNs, n.Span.EndNs(), '░')
	for _, s := range n.Steps {
		fill(s.FromNs, s.ToNs, '█')
	}
	return strings.TrimRight(string(out), " ")
}

func scale(ns int64, columns int) string {
	end := Duration(ns)
	return "0" + strings.Repeat(" ", max(1, columns-1-len([]rune(end)))) + end
}

func offset(ns int64) string {
	if ns < 0 {
		return "-" + Duration(-ns)
	}
	return "+" + Duration(ns)
}

// Duration formats ns with three digits and a unit.
func Duration(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", min(d.Seconds(), 9.99e9))
	case d >= 999500*time.Nanosecond:
		return fmt.Sprintf("%s ms", units.Digits(float64(ns)/1e6, 3))
	case d >= 1000:
		return fmt.Sprintf("%s µs", units.Digits(float64(ns)/1e3, 3))
	}
	return fmt.Sprintf("%d ns", ns)
}
