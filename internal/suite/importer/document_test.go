package importer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// told is a draft in lines: its requests, after a ? those that lack a value, after a - what is left
// out, and after a ~ what is changed.
func told(d *Draft, err error) string {
	if err != nil {
		return err.Error()
	}
	var out []string
	line := func(mark string, r Request) {
		text := mark + r.Method + " " + r.Path
		for _, f := range r.Headers {
			text += " " + f.Name + "=" + f.Value
		}
		if r.Body != "" {
			text += " [" + r.Body + "] " + r.Type
		}
		if r.Status != 200 {
			text += fmt.Sprint(" ", r.Status)
		}
		if mark != "" {
			text += " " + r.Note
		}
		out = append(out, text)
	}
	for _, r := range d.Requests {
		line("", r)
	}
	for _, r := range d.Unknown {
		line("?", r)
	}
	for _, why := range d.Left {
		out = append(out, "-"+why)
	}
	for _, note := range d.Changed {
		out = append(out, "~"+note)
	}
	return strings.Join(out, "\n")
}

// checkTold compares a draft in lines, and holds it to have each thing that was found once.
func checkTold(t *testing.T, o Options, text string, want ...string) {
	t.Helper()
	d, err := o.Read("f", []byte(text))
	if got := told(d, err); got != strings.Join(want, "\n") {
		t.Errorf("%s\nis   %s\nwant %s", text, got, strings.Join(want, "\n     "))
	}
	if err != nil {
		return
	}
	checkCounted(t, d, text)
	written, trace := print(t, d, "f")
	asSuite(t, written, trace)
}

// checkCounted holds each request of a file to be taken, or left out for a reason.
func checkCounted(t testing.TB, d *Draft, text string) {
	t.Helper()
	n := Total(slices.Concat(d.Requests, d.Unknown, d.Held))
	for _, times := range d.counts {
		n += times
	}
	if n != d.Found {
		t.Errorf("%s\nhas %d requests, of which %d are told", text, d.Found, n)
	}
}

// written3 is a document with paths in YAML's flow style, and what stands beside them.
func written3(beside, paths string) string {
	return "openapi: 3.0.3\ninfo: {title: t, version: '1'}\n" + beside +
		"\npaths: {" + paths + "}\n"
}

// none is what is said of a document of which every operation lacks a value.
func none(first string) string {
	return "read f as openapi: every request wants a value that has no example: " + first +
		"; add an example to the file, or pass only --url"
}

const ok = `responses: {'200': {description: ok}}`

// Versions are numbers as well as texts.
func TestVersions(t *testing.T) {
	for _, version := range []string{"3.0", "3", "3.1", "'3.1.0'", "3.0.3"} {
		checkTold(t, Options{}, "openapi: "+version+"\npaths: {/a: {get: {"+ok+"}}}\n", "GET /a")
	}
	checkTold(t, Options{}, `{"openapi":3.1,"paths":{"/a":{"get":{}}}}`, "GET /a")
}

// The path of a server counts, whatever its host is; a variable without a value is left open in a
// host, and is asked for in a path.
func TestServers(t *testing.T) {
	check := func(servers string, want ...string) {
		t.Helper()
		checkTold(t, Options{Origin: "http://127.0.0.1:1"},
			written3("servers: ["+servers+"]", "/a: {get: {"+ok+"}}"), want...)
	}
	check(`{url: 'https://{region}.shop.test/v2'}`, "GET /v2/a")
	check(`{url: 'https://shop.test:{port}/v6'}`, "GET /v6/a")
	check(`{url: '{scheme}://shop.test/v9'}`, "GET /v9/a")
	check(`{url: 'https://{user}:{pass}@shop.test/v9?x={y}'}`, "GET /v9/a")
	check(`{url: 'https://shop.test/{base}/x'}`, none("GET /{base}/x/a, no example of base"))
	check(`{url: 'https://{host}/{base}', variables: {host: {default: h.test}, base: {enum: [v3]}}}`,
		"GET /v3/a")
	check(`{url: '//shop.test/v1/'}`, "GET /v1/a")
	check(`{url: ./v5}`, "GET /v5/a")
	check(`{url: v5}`, "GET /v5/a")
	check(`{url: shop.test/v5}`, "GET /v5/a")
	check(`{url: 'app:8080'}`, "GET /a")
	check(`{url: v1.0/x}`, "GET /v1.0/x/a")
	check(`{url: ../v5/.}`, "GET /v5/a")
	check(`{url: '/'}`, "GET /a")
	check(`{url: 'https://h.test/{base}', variables: {base: {default: ''}}}`, "GET /a")
	check(``, "GET /a")
	check(`{url: 'wss://shop.test/v1'}`, "read f as openapi: every request was left out: 1: of a "+
		"server that is not of http or https; add an example to the file, or pass only --url")
	check(`{url: 'wss://shop.test/v1'}, {url: 'https://shop.test/v2'}`, "GET /v2/a")
	check(`{url: 'https://shop.test/v2'}, {url: 'http://127.0.0.1:1/local'}`, "GET /local/a")
	check(`{url: 'https://shop.test/v2'}, {url: 'https://other.test/v3'}, {url: /v4}`, "GET /v2/a")
}

// Servers of a path and of an operation come before those of the document.
func TestServersOfOperations(t *testing.T) {
	paths := `/a: {servers: [{url: /v9}], get: {` + ok + `}},
/b: {get: {servers: [{url: 'https://other.test/v8'}], ` + ok + `}},
/c: {servers: [{url: /v9}], get: {servers: [{url: '/{v}', variables: {v: {default: v7}}}], ` + ok +
		`}}`
	checkTold(t, Options{Origin: "http://127.0.0.1:1"}, written3("servers: [{url: /v1}]", paths),
		"GET /v9/a", "GET /v7/c", "-1: of another host than the document's: https://other.test")
	checkTold(t, Options{Origin: "https://other.test"}, written3("servers: [{url: /v1}]", paths),
		"GET /v9/a", "GET /v8/b", "GET /v7/c")
	checkTold(t, Options{}, written3("servers: [{url: 'https://shop.test/v1'}]",
		`/b: {get: {servers: [{url: 'https://other.test/v8'}], `+ok+`}}, /c: {get: {`+ok+`}},`+
			` d: {get: {`+ok+`}}`),
		"GET /v1/c", "GET /v1/d", "-1: of another host than https://shop.test",
		"~1: a path that does not begin with / is sent with it")
	checkTold(t, Options{}, written3("servers: [{url: 'https://shop.test/v1'}]",
		`/b: {get: {servers: [{url: 'https://{agent}'}], `+ok+`}}, /c: {get: {`+ok+`}},`+
			` /d: {servers: [{url: /v9}], get: {`+ok+`}}`),
		"GET /v1/c", "GET /v9/d", "-1: of a host that the document does not name")
	checkTold(t, Options{}, written3("", `/b: {get: {servers: [{url: 'https://a.test'}], `+ok+`}}`),
		"GET /b")
}

// Each digit of a number is kept, and each character of a text.
func TestExactValues(t *testing.T) {
	checkTold(t, Options{}, `{"openapi":"3.0.3","paths":{"/a/{id}":{"get":{"parameters":[
{"name":"id","in":"path","required":true,"example":9007199254740993},
{"name":"p","in":"query","example":12.50}]}},
"/g":{"post":{"requestBody":{"content":{"application/json":{"example":{"id":9007199254740993,
"price":12.50,"huge":1e400,"t":"<a>&b"}}}}}}}}`,
		"GET /a/9007199254740993?p=12.50",
		`POST /g [{"huge":1e400,"id":9007199254740993,"price":12.50,"t":"<a>&b"}] application/json`)
	checkTold(t, Options{}, written3("", `'/a/{id}': {get: {parameters: [{name: id, in: path,
required: true, example: 01234}, {name: n, in: query, example: 123456789012345678901}], `+ok+`}},
/g: {post: {requestBody: {content: {application/json: {example: {price: 1.10, zip: 01234, e: 1e3,
day: 2026-01-02}}}}, `+ok+`}}`),
		"GET /a/01234?n=123456789012345678901",
		`POST /g [{"day":"2026-01-02","e":1e3,"price":1.10,"zip":"01234"}] application/json`)
	checkTold(t, Options{}, written3("", `/a: {get: {parameters: [{name: phone, in: query,
schema: {type: string}, example: +491234}], `+ok+`}},
/g: {post: {requestBody: {content: {application/json: {schema: {properties: {
version: {type: string, example: 1.10}, flags: {items: {type: string}, example: [true, 2, on]},
maybe: {type: [string, 'null'], default: 7}, any: {type: [string, integer], default: 7},
price: {type: number, example: 1.10}}}}}}, `+ok+`}}`),
		"GET /a?phone=%2B491234",
		`POST /g [{"any":7,"flags":["true","2","on"],"maybe":"7","price":1.10,"version":"1.10"}] `+
			`application/json`)
}

// What only answers have is in no request, however deep it is.
func TestReadOnly(t *testing.T) {
	check := func(schema, want string) {
		t.Helper()
		checkTold(t, Options{}, written3(`components:
  schemas:
    Id: {type: integer, readOnly: true}
    A: {type: object, required: [id, n], properties: {n: {example: x},
      id: {type: integer, readOnly: true, example: 5}}}
    B: {allOf: [{$ref: '#/components/schemas/A'}]}
    C: {allOf: [{$ref: '#/components/schemas/B'}, {properties: {m: {example: 2}}}]}
    Late: {allOf: [{properties: {id: {example: 5}}},
      {properties: {id: {readOnly: true}, n: {example: x}}}]}`,
			`/a: {post: {requestBody: {content: {application/json: {schema: `+schema+`}}}, `+
				ok+`}}`),
			want)
	}
	const kind = " application/json"
	ref := func(name string) string { return `{$ref: '#/components/schemas/` + name + `'}` }
	check(ref("A"), `POST /a [{"n":"x"}]`+kind)
	check(ref("C"), `POST /a [{"m":2,"n":"x"}]`+kind)
	check(ref("Late"), `POST /a [{"n":"x"}]`+kind)
	check(`{required: [i], properties: {i: `+ref("Id")+`, c: `+ref("C")+`}}`,
		`POST /a [{"c":{"m":2,"n":"x"}}]`+kind)
	check(`{required: [i], properties: {i: {allOf: [`+ref("Id")+`]}, k: {example: 1}}}`,
		`POST /a [{"k":1}]`+kind)
	check(`{type: array, items: `+ref("A")+`}`, `POST /a [[{"n":"x"}]]`+kind)
	check(`{allOf: [`+ref("A")+`], example: {id: 9, n: y, more: 1}}`,
		`POST /a [{"more":1,"n":"y"}]`+kind)
	check(`{properties: {l: {type: array, items: `+ref("A")+`, example: [{id: 1, n: z}]}}}`,
		`POST /a [{"l":[{"n":"z"}]}]`+kind)
	check(`{allOf: [{example: {id: 1, n: z}, properties: {id: {readOnly: true}}}, `+
		`{properties: {m: {default: 3}}}]}`,
		`POST /a [{"m":3,"n":"z"}]`+kind)
	check(`{oneOf: [{type: string}, `+ref("B")+`], properties: {m: {default: 3}}}`,
		`POST /a [{"m":3,"n":"x"}]`+kind)
	check(`{type: string, example: '12'}`, `POST /a ["12"]`+kind)
	check(`{properties: {e: {enum: [null, a]}}}`, `POST /a [{"e":"a"}]`+kind)
}

// Values of several parts are written as the style of their parameter says (OpenAPI 3.1, section
// 4.8.12.6 has the table).
func TestStyles(t *testing.T) {
	const list, object = `[blue, 'b l', 7]`, `{R: 100, G: 200}`
	check := func(parameter, want string) {
		t.Helper()
		path := "/a"
		if strings.Contains(parameter, "in: path") {
			path = "/a/{c}"
		}
		checkTold(t, Options{}, written3("", "'"+path+"': {get: {parameters: [{name: c, "+
			"required: true, "+parameter+"}], "+ok+"}}"), want)
	}
	check(`in: query, example: `+list, "GET /a?c=blue&c=b+l&c=7")
	check(`in: query, explode: false, example: `+list, "GET /a?c=blue,b+l,7")
	check(`in: query, style: form, explode: false, example: `+object, "GET /a?c=G,200,R,100")
	check(`in: query, example: `+object, "GET /a?G=200&R=100")
	check(`in: query, style: spaceDelimited, example: `+list, "GET /a?c=blue%20b+l%207")
	check(`in: query, style: pipeDelimited, example: `+list, "GET /a?c=blue%7Cb+l%7C7")
	check(`in: query, style: pipeDelimited, explode: true, example: `+list,
		"GET /a?c=blue&c=b+l&c=7")
	check(`in: query, style: deepObject, explode: true, example: `+object,
		"GET /a?c%5BG%5D=200&c%5BR%5D=100")
	check(`in: query, style: deepObject, example: {a: {b: [1, 2]}}`,
		"GET /a?c%5Ba%5D%5Bb%5D=1&c%5Ba%5D%5Bb%5D=2")
	check(`in: query, allowReserved: true, example: 'a/b?c=d e,f'`, "GET /a?c=a/b?c=d%20e,f")
	check(`in: query, content: {application/json: {example: {a: [1]}}}`,
		"GET /a?c=%7B%22a%22%3A%5B1%5D%7D")
	check(`in: query, schema: {type: array, items: {enum: [x, y]}}`, "GET /a?c=x")
	check(`in: query, example: ''`, "GET /a?c=")
	check(`in: path, example: `+list, "GET /a/blue,b%20l,7")
	check(`in: path, example: `+object, "GET /a/G,200,R,100")
	check(`in: path, explode: true, example: `+object, "GET /a/G=200,R=100")
	check(`in: path, style: label, example: `+list, "GET /a/.blue,b%20l,7")
	check(`in: path, style: label, explode: true, example: `+list, "GET /a/.blue.b%20l.7")
	check(`in: path, style: matrix, example: `+list, "GET /a/;c=blue,b%20l,7")
	check(`in: path, style: matrix, explode: true, example: `+object, "GET /a/;G=200;R=100")
	check(`in: path, example: a/b`, "GET /a/a%2Fb")
	check(`in: path, example: ''`, none("GET /a/{c}, no example of c"))
	check(`in: path, example: []`, none("GET /a/{c}, no example of c"))
	check(`in: header, example: `+list, "GET /a c=blue,b l,7")
	check(`in: header, explode: true, example: `+object, "GET /a c=G=200,R=100")
}

// A hole that is left is said, by the name that the document has for it.
func TestHolesOfPaths(t *testing.T) {
	checkTold(t, Options{}, written3("", `'/a/{id}': {get: {parameters: `+
		`[{$ref: 'common.yaml#/id'}], `+ok+`}}, /ok: {get: {`+ok+`}}, `+
		`'/b/{x}/{y}': {get: {parameters: [{name: x, in: path, `+
		`required: true, example: 1}], `+ok+`}}, /q: {get: {parameters: [{$ref: '#/no/where'}], `+
		ok+`}}, '/h#a': {get: {`+ok+`}}`),
		"GET /ok", "?GET /a/{id} no example of id", "?GET /b/1/{y} no example of y",
		"?GET /q no example of where", "-1: a path with #, which is not sent",
		"~1: a reference leads to nothing that init reads: #/no/where",
		"~1: a reference leads to nothing that init reads: common.yaml#/id")
	checkTold(t, Options{}, written3("", `/a: {post: {requestBody: {$ref: 'b.yaml'}, `+ok+`}}, `+
		`/ok: {get: {`+ok+`}}, /b: {post: {requestBody: {required: true, `+
		`content: {multipart/form-data: {schema: `+
		`{required: [a], properties: {a: {format: binary, example: 1}}}}}}, `+ok+
		`}}, /c: {get: {security: [{s: []}], `+ok+`}}`),
		"GET /ok", "?GET /c no example of the authorization s", "?POST /a no example of its body",
		"?POST /b no example of its body (multipart/form-data)",
		"~1: a reference leads to nothing that init reads: b.yaml")
}

// Bodies are of the media type that they are sent with.
func TestBodies(t *testing.T) {
	check := func(content, want string) {
		t.Helper()
		checkTold(t, Options{}, written3("", `/a: {post: {requestBody: {content: {`+content+`}}, `+
			ok+`}}`), "POST /a "+want)
	}
	check(`application/x-www-form-urlencoded: {example: {a: [1, 2], b: x y, c: {d: 1}}}`,
		"[a=1&a=2&b=x+y&c=%7B%22d%22%3A1%7D] application/x-www-form-urlencoded")
	check(`application/x-www-form-urlencoded: {example: {a: [1, 2], c: {d: 1}}, encoding: `+
		`{a: {explode: false}, c: {style: deepObject}}}`,
		"[a=1,2&c%5Bd%5D=1] application/x-www-form-urlencoded")
	check(`text/plain: {example: hi}, application/vnd.x+json: {example: {a: 1}}`,
		`[{"a":1}] application/vnd.x+json`)
	check(`application/x-ndjson: {example: '{"a":1} {"a":2}'}`,
		`[{"a":1} {"a":2}] application/x-ndjson`)
	check(`'*/*': {example: {a: 1}}`, `[{"a":1}] application/json`)
	check(`application/json-patch+json: {example: [{op: add}]}`,
		`[[{"op":"add"}]] application/json-patch+json`)
}

// Each operation of a document is a request or is counted, whatever its method.
func TestEachOperationIsCounted(t *testing.T) {
	paths := `/w: {post: {` + ok + `}, delete: {` + ok + `}, options: {` + ok + `}, trace: {` + ok +
		`}}, /bad: {get: {responses: {'500': {description: no}}}}, /other: {$ref: other.yaml},` +
		` /moved: {get: {responses: {'302': {description: there}}}}, x-note: {get: {}}`
	for i := range 50 {
		paths += fmt.Sprintf(`, '/p/%02d/{id}': {get: {`+ok+`}}`, i)
	}
	for i := range 45 {
		paths += fmt.Sprintf(`, /q/%02d: {get: {tags: [t%d], %s}}`, i, i%2, ok)
	}
	text := written3("webhooks: {paid: {post: {}}}", paths)
	d, err := Options{}.Read("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if d.Found != 103 || len(d.Requests) != 40 || Total(d.Unknown) != 50 {
		t.Errorf("%d found, %d requests, %d without a value", d.Found, len(d.Requests),
			Total(d.Unknown))
	}
	left := strings.Join(d.Left, "\n")
	for _, why := range []string{"1: DELETE",
		"1: OPTIONS", "1: TRACE", "1: a path whose operations are in another file",
		"1: webhooks, which the service sends",
		"8: beyond the first 40; choose others with --only"} {
		if !strings.Contains("\n"+left, "\n"+why) {
			t.Errorf("%q is not in\n%s", why, left)
		}
	}
	written, _ := print(t, d, "f")
	if !strings.Contains(written, "\n  # … and 10 more without an example\n") {
		t.Errorf("it does not say how many there are:\n%s", written)
	}
	few := func(o Options, want int) {
		t.Helper()
		d, err := o.Read("f", []byte(text))
		if err != nil || len(d.Requests) != want || d.Found != 103 ||
			d.counts[unchosen] == 0 {
			t.Errorf("%+v: %v, %v", o, d, err)
		}
	}
	few(Options{Only: []string{"/q/1*"}}, 10)
	few(Options{Only: []string{"/q/11", "/moved", "/q/.1"}}, 2)
	few(Options{Tags: []string{"t1"}}, 22)
	few(Options{Only: []string{"*2"}, Tags: []string{"t0"}}, 5)
}

// Requests that change data do not take the places of those that read, and are limited as well.
func TestWritesSetAside(t *testing.T) {
	paths := "/r: {get: {" + ok + "}}"
	for i := range 45 {
		paths += fmt.Sprintf(", /w%02d: {post: {%s}}", i, ok)
	}
	reading := Options{ReadOnly: true}
	d, err := reading.Read("f", []byte(written3("", paths)))
	if err != nil || len(d.Requests) != 1 || len(d.Held) != 40 || len(d.Left) != 1 ||
		d.Left[0] != "5: beyond the first 40; choose others with --only" {
		t.Errorf("%v, %v", d, err)
	}
	checkTold(t, reading, written3("", "'/r/{id}': {get: {"+ok+"}}, /w: {post: {"+ok+"}}"),
		"read f as openapi: 1 request of the file would change data of the service, and no other "+
			"has all that it needs; pass --writes to include such requests")
}

// Documents of several files are read from the folder, each reference from its own file.
func TestFolder(t *testing.T) {
	files := fstest.MapFS{
		"paths/items.yaml": {Data: []byte("get: {parameters: [{$ref: ../common.yaml#/id}, " +
			"{$ref: '#/q'}], responses: {200: {}}}\nq: {name: q, in: query, example: 1.50}\n")},
		"common.yaml": {Data: []byte("id: {name: id, in: path, " +
			"schema: {$ref: schemas/id.json}}")},
		"schemas/id.json":  {Data: []byte(`{"allOf": [{"$ref": "n.json#/a~1b/0"}]}`)},
		"schemas/n.json":   {Data: []byte(`{"a/b": [{"example": 9007199254740993}]}`)},
		"loop.yaml":        {Data: []byte("$ref: loop.yaml\n")},
		"paths/wrong.yaml": {Data: []byte("a: [")},
		"paths/same.yaml": {Data: []byte("p: &p {$ref: ../common.yaml#/id}\n" +
			"get: {parameters: [*p, {name: q, in: query, schema: {$ref: '#/q'}}], " +
			"responses: {200: {}}}\n" +
			"q: {allOf: [*p]}\n")},
	}
	text := written3("", `'/i/{id}': {$ref: ./paths/items.yaml}, /l: {$ref: loop.yaml}, `+
		`'/s/{id}': {$ref: paths/same.yaml}, `+
		`/w: {$ref: paths/wrong.yaml}, /out: {$ref: ../x.yaml}, /abs: {$ref: /etc/passwd}, `+
		`/far: {$ref: 'https://shop.test/a.yaml'}`)
	checkTold(t, Options{Files: files}, text, "GET /i/9007199254740993?q=1.50",
		"GET /s/9007199254740993",
		"-5: a path whose operations are in another file; bundle the document into one file first",
		"~1: a reference leads to nothing that init reads: ../x.yaml",
		"~1: a reference leads to nothing that init reads: /etc/passwd",
		"~1: a reference leads to nothing that init reads: https://shop.test/a.yaml",
		"~1: a reference leads to nothing that init reads: paths/wrong.yaml")
}

// Documents of version 2 are read as they are.
func TestSwagger(t *testing.T) {
	text := `swagger: "2.0"
host: shop.test
basePath: /v1/
schemes: [wss, https]
consumes: [application/json]
securityDefinitions:
  key: {type: apiKey, in: header, name: X-Key}
  basic: {type: basic}
definitions:
  Item: {required: [id], properties: {id: {type: integer, readOnly: true}, n: {example: x}}}
parameters:
  page: {name: page, in: query, type: integer, default: 2}
paths:
  /items:
    get:
      parameters:
        - $ref: '#/parameters/page'
        - {name: tag, in: query, type: array, items: {type: string, enum: [a, b]}, required: true}
        - {name: ids, in: query, type: array, collectionFormat: multi, default: [1, 2]}
        - {name: s, in: query, type: array, collectionFormat: pipes, default: [1, 2]}
      security: [{key: []}]
      responses: {200: {description: ok}}
    post:
      parameters: [{name: body, in: body, required: true, schema: {$ref: '#/definitions/Item'}}]
      responses: {201: {description: made}}
  /items/{id}:
    parameters: [{name: id, in: path, required: true, type: string}]
    get: {responses: {200: {description: ok}}}
  /form:
    post:
      consumes: [application/x-www-form-urlencoded]
      parameters:
        - {name: a, in: formData, type: array, items: {type: integer, default: 1}}
        - {name: b, in: formData, type: string, default: x y}
      security: [{basic: []}]
      responses: {default: {description: any}}
  /upload:
    post:
      parameters: [{name: f, in: formData, type: file, required: true}]
      responses: {200: {description: ok}}
`
	checkTold(t, Options{}, text,
		"GET /v1/items?page=2&tag=a&ids=1&ids=2&s=1%7C2 X-Key=${X_KEY}",
		"POST /v1/form Authorization=Basic ${BASIC_AUTH} [a=1&b=x+y] "+
			"application/x-www-form-urlencoded",
		`POST /v1/items [{"n":"x"}] application/json 201`,
		"?GET /v1/items/{id} no example of id",
		"?POST /v1/upload no example of its body (multipart/form-data)")
}

// One of several authorizations is enough, and a field of a parameter is one as well.
func TestAuthorizations(t *testing.T) {
	check := func(operation string, want ...string) {
		t.Helper()
		checkTold(t, Options{}, written3(`components: {securitySchemes: {d: {type: http, scheme: `+
			`digest}, b: {type: http, scheme: Bearer}, k: {type: apiKey, in: cookie, name: sid}, `+
			`m: {type: mutualTLS}}}`, `/a: {get: {`+operation+`, `+ok+`}}`), want...)
	}
	const param = `parameters: [{name: Authorization, in: header, required: true}, ` +
		`{name: Accept, in: header, example: a/b}]`
	check(`security: [{d: []}, {b: []}]`, "GET /a Authorization=Bearer ${TOKEN}")
	check(`security: [{d: []}, {}]`, "GET /a")
	check(`security: [{m: [], k: []}]`, "GET /a Cookie=${COOKIE}")
	check(`security: [{d: []}]`, none("GET /a, no example of the authorization d"))
	check(param+`, security: [{b: []}]`, "GET /a Authorization=Bearer ${TOKEN}",
		isIgnored("Accept"))
}

// Version 3 has parameters ignored that other parts of a document describe. The reader learns of
// fields that no request has then.
func TestIgnoredParameters(t *testing.T) {
	const params = `parameters: [{name: Authorization, in: header, required: true}, ` +
		`{name: accept, in: header, example: a/b}, {name: Content-Type, in: header, ` +
		`schema: {type: string}, example: c/d}, {name: X-A, in: header, example: e}]`
	checkTold(t, Options{}, written3("", `/a: {get: {`+params+`, `+ok+`}}`), "GET /a X-A=e",
		isIgnored("Authorization"), isIgnored("Accept"), isIgnored("Content-Type"))
	checkTold(t, Options{}, written3("", `/a: {post: {`+params+`, requestBody: {content: `+
		`{application/json: {example: {a: 1}}}}, `+ok+`}}`),
		`POST /a X-A=e [{"a":1}] application/json`, isIgnored("Authorization"), isIgnored("Accept"))
	checkTold(t, Options{}, written3("", `/a: {get: {parameters: [{name: Accept, in: header}], `+
		ok+`}}`), "GET /a") // no request would have it
	checkTold(t, Options{}, "swagger: '2.0'\ninfo: {title: t, version: '1'}\npaths: {/a: {get: {"+
		params+", "+ok+"}}}\n",
		"GET /a Authorization=${AUTHORIZATION} accept=a/b Content-Type=c/d X-A=e")
}

// isIgnored is what is said of a header parameter that is ignored.
func isIgnored(name string) string {
	return "~1: the header parameter " + name +
		" is not sent, because OpenAPI prescribes to ignore it"
}

// A cookie that a document describes is one of a field.
func TestCookies(t *testing.T) {
	d, err := Options{}.Read("f", []byte(written3("", `/a: {get: {parameters: [`+
		`{name: theme, in: cookie, example: dark}, {name: lang, in: cookie, example: de}, `+
		`{name: Authorization, in: header, example: x}], `+ok+`}}`)))
	if err != nil || len(d.Secrets) != 1 ||
		!strings.Contains(d.Secrets[0].About, "theme=…; lang=…") {
		t.Errorf("it tells %v of %v", err, d)
	}
}

// Readiness is asked of a path that answers 200: of health, or of one without parameters.
func TestReady(t *testing.T) {
	check := func(want string, paths ...string) {
		t.Helper()
		d, err := Options{}.Read("f", []byte(written3("", strings.Join(paths, ", "))))
		if err != nil {
			t.Fatal(err)
		}
		written, _ := print(t, d, "f")
		if want == "" && strings.Contains(written, "\nready:") ||
			want != "" && !strings.Contains(written, "\nready: "+want+"   # what answers 200") {
			t.Errorf("it has no %q:\n%s", want, written)
		}
	}
	get := func(path, status, more string) string {
		return path + ": {get: {" + more + " responses: {'" + status + "': {description: x}}}}"
	}
	check("", get("/a", "200", ""), get("/b", "200", ""))
	check("/pets", get("/oops", "200", "summary: Always fails,"), get("/pets", "200", ""))
	check("/b/healthz", get("/a", "200", ""), get("/b/healthz", "200", ""))
	check("/b", get("/a", "204", ""), get("/b", "200", ""))
	check("'-'", get("/a", "302", ""), get("/b", "204", ""))
	check("/c", get("/a", "200", "parameters: [{name: q, in: query, example: 1}],"),
		get("/c", "200", ""), get("/d", "200", ""))
	check("", get("/a", "200", "parameters: [{name: token, in: query, required: true}],"))
}
