package service

import (
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"prony.example/contract"
	"prony.example/internal/base/strictyaml"
)

// golden is a file of golden answers.
type golden struct {
	Contract string       `yaml:"contract"`
	Cases    []goldenCase `yaml:"cases"`
}

// goldenCase is a request and its required answer. Exactly one of Body, Lorem, Base64Lorem and
// Pattern defines the body.
type goldenCase struct {
	Name        string        `yaml:"name"`
	Request     string        `yaml:"request"`  // method and target, with {mode} and {other}
	Send        string        `yaml:"send"`     // body of the request
	SendType    string        `yaml:"sendType"` // its media type; empty: text/plain
	SendLorem   int64         `yaml:"sendLorem"`
	Status      int           `yaml:"status"`
	Type        string        `yaml:"type"` // media type without parameters; empty: any
	Body        *string       `yaml:"body"`
	Lorem       *int64        `yaml:"lorem"`       // first bytes of the repeated text
	Base64Lorem *int64        `yaml:"base64Lorem"` // the standard base64 of this many bytes
	Pattern     string        `yaml:"pattern"`     // RE2, of the whole body
	Length      int           `yaml:"length"`      // bytes, with a pattern: RE2 only counts to 1000
	Differs     bool          `yaml:"differs"`     // a second answer must have another body
	TookMin     time.Duration `yaml:"tookMin"`
	TookMax     time.Duration `yaml:"tookMax"`
	Logs        string        `yaml:"logs"`    // RE2, of one whole log line, with {mode}, {thread}
	Changes     bool          `yaml:"changes"` // it changes data that later answers show
}

// goldens returns the golden answers. They are compiled in, so an error in them is a programmer
// error.
var goldens = sync.OnceValue(func() map[string]golden {
	all, err := readGoldens(contract.Files)
	if err != nil {
		panic("the expected responses of contracts are invalid: " + err.Error())
	}
	return all
})

// lorem returns the text of which large bodies consist.
var lorem = sync.OnceValue(func() []byte {
	text, err := contract.Files.ReadFile("lorem.txt")
	if err != nil || len(text) == 0 {
		panic("contract/lorem.txt is missing or empty")
	}
	return text
})

// Contracts returns the names of all contracts with golden answers, sorted.
func Contracts() []string {
	return slices.DeleteFunc(sortedKeys(goldens()), func(name string) bool {
		return strings.HasPrefix(name, callForm)
	})
}

// callForm is the prefix of a contract's name for its answers in gRPC.
const callForm = "grpc/"

func readGoldens(files fs.FS) (map[string]golden, error) {
	names, err := fs.Glob(files, "*.yaml")
	calls, _ := fs.Glob(files, callForm+"*.yaml") // its pattern is as well-formed as the other
	if names = append(names, calls...); err != nil {
		return nil, err
	}
	all := map[string]golden{}
	for _, file := range names {
		data, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		var g golden
		check, err := strictyaml.Read(file, data, &g)
		if err != nil {
			return nil, err
		}
		d := document{check}
		if g.Contract != strings.TrimSuffix(file, ".yaml") {
			d.Wrong("$.contract", "", "contract %q must have the name of its file", g.Contract)
		}
		for i, c := range g.Cases {
			d.checkCase(fmt.Sprintf("$.cases[%d]", i), c)
		}
		if err := d.Err(); err != nil {
			return nil, err
		}
		all[g.Contract] = g
	}
	return all, nil
}

var requestLine = regexp.MustCompile(`^[A-Z]+ /\S*$`)

func (d document) checkCase(keyPath string, c goldenCase) {
	if c.Name == "" || c.Status < 100 || c.Status > 616 {
		d.Wrong(keyPath, "", "a case must have a name and a status")
	}
	if !requestLine.MatchString(c.Request) {
		d.Wrong(keyPath+".request", "", "request %q must have the form METHOD /path", c.Request)
	}
	if c.Send != "" && c.SendLorem != 0 {
		d.Wrong(keyPath+".send", "", "send and sendLorem exclude each other")
	}
	if c.SendType != "" {
		if c.Send == "" && c.SendLorem == 0 {
			d.Wrong(
				keyPath+".sendType",
				"send or sendLorem",
				"sendType is set, but there is nothing to send",
			)
		}
		if media, _, err := mime.ParseMediaType(c.SendType); err != nil ||
			!strings.Contains(media, "/") {
			d.Wrong(keyPath+".sendType", "as application/json", "sendType %q is not a media type",
				c.SendType)
		}
	}
	if c.Changes && c.Differs {
		d.Wrong(keyPath+".changes", "a response that differs is requested several times",
			"changes and differs exclude each other")
	}
	bodies := slices.DeleteFunc([]bool{c.Body != nil, c.Lorem != nil, c.Base64Lorem != nil,
		c.Pattern != ""}, func(exists bool) bool { return !exists })
	if len(bodies) != 1 {
		d.Wrong(keyPath, "", "a case must have exactly one of body, lorem, base64Lorem and pattern")
	}
	if (c.Pattern == "") != (c.Length == 0) {
		d.Wrong(keyPath, "", "pattern and length must be set together")
	}
	for key, pattern := range map[string]string{"pattern": c.Pattern, "logs": c.Logs} {
		if _, err := regexp.Compile(pattern); err != nil {
			d.Wrong(keyPath+"."+key, "", "%v", err)
		}
	}
}

// largeBytes is the longest body, in both directions, of the quick check.
const largeBytes = 64 << 10

// quick reports whether a case may run inside a trial: it does not wait, write log lines or change
// data, and moves little.
func (c goldenCase) quick() bool {
	large := c.SendLorem > largeBytes
	for _, size := range []*int64{c.Lorem, c.Base64Lorem} {
		large = large || size != nil && *size > largeBytes
	}
	return !large && c.TookMin == 0 && c.Logs == "" && !c.Changes
}

// Patterns of thread names in log lines. The JDK's names of virtual threads begin with
// "VirtualThread[", and other names must not. RE2 has no negation, so the pattern lists letters.
const (
	virtualThread = `(?:VirtualThread\[|goroutine).*`
	otherThread   = `(?:[^V].*|V[^i].*|Vi[^r].*)`
)

// filled returns the case for a mode: {mode} becomes the mode, {other} a mode that the target does
// not serve, and {thread} the pattern of a thread of the mode.
func (c goldenCase) filled(mode string) goldenCase {
	alternative := Modes[0]
	if alternative == mode {
		alternative = Modes[1]
	}
	thread := otherThread
	if mode == "virtual" {
		thread = virtualThread
	}
	fill := strings.NewReplacer("{mode}", mode, "{other}", alternative, "{thread}", thread)
	c.Request, c.Logs = fill.Replace(c.Request), fill.Replace(c.Logs)
	return c
}

// wanted returns the required body as a stream with its length, so that 16 MiB need no memory. It
// returns nil for a pattern.
func (c goldenCase) wanted() (io.Reader, int64) {
	switch {
	case c.Body != nil:
		return strings.NewReader(*c.Body), int64(len(*c.Body))
	case c.Lorem != nil:
		return loremReader(*c.Lorem), *c.Lorem
	case c.Base64Lorem != nil:
		text := base64.StdEncoding.EncodeToString(loremOf(*c.Base64Lorem))
		return strings.NewReader(text), int64(len(text))
	}
	return nil, 0
}

// sends returns the body of the request; empty: none.
func (c goldenCase) sends() []byte {
	if c.SendLorem > 0 {
		return loremOf(c.SendLorem)
	}
	return []byte(c.Send)
}

// repeated is an endless stream of the text in lorem.txt.
type repeated struct{ pos int }

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, lorem()[r.pos:])
	r.pos = (r.pos + n) % len(lorem())
	return n, nil
}

func loremReader(size int64) io.Reader { return io.LimitReader(&repeated{}, size) }

func loremOf(size int64) []byte {
	text, _ := io.ReadAll(loremReader(size)) // reading memory does not fail
	return text
}
