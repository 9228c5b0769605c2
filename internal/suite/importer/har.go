package importer

import (
	"cmp"
	"encoding/json"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// har is what is read of an HTTP Archive, version 1.2
// (http://www.softwareishard.com/blog/har-12-spec/).
type har struct {
	Log struct {
		Entries []struct {
			Request struct {
				Method, URL string
				Headers     []pair
				PostData    *struct {
					MimeType, Text string
					Params         []pair
				}
			}
			Response struct {
				Status  int
				Content struct{ MimeType string }
			}
		}
	}
}

type pair struct {
	Name, Value string
	Key         string // Postman's word for a name
	Disabled    bool
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
	for _, e := range h.Log.Entries {
		q, a := e.Request, e.Response
		r := raw{method: q.Method, url: q.URL, status: a.Status}
		for _, f := range q.Headers {
			r.headers = append(r.headers, Field{f.Name, f.Value})
		}
		if p := q.PostData; p != nil {
			r.kind, r.body = p.MimeType, p.Text
			if r.body == "" && len(p.Params) > 0 {
				r.body = form(p.Params)
			}
		}
		switch {
		case isStatic(q.URL, a.Content.MimeType):
			d.leave("static files")
		case strings.EqualFold(q.Method, "OPTIONS"):
			d.leave("a browser's question before a request (CORS)")
		case a.Status == 0:
			d.leave("it was given up before an answer")
		case a.Status < 200 || a.Status >= 500:
			d.leave("the answer was an error of the server, or no HTTP any more")
		case a.Status >= 400:
			d.leave("the answer was an error (4xx)")
		case strings.HasPrefix(r.kind, "multipart/"):
			d.leave("its body is a form of several parts, which the file holds in part")
		case nul(q.URL, r.body):
			d.leave("a NUL in its text")
		default:
			d.add(r)
		}
	}
	return nil
}

// nul says whether a text has a character that none may have here.
func nul(texts ...string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.ContainsRune(s, 0) })
}

// form is the body of a form (WHATWG URL, application/x-www-form-urlencoded).
func form(pairs []pair) string {
	var out []string
	for _, p := range pairs {
		if !p.Disabled {
			out = append(out, formWord(cmp.Or(p.Name, p.Key))+"="+formWord(p.Value))
		}
	}
	return strings.Join(out, "&")
}

// formWord escapes a word of a form, but for its holes.
func formWord(s string) string { return around(s, url.QueryEscape) }
