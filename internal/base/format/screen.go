package format

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Screen writes text that a terminal may show. Names and answers of others are in it, and a
// terminal obeys some characters instead of showing them: it would change its title, its colours
// and what it has shown, or answer into the shell. Those are written as \u and their number, which
// in JSON is the character itself; only line ends, tabs and Paint's own looks stay.
//
// It stands before standard output and standard error, so that no verb can forget it. Files are
// written as they are.
type Screen struct {
	mu       sync.Mutex
	to       io.Writer
	retained []byte // of a character or a look whose end has not come yet
	cut      error  // the first write that failed: not every caller looks
}

// NewScreen writes to a terminal, or what may become one's input.
func NewScreen(to io.Writer) *Screen { return &Screen{to: to} }

// longest is how many bytes of a word anybody reads.
const longest = 400

// Clip shortens longer words in a message, as an argument of a hundred thousand letters is one.
func Clip(text string) string {
	for _, word := range strings.Fields(text) {
		if len(word) > longest {
			text = strings.ReplaceAll(text, word, fmt.Sprintf("%s… (%d bytes)",
				strings.ToValidUTF8(word[:longest/4], ""), len(word)))
		}
	}
	return text
}

// Raw is what a screen writes to, for what is no text or moves the cursor; another writer is
// itself.
func Raw(w io.Writer) io.Writer {
	if s, ok := w.(*Screen); ok {
		return s.to
	}
	return w
}

// Write implements io.Writer.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(string(s.retained)+string(p), false); err != nil {
		s.cut = cmp.Or(s.cut, err)
		return 0, err
	}
	return len(p), nil
}

func (s *Screen) write(text string, complete bool) error {
	text, remaining := visible(text, complete)
	s.retained = []byte(remaining)
	if text == "" {
		return nil
	}
	_, err := io.WriteString(s.to, text)
	return err
}

// Close writes what has no end.
func (s *Screen) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut != nil {
		return s.cut
	}
	return s.write(string(s.retained), true)
}

// Visible is a text without characters that a terminal obeys.
func Visible(text string) string {
	text, _ = visible(text, true)
	return text
}

// looks are what Paint makes of the parameters that it is given; another one is shown as it is
// written, which whoever adds it sees.
var looks = func() (all []string) {
	for _, sgr := range []string{"0", "1", "2", "31", "32", "33", "1;2", "1;31", "1;32", "1;33"} {
		all = append(all, "\x1b["+sgr+"m")
	}
	return all
}()

// visible returns a text as a screen has it and, unless this is the end of it, the beginning of
// what is not whole.
func visible(text string, complete bool) (shown, remaining string) {
	var b strings.Builder
	for text != "" {
		keep := strings.IndexFunc(text, obeyed)
		if keep < 0 {
			keep = len(text)
		}
		b.WriteString(text[:keep])
		if text = text[keep:]; text == "" {
			break
		}
		n, cut := look(text)
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case !complete && (cut || !utf8.FullRuneInString(text)):
			return b.String(), text
		case n > 0:
			b.WriteString(text[:n])
			size = n
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == utf8.RuneError: // one that was written as such
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return b.String(), ""
}

// obeyed are control characters (ISO 6429, C0 and C1), those that turn the direction of a text, and
// what is not UTF-8.
func obeyed(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) ||
		r == utf8.RuneError
}

// look is how long a look at a text's beginning is; 0: there is none, or it is cut short.
func look(text string) (n int, cut bool) {
	for _, l := range looks {
		if strings.HasPrefix(text, l) {
			return len(l), false
		}
		if strings.HasPrefix(l, text) {
			return 0, true
		}
	}
	return 0, false
}
