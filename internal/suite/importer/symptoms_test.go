package importer

import (
	"fmt"
	"strings"
	"testing"
)

// Entries as browsers and proxies save them, whose request is not, or not all, in the file.
func TestHARWithoutTheRequest(t *testing.T) {
	check := func(request string, want ...string) {
		t.Helper()
		checkTold(t, Options{}, `{"log": {"entries": [{"request": {`+request+`}},
{"request": {"url": "http://shop.test/ok"}}]}}`, append([]string{"GET /ok"}, want...)...)
	}
	const noURL = "-1: a request whose address is not an http or https URL"
	check(`"url": "data:image/svg+xml;base64,PHN2Zz4="`, noURL)
	check(`"url": "blob:http://shop.test/0"`, noURL)
	check(`"url": "about:blank"`, noURL)
	const post = `"method": "POST", "url": "http://shop.test/a", `
	check(post+`"postData": {"mimeType": "application/json", "params": [{"name": "{}"}]}`,
		"-1: its body is given in fields, but its type is not that of a form")
	check(post+`"headers": [{"name": "content-encoding", "value": "br"}],
"postData": {"mimeType": "application/json", "text": "\u001f\ufffd"}`,
		"-1: its body is compressed, which the file holds as text")
	checkTold(t, Options{}, `{"log": {"entries": [{"request": {`+post+`
"headers": [{"name": "Content-Encoding", "value": "identity"}],
"postData": {"mimeType": "text/plain", "text": "a"}}}]}}`,
		"POST /a Content-Encoding=identity [a] text/plain")
}

// Secrets of a collection are different values under different names, and each says what it is.
func TestPostmanSecrets(t *testing.T) {
	const token = `"auth": {"type": "oauth2", "oauth2": [{"key": "accessToken", "value": "tok"}`
	const basic = `"auth": {"type": "basic", "basic": [{"key": "username", "value": "ann"},
{"key": "password", "value": "`
	checkTold(t, Options{}, postman("", `
{"request": {"url": "http://shop.test/a", "auth": {"type": "apikey", "apikey":
[{"key": "key", "value": "X-K"}, {"key": "value", "value": "one"}]}}},
{"request": {"url": "http://shop.test/b?c", "auth": {"type": "apikey", "apikey":
[{"key": "key", "value": "k"}, {"key": "value", "value": "two"},
{"key": "in", "value": "query"}]}}},
{"request": {"url": "http://shop.test/c", `+basic+`x"}]}}},
{"request": {"url": "http://shop.test/d", `+basic+`{{p}}"}]}}},
{"request": {"url": "http://shop.test/e", "auth": {"type": "basic"}}},
{"request": {"url": "http://shop.test/f", `+token+`]}}},
{"request": {"url": "http://shop.test/g", `+token+`,
{"key": "addTokenTo", "value": "queryParams"}]}}},
{"request": {"url": "http://shop.test/h", `+token+`, {"key": "headerPrefix", "value": "Token"}]}}},
{"request": {"url": "http://shop.test/i", "auth": {"type": "oauth2", "oauth2": []}}}`),
		"GET /a X-K=${API_KEY}", "GET /b?c&k=${API_KEY_2}",
		"GET /c Authorization=Basic ${BASIC_AUTH}", "GET /d Authorization=Basic ${BASIC_AUTH_2}",
		"GET /e Authorization=Basic ${BASIC_AUTH}", "GET /f Authorization=Bearer ${TOKEN}",
		"GET /g?access_token=${TOKEN}", "GET /h Authorization=Token ${TOKEN}",
		"-1: its authorization (oauth2) needs a program: take a token by hand")
	d, err := Options{}.Read("f", []byte(postman("", `{"request": {"url": "http://shop.test/a", "auth":
{"type": "apikey", "apikey": [{"key": "key", "value": "X-K"},
{"key": "value", "value": "one"}]}}}`)))
	if err != nil || len(d.Secrets) != 1 || d.Secrets[0].About != "the header field X-K" {
		t.Errorf("secrets %+v, error %v", d.Secrets, err)
	}
}

// Postman takes the comments of a JSON body away, and no others.
func TestPostmanComments(t *testing.T) {
	body := func(text, language string) string {
		return postman("", `{"request": {"method": "POST", "url": "http://shop.test/a", "body":
{"mode": "raw", "raw": "`+text+`", "options": {"raw": {"language": "`+language+`"}}}}}`)
	}
	const text = `{\"a\": \"http://b\", /* c\n */ \"d\": \"\\\"//\"} // e`
	checkTold(t, Options{}, body(text, "json"),
		`POST /a [{"a": "http://b",  "d": "\"//"} ] application/json`,
		"~1: comments of a JSON body are not sent, as in Postman")
	checkTold(t, Options{}, body(`a // b`, "text"), "POST /a [a // b] text/plain")
	checkTold(t, Options{}, body(`{\"a\": \"//\"}`, "json"),
		`POST /a [{"a": "//"}] application/json`)
}

// A property whose only value is null has this value.
func TestNullIsAValue(t *testing.T) {
	checkTold(t, Options{}, `openapi: 3.1.0
paths: {/x: {post: {requestBody: {content: {application/json: {schema: {required: [a, b, c],
  properties: {a: {type: [string, 'null'], examples: [null]}, b: {enum: [null]},
    c: {const: null}}}}}},
  responses: {200: {description: ok}}}}}
`, `POST /x [{"a":null,"b":null,"c":null}] application/json`)
}

// Double quotes within double quotes are those of cmd.exe, unless a POSIX shell joins words.
func TestCurlDoubledQuotes(t *testing.T) {
	check := drafted(t, Curl)
	check(`curl "http://shop.test/a" --data-binary "{""user"":{""id"":""7"",""n"":null}}"`,
		`POST /a 1×200 [{"user":{"id":"7","n":null}}] application/x-www-form-urlencoded`)
	check(`curl "http://shop.test""/a"`, "GET /a 1×200")
	check(`curl "http://shop.test/$A""/b""c"`, "GET /${A}/bc 1×200\n"+
		"A: a variable that has no value in the file")
}

// Logs whose lines a collector of logs has put a prefix before.
func TestLogPrefixes(t *testing.T) {
	const line = `192.0.2.4 - - [27/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5`
	for _, prefix := range []string{"Nov  1 10:00:00 host nginx: ", "nginx_1  | ",
		"2026-11-27T10:00:00.1Z stdout F "} {
		drafted(t, "")(prefix+line, "GET /a 1×200")
	}
	for _, inside := range []string{line, `{"ts": 1795773600, "request": {"method": "GET", ` +
		`"host": "a", "uri": "/a"}, "status": 200}`} {
		drafted(t, "")(fmt.Sprintf(`{"log":%q,"stream":"stdout","time":"2026-11-27T10:00:00.1Z"}`,
			inside+"\n"), "GET /a 1×200")
	}
}

// Files of other programs are refused by their names.
func TestForeignFiles(t *testing.T) {
	for text, want := range map[string]string{
		`{"name": "e", "values": [], "_postman_variable_scope": "environment"}`: "of Postman",
		`{"_type": "export", "__export_format": 4, "resources": []}`:            "of Insomnia",
		"type: collection.insomnia.rest/5.0\nname: a\n":                         "of Insomnia",
		"<?xml version=\"1.0\"?>\n<jmeterTestPlan version=\"1.2\">":             "of JMeter",
		`{"asyncapi": "2.0.0", "channels": {}}`:                                 "AsyncAPI",
		"asyncapi: 3.0.0\nchannels: {}\n":                                       "AsyncAPI",
	} {
		_, err := Options{}.Read("f", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Logs of Envoy, and JSON lines of Caddy, nginx, Envoy and Traefik.
func TestOtherLogs(t *testing.T) {
	check := func(text, want, arrivals string) {
		t.Helper()
		drafted(t, "")(text, want)
		d, err := Options{}.Read("f", []byte(text))
		if got := fmt.Sprintf("%v %s", d.Arrivals, d.Span); err != nil || got != arrivals {
			t.Errorf("%s\narrivals %s, error %v, want %s", text, got, err, arrivals)
		}
	}
	check(`[2026-11-27T10:00:00.310Z] "GET /a?b=c HTTP/2" 200 - 154 0 226 100 "10.0.35.28" "x"
[2026-11-27T10:00:01.560Z] "GET /a?b=c HTTP/1.1" 304 - 154 0 226 100 "10.0.35.28" "x"
[2026-11-27T10:00:01.700Z] "POST /a HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "x"
[2026-11-27T10:00:01.700Z] "GET /a HTTP/2" 503 UF 154 0 226 100 "10.0.35.28" "x"
`, `GET /a?b=c 2×200
- 1: requests with a body, which a log does not have
- 1: requests whose response was an error (4xx, 5xx)
~ 1: the status 304 is expected as 200, because the request is sent without the field `+
		"that asks for it",
		"[0 1250000000] 2s")
	const caddy = `{"level": "info", "ts": %s, "request": {"proto": "HTTP/2.0", "method": "GET",
"host": "a", "uri": "/a?x=1", "headers": {}}, "status": 200}
`
	line := func(ts string) string {
		return strings.ReplaceAll(fmt.Sprintf(caddy, ts), "\n\"host", "\"host")
	}
	check(line("1646861401.5241024"), "GET /a?x=1 1×200", "[] ")
	check(line("1646861401.25")+line(`"2022-03-09T21:30:02.5Z"`), "GET /a?x=1 2×200",
		"[0 1250000000] 2s")
	check(`{"time_local": "27/Nov/2026:10:00:00 +0000", "request": "GET /a HTTP/1.1",`+
		` "status": "200"}
{"time_iso8601": "2026-11-27T10:00:00+00:00", "request_method": "GET", "request_uri": "/b?c",`+
		` "status": 200}
{"msec": "1795773600.000", "request": "\u0016\u0003", "status": 400}
{"StartUTC": "2026-11-27T10:00:01Z", "RequestMethod": "GET", "RequestPath": "/d",`+
		` "DownstreamStatus": 200}
{"start_time": "2026-11-27T10:00:01.000Z", "method": "GET", "path": "/e", "response_code": 200}
{"time": "yesterday", "request": "GET /f HTTP/1.1", "status": 200}
`, `GET /a 1×200
GET /b?c 1×200
GET /d 1×200
GET /e 1×200
- 1: lines whose request is not HTTP
- 1: lines whose time is not a valid date`, "[0 500000000 1000000000 1500000000] 2s")
	// nginx's $uri has no query, so it is not the request.
	drafted(t, "")(`{"time_local": "27/Nov/2026:10:00:00 +0000", "uri": "/a",
"method": "GET", "status": 200}`+"\n", "read f: it looks like none of openapi, har, curl, "+
		"postman, log; name its kind with --as")
}

// A draft expects the statuses that its file says, and makes none up.
func TestStatusesAreThoseOfTheFile(t *testing.T) {
	check := func(text string, want int) {
		t.Helper()
		d, err := Options{}.Read("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		written, trace := print(t, d, "f")
		asSuite(t, written, trace)
		if n := strings.Count(written, "expect: {status: "); n != want {
			t.Errorf("%s\nexpects %d statuses, want %d:\n%s", text, n, want, written)
		}
	}
	check("curl http://a/1", 0)
	check(postman("", `{"request": "http://a/1"}, {"request": "http://a/2",
"response": [{"code": 201}]}`), 1)
	const unsaid = `{"request": {"url": "http://a/1"}}`
	const said = `{"request": {"url": "http://a/1"}, "response": {"status": 200}}`
	check(`{"log": {"entries": [`+unsaid+`]}}`, 0)
	check(`{"log": {"entries": [`+unsaid+`, `+said+`, `+unsaid+`]}}`, 1)
	check(`{"log": {"entries": [`+said+`, `+unsaid+`]}}`, 1)
}
