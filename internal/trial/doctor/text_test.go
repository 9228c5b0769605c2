package doctor

import (
	"strings"
	"testing"
	"unicode/utf8"

	"prony.example/internal/base/format"
	"prony.example/record"
)

func TestTextFits(t *testing.T) {
	g := keep(t, laptop()).examine(t, nil, idle)
	show := func(o TextOptions) string {
		var b strings.Builder
		if err := Text(&b, g, o); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, width := range []int{60, 80, 132} {
		for _, all := range []bool{false, true} {
			for line := range strings.Lines(show(TextOptions{Width: width, All: all})) {
				line = strings.TrimSuffix(line, "\n")
				words := strings.Fields(line)
				long := len(words) > 0 && utf8.RuneCountInString(words[len(words)-1]) > width/2
				if n := utf8.RuneCountInString(line); n > width && !long {
					t.Errorf("%d columns, want %d: %q", n, width, line)
				}
				if line != strings.TrimRight(line, " ") {
					t.Errorf("blanks at the end of %q", line)
				}
			}
		}
	}
	plain, coloured := show(TextOptions{}), format.Visible(show(TextOptions{Color: true}))
	if strings.Contains(plain, "\x1b") || !strings.Contains(coloured, "\x1b[33m! \x1b[0m") {
		t.Errorf("plain\n%q\ncoloured\n%q", plain, coloured)
	}
	for _, code := range []string{"0", "1", "2", "31", "32", "33", "1;33"} {
		coloured = strings.ReplaceAll(coloured, "\x1b["+code+"m", "")
	}
	if coloured != plain {
		t.Errorf("without its colours it reads\n%s\nwant\n%s", coloured, plain)
	}
}

// With All, the text contains everything of a check.
func TestTextShowsAll(t *testing.T) {
	g := keep(t, lab()).examine(t, nil, idle)
	var b strings.Builder
	if err := Text(&b, g, TextOptions{All: true}); err != nil {
		t.Fatal(err)
	}
	shown := strings.Join(strings.Fields(b.String()), " ")
	for _, c := range g.Checks {
		for _, text := range []string{c.Name + " " + c.Observed, c.Expected, c.Impact, c.Source} {
			if !strings.Contains(shown, strings.Join(strings.Fields(text), " ")) {
				t.Errorf("%s: %q is not shown", c.Name, text)
			}
		}
	}
	if g.Grade != record.Fit {
		t.Errorf("the lab is %s", g.Grade)
	}
}
