package distributed

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"
	"unicode"
)

// TestPlain checks that text from others becomes printable and short.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"a b": "a b", "\x1b[31mred\n": " [31mred ", "\xff\xfe": "", "é\u009b": "é ",
		strings.Repeat("x", 1000): strings.Repeat("x", 300), "a\u202eb": "a b",
	} {
		if got := plain(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// given is a connection with received data.
type given struct {
	net.Conn
	bytes.Reader
}

func (g *given) Read(b []byte) (int, error)      { return g.Reader.Read(b) }
func (g *given) SetReadDeadline(time.Time) error { return nil }

// FuzzMessages checks that any data is read as a complete message or refused, and that read
// messages can be encoded again.
func FuzzMessages(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x03h{}"))
	f.Add([]byte("\x00\x00\x00\x0ee{\"lateNs\":17}"))
	f.Add([]byte("\x00\x00\x00\x0ff{\"text\":\"\\u001b\"}"))
	f.Add([]byte("\x10\x00\x00\x00p"))
	f.Fuzz(func(t *testing.T, b []byte) {
		g := &given{}
		g.Reset(b)
		kind, body, err := (&line{Conn: g}).hear(time.Second, hello, ended, failed)
		if err != nil {
			return
		}
		if len(body) >= longest[kind] || len(body) > len(b) {
			t.Fatalf("a message of kind %c has %d bytes", kind, len(body))
		}
		var form textForm
		if err := read(body, &form); err == nil {
			for _, r := range plain(form.Text) {
				if unicode.IsControl(r) {
					t.Fatalf("%q is printed", r)
				}
			}
		}
	})
}
