package traces

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// parse makes a trace from lines "id parent service start end"; parent - means none.
func parse(t *testing.T, text string) *Trace {
	t.Helper()
	out := &Trace{TraceID: strings.Repeat("1", 32)}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		var s Span
		var end int64
		if _, err := fmt.Sscan(line, &s.ID, &s.Parent, &s.Service, &s.StartNs, &end); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		s.Parent = strings.TrimPrefix(s.Parent, "-")
		s.Name, s.DurationNs, s.Kind = "op", end-s.StartNs, "internal"
		out.Spans = append(out.Spans, s)
	}
	out.Settle()
	return out
}

// shape writes a tree as "id(child child)", with roots separated by a bar, with self and path
// times.
func shape(roots []*Node, times bool) string {
	var write func(n *Node) string
	write = func(n *Node) string {
		text := n.Span.ID
		if times {
			text += fmt.Sprintf(":%d/%d", n.SelfNs, n.PathNs)
		}
		var below []string
		for _, c := range n.Children {
			below = append(below, write(c))
		}
		if len(below) > 0 {
			text += "(" + strings.Join(below, " ") + ")"
		}
		return text
	}
	var out []string
	for _, r := range roots {
		out = append(out, write(r))
	}
	return strings.Join(out, " | ")
}

func TestTree(t *testing.T) {
	for _, row := range []struct{ name, trace, want string }{
		{"children before the root", "c b s 20 30\nb a s 10 40\na - s 0 50", "a(b(c))"},
		{"siblings by their start", "a - s 0 9\nb a s 5 6\nc a s 1 2", "a(c b)"},
		{"a child before its parent", "a - s 10 20\nb a s 5 8", "a(b)"},
		// The earlier of the two spans without a parent is the root.
		{"missing root", "b x s 5 9\nc b s 6 7\nd y s 4 5", "d | b(c)"},
		{"missing root, equal starts: the longer", "b x s 4 5\nd y s 4 9", "d | b"},
		{"its own parent", "a a s 0 9\nb a s 1 2", "a(b)"},
		{"cycle of two", "a b s 0 9\nb a s 1 2", "a(b)"},
		{"cycle of three, entered last", "a b s 3 9\nb c s 1 2\nc a s 2 3\nd a s 4 5",
			"b(a(c d))"},
		{"cycle beside a root", "r - s 0 9\na b s 1 2\nb a s 1 3", "r | b(a)"},
		// x occurs twice: the child in service t belongs to the span in t, that in u to the first.
		{"one id twice", "a - s 0 9\nx a s 1 8\nx a t 2 7\nc x t 3 4\nd x u 3 4", "a(x(d) x(c))"},
		{"the very same span twice", "a - s 0 9\nx a s 1 2\nx a s 1 2", "a(x x)"},
		{"alone", "a - s 0 0", "a"},
	} {
		got := shape(Tree(parse(t, row.trace)), false)
		if got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// TestTimes checks self time and time on the critical path, per span as id:self/path.
func TestTimes(t *testing.T) {
	for _, row := range []struct{ name, trace, want string }{
		{"alone", "a - s 0 100", "a:100/100"},
		{"one after the other", "a - s 0 100\nb a s 10 40\nc a s 50 90",
			"a:30/30(b:30/30 c:40/40)"}, // 100 - 30 - 40
		// c ends last, b ended before c began: 0-10 a, 10-30 b, 30-50 a, 50-90 c, 90-100 a.
		{"gap between", "a - s 0 100\nb a s 10 30\nc a s 50 90", "a:40/40(b:20/20 c:40/40)"},
		// b is not on the path: c began at 20 while b went on to 60. The union is 10 to 90.
		{"side by side", "a - s 0 100\nb a s 10 60\nc a s 20 90", "a:20/30(b:50/0 c:70/70)"},
		{"nested", "a - s 0 100\nb a s 0 100\nc b s 20 80", "a:0/0(b:40/40(c:60/60))"},
		// Clocks disagree: b lies before a in part, c after it in part, d wholly outside.
		{"skew", "a - s 100 200\nb a s 90 120\nc a s 190 230\nd a s 300 400",
			"a:70/70(b:30/20 c:40/10 d:100/0)"},
		{"began and ended together", "a - s 0 10\nb a s 0 10\nc a s 0 10",
			"a:0/0(b:10/10 c:10/0)"},
		{"nothing lasts", "a - s 5 5\nb a s 5 5", "a:0/0(b:0/0)"},
	} {
		got := shape(Tree(parse(t, row.trace)), true)
		if got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// For any spans, each one is in the tree once, and the critical path fills the root's duration
// exactly, without overlap.
func TestTreeHoldsWhatever(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	for round := range 2000 {
		n := 1 + r.IntN(12)
		trace := &Trace{}
		for range n {
			s := Span{ID: fmt.Sprint(r.IntN(n + 2)), StartNs: r.Int64N(50),
				DurationNs: r.Int64N(50), Service: fmt.Sprint(r.IntN(3))}
			if r.IntN(5) > 0 {
				s.Parent = fmt.Sprint(r.IntN(n + 2))
			}
			trace.Spans = append(trace.Spans, s)
		}
		trace.Settle()
		roots := Tree(trace)
		seen := map[*Span]int{}
		var steps []Step
		Walk(roots, func(node *Node) {
			seen[node.Span]++
			if node.SelfNs < 0 || node.SelfNs > node.Span.DurationNs {
				t.Errorf("round %d: self time %d of %d", round, node.SelfNs, node.Span.DurationNs)
			}
		})
		Walk(roots[:1], func(node *Node) { steps = append(steps, node.Steps...) })
		slices.SortFunc(steps, func(a, b Step) int { return int(a.FromNs - b.FromNs) })
		at := roots[0].Span.StartNs
		for _, s := range steps {
			if s.FromNs != at {
				t.Fatalf("round %d: a step begins at %d, the last ended at %d: %+v", round,
					s.FromNs, at, trace.Spans)
			}
			at = s.ToNs
		}
		if at != roots[0].Span.EndNs() || len(seen) != n {
			t.Fatalf("round %d: the path ends at %d of %d, %d of %d spans are in the tree", round,
				at, roots[0].Span.EndNs(), len(seen), n)
		}
		for _, times := range seen {
			if times != 1 {
				t.Fatalf("round %d: a span is in the tree %d times", round, times)
			}
		}
	}
}

func TestShares(t *testing.T) {
	roots := Tree(parse(t, "a - web 0 100\nb a db 10 60\nc a db 20 90\nd x late 0 5"))
	// web: self 100 - union of 10 to 90; path 0-20 and 90-100. db: self 50 + 70, path 70. The
	// parent of the last one is missing: its self time counts, and no path leads to it.
	want := []Share{{"db", 2, 120, 70}, {"web", 1, 20, 30}, {"late", 1, 5, 0}}
	if got := Shares(roots); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestWaterfall(t *testing.T) {
	trace := parse(t, "a - web 0 1000\nb a db 250 750\nc x db 500 600")
	trace.Spans[1].Status = "error"
	trace.Spans[1].Events = []Event{{300, "exception", Attributes{
		"exception.type": "E", "exception.message": "no\nroom"}}}
	trace.Cut = 3
	var b bytes.Buffer
	err := Waterfall(&b, trace, Drawing{Bar: 8, Notes: []Note{{"b", 260, "warn slow"},
		{"zz", 900, "info done"}}})
	if err != nil {
		t.Fatal(err)
	}
	got := b.String()
	// A column is 125 ns: a has the first two and the last two, b the four between.
	for _, part := range []string{"web op", "██░░░░██", "  db op ✗", "    ████", "· warn slow",
		"· event exception E no room", "? db op", "· info done", "+900 ns",
		"3 more spans than the limit", "? marks 1 spans"} {
		if !strings.Contains(got, part) {
			t.Errorf("lacks %q:\n%s", part, got)
		}
	}
	if strings.Index(got, "warn slow") > strings.Index(got, "event exception") {
		t.Errorf("a note of +260 ns stands below an event of +300 ns:\n%s", got)
	}
}

func TestDuration(t *testing.T) {
	for _, row := range []struct {
		ns   int64
		want string
	}{{0, "0 ns"}, {999, "999 ns"}, {1000, "1.00 µs"}, {12345, "12.3 µs"}, {123456, "123 µs"},
		{999_499, "999 µs"}, {999_500, "1.00 ms"}, {45_670_000, "45.7 ms"},
		{1_500_000_000, "1.5 s"}} {
		if got := Duration(row.ns); got != row.want {
			t.Errorf("%d: %s, want %s", row.ns, got, row.want)
		}
	}
}
