package report

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestContrast checks the page's colors against WCAG 2.2: text at least 4.5 (1.4.3), lines and dots
// at least 3 (1.4.11), in both themes.
func TestContrast(t *testing.T) {
	// The arithmetic: black on white is (1 + 0.05) / (0 + 0.05) = 21.
	if got := contrast("#000000", "#ffffff"); math.Abs(got-21) > 1e-9 {
		t.Fatalf("black on white has a contrast of %v, wanted 21", got)
	}
	css, err := os.ReadFile("../../web/src/tokens.css")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile(`(?s):root[^{]*\{(.*?)\}`).FindAllStringSubmatch(string(css), -1)
	if len(blocks) != 3 {
		t.Fatalf("%d themes, wanted light and twice dark", len(blocks))
	}
	var dark []string
	for i, block := range blocks {
		tokens := map[string]string{}
		for _, m := range regexp.MustCompile(`--([\w-]+): (#[0-9a-f]{6});`).
			FindAllStringSubmatch(block[1], -1) {
			tokens[m[1]] = m[2]
		}
		if i > 0 {
			dark = append(dark, strings.Join(strings.Fields(block[1]), " "))
		}
		checkContrast(t, i, tokens)
	}
	if dark[0] != dark[1] {
		t.Error("dark by the system's wish and dark by the reader's are different colours")
	}
}

func checkContrast(t *testing.T, theme int, tokens map[string]string) {
	t.Helper()
	want := func(front, back string, least float64) {
		t.Helper()
		if c := contrast(tokens[front], tokens[back]); c < least {
			t.Errorf("theme %d: %s on %s has a contrast of %.2f, wanted %v", theme, front, back,
				c, least)
		}
	}
	for _, back := range []string{"paper", "card", "shade"} {
		for _, front := range []string{"ink", "muted", "accent", "valid", "suspect", "invalid"} {
			want(front, back, 4.5)
		}
		for _, k := range "123456" {
			want("line-"+string(k), back, 3)
			want("tier-"+string(k), back, 3)
		}
	}
	for _, grade := range []string{"valid", "suspect", "invalid"} {
		want(grade, grade+"-back", 4.5)
	}
	for _, back := range []string{"flame-1", "flame-2", "flame-3", "flame-4", "flame-5", "flame-6",
		"rule", "grew", "shrank"} {
		want("ink", back, 4.5) // names of frames
	}
	want("paper", "accent", 4.5)     // of a frame that was found
	want("ink", "invalid-back", 4.5) // the banner over unlike methods
	want("paper", "ink", 4.5)        // a pressed button
}

// contrast returns the ratio of WCAG 2.2 between two colors like "#1b1e24"; 1 if one is missing.
func contrast(a, b string) float64 {
	if len(a) != 7 || len(b) != 7 {
		return 1
	}
	la, lb := luminance(a), luminance(b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// luminance returns WCAG 2.2's relative luminance of an sRGB color.
func luminance(hex string) float64 {
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			return math.NaN()
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
