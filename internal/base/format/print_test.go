package format

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

func same(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestWrap(t *testing.T) {
	same(t, Wrap("", "one two three four", 9, 2), "one two\n  three\n  four") // 9 columns in all
	same(t, Wrap("", "¹ no interval", 40, 2), "¹ no interval")
	same(t, Wrap("", "one two", 7, 0), "one two")
	same(t, Wrap("! ", "one two three", 9, 2), "! one two\n  three")
	same(t, Wrap("a long head: ", "word", 14, 4), "a long head:\n    word")
	same(t, Wrap("  ", "longest word", 8, 2), "  longest\n  word") // left whole
	same(t, Wrap("", "at most 3 % of it", 10, 0), "at most\n3 % of it")
	same(t, Visible(Wrap("", Paint(true, "1", "bold")+" text", 9, 0)), "\x1b[1mbold\x1b[0m text")
}

func TestGrid(t *testing.T) {
	rows := [][]string{{"name", "µs", ""}, {"a", "1.25", "x"}, {"a note that stands as it is"},
		{"longer", "10", "y"}}
	same(t, Grid("  ", rows, Left, Right), "  name      µs\n  a       1.25  x\n"+
		"  a note that stands as it is\n  longer    10  y\n")
	same(t, Grid("", rows[:2], Left), "name  µs\na     1.25  x\n")
}

func TestPad(t *testing.T) {
	same(t, Pad("✗", 4, Left)+"|", "✗   |")
	same(t, Pad("ab", 5, Center)+"|", " ab  |")
	same(t, Pad("ab", 3, Right)+"|", " ab|")
	same(t, Pad("long", 3, Right), "long")
}

func TestMarks(t *testing.T) { same(t, Marks([]int{1, 20}), "¹˒²⁰") }

// TestPipes checks that text from services cannot become markup.
func TestPipes(t *testing.T) {
	same(t, Pipes([]string{"a", "b"}, [][]string{{"x|y", "<b>"}, {"_z_", "2"}}, Left, Right),
		"| a | b |\n| :-- | --: |\n| x\\|y | &lt;b&gt; |\n| \\_z\\_ | 2 |\n")
}

// TestJSON checks null for NaN and infinite numbers, [] for empty lists, and unchanged text.
func TestJSON(t *testing.T) {
	type inner struct {
		X float64 `json:"x"`
		Y float64 `json:"y,omitempty"`
	}
	one := 1.5
	var b strings.Builder
	if err := JSON(&b, struct {
		Version int `json:"version"`
		inner
		Hidden string
		Text   string             `json:"text"`
		List   []string           `json:"list"`
		Rows   []inner            `json:"rows,omitempty"`
		None   *float64           `json:"none"`
		One    *float64           `json:"one"`
		Zero   inner              `json:"zero,omitzero"`
		Map    map[string]float64 `json:"map"`
		Time   time.Time          `json:"time"`
	}{Version: 1, inner: inner{math.NaN(), 0}, Hidden: "x", Text: "≥ 5 <b>", One: &one,
		Map:  map[string]float64{"b": math.Inf(1), "a": 2},
		Time: time.Unix(0, 0).UTC()}); err != nil {
		t.Fatal(err)
	}
	same(t, b.String(), `{
  "version": 1,
  "x": null,
  "text": "≥ 5 <b>",
  "list": [],
  "none": null,
  "one": 1.5,
  "map": {
    "a": 2,
    "b": null
  },
  "time": "1970-01-01T00:00:00Z"
}
`)
}

// TestFormats checks that suffixes and names of a format are equivalent.
func TestFormats(t *testing.T) {
	same(t, FormatOf(".MD")+FormatOf("htm")+FormatOf("text"), "markdownhtml")
	same(t, FormatOf("xml"), "")
	same(t, Ending("markdown"), "md")
	forms := Forms[int]{{"csv", func(w io.Writer, n int) error {
		_, err := fmt.Fprint(w, n)
		return err
	}}}
	var b strings.Builder
	if err := forms.Write(&b, forms.Names()[0], 7); err != nil || b.String() != "7" {
		t.Errorf("%q, error %v", b.String(), err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a form of no format is nobody's error")
		}
	}()
	Forms[int]{{"tex", nil}}.Names()
}
