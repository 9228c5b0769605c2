package traces

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

var update = flag.Bool("update", false, "write testdata/forms.txt")

// shop is a trace of two services with all that a trace can have: in front, the calls of back and
// of a queue overlap, one ends after its parent, and one span's parent is missing.
func shop(t *testing.T) *Trace {
	t.Helper()
	out := parse(t, `
		a1 - front 1000000 21000000
		b2 a1 back 2000000 9000000
		c3 a1 back 6000000 12000000
		d4 c3 db 7000000 14000000
		e5 a1 front 15000000 25000000
		f6 99 queue 16000000 17000000`)
	out.Trial, out.Target, out.Cut = "b1-01-a", "a", 3
	for i := range out.Spans {
		s := &out.Spans[i]
		s.ID = strings.Repeat("0", 14) + s.ID
		if s.Parent != "" {
			s.Parent = strings.Repeat("0", 14) + s.Parent
		}
		s.Kind, s.Status = Kind(int32(i)), Status(int32(i%3))
	}
	text := `{"a": 9007199254740993, "b": 1.5, "c": [true, null, 1e999], "d": {"e": "f"}}`
	s := &out.Spans[2]
	if err := json.Unmarshal([]byte(text), &s.Attributes); err != nil {
		t.Fatal(err)
	}
	s.Message, s.State, s.Cut = "it broke", "prony=1", 7
	s.Events = []Event{{Ns: 8_000_000, Name: "exception", Attributes: Attributes{"type": "E"}}}
	s.Links = []Link{{TraceID: strings.Repeat("2", 32), SpanID: strings.Repeat("3", 16)}}
	out.Settle()
	return out
}

// TestForms checks the drawings of a trace, the shares of its services, and its form in OTLP.
func TestForms(t *testing.T) {
	var b strings.Builder
	trace := shop(t)
	for _, d := range []Drawing{{}, {Bar: 10, Rows: 3, Notes: []Note{
		{SpanID: trace.Spans[1].ID, Ns: 3_000_000, Text: "hello"},
		{Ns: 30_000_000, Text: "late"}}}} {
		if err := Waterfall(&b, trace, d); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range Shares(Tree(trace)) {
		fmt.Fprintf(&b, "%+v\n", s)
	}
	if err := WriteOTLP(&b, []*Trace{trace, trace}); err != nil {
		t.Fatal(err)
	}
	testsets.Golden(t, *update, "testdata/forms.txt", b.String())
	trace.Spans[0].ID = "no hexadecimal digits"
	if err := WriteOTLP(&b, []*Trace{trace}); err == nil {
		t.Error("an invalid id is exported")
	}
}

// TestCutText checks where texts are cut: between characters, and not if they are little longer.
func TestCutText(t *testing.T) {
	check := func(text string, most int, want string) {
		t.Helper()
		if got := CutText(text, most); got != want {
			t.Errorf("%d bytes, at most %d: %q, want %q", len(text), most, got, want)
		}
	}
	long := strings.Repeat("a", 74)
	check(long, 10, long)
	check(long+"a", 10, "aaaaaaaaaa… (cut from 75 bytes)")
	check("aé"+long, 2, "a… (cut from 77 bytes)")
	for number, want := range map[int32]string{-1: "unspecified", 0: "unspecified", 2: "server",
		5: "consumer", 6: "unspecified"} {
		if got := Kind(number); got != want {
			t.Errorf("kind %d: %s, want %s", number, got, want)
		}
	}
}
