package lazyregexp_test

import (
	"strings"
	"testing"

	"prony.example/internal/base/lazyregexp"
)

var hour = lazyregexp.New(`(\d+):(\d\d)`)

func TestPattern(t *testing.T) {
	const text = "at 9:30, or 10:00"
	got := hour.FindStringSubmatch(text)
	if strings.Join(got, " ") != "9:30 9 30" || len(hour.FindAllString(text, -1)) != 2 {
		t.Errorf("found %q", got)
	}
}

// TestWrongPattern checks that an invalid pattern fails the tests of its package, before any use.
func TestWrongPattern(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a wrong expression was taken")
		}
	}()
	lazyregexp.New("(")
}
