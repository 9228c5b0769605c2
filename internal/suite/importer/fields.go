package importer

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// noise are fields that a browser or a tool adds, or that the generator sets itself: they would
// make answers empty (if-none-match), or are those of a connection.
var noise = regexp.MustCompile(`(?i)^(:.*|connection|content-length|transfer-encoding|te|` +
	`trailer|upgrade|expect|keep-alive|proxy-connection|user-agent|referer|origin|dnt|priority|` +
	`pragma|cache-control|if-.*|sec-.*|upgrade-insecure-requests|x-forwarded-.*|forwarded|` +
	`via|postman-token|traceparent|tracestate|x-request-id)$`)

// fieldName is a name of a header field (RFC 9110, section 5.1).
var fieldName = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

// single are fields whose lines cannot be joined into a list (RFC 9110, section 5.3).
var single = regexp.MustCompile(`(?i)^(host|authorization|proxy-authorization|content-type|` +
	`content-range|range|date|max-forwards)$`)

// joined has each name of a field once, as a suite has it: values of a name become one line, with
// "; " between cookies (RFC 6265, section 5.4) and ", " between others (RFC 9110, section 5.3). It
// notes each change in changes. A reason says why the request cannot be taken.
func (r *raw) joined() (why string) {
	var out []Field
	for _, f := range r.headers {
		f.Name, f.Value = strings.TrimSpace(f.Name), strings.TrimSpace(f.Value)
		i := slices.IndexFunc(out, isField(f.Name))
		switch {
		case f.Name == "", strings.HasPrefix(f.Name, ":"):
		case !fieldName.MatchString(f.Name) && !nul(f.Name):
			r.differ("a header field is not sent, because its name is not valid")
		case i < 0:
			out = append(out, f)
		case strings.EqualFold(f.Name, "cookie"):
			out[i].Value = strings.TrimRight(out[i].Value, "; ") + "; " + f.Value
		case noise.MatchString(f.Name):
		case single.MatchString(f.Name) && f.Value != out[i].Value:
			return "the header field " + oneLine(f.Name) + " with two values"
		default:
			note := "of equal lines of the header field " + oneLine(out[i].Name) + " one is sent"
			if !single.MatchString(f.Name) {
				out[i].Value += ", " + f.Value
				note = "the lines of the header field " + oneLine(out[i].Name) +
					" are joined with commas"
			}
			r.differ(note)
		}
	}
	r.headers = out
	return ""
}

// differ notes a difference from the request of the file once.
func (r *raw) differ(note string) {
	if !slices.Contains(r.changes, note) {
		r.changes = append(r.changes, note)
	}
}

// strip takes out the fields that are noise and notes their names, and the Host that the URL has.
func (d *Draft) strip(r *raw) {
	r.headers = slices.DeleteFunc(r.headers, func(f Field) bool {
		if strings.EqualFold(f.Name, "host") {
			_, host, _ := strings.Cut(d.Origin, "://")
			return strings.EqualFold(authority(d.Origin, f.Value), host)
		}
		out := noise.MatchString(f.Name)
		if out && !strings.HasPrefix(f.Name, ":") {
			d.noise[oneLine(strings.ToLower(f.Name))] += r.count
		}
		return out
	})
}

// authority is a Host without the port that the scheme of the origin has by itself.
func authority(origin, host string) string {
	if strings.HasPrefix(origin, "https:") {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// expected is the status of a good answer to the request as it is sent. A part needs its Range, and
// content that is not changed is whole for a client that does not have it.
func (r *raw) expected() int {
	i := slices.IndexFunc(r.headers, isField("range"))
	part := i >= 0 && r.method == "GET" && strings.HasPrefix(r.headers[i].Value, "bytes=")
	switch s := r.status; {
	case s == 0 && part:
		return http.StatusPartialContent
	case s == http.StatusPartialContent && i < 0, s == http.StatusNotModified:
		note := fmt.Sprintf("the status %d is expected as 200, because the request is sent "+
			"without the field that asks for it", s)
		r.changes = append(r.changes, note)
		return http.StatusOK
	case s < http.StatusOK, s > 599:
		return http.StatusOK
	}
	return r.status
}

// frequent returns the status with the highest count, the lowest of equal ones.
func frequent(counts map[int]int) int {
	return slices.MinFunc(slices.Collect(maps.Keys(counts)), func(a, b int) int {
		return cmp.Or(counts[b]-counts[a], a-b)
	})
}

// cookies names the cookies of a field without their values.
func cookies(value string) string {
	var out []string
	for c := range strings.SplitSeq(value, ";") {
		name, _, named := strings.Cut(strings.TrimSpace(c), "=")
		if named && !secretValue.MatchString(name) && !nul(name) {
			name += "="
		} else {
			name = ""
		}
		out = append(out, name+"…")
	}
	return strings.Join(out, "; ")
}

// change counts a difference between the requests of the file and those of the draft.
func (d *Draft) change(note string, n int) {
	if d.notes[note] == 0 {
		d.changed = append(d.changed, note)
	}
	d.notes[note] += n
}

// differences fills Changed.
func (d *Draft) differences() {
	for _, note := range d.changed {
		d.Changed = append(d.Changed, fmt.Sprintf("%d: %s", d.notes[note], note))
	}
	names := slices.SortedFunc(maps.Keys(d.noise), func(a, b string) int {
		return cmp.Or(d.noise[b]-d.noise[a], cmp.Compare(a, b))
	})
	const most = 20
	if len(names) > most {
		names = append(names[:most], "…")
	}
	if len(names) > 0 {
		d.Changed = append(d.Changed, "header fields of the client or the connection are not "+
			"sent: "+strings.Join(names, ", "))
	}
}
