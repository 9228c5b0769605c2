package importer

import "testing"

// Fields that other parts of a document describe need no example, and a credential that parameters
// describe, too, is sent once.
func TestDescribedElsewhere(t *testing.T) {
	header := func(name string) string {
		return `{name: ` + name + `, in: header, required: true, schema: {type: string}}`
	}
	checkTold(t, Options{}, written3("", `/a: {get: {parameters: [`+header("Accept")+`, `+
		header("content-type")+`], `+ok+`}}`), "GET /a", isIgnored("Accept"),
		isIgnored("Content-Type"))
	const schemes = `components: {securitySchemes: {h: {type: apiKey, in: header, name: X-App},
  q: {type: apiKey, in: query, name: app}, c: {type: apiKey, in: cookie, name: app}}}`
	secured := func(name, parameter string) string {
		return written3(schemes, `/a: {get: {security: [{`+name+`: []}], parameters: [`+parameter+
			`], `+ok+`}}`)
	}
	checkTold(t, Options{}, secured("h", header("x-app")), "GET /a X-App=${X_APP}")
	checkTold(t, Options{}, secured("q", `{name: app, in: query, required: true}`),
		"GET /a?app=${APP}")
	checkTold(t, Options{}, secured("q", `{name: app, in: query, example: 1}`), "GET /a?app=${APP}")
	checkTold(t, Options{}, secured("q", `{name: apps, in: query, example: 1}`),
		"GET /a?apps=1&app=${APP}")
	checkTold(t, Options{}, secured("c", `{name: app, in: cookie, example: 1}, `+
		`{name: b, in: cookie, example: 2}`), "GET /a Cookie=${COOKIE}")
}

// Of several good statuses it is unknown which one an answer has.
func TestSeveralStatuses(t *testing.T) {
	check := func(codes string, want int, assumed bool) {
		t.Helper()
		text := written3("", `/a: {get: {responses: {`+codes+`}}}`)
		d, err := Options{}.Read("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if r := d.Requests[0]; r.Status != want || r.Assumed != assumed || r.Note != "" {
			t.Errorf("%s: status %d (assumed %v, %q), want %d (%v)", codes, r.Status, r.Assumed,
				r.Note, want, assumed)
		}
	}
	check(`'201': {}, '200': {}`, 200, true)
	check(`'204': {}, '202': {}, '500': {}`, 200, true)
	check(`'206': {}, '200': {}`, 200, false)
	check(`'204': {}, '404': {}`, 204, false)
	check(`'302': {}, '200': {}`, 200, false)
}

// A path has a / at its begin, methods of OpenAPI 3.2 are counted, and a list has as many items as
// it needs.
func TestOddOperations(t *testing.T) {
	checkTold(t, Options{}, written3(`servers: [{url: /v1}]`, `items: {get: {`+ok+`}}, `+
		`/b: {additionalOperations: {COPY: {`+ok+`}, LINK: {`+ok+`}}}`),
		"GET /v1/items", "-2: a method that suites do not have",
		"~1: a path that does not begin with / is sent with it")
	const list = `{type: array, minItems: 2, items: {example: 4}}`
	checkTold(t, Options{}, written3("", `/a: {post: {requestBody: {content: {application/json: `+
		`{schema: {properties: {a: {example: 1}, l: `+list+`}}}}}, `+ok+`}}, `+
		`/b: {post: {requestBody: {content: {application/json: {schema: `+list+`}}}, `+ok+`}}`),
		`POST /a [{"a":1}] application/json`, "?POST /b no example of its body")
}

// Of a form of version 2, a file that is not required is left out.
func TestFormsOfVersion2(t *testing.T) {
	check := func(consumes, file string, want ...string) {
		t.Helper()
		checkTold(t, Options{}, `swagger: "2.0"
paths: {/a: {post: {consumes: [`+consumes+`], parameters: [{name: a, in: formData, type: string,
  default: x}, {name: f, in: formData, type: file`+file+`}], `+ok+`}}, /ok: {get: {`+ok+`}}}
`, append([]string{"GET /ok"}, want...)...)
	}
	const both = "multipart/form-data, application/x-www-form-urlencoded"
	const note = "~1: a file of a form that is not required is not sent"
	const sent, lost = "POST /a [a=x] " + formBody, "?POST /a no example of its body " +
		"(multipart/form-data)"
	parts := "POST /a " + formOf("a", "x")
	check(both, "", sent, note)
	check(formBody, ", required: false", sent, note)
	check("", "", sent, note)
	check("multipart/form-data", "", parts, note)
	check(both, ", required: true", lost)
}

// Lists of forms of version 2 are one text, unless they say otherwise.
func TestListsOfVersion2(t *testing.T) {
	check := func(list, want string) {
		t.Helper()
		checkTold(t, Options{}, `swagger: "2.0"
paths: {/a: {post: {consumes: [multipart/form-data], parameters: [{name: l, in: formData,
  type: array, items: {type: string}, default: [a, b c]`+list+`}], `+ok+`}}}
`, "POST /a "+want)
	}
	check("", formOf("l", "a,b c"))
	check(", collectionFormat: csv", formOf("l", "a,b c"))
	check(", collectionFormat: multi", formOf("l", "a", "l", "b c"))
}

// Version 2 has no examples of parameters and bodies; tools agreed on words of their own.
func TestExamplesOfVersion2(t *testing.T) {
	check := func(parameter, want string) {
		t.Helper()
		checkTold(t, Options{}, `swagger: "2.0"
paths: {/a: {post: {consumes: [application/json], parameters: [{`+parameter+`}], `+ok+`}}}
`, "POST /a"+want)
	}
	const body = `name: b, in: body, required: true, schema: {type: object}, `
	const sent = ` [{"a":1.50}] application/json`
	check(body+`x-examples: {application/json: {a: 1.50}, text/a: 3}`, sent)
	check(body+`x-examples: {application/json: '{"a":1.50}'}`, sent)
	check(body+`x-examples: {A: {b: 2}, default: {a: 1.50}}`, sent)
	check(body+`x-examples: {text/a: 3, A: {a: 1.50}}`, sent)
	check(body+`x-example: {a: 1.50}`, sent)
	check(`name: b, in: formData, required: true, type: string, x-example: 0x1F`,
		" [b=0x1F] application/x-www-form-urlencoded")
	check(`name: b, in: query, type: string, x-example: 0x1F`, "?b=0x1F")
}

// The case of a media type has no meaning, but that of a boundary has.
func TestBoundaries(t *testing.T) {
	check := drafted(t, Curl)
	check(`curl http://a/a -H 'Content-Type: Multipart/Form-Data; Boundary=----WebKitAbC' `+
		`--data-raw $'------WebKitAbC\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n`+
		`------WebKitAbC--\r\n'`, "POST /a 1×200 [------WebKitAbC\r\nContent-Disposition: "+
		"form-data; name=\"a\"\r\n\r\n1\r\n------WebKitAbC--\r\n] "+
		"multipart/form-data; boundary=----WebKitAbC")
	// Requests with equal bodies of different types are different requests.
	const typed = "curl http://a/a -d x -H 'content-type: "
	check(typed+"a/b'\n"+typed+"a/c'",
		"POST /a 1×200 [x] a/b\nPOST /a 1×200 [x] a/c")
}

// A body that a file does not have as it was sent is left out.
func TestHARWithPartOfTheBody(t *testing.T) {
	check := func(request string, want ...string) {
		t.Helper()
		checkTold(t, Options{}, `{"log": {"entries": [{"request": {"method": "POST", "url":
"http://shop.test/a", `+request+`}}, {"request": {"url": "http://shop.test/ok"}}]}}`, want...)
	}
	const part = "-1: its body is longer than the part that the file has"
	check(`"bodySize": 9, "postData": {"mimeType": "text/plain", "text": "abc"}`, "GET /ok", part)
	check(`"headers": [{"name": "Content-Length", "value": "4"}], "postData":
{"mimeType": "text/plain", "text": "abc"}`, "GET /ok", part)
	check(`"bodySize": 2, "postData": {"mimeType": "text/plain", "text": "ü"}`,
		"POST /a [ü] text/plain", "GET /ok")
	check(`"bodySize": -1, "postData": {"mimeType": "text/plain", "text": "ü"}`,
		"POST /a [ü] text/plain", "GET /ok")
	check(`"bodySize": 9, "postData": {"params": [{"name": "a", "value": "b"}]}`,
		"POST /a [a=b] ", "GET /ok", "~1: the body of a form is made of its fields, which were "+
			"sent with other escapes", "~1: a body without a Content-Type is sent with text/plain")
	const lost = "-1: its body or its header fields have U+FFFD, which files have in place of " +
		"bytes that are not text"
	check(`"postData": {"mimeType": "text/plain", "text": "a\ud800"}`, "GET /ok", lost)
	check(`"headers": [{"name": "X-A", "value": "a�"}]`, "GET /ok", lost)
}

// An authorization of the kind inherit is that of the folder.
func TestPostmanInherits(t *testing.T) {
	const own = `"auth": {"type": "inherit"}, `
	checkTold(t, Options{}, postman(`"auth": {"type": "bearer", "bearer": [{"key": "token",
"value": "t"}]}, `, `{`+own+`"item": [{"request": {`+own+`"url": "http://shop.test/a"}},
{"request": {"auth": {"type": "noauth"}, "url": "http://shop.test/b"}}]}`),
		"GET /a Authorization=Bearer ${TOKEN}", "GET /b")
	checkTold(t, Options{}, `{"version": 1, "collections": [{"requests": []}], "environments": []}`,
		"read f: it is all data of Postman; export one collection as Collection v2.1")
}

// Commands whose output others use are commands, too.
func TestCurlWithinCommands(t *testing.T) {
	check := drafted(t, Curl)
	check("out=$(curl -s http://a/a)", "GET /a 1×200")
	check("echo \"$(curl 'http://a/{b}' | jq .)\"\ncurl http://a/c", "GET /c 1×200\n"+
		"- 1: an address with [ ] or { }, of which curl makes several; write each one, or -g if "+
		"it is one\n~ 1: a command that is not curl is not run")
	check(`curl http://a/a -H "X: $(curl http://a/b)"`, "GET /b 1×200\nGET /a 1×200 X=${VALUE}\n"+
		"VALUE: a variable that has no value in the file")
	check("A=b\ncurl http://a/a", "GET /a 1×200\n~ 1: a command that is not curl is not run")
}

// Hosts of a log all become one service, and a query may be in a field of its own.
func TestLogHosts(t *testing.T) {
	check := drafted(t, "")
	const line = ` 192.0.2.4 - - [27/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5` + "\n"
	check("shop.test:443"+line+"Shop.test:443"+line+"other.test:80"+line, "GET /a 3×200\n"+
		"~ 1: a request of another host than shop.test goes to the same service")
	check("shop.test:443"+line+"shop.test:80"+line, "GET /a 2×200")
	caddy := func(host string) string {
		return `{"ts": 1795773600, "request": {"method": "GET", "host": "` + host +
			`", "uri": "/a"}, "status": 200}` + "\n"
	}
	check(caddy("a")+caddy("a")+caddy("b"), "GET /a 3×200\n"+
		"~ 1: a request of another host than a goes to the same service")
	const path = `{"time": "2026-11-27T10:00:00Z", "method": "GET", "path": "/a", "status": 200`
	check(path+`, "query": "?b=c"}`, "GET /a?b=c 1×200")
	check(path+`, "query": "-", "query_string": ""}`, "GET /a 1×200")
	check(path+`, "query": {"b": "c"}}`+"\n"+path+`}`, "GET /a 1×200\n"+
		"- 1: lines whose query is not a text")
}

// The outermost keys of a document may be indented, and keys with names of versions be inside.
func TestIndentedDocument(t *testing.T) {
	checkTold(t, Options{}, "# a\n---\n\n  swagger: '2.0'\n  paths: {/a: {get: {"+ok+"}}}\n",
		"GET /a")
	checkTold(t, Options{}, "{openapi: 3.0.3, paths: {/a: {get: {"+ok+"}}}}\n", "GET /a")
	checkTold(t, Options{}, `{"openapi": "3.0.3", "paths": {`, "read f as openapi: it is not "+
		"JSON from byte 31 on; save it again")
	checkTold(t, Options{}, "---\na:\n  openapi: 3\n", "read f: it looks like none of openapi, "+
		"har, curl, postman, log; name its kind with --as")
}

// A GET has no body, and what would end a path is escaped in its variables.
func TestWhatIsNotSent(t *testing.T) {
	checkTold(t, Options{}, written3("", `/a: {get: {requestBody: {content: {application/json: `+
		`{example: {a: 1}}}}, `+ok+`}}`), "GET /a",
		"~1: the body of a GET or HEAD is not sent, because it has no meaning (RFC 9110)")
	checkTold(t, Options{}, postman("", `{"request": {"url": {"raw": "http://shop.test/:a/b?c=d",
"variable": [{"key": "a", "value": "x?y#z/w"}]}}}`), "GET /x%3Fy%23z/w/b?c=d")
	checkTold(t, Options{}, `{"log": {"entries": [{"request": {"url": "http://shop.test/a#b",
"queryString": [{"name": "c", "value": "d"}]}}]}}`, "GET /a?c=d")
	drafted(t, "")(`[2026-11-27T10:00:00+01:00] "GET /a HTTP/1.1" 200 5`, "GET /a 1×200")
}
