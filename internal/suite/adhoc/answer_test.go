package adhoc

import (
	"strings"
	"testing"
)

// TestExcerpt checks the part of a body that a message quotes: 60 bytes, from 20 bytes before the
// position if that is beyond the first 40 bytes.
func TestExcerpt(t *testing.T) {
	check := func(body string, pos int, want string) {
		t.Helper()
		if got := excerpt([]byte(body), pos); got != want {
			t.Errorf("%d bytes at %d: %s, want %s", len(body), pos, got, want)
		}
	}
	sixty := strings.Repeat("0123456789", 6)
	check("", 0, `""`)
	check(`a"b`, 1, `"a\"b"`)
	check(sixty, 0, `"`+sixty+`"`)
	check(sixty, 40, `"`+sixty+`"`)
	check(sixty, 41, `…"`+sixty[21:]+`" (60 bytes)`)
	check(sixty+"x", 40, `"`+sixty+`"… (61 bytes)`)
	check(sixty+sixty, 50, `…"`+sixty+`"… (120 bytes)`) // from 30 to 90
	check(sixty+sixty, 80, `…"`+sixty+`" (120 bytes)`)
	check(sixty, 99, `…"" (60 bytes)`) // beyond the end
}
