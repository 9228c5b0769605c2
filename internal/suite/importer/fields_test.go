package importer

import (
	"fmt"
	"strings"
	"testing"
)

// sent is the first request of a draft, then all that is said of it.
func sent(d *Draft, err error) string {
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, r := range d.Requests {
		fmt.Fprintf(&b, "%s %s %d×%d", r.Method, r.Path, r.Weight, r.Status)
		for _, f := range r.Headers {
			fmt.Fprintf(&b, " %s=%s", f.Name, f.Value)
		}
		if r.Body != "" {
			fmt.Fprintf(&b, " [%s] %s", r.Body, r.Type)
		}
		b.WriteString("\n")
	}
	for _, s := range d.Secrets {
		fmt.Fprintf(&b, "%s: %s\n", s.Name, s.About)
	}
	for _, why := range d.Left {
		b.WriteString("- " + why + "\n")
	}
	for _, note := range d.Changed {
		b.WriteString("~ " + note + "\n")
	}
	return b.String()
}

// Header fields that stand twice, that belong to a status, and that are not sent.
func TestFields(t *testing.T) {
	check := func(method, url string, status int, fields, want string) {
		t.Helper()
		var headers []string
		for line := range strings.SplitSeq(fields, "|") {
			if name, value, ok := strings.Cut(line, "="); ok {
				headers = append(headers, fmt.Sprintf(`{"name": %q, "value": %q}`, name, value))
			}
		}
		har := fmt.Sprintf(`{"log": {"entries": [{"request": {"method": %q, "url": %q, `+
			`"headers": [%s]}, "response": {"status": %d}}]}}`, method, url,
			strings.Join(headers, ","), status)
		d, err := Options{}.Read("f", []byte(har))
		if got := sent(d, err); got != want {
			t.Errorf("%s %s %d %s\nis   %s\nwant %s", method, url, status, fields, got, want)
		}
	}
	const a = "http://a:1/x"
	check("GET", a, 200, "x-tag=1|X-Tag=2|x-tag=3", "GET /x 1×200 x-tag=1, 2, 3\n"+
		"~ 1: the lines of the header field x-tag are joined with commas\n")
	check("GET", a, 200, "cookie=k=v|accept=*/*|cookie=l=w;", "GET /x 1×200 cookie=${COOKIE} "+
		"accept=*/*\nCOOKIE: the header field Cookie, as k=…; l=…; …\n")
	check("GET", a, 200, "Cookie=bare", "GET /x 1×200 Cookie=${COOKIE}\n"+
		"COOKIE: the header field Cookie, as …\n")
	const twice = "read f as har: every request was left out: 1: the header field %s with two " +
		"values; add an example to the file, or pass only --url"
	check("GET", a, 200, "Host=b|host=c", fmt.Sprintf(twice, "host"))
	check("GET", a, 200, "Authorization=Bearer x|Authorization=Basic y",
		fmt.Sprintf(twice, "Authorization"))
	check("GET", a, 200, "Host=b|host=b", "GET /x 1×200 Host=b\n"+
		"~ 1: of equal lines of the header field Host one is sent\n")
	check("GET", a, 200, "Host=A:1", "GET /x 1×200\n")
	check("GET", "http://a/x", 200, "Host=a:80", "GET /x 1×200\n")
	check("GET", "https://a/x", 200, "Host=a:443|:authority=a", "GET /x 1×200\n")
	check("GET", "https://a/x", 200, "Host=a:80", "GET /x 1×200 Host=a:80\n")
	check("GET", a, 206, "Range=bytes=0-9", "GET /x 1×206 Range=bytes=0-9\n")
	check("GET", a, 200, "Range=bytes=0-9", "GET /x 1×200 Range=bytes=0-9\n")
	const whole = "GET /x 1×200\n~ 1: the status %d is expected as 200, because the request is " +
		"sent without the field that asks for it\n"
	check("GET", a, 206, "", fmt.Sprintf(whole, 206))
	check("GET", a, 304, "If-None-Match=W/1|If-Modified-Since=x", fmt.Sprintf(whole, 304)+
		"~ header fields of the client or the connection are not sent: if-modified-since, "+
		"if-none-match\n")
	check("GET", a, 201, "User-Agent=x|Referer=y|TE=z|A=b", "GET /x 1×201 A=b\n"+
		"~ header fields of the client or the connection are not sent: referer, te, user-agent\n")
}

// The status of equal requests is the most frequent one.
func TestFrequent(t *testing.T) {
	var entries []string
	for _, status := range []int{302, 206, 200, 304} {
		entries = append(entries, fmt.Sprintf(`{"request": {"method": "GET", "url": "http://a/"}, `+
			`"response": {"status": %d}}`, status))
	}
	d, err := Options{}.Read("f", []byte(`{"log": {"entries": [`+strings.Join(entries, ",")+`]}}`))
	if got := sent(d, err); !strings.HasPrefix(got, "GET / 4×200\n") {
		t.Errorf("of %v: %s", entries, got)
	}
}
