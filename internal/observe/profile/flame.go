package profile

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"math"
	"strings"

	"prony.example/internal/base/units"
)

// page is the template of a flame graph's page. It loads nothing, so it works from a disk.
//
//go:embed flame.html
var page string

// HTML writes a flame graph as a page with zoom and search. about is a line about the profile's
// source.
func HTML(w io.Writer, title, about, unit string, tree *Frame) error {
	data, err := json.Marshal(struct {
		Unit string `json:"unit"`
		Tree *Frame `json:"tree"`
	}{unit, tree}) // Marshal escapes <, so that no name can end the script
	if err != nil {
		return fmt.Errorf("write flame graph: %w", err)
	}
	_, err = strings.NewReplacer("{{title}}", html.EscapeString(title),
		"{{about}}", html.EscapeString(about), "{{data}}", string(data)).WriteString(w, page)
	return err
}

// Sizes in the SVG, in its units.
const (
	svgWidth = 1200.0
	rowHigh  = 17.0
	fontSize = 11.0
	charWide = 6.6 // width of a character of a monospaced font of that size
	headHigh = 28.0
	pixel    = 0.3 // narrower frames are not drawn
)

// SVG writes a flame graph as a picture. Each frame's title has its full name and share.
func SVG(w io.Writer, title, unit string, tree *Frame) error {
	var b strings.Builder
	high := headHigh + rowHigh*float64(depth(tree))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" `+
		`height="%.0f" font-family="monospace" font-size="%.0f">`+"\n", svgWidth, high, svgWidth,
		high, fontSize)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="4" y="18">%s</text>`+
		"\n", html.EscapeString(title))
	draw(&b, tree, tree.Value, 0, 0, unit)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func depth(f *Frame) int {
	deepest := 0
	for _, c := range f.Children {
		deepest = max(deepest, depth(c))
	}
	return deepest + 1
}

func draw(b *strings.Builder, f *Frame, total int64, x float64, level int, unit string) {
	wide := svgWidth * share(f.Value, total)
	if wide < pixel {
		return
	}
	y := headHigh + rowHigh*float64(level)
	fmt.Fprintf(b, `<g><title>%s</title><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" `+
		`fill="%s" stroke="#fff" stroke-width=".5"/>`, html.EscapeString(label(f, total, unit)), x,
		y, wide, rowHigh-1, color(f))
	if fits := int(wide/charWide) - 1; fits >= 3 {
		text := []rune(f.Name)
		if len(text) > fits {
			text = append(text[:fits-1], '…')
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text>`, x+3, y+rowHigh-5,
			html.EscapeString(string(text)))
	}
	b.WriteString("</g>\n")
	for _, c := range f.Children {
		draw(b, c, total, x, level+1, unit)
		x += svgWidth * share(c.Value, total)
	}
}

// label returns a frame's title.
func label(f *Frame, total int64, unit string) string {
	name := cmp.Or(f.Full, f.Name)
	if f.Delta != 0 {
		return fmt.Sprintf("%s: %.2f %% (%+.2f points)", name, 100*share(f.Value, total),
			100*f.Delta)
	}
	return fmt.Sprintf("%s: %.2f %%, %s", name, 100*share(f.Value, total),
		Amount(float64(f.Value), unit))
}

// color derives a frame's color from its name, so that a function has the same color in every
// graph. In a tree of changes, red frames grew and blue ones shrank; the color is strongest from 10
// percentage points on.
func color(f *Frame) string {
	if f.Delta != 0 {
		light := 97 - 45*math.Min(1, math.Abs(f.Delta)/0.1)
		hue := 0
		if f.Delta < 0 {
			hue = 220
		}
		return fmt.Sprintf("hsl(%d 80%% %.0f%%)", hue, light)
	}
	h := fnv.New32a()
	if _, err := io.WriteString(h, f.Name); err != nil {
		panic("profile: hashing a text failed: " + err.Error())
	}
	return fmt.Sprintf("hsl(%d 75%% %d%%)", 15+h.Sum32()%40, 68+h.Sum32()/64%10)
}

// Amount formats a value with its unit: "1.25 s", "3.4 MiB".
func Amount(v float64, subject string) string {
	switch subject {
	case Nanoseconds:
		return units.Duration(v)
	case Bytes:
		return units.Bytes(v)
	}
	return fmt.Sprintf("%.4g", v)
}
