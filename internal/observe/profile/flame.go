package profile

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"math"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/units"
)

// Sizes in the SVG, in its units.
const (
	svgWidth = 1200.0
	rowHigh  = 17.0
	fontSize = 11.0
	charWide = 6.6 // width of a character of a monospaced font of that size
	headHigh = 28.0
	pixel    = 0.3 // narrower frames are not drawn
)

// SVG writes a flame graph as a picture in the report's colors. Each frame's title has its full
// name and share.
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
		y, wide, rowHigh-1, color(f, level == 0))
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

// The light colors of the report's flame graph (web/src/tokens.css), which SVG draws likewise:
// tints of origins, the color of frames without one, and of no change, growth and shrinking.
var (
	tints  = []string{"#f6dcae", "#f3c9ac", "#e8e0a6", "#cfe2b6", "#bfdedf", "#dacfea"}
	plain  = "#e4e3de"
	shade  = [3]int{0xef, 0xee, 0xe9}
	grew   = [3]int{0xee, 0x8b, 0x80}
	shrank = [3]int{0x84, 0xb1, 0xec}
)

// strongest is the change of a share that has the full color.
const strongest = 0.1

// color returns a frame's color: of its origin, or of its change.
func color(f *Frame, root bool) string {
	if f.Delta != 0 {
		to := grew
		if f.Delta < 0 {
			to = shrank
		}
		part := math.Sqrt(math.Min(math.Abs(f.Delta)/strongest, 1))
		var out [3]int
		for i := range out {
			out[i] = int(math.Round(float64(shade[i])*(1-part) + float64(to[i])*part))
		}
		return fmt.Sprintf("#%02x%02x%02x", out[0], out[1], out[2])
	}
	from := origin(cmp.Or(f.Full, f.Name))
	if root || from == "" || f.Name == Small {
		return plain
	}
	h := fnv.New32a()
	if _, err := io.WriteString(h, from); err != nil {
		panic("profile: hashing a text failed: " + err.Error())
	}
	return tints[h.Sum32()%uint32(len(tints))]
}

// script matches the place of a script's function: "f (folder/file.js:3)".
var script = lazyregexp.New(` \(([^()]+)\)$`)

// origin returns the package or library of a function; of scripts the first folder.
func origin(name string) string {
	if strings.HasSuffix(name, "[k]") {
		return "kernel"
	}
	if m := script.FindStringSubmatch(name); m != nil {
		return m[1][:indexAny(m[1], "/:")]
	}
	slash := strings.LastIndex(name[:indexAny(name, "[(<")], "/")
	dot := strings.Index(name[slash+1:], ".") + slash + 1
	if slash >= 0 && dot > slash {
		return name[:dot]
	}
	if before, _, ok := strings.Cut(name, "::"); ok {
		return before
	}
	parts := strings.Split(name, ".")
	return strings.Join(parts[:min(2, len(parts)-1)], ".")
}

// indexAny returns the index of the first of some characters, or the text's length.
func indexAny(text, chars string) int {
	if i := strings.IndexAny(text, chars); i >= 0 {
		return i
	}
	return len(text)
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
