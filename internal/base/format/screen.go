package format

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Screen writes text that a terminal may show. The text includes names and responses from others,
// and control characters in them could change the terminal's title, colors and contents, or send
// input to the shell. Screen writes control characters as \u and their number, as JSON does; only
// line ends, tabs and Paint's own looks stay.
//
// A Screen wraps standard output and standard error for all verbs. Files are written without it.
type Screen struct {
	mu       sync.Mutex
	to       io.Writer
	retained []byte // an incomplete character or look
	cut      error  // the first write error: some callers ignore errors
}

// NewScreen returns a Screen that writes to a terminal, or to a stream that may end in a terminal.
func NewScreen(to io.Writer) *Screen { return &Screen{to: to} }

// longest is the length in bytes above which Clip shortens a word.
const longest = 400

// Clip shortens words of more than 400 bytes in a message, such as an argument of a hundred
// thousand letters.
func Clip(text string) string {
	for word := range strings.FieldsSeq(text) {
		if len(word) > longest {
			text = strings.ReplaceAll(text, word, fmt.Sprintf("%s… (%d bytes)",
				strings.ToValidUTF8(word[:longest/4], ""), len(word)))
		}
	}
	return text
}

// Raw returns the writer behind a Screen, for output that is not text or moves the cursor. It
// returns other writers unchanged.
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

// Close writes an incomplete last character, and returns the first write error.
func (s *Screen) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut != nil {
		return s.cut
	}
	return s.write(string(s.retained), true)
}

// Visible returns a text with control characters escaped, as Screen does.
func Visible(text string) string {
	text, _ = visible(text, true)
	return text
}

// mark is a parameter that texts of others cannot contain, because they cannot know it.
var mark = func() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return strconv.FormatUint(binary.LittleEndian.Uint64(random[:]), 10)
}()

// marked returns the sequence that Paint writes for parameters.
func marked(sgr string) string { return "\x1b[" + sgr + ";" + mark + "m" }

// look is a sequence as Paint writes it, and as a terminal gets it.
type look struct{ marked, shown string }

// looks lists the sequences that Paint makes of the parameters in use. Screen shows other sequences
// as text, so that a missing entry is noticed.
var looks = func() (all []look) {
	for _, sgr := range []string{"0", "1", "2", "31", "32", "33", "1;2", "1;31", "1;32", "1;33"} {
		all = append(all, look{marked(sgr), "\x1b[" + sgr + "m"})
	}
	return all
}()

// visible returns a text with control characters escaped. Unless the text is complete, remaining is
// an incomplete character or look at its end.
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
		l, cut := lookOf(text)
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case !complete && (cut || !utf8.FullRuneInString(text)):
			return b.String(), text
		case l.marked != "":
			b.WriteString(l.shown)
			size = len(l.marked)
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == utf8.RuneError: // U+FFFD in the text itself
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return b.String(), ""
}

// obeyed reports control characters (ISO 6429, C0 and C1), characters that change the direction of
// text, and invalid UTF-8.
func obeyed(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) ||
		r == utf8.RuneError
}

// lookOf returns the look that a text begins with, or an empty one. cut reports an incomplete look.
func lookOf(text string) (l look, cut bool) {
	for _, l := range looks {
		if strings.HasPrefix(text, l.marked) {
			return l, false
		}
		if strings.HasPrefix(l.marked, text) {
			return look{}, true
		}
	}
	return look{}, false
}
