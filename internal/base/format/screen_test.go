package format

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestClip(t *testing.T) {
	word := strings.Repeat("é", 300)
	if got := Clip("a " + word + " b"); got != "a "+strings.Repeat("é", 50)+"… (600 bytes) b" {
		t.Errorf("%q", got)
	}
	if got := Clip("a " + word[:398]); got != "a "+word[:398] {
		t.Errorf("%q", got)
	}
}

// TestScreen checks that control characters are escaped, even if split between writes, and that
// Paint's looks pass.
func TestScreen(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		for cut := range len(text) + 1 {
			var b strings.Builder
			s := NewScreen(&b)
			for _, part := range []string{text[:cut], text[cut:]} {
				if n, err := s.Write([]byte(part)); err != nil || n != len(part) {
					t.Errorf("%q: %d, %v", part, n, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if b.String() != want {
				t.Errorf("%q cut at %d: %q, want %q", text, cut, b.String(), want)
			}
		}
		if got := Visible(text); got != want {
			t.Errorf("Visible(%q) is %q, want %q", text, got, want)
		}
	}
	check("p99 12 µs\t▁█ 日本\n", "p99 12 µs\t▁█ 日本\n")
	check(Paint(true, "1;31", "INVALID")+Paint(true, "2", "x"),
		"\x1b[1;31mINVALID\x1b[0m\x1b[2mx\x1b[0m")
	check("\x1b[1;31mINVALID\x1b[0m", `\u001b[1;31mINVALID\u001b[0m`) // not of Paint
	check(Paint(true, "2", "\x1b[32mVALID"), "\x1b[2m"+`\u001b[32mVALID`+"\x1b[0m")
	check("\x1b]0;title\x07", `\u001b]0;title\u0007`)
	check("\x1b[8mhidden\x1b[2J\x1b[", `\u001b[8mhidden\u001b[2J\u001b[`)
	check("VALID\rINVALID\b\x7f", `VALID\u000dINVALID\u0008\u007f`)
	check("\u009b2J", `\u009b2J`)                   // CSI as one character
	check("a\x9b2J\xff", `a\x9b2J\xff`)             // CSI as one byte
	check("\u202eDILAV\u2066", `\u202eDILAV\u2066`) // right to left
	check("�", "�")
	var back string
	text, err := json.Marshal("\x1b\u009b\x7f\u202e\n")
	if err == nil {
		err = json.Unmarshal([]byte(Visible(string(text))), &back)
	}
	if err != nil || back != "\x1b\u009b\x7f\u202e\n" {
		t.Errorf("through JSON: %q, %v", back, err)
	}
	var b strings.Builder
	if Raw(NewScreen(&b)) != &b || Raw(&b) != &b {
		t.Error("what a screen writes to is lost")
	}
}
