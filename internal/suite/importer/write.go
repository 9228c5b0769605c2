package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"prony.example/internal/suite"
	"prony.example/load/template"
)

// File is the settings of a draft's file beside the requests.
type File struct {
	From    string // origin of the draft, as the reader knows it; "": none
	URL     string // of the target, or
	Command string // of the target
	Trace   string // file of the arrivals, relative to the draft's folder
	Remote  string // host of a URL on another machine; "": this machine
	TLS     suite.TLS
}

// finish makes the texts of a suite: it escapes literal text and fills holes.
func (d *Draft) finish(r raw) Request {
	status := r.expected()
	for _, note := range r.changes {
		d.change(note, r.count)
	}
	if loneSign.MatchString(r.url) {
		d.change("a % that begins no escape is sent as %25", r.count)
	}
	out := Request{Method: r.method, Path: d.text(pathOf(r.url)), Body: d.text(r.body),
		Weight: r.count, Status: status, Note: r.note,
		Assumed: r.status == 0 && status == http.StatusOK}
	for _, f := range r.headers {
		if strings.EqualFold(f.Name, "content-type") && r.body != "" {
			r.kind = cmp.Or(r.kind, f.Value)
			continue
		}
		out.Headers = append(out.Headers, Field{f.Name, d.text(f.Value)})
	}
	if r.body != "" && r.kind == "" {
		d.change("a body without a Content-Type is sent with text/plain", r.count)
	}
	if r.body != "" {
		out.Type = mediaWords.ReplaceAllStringFunc(r.kind, strings.ToLower)
		if !mediaType.MatchString(out.Type) && r.kind != "" {
			out.Headers = append(out.Headers, Field{"Content-Type", d.text(r.kind)})
			out.Type = ""
		}
	}
	return out
}

// mediaType matches the media types that suites accept.
var mediaType = regexp.MustCompile(
	`^[a-z0-9.+-]+/[a-z0-9.+-]+(; ?[a-z0-9-]+=[A-Za-z0-9.+-]+)*$`)

// mediaWords are the words of a media type whose case has no meaning: all but the values of its
// parameters (RFC 9110, section 8.3.1), such as a boundary.
var mediaWords = regexp.MustCompile(`(^|;)[^;=]*`)

// text returns the template of a suite for s: with filled holes, and all else as literal text.
func (d *Draft) text(s string) string {
	s = around(d.everywhere.Replace(s), template.Escape)
	return holeRe.ReplaceAllStringFunc(s, func(hole string) string {
		inside := strings.Trim(hole, "\x00")
		if strings.HasPrefix(inside, "{") {
			return inside
		}
		d.tell(inside, "a variable that has no value in the file")
		return "${" + inside + "}"
	})
}

// around changes a text, without its holes.
func around(s string, change func(string) string) string {
	var b strings.Builder
	pos := 0
	for _, m := range append(holeRe.FindAllStringIndex(s, -1), []int{len(s), len(s)}) {
		b.WriteString(change(s[pos:m[0]]) + s[m[0]:m[1]])
		pos = m[1]
	}
	return b.String()
}

// loneSign is a percent sign that begins no escape.
var loneSign = regexp.MustCompile(`%([^0-9A-Fa-f]|[0-9A-Fa-f]?$|[0-9A-Fa-f][^0-9A-Fa-f])`)

// odd are escapes, and characters that a suite's path cannot contain.
var odd = regexp.MustCompile(`%[0-9A-Fa-f]{2}|%|[^!-~]|[{}#"<>\\^|` + "`]")

// pathOf escapes characters that a suite's path cannot contain, and leaves holes as they are.
func pathOf(path string) string {
	return around(path, func(s string) string {
		return odd.ReplaceAllStringFunc(s, func(m string) string {
			if len(m) > 1 && m[0] == '%' {
				return m
			}
			return url.PathEscape(m)
		})
	})
}

// check returns why a suite would refuse the request.
func (r *Request) check() error {
	var b strings.Builder
	b.WriteString("name: draft\nrequests:\n")
	r.print(&b, 1, "")
	_, err := suite.ReadScenario("prony.yaml", []byte(b.String()))
	return err
}

// Print writes the prony.yaml.
func (d *Draft) Print(w io.Writer, f File) {
	p := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	p("# This file defines a comparison: `prony run` in this folder runs it.")
	if f.From != "" {
		p("# prony init made it from %s; you can change every line.", oneLine(f.From))
	}
	if len(d.Secrets) > 0 {
		p("#\n# These values come from environment variables when a load begins. No record " +
			"contains them:")
		for _, s := range d.Secrets {
			p("#   %s: %s", s.Name, oneLine(s.About))
		}
	}
	p("targets:")
	if f.Command != "" {
		p("  app:")
		p("    command: %s   # {port} or $PORT is its port", quote(f.Command))
		p("    # build: make               # runs before the first start")
	} else {
		p("  app: {url: %s}   # a running service; with a command instead, Prony starts it under "+
			"limits",
			quote(f.URL))
	}
	if f.Remote != "" {
		p("  # The service is on another machine, so run: prony run --remote %s", oneLine(f.Remote))
	}
	p("  # old: {command: …, git: main}   # a second target is what it is compared with")
	if ready := d.ready(); ready != "" {
		p("ready: %s   # what answers 200 once it serves; - is the first connection",
			quote(ready))
	} else {
		p("# ready: /health               # what answers 200 once it serves; else the first GET")
	}
	indent := ""
	if f.TLS != (suite.TLS{}) {
		p("\nscenarios:\n  - name: requests\n    protocol: https\n    tls: {%s}\n    requests:",
			believed(f.TLS))
		indent = "    "
	} else {
		p("\nrequests:")
	}
	d.requests(w, indent)
	d.loads(p, f)
}

// believed returns the keys of a TLS configuration.
func believed(t suite.TLS) string {
	var keys []string
	if t.Insecure {
		keys = append(keys, "insecure: true")
	}
	if t.CA != "" {
		keys = append(keys, "ca: "+quote(t.CA))
	}
	return strings.Join(keys, ", ")
}

// requests writes the list of requests.
func (d *Draft) requests(w io.Writer, indent string) {
	p := func(format string, args ...any) { fmt.Fprintf(w, indent+format+"\n", args...) }
	for _, r := range d.Requests {
		if r.Note != "" {
			p("  # %s", oneLine(r.Note))
		}
		weight := 0
		if len(d.Requests) > 1 {
			weight = r.Weight
		}
		r.print(w, weight, indent+"  ")
	}
	if len(d.Held) > 0 {
		p("  # These requests change data of the service; prony init --writes includes them.")
	}
	for _, r := range d.Held {
		r.print(w, r.Weight, indent+"  # ")
	}
	for i, r := range d.Unknown {
		if i == kindsMax {
			p("  # … and %d more without an example", Total(d.Unknown[i:]))
			break
		}
		p("  # - request: %s %s   # %s", r.Method, oneLine(r.Path), oneLine(r.Note))
	}
}

func (d *Draft) loads(p func(string, ...any), f File) {
	p("\nloads:")
	p("  # First the maximum throughput, then response times at half of it.")
	p("  - {name: peak, model: closed, connections: 16, measure: 5s}")
	p("  - {name: half, model: open, rate: 50%% of peak, connections: 16, measure: 5s}")
	if len(d.Arrivals) > 0 && f.Trace != "" {
		p("  # The arrival times of the log, in %s.", oneLine(f.Trace))
		p("  - {name: replay, model: open, arrivals: replay, trace: %s, leadIn: 0s, measure: %s}",
			quote(f.Trace), d.Span)
	}
}

// print writes one request as an item of a list; a weight of 0 is left out.
func (r *Request) print(w io.Writer, weight int, indent string) {
	p := func(format string, args ...any) { fmt.Fprintf(w, indent+format+"\n", args...) }
	p("- request: %s", quote(r.Method+" "+r.Path))
	if len(r.Headers) > 0 {
		p("  headers:")
		for _, f := range r.Headers {
			p("    %s: %s", quote(f.Name), quote(f.Value))
		}
	}
	if r.Body != "" {
		p("  body: %s", quote(r.Body))
		if r.Type != "" {
			p("  type: %s", quote(r.Type))
		}
	}
	if weight > 0 {
		p("  weight: %d", weight)
	}
	if !r.Assumed { // else a run takes what the responses have in common
		p("  expect: {status: %d}", r.Status)
	}
}

// plainWord matches the strings that YAML reads without quotes.
var plainWord = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9/._?=&%+-]*( /[A-Za-z0-9/._?=&%+-]*)?$`)

// quote returns a YAML scalar for a string: in single quotes if it is one line of printable ASCII,
// otherwise in JSON's form, which YAML also reads (YAML 1.2, section 7.3.1).
func quote(s string) string {
	odd := func(r rune) bool { return r < ' ' || r == 0x7f || r > '~' }
	switch {
	case plainWord.MatchString(s) && !reserved.MatchString(s):
		return s
	case !strings.ContainsFunc(s, odd):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	out, _ := json.Marshal(s) // encoding a string cannot fail
	return string(out)
}

var reserved = regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|null|y|n|nan|inf)$`)

// oneLine removes line ends from a comment, so that text of a file cannot end it. Fields removes
// NEL, LS and PS.
func oneLine(s string) string {
	const longest = 120
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfeff {
			return ' '
		}
		return r
	}, s)), " ")
	if runes := []rune(s); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return s
}
