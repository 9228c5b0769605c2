package faults

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"syscall"
)

// input is a possible content where a file is expected. make creates it at a free path or one with
// sound content. Large inputs are written in pieces, so that this program stays small beside the
// one under test.
type input struct {
	name string
	make func(path string, sound []byte) error
}

// Sizes of inputs: too large for an unlimited reader, small enough to be made often.
const (
	longLine = 10 << 20
	depth    = 1 << 20
	records  = 2 << 20 // of 14 bytes: 28 MiB
)

var inputs = []input{
	{name: "missing", make: func(path string, _ []byte) error { return os.RemoveAll(path) }},
	{name: "folder", make: func(path string, _ []byte) error { return os.Mkdir(path, 0o755) }},
	{name: "empty", make: holds("", 1)},
	{name: "zeros", make: links("/dev/zero")},
	{name: "unwritten", make: func(path string, _ []byte) error {
		return syscall.Mkfifo(path, 0o644)
	}},
	{name: "nul", make: holds("\x00", 4096)},
	{name: "bom", make: func(path string, sound []byte) error {
		return os.WriteFile(path, append([]byte("\xef\xbb\xbf"), sound...), 0o644)
	}},
	{name: "torn", make: func(path string, sound []byte) error {
		sound = bytes.TrimSpace(sound)
		return os.WriteFile(path, sound[:len(sound)-min(len(sound), 9)], 0o644)
	}},
	{name: "long", make: holds("x", longLine)},
	{name: "deep", make: holds("[", depth)},
	{name: "aliases", make: holds(bomb, 1)},
	{name: "records", make: holds("{\"version\":1}\n", records)},
	// Its size is 0, and reading it fails for every user.
	{name: "unreadable", make: links("/proc/self/mem")},
	{name: "names", make: holds("\x1b]0;gone\x07\u202e\x1b[2J: 1\n", 1)},
}

// bomb is a short text of 10^9 leaves (billion laughs).
var bomb = func() string {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := '1'; i < '9'; i++ {
		text += "aN: &aN [*aP,*aP,*aP,*aP,*aP,*aP,*aP,*aP,*aP,*aP]\n"
		text = strings.NewReplacer("N", string(i), "P", string(i-1)).Replace(text)
	}
	return text
}()

// holds makes a file of a piece, n times.
func holds(piece string, n int) func(string, []byte) error {
	return func(path string, _ []byte) error {
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		defer file.Close()
		const some = 1 << 12 // pieces in one write
		for left := n; left > 0; left -= some {
			if _, err := file.WriteString(strings.Repeat(piece, min(left, some))); err != nil {
				return err
			}
		}
		return file.Close()
	}
}

func links(to string) func(string, []byte) error {
	return func(path string, _ []byte) error { return os.Symlink(to, path) }
}

// absurd are numbers that a user may write. JSON cannot express some of them.
var absurd = []string{"1e308", "-1e308", "1e999", "NaN", "-Infinity", "9223372036854775807",
	"3900000000000000000", "0"}

// fractions and whole match the fields with numbers in a record; integers accept only whole
// numbers.
var (
	fractions = regexp.MustCompile(`"(throughputPerS|inFlightMean|stealShare|meanNs)":[^,}]+`)
	whole     = regexp.MustCompile(`"(windowNs|done|p99Ns|cpuNs|rssMaxBytes)":[^,}]+`)
)
