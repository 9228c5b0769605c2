package shellwords

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"prony.example/internal/dev/testsets"
)

// literal writes a word as a shell reads it: each character in single quotes stands for itself.
func literal(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, "'"+strings.ReplaceAll(w, "'", `'"'"'`)+"'")
	}
	return strings.Join(out, " ")
}

// samples are commands as people and browsers write them.
var samples = []string{"curl 'http://a/b?c=d&e' -H \"A: $B\"", `a 'b c' "d e" \f`, "A=1 b ''",
	"curl ^\"http://a/x?y=1^&z=2^\" ^\r\n  -H ^\"A: */*^\" --data-raw ^\"^{^\\^\"a^\\^\":1^}^\"",
	"curl http://a --data-raw $'{\"t\":\"\\ud83d\\ude00 \\041 \\x41\"}'", "a \\\n b", "a <<E\nb\nE\n",
	"curl http://a?b=1&c=2", "if a; then b; fi", "a “b”", "a $(b `c`)", "{a,b}{c,d}"}

// FuzzSplit requires that the words of a command, each in quotes, are the same words.
func FuzzSplit(f *testing.F) {
	for _, s := range samples {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words, err := Split(text)
		if err != nil || len(words) == 0 {
			return
		}
		if n := len(strings.Join(words, "")); n > len(text) {
			t.Errorf("%q has words of %d bytes: %q", text, n, words)
		}
		again, err := Split(literal(words))
		if strings.ContainsAny(strings.Join(words, ""), "\r") {
			return // for which Split requires a shell
		}
		if err != nil || !slices.Equal(again, words) {
			t.Errorf("%q is %q, and in quotes %q, %v", text, words, again, err)
		}
	})
}

// FuzzCommands requires that a script gives no more words than it has characters, and that words
// without a problem, each in quotes, are the same words.
func FuzzCommands(f *testing.F) {
	for _, s := range samples {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var all []Command
		var err error
		testsets.Allocates(t, 64<<20+20_000*uint64(len(text)), func() {
			all, err = Commands(text, func(string, string) string { return "" })
			if err == nil { // with values, too
				_, err = Commands(text, func(_, value string) string { return value })
			}
		})
		if err != nil {
			return
		}
		size := 0
		for _, c := range all {
			for _, w := range c.Words {
				size += len(w) + 1
			}
			script := literal(c.Words)
			if c.Problem != "" || len(c.Words) == 0 || ofCmd.MatchString(script) ||
				strings.ContainsAny(script, "\r\x00"+typographic) || !utf8.ValidString(script) {
				continue
			}
			again, err := Commands(script, nil)
			if err != nil || len(again) != 1 || again[0].Problem != "" ||
				!slices.Equal(again[0].Words, c.Words) {
				t.Errorf("%q has %q, and in quotes %+v, %v", text, c.Words, again, err)
			}
		}
		// A character of \u has up to four bytes.
		if size > 4*len(text)+1 {
			t.Errorf("%d bytes have words of %d bytes: %q", len(text), size, all)
		}
	})
}
