// Package importer drafts a first prony.yaml from what a project already has: an OpenAPI document,
// a HAR, curl commands, a Postman collection, an access log, or only a URL.
//
//	file ─► kind, by content ─► requests ─► without secrets ─► merged, weighed, checked ─► YAML
//
// A draft leaves out requests that cannot be sent as they are, and lists the reasons. Values that
// look like secrets become ${NAME}, which the environment fills in when a load begins, and appear
// in no file or message.
//
// Non-goals: it sends nothing, supports no format completely, and invents no values: an operation
// with a required parameter that has no example becomes a comment in the file.
package importer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"prony.example/internal/base/address"
	"prony.example/internal/base/strictyaml"
)

// Kinds of files that a draft is made from.
const (
	OpenAPI = "openapi"
	HAR     = "har"
	Curl    = "curl"
	Postman = "postman"
	Log     = "log"
)

// Kinds lists all kinds.
var Kinds = []string{OpenAPI, HAR, Curl, Postman, Log}

// kindsMax limits the requests of a draft, so that it stays readable. A suite permits 100.
const kindsMax = 40

// Draft is the content of a file as requests of a suite.
type Draft struct {
	Kind   string
	Origin string // scheme, host and port that the file names; "": none
	Found  int    // requests, operations or lines in the file
	// Requests are in the order of the file, as a mix; never more than kindsMax.
	Requests []Request
	Unknown  []Request // those that lack a value: what is missing is Note
	Held     []Request // those that change data, if Options.ReadOnly sets them aside
	Left     []string  // what was left out and why, one sentence for each reason
	Changed  []string  // how the requests differ from those of the file, one sentence each
	Secrets  []Secret  // by name
	Arrivals []int64   // of a log: times in ns from the first, ascending; otherwise empty
	Span     string    // length of Arrivals, as a suite's duration
	Outside  int       // requests of a log outside of its busiest five minutes

	named    map[string]string // secret values by their names
	names    map[string]string // names by value
	reported map[string]bool   // names in Secrets
	last     map[string]int    // last number behind a name that several values share
	hosts    map[string]int    // number of requests by origin
	order    []string          // of hosts
	want     string            // the requested origin; "": the most frequent
	raws     []raw
	counts   map[string]int // by reason in Left

	everywhere *strings.Replacer
	why        []string       // reasons in their order
	notes      map[string]int // requests with a difference, by the sentence in Changed
	changed    []string       // sentences in their order
	noise      map[string]int // requests by a field that is not sent

	files      fs.FS
	only, tags []string // expressions of paths, and tags
	readOnly   bool
}

// Request is one kind of request. Its texts are templates of a suite.
type Request struct {
	Method, Path string
	Headers      []Field
	Body, Type   string
	Weight       int  // how often the file has it
	Status       int  // of a good answer: the most frequent in the file
	Assumed      bool // the file does not say the Status; the file of a suite then has none
	Note         string

	statuses map[int]int // how often the file has each
}

// Field is a header field.
type Field struct{ Name, Value string }

// Secret is a value that the file does not contain.
type Secret struct{ Name, About string }

// raw is a request as a file contains it. Its texts have holes for values that are filled in later.
type raw struct {
	method, url   string // url is absolute, or a path
	headers       []Field
	body, kind    string
	status, count int
	note          string
	changes       []string // how it differs from the file's
	unknown       bool
}

// setAside sets aside the requests that change data of a service, by their method (RFC 9110,
// section 9.2.1).
func (d *Draft) setAside() {
	d.Requests = slices.DeleteFunc(d.Requests, func(r Request) bool {
		safe := slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, r.Method)
		if !safe {
			d.Held = append(d.Held, r)
		}
		return !safe
	})
}

// Total is how often the file has the requests.
func Total(requests []Request) (n int) {
	for _, r := range requests {
		n += r.Weight
	}
	return n
}

// Counted is a number of requests in words.
func Counted(n int) string {
	if n == 1 {
		return "1 request"
	}
	return fmt.Sprintf("%d requests", n)
}

// hole stands for ${NAME}, or for a placeholder in braces. No text of a file has a NUL.
func hole(subject string) string { return "\x00" + subject + "\x00" }

// Options say what is read of a file.
type Options struct {
	Kind   string   // "": the one that the content looks like
	Origin string   // whose requests are wanted; "": the most frequent
	Only   []string // paths that are wanted, in which * is any text; none: all
	Tags   []string // of an OpenAPI document: those that are wanted; none: all
	Files  fs.FS    // the folder of the file, for references to others; nil: none is read
	// ReadOnly sets aside the requests of an OpenAPI document that change data.
	ReadOnly bool
}

// Read makes a draft of the content of the named file.
func (o Options) Read(name string, data []byte) (*Draft, error) {
	d, err := o.draft(name, data)
	if err == nil && len(d.Requests) == 0 {
		err = fmt.Errorf("read %s as %s: %s", name, d.Kind, d.none())
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// draft makes a draft, which may have no requests.
func (o Options) draft(name string, data []byte) (*Draft, error) {
	kind := o.Kind
	if kind == "" {
		if kind = recognise(data); kind == "" {
			if err := unknown(data); err != nil {
				return nil, fmt.Errorf("read %s: %w", name, err)
			}
			kind = Curl
		}
	}
	d := empty()
	d.Kind, d.files, d.tags = kind, o.Files, o.Tags
	d.want, _, _, _ = place(o.Origin) // in the form of those of the requests
	d.readOnly = o.ReadOnly && kind == OpenAPI
	for _, p := range o.Only {
		d.only = append(d.only, strings.ReplaceAll(regexp.QuoteMeta(p), `\*`, ".*"))
	}
	read := map[string]func(string, []byte) error{OpenAPI: d.readOpenAPI, HAR: d.readHAR,
		Curl: d.readCurl, Postman: d.readPostman, Log: d.readLog}[kind]
	if read == nil {
		return nil, fmt.Errorf("read %s: format %q is unknown; choose one of %s", name, kind,
			strings.Join(Kinds, ", "))
	}
	if err := read(name, data); err != nil {
		return nil, fmt.Errorf("read %s as %s: %w", name, kind, err)
	}
	d.settle()
	return d, nil
}

// none says why a draft has no requests, and what to do.
func (d *Draft) none() string {
	const hint = "; add an example to the file, or pass only --url"
	switch {
	case len(d.Held) > 0:
		return fmt.Sprintf("%s of the file would change data of the service, and no other has all "+
			"that it needs; pass --writes to include such requests", Counted(Total(d.Held)))
	case len(d.Unknown) > 0:
		r := d.Unknown[0]
		return fmt.Sprintf("every request wants a value that has no example: %s %s, %s",
			r.Method, oneLine(r.Path), oneLine(r.Note)) + hint
	case len(d.Left) > 0:
		return "every request was left out: " + strings.Join(d.Left, ", ") + hint
	}
	return "it has no requests" + hint
}

func empty() *Draft {
	return &Draft{named: map[string]string{}, names: map[string]string{}, last: map[string]int{},
		reported: map[string]bool{}, hosts: map[string]int{}, counts: map[string]int{},
		notes: map[string]int{}, noise: map[string]int{}}
}

// Alone returns the draft of only a URL or a command: one request.
func Alone(path string) *Draft {
	d := empty()
	d.add(raw{method: "GET", url: cmp.Or(path, "/")})
	d.settle()
	return d
}

// leave counts something that is left out for a reason.
func (d *Draft) leave(why string) { d.leaveAll(why, 1) }

func (d *Draft) leaveAll(why string, n int) {
	if d.counts[why] == 0 {
		d.why = append(d.why, why)
	}
	d.counts[why] += n
}

// methods are the methods that suites support.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// add adds a request of the file.
func (d *Draft) add(r raw) {
	r.method = strings.ToUpper(cmp.Or(r.method, "GET"))
	if !slices.Contains(methods, r.method) {
		d.leave("the method " + oneLine(r.method) + ", which suites do not have")
		return
	}
	if r.url == "" {
		d.leave(unaddressed)
		return
	}
	origin, path, user, err := place(r.url)
	if err != nil {
		d.leave("a request whose address is not an http or https URL")
		return
	}
	if short, _, _ := strings.Cut(path, "?"); d.Kind != OpenAPI && !d.chosen(short, nil) {
		d.leaveAll(unchosen, max(r.count, 1))
		return
	}
	if user != "" && !slices.ContainsFunc(r.headers, isField("authorization")) {
		if nul(user) {
			user = hole("BASIC_AUTH")
		}
		r.headers = append(r.headers, Field{"Authorization", "Basic " + user})
	}
	why := r.joined()
	texts := r.body
	for _, f := range r.headers {
		texts += "\n" + f.Name + f.Value
	}
	switch {
	case !utf8.ValidString(texts):
		why = "bytes that are not UTF-8 in its body or its header fields"
	case strings.ContainsRune(texts, utf8.RuneError):
		why = "its body or its header fields have U+FFFD, which files have in place of bytes " +
			"that are not text"
	}
	if why != "" {
		d.leave(why)
		return
	}
	r.url, r.count = origin+path, max(r.count, 1)
	if origin != "" && d.hosts[origin] == 0 {
		d.order = append(d.order, origin)
	}
	if origin != "" {
		d.hosts[origin] += r.count
	}
	r.note = strings.TrimSpace(r.note)
	d.raws = append(d.raws, r)
}

// Why requests are left out: the user does not want them, or the input does not say where to.
const (
	unchosen    = "not of --only or --tag"
	unaddressed = "a request without an address"
)

// chosen says whether the user wants a path with its tags, which only documents have. Of a log all
// is wanted: its times are of all paths.
func (d *Draft) chosen(path string, tags []string) bool {
	if d.Kind == Log {
		return true
	}
	fits := func(p string) bool { return regexp.MustCompile("^(?:" + p + ")$").MatchString(path) }
	tagged := func(tag string) bool { return slices.Contains(tags, tag) }
	return (len(d.only) == 0 || slices.ContainsFunc(d.only, fits)) &&
		(len(d.tags) == 0 || d.Kind != OpenAPI || slices.ContainsFunc(d.tags, tagged))
}

func isField(name string) func(Field) bool {
	return func(f Field) bool { return strings.EqualFold(f.Name, name) }
}

// otherScheme matches URLs without a host that recordings of browsers contain.
var otherScheme = regexp.MustCompile(`(?i)^(about|blob|data|file|javascript|mailto|urn):`)

// place splits an address into its origin, its path with the query, and its user.
func place(text string) (origin, path, user string, err error) {
	if otherScheme.MatchString(text) {
		return "", "", "", errors.New("the URL is not http")
	}
	tail := text
	if scheme, after, ok := strings.Cut(text, "://"); ok && !strings.Contains(scheme, "/") {
		scheme = strings.ToLower(scheme)
		if scheme != "http" && scheme != "https" && !nul(scheme) {
			return "", "", "", fmt.Errorf("%s is not http", scheme)
		}
		end := strings.IndexAny(after, "/?#")
		if end < 0 {
			end = len(after)
		}
		host := after[:end]
		if pos := strings.LastIndexByte(host, '@'); pos >= 0 {
			user, host = host[:pos], host[pos+1:]
		}
		if nul(scheme, host) { // what a variable stands for is not known: only the path is
			_, path, _, err := place("/" + strings.TrimPrefix(after[end:], "/"))
			return "", path, user, err
		}
		a, err := address.Parse(scheme+"://"+host, "http", "https")
		if err != nil {
			return "", "", "", err
		}
		origin, tail = strings.ToLower(authority(scheme+":", a.Origin())), after[end:]
	}
	tail, _, _ = strings.Cut(tail, "#")
	if !strings.HasPrefix(tail, "/") {
		tail = "/" + tail
	}
	return origin, tail, user, nil
}

// Local returns the origin and the path of an address; an address without a scheme is http.
func Local(text string) (origin, path string, err error) {
	if !schemed.MatchString(text) {
		text = "http://" + text
	}
	u, err := address.Parse(text, "http", "https")
	if err == nil && u.Basic != "" {
		err = errors.New("want a URL without a user, because files are read by others; give the " +
			"requests the header field 'Authorization: ${NAME}'")
	}
	return strings.ToLower(u.Origin()), u.Path, err
}

// settle turns the raw requests into requests of one origin, without secrets and without
// duplicates.
func (d *Draft) settle() {
	if d.hosts[d.want] > 0 {
		d.Origin = d.want
	}
	for _, o := range d.order {
		if d.Origin == "" || d.Origin != d.want && d.hosts[o] > d.hosts[d.Origin] {
			d.Origin = o
		}
	}
	var retained []raw
	for _, r := range d.raws {
		if origin, _, _, _ := place(r.url); origin != "" && origin != d.Origin {
			d.leaveAll("of another host than "+d.Origin, r.count)
			continue
		}
		r.url = strings.TrimPrefix(r.url, d.Origin)
		retained = append(retained, d.hide(r))
	}
	d.raws, d.everywhere = nil, d.replacer()
	known := map[string]int{}
	for _, r := range retained {
		out := d.finish(r)
		key, _ := json.Marshal([]any{out.Method, out.Path, out.Headers, out.Body, out.Type,
			r.unknown})
		switch i, ok := known[string(key)]; {
		case ok && !r.unknown:
			same := &d.Requests[i]
			same.Weight += out.Weight
			same.add(out)
		case ok:
			d.Unknown[i].Weight += out.Weight
		case r.unknown:
			known[string(key)] = len(d.Unknown)
			d.Unknown = append(d.Unknown, out)
		default:
			known[string(key)] = len(d.Requests)
			out.statuses = map[int]int{}
			out.add(out)
			d.Requests = append(d.Requests, out)
		}
	}
	if d.readOnly {
		d.setAside()
	}
	d.Requests, d.Held = d.sendable(d.bound(d.Requests)), d.sendable(d.bound(d.Held))
	for _, why := range d.why {
		d.Left = append(d.Left, fmt.Sprintf("%d: %s", d.counts[why], why))
	}
	d.differences()
	slices.SortFunc(d.Secrets, func(a, b Secret) int { return cmp.Compare(a.Name, b.Name) })
	d.needed()
}

// add counts the status of an equal request, if the file says it.
func (r *Request) add(same Request) {
	if same.Assumed {
		return
	}
	r.Assumed = false
	r.statuses[same.Status] += same.Weight
	r.Status = frequent(r.statuses)
}

// needed keeps the secrets that the requests use.
func (d *Draft) needed() {
	d.Secrets = slices.DeleteFunc(d.Secrets, func(s Secret) bool {
		return !d.uses("${" + s.Name + "}")
	})
}

func (d *Draft) uses(text string) bool {
	return slices.ContainsFunc(d.Requests, func(r Request) bool {
		return strings.Contains(r.Path, text) || strings.Contains(r.Body, text) ||
			slices.ContainsFunc(r.Headers, func(f Field) bool {
				return strings.Contains(f.Value, text)
			})
	})
}

// sendable keeps the requests that a suite accepts.
func (d *Draft) sendable(requests []Request) []Request {
	return slices.DeleteFunc(requests, func(r Request) bool {
		err := r.check()
		if err != nil {
			d.leaveAll("a suite cannot send it: "+problem(err), r.Weight)
		}
		return err != nil
	})
}

// bound keeps the most frequent requests, in their order, and limits their weights to a suite's.
func (d *Draft) bound(requests []Request) []Request {
	if len(requests) > kindsMax {
		weights := make([]int, len(requests))
		for i, r := range requests {
			weights[i] = r.Weight
		}
		slices.SortFunc(weights, func(a, b int) int { return b - a })
		why := fmt.Sprintf("beyond the %d most frequent", kindsMax)
		if slices.Min(weights) == weights[0] {
			why = fmt.Sprintf("beyond the first %d; choose others with --only", kindsMax)
		}
		least, ties := weights[kindsMax-1], 0
		for _, w := range weights[:kindsMax] {
			if w == least {
				ties++
			}
		}
		requests = slices.DeleteFunc(requests, func(r Request) bool {
			if r.Weight == least {
				ties--
			}
			out := r.Weight < least || r.Weight == least && ties < 0
			if out {
				d.leaveAll(why, r.Weight)
			}
			return out
		})
	}
	const weightMax = 1_000_000
	most := 0
	for _, r := range requests {
		most = max(most, r.Weight)
	}
	for i := range requests {
		if r := &requests[i]; most > weightMax {
			r.Weight = max(1, int(float64(r.Weight)/float64(most)*weightMax))
		}
	}
	return requests
}

// problem returns the problem of an error without its file and line, which belong to a draft that
// the user has not seen.
func problem(err error) string {
	if e, is := errors.AsType[*strictyaml.Error](err); is {
		return e.Problem
	}
	return "the text is not a valid request"
}
