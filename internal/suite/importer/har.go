package importer

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// har is the part of an HTTP Archive that is read, version 1.2
// (http://www.softwareishard.com/blog/har-12-spec/).
type har struct {
	Log struct{ Entries []json.RawMessage }
}

type entry struct {
	Request struct {
		Method, URL          scalar
		Headers, QueryString pairs
		Cookies              pairs
		PostData             *struct {
			MimeType, Text, Encoding scalar
			Params                   pairs
		}
		BodySize scalar
	}
	Response *struct {
		Status  scalar
		Content struct{ MimeType scalar }
	}
}

// pair is a name and a value of a HAR or of Postman.
type pair struct {
	Name, Key, ID scalar // words for the name
	Value         scalar
	ContentType   scalar // of a part
	file          bool   // the part is a file
	Disabled      bool
	valued        bool // it has a value, though it may be ""
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *pair) UnmarshalJSON(data []byte) error {
	var in struct {
		Name, Key, ID, FileName scalar
		Type, ContentType       scalar
		Value                   json.RawMessage
		Disabled                any
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	var typed struct { // as recorders copy it from WebDriver BiDi
		Type  scalar
		Value json.RawMessage
	}
	if len(in.Value) > 0 && in.Value[0] == '{' && json.Unmarshal(in.Value, &typed) == nil &&
		typed.Type == "string" {
		in.Value = typed.Value
	}
	*p = pair{Name: in.Name, Key: in.Key, ID: in.ID, Disabled: in.Disabled == true,
		ContentType: in.ContentType, file: in.FileName != "" || in.Type == "file",
		valued: len(in.Value) > 0 && in.Value[0] != 'n'}
	if p.valued {
		return p.Value.UnmarshalJSON(in.Value)
	}
	return nil
}

func (p pair) name() string { return string(cmp.Or(p.Key, p.Name, p.ID)) }

// pairs are those of a list. Internet Explorer writes a list of one as its only item.
type pairs []pair

// UnmarshalJSON implements json.Unmarshaler.
func (p *pairs) UnmarshalJSON(data []byte) error {
	var item struct{ Name *scalar }
	if data[0] == '{' && json.Unmarshal(data, &item) == nil && item.Name != nil {
		data = slices.Concat([]byte("["), data, []byte("]"))
	}
	return json.Unmarshal(data, (*[]pair)(p))
}

// static are the endings and media types of files that any web server sends.
var static = []string{".js", ".mjs", ".css", ".map", ".png", ".jpg", ".jpeg", ".gif", ".svg",
	".webp", ".avif", ".ico", ".woff", ".woff2", ".ttf", ".otf", ".eot", ".mp4", ".webm", ".mp3",
	".wasm", ".txt.gz", ".webmanifest"}

var staticType = regexp.MustCompile(
	`^(image|font|audio|video)/|^text/(css|javascript)|^application/(x-)?(javascript|font|wasm)`)

func isStatic(target, mime string) bool {
	target, _, _ = strings.Cut(target, "?")
	end := strings.ToLower(path.Ext(target))
	return slices.Contains(static, end) || staticType.MatchString(mime)
}

func (d *Draft) readHAR(_ string, data []byte) error {
	var h har
	if err := json.Unmarshal(data, &h); err != nil {
		return broken(err)
	}
	d.Found = len(h.Log.Entries)
	for _, data := range h.Log.Entries {
		var e entry
		if err := json.Unmarshal(data, &e); err != nil {
			d.leave("an entry that is not understood: " + broken(err).Error())
			continue
		}
		r, why := e.raw()
		if why == "" {
			why = e.unfit(r)
		}
		if why != "" {
			d.leave(why)
			continue
		}
		d.add(r)
	}
	return nil
}

// raw is the request of an entry. An archive without answers has a status of 0.
func (e *entry) raw() (r raw, why string) {
	q := e.Request
	r = raw{method: string(q.Method), url: string(q.URL)}
	if e.Response != nil {
		// Some programs write 200.0; what is no number is no answer.
		status, _, _ := strings.Cut(string(e.Response.Status), ".")
		r.status, _ = strconv.Atoi(status)
	}
	r.url, _, _ = strings.Cut(r.url, "#")
	if len(q.QueryString) > 0 && r.url != "" && !strings.Contains(r.url, "?") {
		r.url += "?" + form(q.QueryString, formWord)
	}
	for _, f := range q.Headers {
		r.headers = append(r.headers, Field{f.name(), string(f.Value)})
	}
	if !slices.ContainsFunc(r.headers, isField("cookie")) {
		for _, c := range q.Cookies {
			r.headers = append(r.headers, Field{"Cookie", c.name() + "=" + string(c.Value)})
		}
	}
	if p := q.PostData; p != nil {
		r.kind, r.body = string(p.MimeType), string(p.Text)
		if i := slices.IndexFunc(r.headers, isField("content-type")); i >= 0 && r.body != "" {
			r.kind = r.headers[i].Value // what was sent; the other may lack parameters
		}
		switch {
		case r.body != "" || len(p.Params) == 0:
		case strings.HasPrefix(strings.ToLower(r.kind), "multipart/form-data"):
			parts, why := partsOf(p.Params, func(s scalar) string { return string(s) })
			if why != "" {
				return r, why
			}
			r.body, r.kind = multipartForm(parts)
		case !isForm.MatchString(r.kind):
			return r, "its body is given in fields, but its type is not that of a form"
		default:
			e.fill(&r)
		}
		if p.Encoding == "base64" {
			plain, err := base64.StdEncoding.DecodeString(r.body)
			if r.body = string(plain); err != nil || !utf8.Valid(plain) || nul(r.body) {
				return r, "a body that is not text"
			}
		} else if r.body != "" && slices.ContainsFunc(r.headers, compressed) {
			return r, "its body is compressed, which the file holds as text"
		}
	}
	return r, ""
}

// fill makes the body of a form from its fields. Some recorders write them as they were sent, with
// their escapes; the length of the body says so.
func (e *entry) fill(r *raw) {
	fields, size := e.Request.PostData.Params, e.size(*r)
	r.body = form(fields, formWord)
	sent := form(fields, func(s string) string { return s })
	text := strings.TrimSuffix(sent, "=") // a body that is no form has become one name
	switch size {
	case len(r.body):
	case len(sent):
		r.body = sent
	case len(text):
		r.body = text
	default:
		if size > 0 {
			r.differ("the body of a form is made of its fields, which were sent with other escapes")
		}
	}
}

// size is the length of the body that was sent; 0 or less: unknown.
func (e *entry) size(r raw) int {
	size, _ := strconv.Atoi(string(e.Request.BodySize)) // -1 is unknown
	for _, f := range r.headers {
		if strings.EqualFold(f.Name, "content-length") {
			n, _ := strconv.Atoi(f.Value) // what is no number is no length
			size = max(size, n)
		}
	}
	return size
}

// isForm matches the media types of bodies that have fields. An archive may name none.
var isForm = regexp.MustCompile(`(?i)^(|application/x-www-form-urlencoded.*)$`)

// partsOf are the parts of a form, or why they cannot be made.
func partsOf(fields []pair, text func(scalar) string) (out []part, why string) {
	for _, p := range fields {
		switch {
		case p.Disabled:
		case p.file:
			return nil, fileField
		default:
			out = append(out, part{text(scalar(p.name())), text(p.ContentType), text(p.Value)})
		}
	}
	return out, ""
}

// compressed reports whether a header field says that the body is compressed.
func compressed(f Field) bool {
	return strings.EqualFold(f.Name, "content-encoding") && f.Value != "" &&
		!strings.EqualFold(f.Value, "identity")
}

// unfit says why a request is not taken.
func (e *entry) unfit(r raw) string {
	mime, status := "", r.status
	if e.Response != nil {
		mime = string(e.Response.Content.MimeType)
	}
	size := e.size(r)
	switch {
	case isStatic(r.url, mime):
		return "static files"
	case strings.EqualFold(r.method, "OPTIONS"):
		return "a browser's question before a request (CORS)"
	case e.Response == nil:
	case status == 0:
		return "the client ended the request before a response"
	case status < 200 || status >= 500:
		return "the answer was an error of the server, or no HTTP any more"
	case status >= 400:
		return "the answer was an error (4xx)"
	}
	switch {
	case strings.HasPrefix(strings.ToLower(r.kind), "multipart/") && !isWholeForm(r.kind, r.body):
		return "its body is a form of several parts, which the file holds in part"
	case nul(r.url, r.body):
		return "a NUL in its text"
	case r.body == "" && size > 0:
		return "its body is not in the file"
	case e.inPart(len(r.body), size):
		return "its body is longer than the part that the file has"
	}
	return ""
}

// inPart says whether a body of a length, in bytes, is only the begin of the one that was sent:
// some recorders cut long bodies.
func (e *entry) inPart(length, sent int) bool {
	p := e.Request.PostData
	return p != nil && p.Text != "" && p.Encoding == "" && length < sent
}

// nul says whether a text has a character that none may have here.
func nul(texts ...string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.ContainsRune(s, 0) })
}

// form returns the body of a form (WHATWG URL, application/x-www-form-urlencoded).
func form(pairs []pair, escape func(string) string) string {
	var out []string
	for _, p := range pairs {
		if !p.Disabled {
			out = append(out, escape(p.name())+"="+escape(string(p.Value)))
		}
	}
	return strings.Join(out, "&")
}

// formWord escapes a word of a form, without its holes.
func formWord(s string) string { return around(s, url.QueryEscape) }
