package generator

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/record"
)

// format is an output format that is recognized by its content.
type format struct {
	tool    string
	subject string
	is      func(*content) bool
	read    func(text string) (*tally, error)
}

// content is a file's content in the form that formats check.
type content struct {
	text  string
	first string          // its first line
	keys  map[string]bool // of a JSON object at its begin; its values may be broken
}

func has(texts ...string) func(*content) bool {
	return func(c *content) bool {
		lacks := func(t string) bool { return !strings.Contains(c.text, t) }
		return c.keys == nil && !slices.ContainsFunc(texts, lacks)
	}
}

func keys(names ...string) func(*content) bool {
	return func(c *content) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return !c.keys[n] })
	}
}

func starts(expression string) func(*content) bool {
	p := lazyregexp.New(expression)
	return func(c *content) bool { return c.keys == nil && p.MatchString(c.first) }
}

var (
	h2Log      = lazyregexp.New(`^\d{12,}\t-?\d+\t\d+`)
	wrk2Signs  = lazyregexp.New(`HdrHistogram - |Thread calibration: |Req/Sec\s+-nan\s+-nan`)
	jsonList   = lazyregexp.New(`^\[\s*($|[\[{"])`)
	jmeterSign = lazyregexp.New(`summary [=+]\s+\d+ in `)
	// colors are what a terminal shows text in (ECMA-48, SGR).
	colors = lazyregexp.New("\x1b\\[[0-9;]*m")
	// prefixes are what logs of CI, docker compose and pods, and quotes in messages, have before
	// each line.
	prefixes = lazyregexp.New(`(?m)^(?:(?:[^\t\n]+\t){0,2}\d{4}-\d\d-\d\dT[\d:.]+Z(?: |$)|` +
		`[\w.-]+ +\| ?|\[pod/\S+\] ?|> ?)`)
)

// cleaned removes the text that was added to a tool's output: colors, and what stands before each
// line.
func cleaned(text string) string {
	text = strings.TrimPrefix(text, "\ufeff")
	if strings.Contains(text, "\x1b[") { // a replacement copies the text, which may be large
		text = colors.ReplaceAllString(text, "")
	}
	trimmed := strings.TrimSpace(text)
	first, _, _ := strings.Cut(trimmed, "\n")
	if lines := strings.Count(trimmed, "\n") + 1; !prefixes.MatchString(first) ||
		len(prefixes.FindAllStringIndex(trimmed, lines)) < lines {
		return text
	}
	return prefixes.ReplaceAllString(text, "")
}

// formats are tried in this order, more specific ones first.
var formats = []format{
	{"oha", "its JSON", keys("statusCodeDistribution"), importOha},
	{"k6", "its JSON summary", keys("metrics"), importK6},
	{"k6", "its machine-readable summary", keys("results", "config"), importK6},
	{"k6", "its points as JSON (--out json)", keys("type", "data", "metric"), importK6JSON},
	{"vegeta", "its JSON report", keys("latencies"), importVegeta},
	{"hey", "its CSV", starts(`^"?response-time"?[,;\t|]"?DNS\+dialup`), importHeyRows},
	{"oha", "its CSV", starts(`^"?request-start"?[,;\t|]"?DNS`), importOhaRows},
	{"k6", "its points as CSV (--out csv)", starts(`^"?metric_name"?[,;\t|]`), importK6Rows},
	{"jmeter", "its log (JTL) as CSV", starts(`timeStamp.*elapsed|elapsed.*timeStamp`), importJTL},
	{"jmeter", "its log (JTL) as CSV", func(c *content) bool {
		return c.keys == nil && jtlBare.MatchString(c.first)
	}, importBareJTL},
	{"h2load", "its log", func(c *content) bool { return h2Log.MatchString(c.first) }, importH2Log},
	{"wrk2", "its text", func(c *content) bool {
		return has("Thread Stats", "requests in ")(c) && wrk2Signs.MatchString(c.text)
	}, importWrk2},
	{"wrk", "its text", has("Thread Stats", "requests in "), importWrk},
	{"oha", "its text", has("Summary:", "Success rate:"), importOhaText},
	{"hey", "its text", has("Summary:", "Requests/sec:"), importHey},
	{"h2load", "its text", has("finished in ", "status codes: "), importH2load},
	{"k6", "its text", has("http_req_duration", "http_reqs"), importK6Text},
	{"jmeter", "the text of its summariser",
		func(c *content) bool { return jmeterSign.MatchString(c.text) }, importJMeter},
}

// Formats lists the formats that Import reads, as "wrk: its text".
func Formats() (out []string) {
	for _, f := range formats {
		out = append(out, f.tool+": "+f.subject)
	}
	return slices.Compact(out)
}

// Unrecognized is the error of Import for a text in no format that it reads.
type Unrecognized struct {
	name string
	// Known describes a format that Import recognizes but does not read, and what to do; empty: the
	// format is unknown.
	Known  string
	Broken error // where a text that begins like JSON stops being JSON
}

// Error names the formats that Import reads, or the one that it recognized.
func (u *Unrecognized) Error() string {
	if u.Known != "" {
		return fmt.Sprintf("import %s: %s", u.name, u.Known)
	}
	if u.Broken != nil {
		return fmt.Sprintf("import %s: %v", u.name, u.Broken)
	}
	return fmt.Sprintf("import %s: the format was not recognized as one of %s", u.name,
		strings.Join(Formats(), "; "))
}

// Import parses the saved output of a load generator and recognizes its format by the content. name
// is the file's name, for errors. The notes list missing and wrong information in the output.
// Unknown numbers are 0, an unknown model is empty. A text in a known format with a value that
// cannot be read is an error. If the tool has no opinion, 2xx and 3xx responses count as good.
func Import(name, text string) (*record.Load, []Note, error) {
	text = cleaned(text)
	c := &content{text: strings.TrimLeft(text, " \t\r\n")}
	c.first, _, _ = strings.Cut(c.text, "\n")
	c.first = strings.TrimRight(c.first, "\r")
	if strings.HasPrefix(c.first, "{") {
		c.keys = topKeys(c.text)
	}
	if why := described(c); why != "" {
		return nil, nil, &Unrecognized{name: name, Known: why}
	}
	for _, f := range formats {
		if !f.is(c) {
			continue
		}
		t, err := f.read(text) // with empty lines at its begin, which count
		if err == nil && t.good+t.errors.Total() == 0 {
			err = errors.New("the tool received no responses")
		}
		if err != nil {
			return nil, nil, &Unreadable{name, f.subject + " of " + f.tool, err}
		}
		l, notes := t.finish(name, f.tool)
		return l, notes, nil
	}
	foreign := &Unrecognized{name: name}
	list := jsonList.MatchString(c.first)
	if (c.keys != nil || list) && !json.Valid([]byte(c.text)) {
		_, foreign.Broken = document(text)
	}
	return nil, nil, foreign
}

// Unreadable is the error of Import for a text in a known format with a part that cannot be read.
type Unreadable struct {
	name   string
	Format string // "its text of wrk"
	Err    error
}

// Error names the file, the format and the part.
func (u *Unreadable) Error() string {
	return fmt.Sprintf("import %s as %s: %v", u.name, u.Format, u.Err)
}

// Unwrap returns the error about the part.
func (u *Unreadable) Unwrap() error { return u.Err }

// topKeys returns the keys of a JSON object, also of one that is broken further on.
func topKeys(text string) map[string]bool {
	out, depth := map[string]bool{}, 0
	dec := json.NewDecoder(strings.NewReader(text))
	for key := true; ; {
		token, err := dec.Token()
		if err != nil {
			return out
		}
		delim, isDelim := token.(json.Delim)
		switch {
		case isDelim && (delim == '{' || delim == '['):
			depth++
			key = depth == 1
		case isDelim:
			if depth--; depth == 0 {
				return out
			}
			key = depth == 1
		case depth == 1 && key:
			name, _ := token.(string)
			out[name], key = true, false
		case depth == 1:
			key = true
		}
	}
}

// finish returns the load of a file, and a note about its model.
func (t *tally) finish(name, tool string) (*record.Load, []Note) {
	t.ordered()
	l := t.imported()
	l.Name, l.Driver = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), tool
	first := Note{Kind: NoteModelUnknown}
	switch {
	case t.model == record.Closed:
		first.Kind = NoteClosed
	case t.model == record.Open && l.ResponseTime.Count == 0:
		first.Kind = NoteOpenFromSending
	case t.model == record.Open:
		first.Kind = NoteOpen
	}
	return l, append([]Note{first}, t.notes...)
}

// ordered removes impossible times: it reduces values that rounding put slightly above the largest
// value to it, and drops distributions whose times don't ascend.
func (t *tally) ordered() {
	for _, d := range []*record.Dist{&t.response, &t.service, &t.firstByte, &t.errored,
		&t.connect} {
		last := int64(0)
		for _, ns := range []*int64{&d.MinNs, &d.P50Ns, &d.P90Ns, &d.P99Ns, &d.P999Ns} {
			if d.MaxNs > 0 && *ns > d.MaxNs && float64(*ns) < rounding*float64(d.MaxNs) {
				*ns = d.MaxNs
			}
			if *ns > 0 && (*ns < last || d.MaxNs > 0 && *ns > d.MaxNs) {
				t.note(NoteFallingPercentile, *ns, last)
				*d = record.Dist{}
				break
			}
			last = max(last, *ns)
		}
		switch most := float64(d.MaxNs); {
		case most == 0 || d.MeanNs <= most:
		case d.MeanNs < rounding*most:
			d.MeanNs = most
		default:
			t.note(NoteMeanAboveMax)
			d.MeanNs = 0
		}
	}
}

// rounding is the largest ratio by which rounding to two decimals can be off: 1.005 is printed as
// 1.01.
const rounding = 1.006
