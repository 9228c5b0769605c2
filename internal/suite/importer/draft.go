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
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

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
	Unknown  []Request // requests that lack a value, which Note names
	Held     []Request // requests that change data of a service, set aside by Hold
	Left     []string  // a sentence for each reason to leave something out
	Secrets  []Secret  // by name
	Arrivals []int64   // of a log: times in ns from the first, ascending; otherwise empty
	Span     string    // length of Arrivals, as a suite's duration

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
	why        []string // the reasons, in order
}

// Request is one kind of request. Its texts are templates of a suite.
type Request struct {
	Method, Path string
	Headers      []Field
	Body, Type   string
	Weight       int // how often the file contains it
	Status       int // of a good response
	Note         string
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
	unknown       bool
}

// Hold sets aside the requests that change data of a service, by their method (RFC 9110, section
// 9.2.1). They are written as comments. It returns an error if no other request remains.
func (d *Draft) Hold() error {
	d.Requests = slices.DeleteFunc(d.Requests, func(r Request) bool {
		safe := slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, r.Method)
		if !safe {
			d.Held = append(d.Held, r)
		}
		return !safe
	})
	if len(d.Requests) == 0 {
		return errors.New("all that can be asked changes what the service holds; --writes asks it")
	}
	return nil
}

// hole returns the mark for ${NAME}, or for a placeholder in braces. Texts of files contain no NUL.
func hole(subject string) string { return "\x00" + subject + "\x00" }

// Read drafts from the content of the named file, of a kind; "": recognized by the content. origin
// selects requests; "": the most frequent origin.
func Read(name string, data []byte, kind, origin string) (*Draft, error) {
	if kind == "" {
		if kind = recognise(data); kind == "" {
			return nil, fmt.Errorf("read %s: it looks like none of %s; say which it is with --as",
				name, strings.Join(Kinds, ", "))
		}
	}
	d := empty()
	d.Kind, d.want = kind, origin
	read := map[string]func(string, []byte) error{OpenAPI: d.readOpenAPI, HAR: d.readHAR,
		Curl: d.readCurl, Postman: d.readPostman, Log: d.readLog}[kind]
	if read == nil {
		return nil, fmt.Errorf("read %s: there is no kind %q; there are %s", name, kind,
			strings.Join(Kinds, ", "))
	}
	if err := read(name, data); err != nil {
		return nil, fmt.Errorf("read %s as %s: %w", name, kind, err)
	}
	d.settle()
	if len(d.Requests) == 0 {
		why := "it has no requests"
		if len(d.Left) > 0 {
			why = "nothing is left: " + d.Left[0]
		} else if len(d.Unknown) > 0 {
			why = "every operation wants a value that has no example"
		}
		return nil, fmt.Errorf("read %s as %s: %s; add an example, or give a --url alone", name,
			kind, why)
	}
	return d, nil
}

func empty() *Draft {
	return &Draft{named: map[string]string{}, names: map[string]string{}, last: map[string]int{},
		reported: map[string]bool{}, hosts: map[string]int{}, counts: map[string]int{}}
}

// Alone returns the draft of only a URL or a command: one request.
func Alone(path string) *Draft {
	d := empty()
	d.add(raw{method: "GET", url: cmp.Or(path, "/")})
	d.settle()
	return d
}

var (
	curlLine = regexp.MustCompile(`(?m)^[$ \t]*curl(\.exe)?[ \t]`)
	openKey  = regexp.MustCompile(`(?m)^["']?(openapi|swagger)["']?[ \t]*:`)
)

// recognise returns the kind of a content; "": unknown.
func recognise(data []byte) string {
	data = bytes.TrimSpace(data)
	if bytes.HasPrefix(data, []byte("{")) {
		var top struct {
			OpenAPI, Swagger any
			Log              *struct{ Entries json.RawMessage }
			Info, Item       json.RawMessage
		}
		if json.Unmarshal(data, &top) == nil {
			switch {
			case top.OpenAPI != nil || top.Swagger != nil:
				return OpenAPI
			case top.Log != nil && top.Log.Entries != nil:
				return HAR
			case top.Item != nil && top.Info != nil:
				return Postman
			}
			return ""
		}
	}
	switch first, _, _ := bytes.Cut(data, []byte("\n")); {
	case logLine.Match(first):
		return Log
	case openKey.Match(data):
		return OpenAPI
	case curlLine.Match(data):
		return Curl
	}
	return ""
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
		d.leave("a method that suites do not have")
		return
	}
	origin, path, user, err := place(r.url)
	if err != nil {
		d.leave("an address that is not an http or https URL")
		return
	}
	if user != "" && !slices.ContainsFunc(r.headers, isField("authorization")) {
		r.headers = append(r.headers, Field{"Authorization", "Basic " + user})
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

func isField(name string) func(Field) bool {
	return func(f Field) bool { return strings.EqualFold(f.Name, name) }
}

// place splits an address into its origin, its path with the query, and its user.
func place(address string) (origin, path, user string, err error) {
	tail := address
	if scheme, after, ok := strings.Cut(address, "://"); ok && !strings.Contains(scheme, "/") {
		if scheme = strings.ToLower(scheme); scheme != "http" && scheme != "https" {
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
		u, err := url.Parse(scheme + "://" + host)
		if err != nil || u.Hostname() == "" || u.Path != "" {
			return "", "", "", fmt.Errorf("no host")
		}
		origin, tail = scheme+"://"+strings.ToLower(u.Host), after[end:]
	}
	tail, _, _ = strings.Cut(tail, "#")
	if !strings.HasPrefix(tail, "/") {
		tail = "/" + tail
	}
	return origin, tail, user, nil
}

// Local returns the origin and the path of an address; an address without a scheme is http.
func Local(text string) (origin, path string, err error) {
	if !strings.Contains(text, "://") {
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
			d.leave("of another host than " + d.Origin)
			continue
		}
		r.url = strings.TrimPrefix(r.url, d.Origin)
		retained = append(retained, d.hide(r))
	}
	d.raws, d.everywhere = nil, d.replacer()
	known := map[string]int{}
	for _, r := range retained {
		out := d.finish(r)
		key, _ := json.Marshal([]any{out.Method, out.Path, out.Headers, out.Body, r.unknown})
		switch i, ok := known[string(key)]; {
		case ok && !r.unknown:
			d.Requests[i].Weight += out.Weight
		case ok:
		case r.unknown:
			known[string(key)] = len(d.Unknown)
			d.Unknown = append(d.Unknown, out)
		default:
			known[string(key)] = len(d.Requests)
			d.Requests = append(d.Requests, out)
		}
	}
	d.bound()
	d.Requests = slices.DeleteFunc(d.Requests, func(r Request) bool {
		err := r.check()
		if err != nil {
			d.leave("a suite cannot send it: " + problem(err))
		}
		return err != nil
	})
	for _, why := range d.why {
		d.Left = append(d.Left, fmt.Sprintf("%d: %s", d.counts[why], why))
	}
	slices.SortFunc(d.Secrets, func(a, b Secret) int { return cmp.Compare(a.Name, b.Name) })
	d.Secrets = slices.DeleteFunc(d.Secrets, func(s Secret) bool {
		return !d.uses("${" + s.Name + "}")
	})
}

func (d *Draft) uses(text string) bool {
	return slices.ContainsFunc(slices.Concat(d.Requests, d.Unknown), func(r Request) bool {
		return strings.Contains(r.Path, text) || strings.Contains(r.Body, text) ||
			slices.ContainsFunc(r.Headers, func(f Field) bool {
				return strings.Contains(f.Value, text)
			})
	})
}

// bound keeps the most frequent requests, in their order, and limits their weights to a suite's.
func (d *Draft) bound() {
	if len(d.Requests) > kindsMax {
		weights := make([]int, len(d.Requests))
		for i, r := range d.Requests {
			weights[i] = r.Weight
		}
		slices.SortFunc(weights, func(a, b int) int { return b - a })
		least, ties := weights[kindsMax-1], 0
		for _, w := range weights[:kindsMax] {
			if w == least {
				ties++
			}
		}
		d.Requests = slices.DeleteFunc(d.Requests, func(r Request) bool {
			if r.Weight == least {
				ties--
			}
			out := r.Weight < least || r.Weight == least && ties < 0
			if out {
				d.leave(fmt.Sprintf("beyond the %d most frequent", kindsMax))
			}
			return out
		})
	}
	if len(d.Unknown) > kindsMax {
		d.Unknown = d.Unknown[:kindsMax]
	}
	const weightMax = 1_000_000
	most := 0
	for _, r := range d.Requests {
		most = max(most, r.Weight)
	}
	for i := range d.Requests {
		if r := &d.Requests[i]; most > weightMax {
			r.Weight = max(1, int(float64(r.Weight)/float64(most)*weightMax))
		}
	}
}

// problem returns the problem of an error without its file and line, which belong to a draft that
// the user has not seen.
func problem(err error) string {
	if e, is := errors.AsType[*strictyaml.Error](err); is {
		return e.Problem
	}
	return "it is not a request"
}
