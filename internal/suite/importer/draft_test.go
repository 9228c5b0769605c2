package importer

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/strictyaml"
	"prony.example/internal/suite"
	"prony.example/load/pace"
)

var update = flag.Bool("update", false, "write the goldens")

// asSuite reads a prony.yaml as a suite, without its targets.
func asSuite(t testing.TB, text, trace string) *suite.Suite {
	t.Helper()
	_, rest, found := strings.Cut(text, "\nrequests:\n")
	if !found {
		t.Fatalf("no requests in\n%s", text)
	}
	requests, loads, _ := strings.Cut(rest, "\nloads:\n")
	dir := ""
	if trace != "" {
		dir = t.TempDir()
		err := os.WriteFile(filepath.Join(dir, "prony.trace"), []byte(trace), 0o600)
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := suite.Read(filepath.Join(dir, "s.yaml"), []byte("name: s\nscenarios:\n- name: r\n"+
		"  requests:\n"+requests+"\nloads:\n"+loads))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	var keys map[string]any
	if err := strictyaml.Decode("prony.yaml", []byte(text), &keys); err != nil {
		t.Fatal(err)
	}
	for key := range keys {
		if !strings.Contains(" targets ready requests loads ", " "+key+" ") {
			t.Errorf("the contract has no key %s", key)
		}
	}
	return s
}

// print returns all that a draft writes.
func print(t testing.TB, d *Draft, from string) (text, trace string) {
	t.Helper()
	var out, arrivals bytes.Buffer
	if len(d.Arrivals) > 0 {
		if err := d.WriteTrace(&arrivals); err != nil {
			t.Fatal(err)
		}
	}
	d.Print(&out, File{From: from, URL: "http://127.0.0.1:8080", Trace: "prony.trace"})
	return out.String(), arrivals.String()
}

// Every sample gives a suite, and none of its secrets is in it or in the messages.
func TestSamples(t *testing.T) {
	names, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, ".golden") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Options{}.Read(name, data)
		if err != nil {
			t.Error(err)
			continue
		}
		seen[d.Kind] = true
		text, trace := print(t, d, filepath.Base(name))
		asSuite(t, text, trace)
		for _, why := range d.Left {
			text += "left out " + why + "\n"
		}
		for _, note := range d.Changed {
			text += "changed " + note + "\n"
		}
		if strings.Contains(text, "-secret") {
			t.Errorf("%s: a secret is in\n%s", name, text)
		}
		text += trace
		golden := name + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || string(want) != text {
			t.Errorf("%s is not (-update blesses), %v:\n%s", golden, err, text)
		}
	}
	if len(seen) != len(Kinds) {
		t.Errorf("samples of %v alone", seen)
	}
}

// curl commands as people and browsers write them.
func TestCurl(t *testing.T) {
	check := func(line, want string) {
		t.Helper()
		d, err := Options{Kind: Curl}.Read("stdin", []byte(line))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			r := d.Requests[0]
			got = r.Method + " " + d.Origin + r.Path
			for _, f := range r.Headers {
				got += " " + f.Name + "=" + f.Value
			}
			if r.Body != "" {
				got += " [" + r.Body + "] " + r.Type
			}
		}
		if got != want {
			t.Errorf("%s\nis   %s\nwant %s", line, got, want)
		}
	}
	const form = "application/x-www-form-urlencoded"
	check("curl example.com", "GET http://example.com/")
	check("curl -I http://a:1/x", "HEAD http://a:1/x")
	check(`curl -gsSXDELETE "http://a/x y?q={b}"`, "DELETE http://a/x%20y?q=%7Bb%7D")
	check("curl http://a -d a=1 --data-urlencode 'b=c d&e'", "POST http://a/ [a=1&b=c+d%26e] "+form)
	check("curl -G http://a/x?y=1 -d a=1", "GET http://a/x?y=1&a=1")
	check("curl http://a -H 'content-type: text/xml; charset=utf-8' -d '<a/>'",
		"POST http://a/ [<a/>] text/xml; charset=utf-8")
	check(`curl http://a -X PUT --json '{"a":1}'`,
		`PUT http://a/ Accept=application/json [{"a":1}] application/json`)
	check("curl http://u:p@a/x", "GET http://a/x Authorization=Basic ${BASIC_AUTH}")
	check("curl http://a/ -b 'a=1; b=2'", "GET http://a/ Cookie=${COOKIE}")
	check(`curl http://a/ -H "X-Api-Key: $KEY"`, "GET http://a/ X-Api-Key=${KEY}")
	check(`curl http://a/ -H 'X-Api-Key: $KEY'`, "GET http://a/ X-Api-Key=${X_API_KEY}")
	check(`curl http://a/ -H 'X-Any: ${HOME} {key}'`, "GET http://a/ X-Any=$${HOME} {{key}}")
	check("curl http://a/eyJhbGciOiJI.eyJzdWIiOiIx.c2ln", "GET http://a/${SECRET}")
	check("curl \\\n  http://a/ \\\n  -H 'A: b'", "GET http://a/ A=b")
	check("curl 'http://a", "read stdin as curl: line 1: reached EOF without closing quote "+
		"`'`; paste the whole curl command")
	check("wget http://a", "read stdin as curl: no line begins with curl; paste a command from "+
		"the browser's developer tools (Copy as cURL)")
	check("curl -T file http://a", "read stdin as curl: every request was left out: 1: an "+
		"upload (-T); add an example to the file, or pass only --url")
}

// Errors of unreadable files say what to do.
func TestWhatIsRefused(t *testing.T) {
	check := func(text, kind, want string) {
		t.Helper()
		_, err := Options{Kind: kind}.Read("f", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "read f") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q as %q: %v, want %s", text, kind, err, want)
		}
	}
	check("", "", "it looks like none of openapi, har, curl, postman, log; name its kind")
	check("{}", "", "it looks like none of")
	check(`{"swagger": "1.2"}`, "", `its version is "1.2"; convert it to OpenAPI 3`)
	check(`{"openapi": "4.0.0"}`, "", `its version is "4.0.0"`)
	check(`{"swagger": "2.0"}`, "", "it has no requests")
	check("$a = b\nInvoke-WebRequest -Uri \"http://a\"", "", "it is PowerShell; copy")
	check("fetch(\"http://a\", {", "", "it is JavaScript (fetch); copy")
	check("#Software: a\n#Fields: date time\n1 2", "", "it is a W3C extended log without cs-method")
	check(`http 2026-07-02T22:23:00.186641Z app/lb "GET http://a:80/ HTTP/1.1"`, "",
		"it is an access log of another format")
	check("{\"status\": 200}\n{\"status\": 200}\n", "", "it is a log of JSON lines; write it in")
	check(`{"openapi": "3.1.0"}`, "", "it has no requests")
	check(`{"log": {"entries": []}}`, "", "it has no requests")
	check(`{"log": {"entries": "secret"}}`, HAR, "log.entries is of type string")
	check("{", HAR, "it is not JSON from byte 1 on")
	check(`{"info": {"schema": "x/v1.0.0"}, "item": []}`, "", "export it as Collection v2.1")
	check("a: [", OpenAPI, "save the file again")
	check("x", Log, "every request was left out: 1: lines in a format that is not known")
	check("h - - [22/Nov/2026:09:00:00 +0000] \"GET / HTTP/1.1\" 404 1\nx", Log,
		"1: requests whose response was an error (4xx, 5xx), 1: lines in a format that is "+
			"not known")
	check("x", "csv", `format "csv"`)
}

// The tail of a log is drawn with equal shares, and its arrivals are spread over their seconds.
func TestLog(t *testing.T) {
	var b strings.Builder
	line := func(sec int, path string) {
		fmt.Fprintf(&b, "1.2.3.4 - - [22/Nov/2026:09:00:%02d +0000] \"GET %s HTTP/1.1\" 200 1\n",
			sec, path)
	}
	for i := range headMax {
		line(0, "/head/"+string(rune('a'+i)))
		line(0, "/head/"+string(rune('a'+i)))
	}
	line(2, "/tail/1")
	line(2, "/tail/2?a={b}|c")
	line(1, "/tail/3")
	d, err := Options{}.Read("log", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	last := d.Requests[len(d.Requests)-1]
	if want := "/{pick tail/1|tail/2?a=%7Bb%7D%7Cc|tail/3}"; last.Path != want || last.Weight != 3 {
		t.Errorf("the tail is %s, weight %d; want %s", last.Path, last.Weight, want)
	}
	// 40 in the first second, one in the next, two in the last, half a second apart.
	if n := len(d.Arrivals); n != 43 || d.Arrivals[1] != 25e6 || d.Arrivals[40] != 1e9 ||
		d.Arrivals[42] != 25e8 || d.Span != "3s" {
		t.Errorf("%d arrivals in %s: %d", n, d.Span, d.Arrivals)
	}
	text, trace := print(t, d, "log")
	if at, err := pace.ReadTrace(strings.NewReader(trace)); err != nil || len(at) != 43 {
		t.Errorf("%d arrivals are read back, %v", len(at), err)
	}
	asSuite(t, text, trace)
}

// Each command and line is counted once, as taken or as left out; arrivals are counted apart.
func TestCounted(t *testing.T) {
	checkTold(t, Options{}, "curl http://a/1 http://a/2\nls\ncurl http://a/3 @\ncurl -T x http://a",
		"GET /1", "GET /2", "-1: a word that is neither an option nor an address; quote values "+
			"that have spaces", "-1: an upload (-T)", "~1: a command that is not curl is not run")
	var b strings.Builder
	line := func(minute int, request string) {
		fmt.Fprintf(&b, "h - - [22/Nov/2026:09:%02d:00 +0000] \"%s HTTP/1.1\" 200 1\n", minute,
			request)
	}
	for i := range headMax {
		for range 3 {
			line(0, fmt.Sprintf("GET /head/%d", i))
		}
	}
	line(7, "GET /tail")
	line(7, "GET /tail/2")
	line(7, "GET /tail/2")
	line(8, "HEAD /tail")
	line(9, "HEAD /tail")
	d, err := Options{}.Read("log", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	checkCounted(t, d, b.String())
	if d.Found != 65 || Total(d.Requests) != 63 || len(d.Arrivals) != 60 || d.Outside != 5 {
		t.Errorf("%d found, %d taken, %d arrivals, %d outside", d.Found, Total(d.Requests),
			len(d.Arrivals), d.Outside)
	}
}

// The span of a log includes the whole second of its last line, however many lines that has.
func TestSpans(t *testing.T) {
	check := func(want string, seconds ...int) {
		t.Helper()
		var b strings.Builder
		for _, sec := range seconds {
			fmt.Fprintf(&b, "1.2.3.4 - - [22/Nov/2026:09:00:%02d +0000] ", sec)
			b.WriteString("\"GET /a HTTP/1.1\" 200 1\n")
		}
		d, err := Options{}.Read("log", []byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		if d.Span != want || len(d.Arrivals) != len(seconds) {
			t.Errorf("lines at %d: %d arrivals in %s, want %s", seconds, len(d.Arrivals), d.Span,
				want)
		}
	}
	check("1s", 5, 5)
	check("2s", 5, 6)
	check("5s", 5, 6, 6, 9)
	check("5s", 9, 5, 9)
}

func TestAlone(t *testing.T) {
	text, _ := print(t, Alone("/a?b={c}"), "")
	if s := asSuite(t, text, ""); s.Scenarios[0].Requests[0].Request != "GET /a?b=%7Bc%7D" {
		t.Errorf("it asks %q", s.Scenarios[0].Requests[0].Request)
	}
}

// The origin is a draft's most frequent host, or the requested one.
func TestOrigin(t *testing.T) {
	const lines = "curl http://a/1\ncurl http://b/2\ncurl http://b/3\n"
	for wants, origin := range map[string]string{"": "http://b", "http://a": "http://a",
		"http://c": "http://b"} {
		d, err := Options{Origin: wants}.Read("f", []byte(lines))
		if err != nil || d.Origin != origin {
			t.Errorf("%q: %v, %v", wants, d, err)
		}
	}
	const same = "curl http://Bücher.test/1\ncurl http://b/2\ncurl http://b:80/3\n"
	const punycode = "http://xn--bcher-kva.test"
	for wants, origin := range map[string]string{punycode + ":80": punycode,
		"http://b:80": "http://b"} {
		d, err := Options{Origin: wants}.Read("f", []byte(same))
		if err != nil || d.Origin != origin {
			t.Errorf("%q: %+v, %v", wants, d, err)
		}
	}
	origin, path, err := Local("127.0.0.1:8080/to?url=http://a")
	if origin != "http://127.0.0.1:8080" || path != "/to?url=http://a" || err != nil {
		t.Errorf("it is %s and %s, %v", origin, path, err)
	}
}
