package importer

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"prony.example/internal/dev/testsets"
)

// Bytes that a draft may allocate, and those for each byte of a file.
const (
	allocatedMax  = 64 << 20
	allocatedEach = 20_000
)

// seeds are small files of unusual forms, by kind.
var seeds = map[string][]string{
	OpenAPI: {`{"openapi":"3.1.0","paths":{"/a":{"get":{"parameters":[` +
		`{"$ref":"#/paths"}]}}}}`, `{"swagger":"2.0","host":"h","paths":{"/a/{b}":{"post":{` +
		`"parameters":[{"in":"formData","name":"c","type":"array","default":[1,{"d":2}]}]}}}}`,
		"openapi: 3\nservers: [{url: '{s}://{h}/{p}'}]\npaths: {'/{a}': {get: {parameters: " +
			"[{name: a, in: path, style: matrix, explode: true, example: {b: [01, .5]}}]}}}\n",
		"openapi: 3.0\nservers: [{url: 'https://h:{port}/v1', variables: {port: {enum: [1]}}}]\n" +
			"paths:\n  /a: {servers: [{url: /v9}], get: {servers: [{url: '//{h}'}]}}\n" +
			"  /b: {post: {requestBody: {content: {application/json: {schema: {$ref: '#/x'}}}}}}" +
			"\n" +
			"  /c: {get: {parameters: [{name: c, in: cookie, example: d}, {$ref: e.yaml#/f}]}}\n" +
			"x: {allOf: [{$ref: '#/x'}, {properties: {id: {readOnly: true, example: 5}}}]}\n",
		`{"openapi":"3.0.3","paths":{"/a/{id}":{"get":{"parameters":[{"name":"id","in":"path",` +
			`"example":9007199254740993}]}}},"webhooks":{"w":{"post":{}}}}`,
		"swagger: '2.0'\nx: &a [b, b]\npaths: {/a: {put: {consumes: [text/csv], parameters: " +
			"[{in: body, schema: {example: [*a, *a, 12.50]}}]}, delete: {}, parameters: *a}}\n"},
	HAR: {`{"log":{"entries":[{"request":{"url":"http://a"}}]}}`, `{"log":{"entries":[7,` +
		`{"request":{"url":"http://a","cookies":[{"name":1}],"postData":{"text":"aA==",` +
		`"encoding":"base64"}},"response":{"status":"200"}}]}}`,
		`{"log":{"entries":[{"request":{"url":"http://a/b","headers":[{"name":"Range","value":` +
			`"bytes=0-9"},{"name":"x-tag","value":"a"},{"name":"x-tag","value":"b"},` +
			`{"name":"GET /","value":"c"}],"cookies":{"name":"d","value":"e"}},"response":` +
			`{"status":206,"content":{"mimeType":"text/html"}}},{"request":{"method":"POST",` +
			`"url":"https://b:443/?q#f","bodySize":9,"postData":{"mimeType":"a/b","params":` +
			`[{"name":"g","value":1.50}]}}}]}}`},
	Curl: {"curl -H a:b -d $'x\\u0000' http://a/{b}?c=${D}#e; curl a &",
		"curl ^\"http://a/?b^&c\" ^\r\n -H ^\"d: e\\^\"^\"", "curl $A/../b -GId c --next -r 0-9 d",
		"curl 'http://[::1]/\\[a\\]?b#c' --json $'\\ud83d\\ude00' -b d=e -b f=g --url-query h=i",
		"cd a && curl http://a/b http://c/d --data '' > f.json\n```\n$ curl 'e\n", "curl -X PUT " +
			"http://a:80/ -u b:c -H 'Host: d' -H 'X: 1' -H 'x: 2' --data-urlencode 'e=f g'"},
	Postman: {`{"item":[{"request":{"method":"POST","url":{"host":["{{a}}","b"],"path":` +
		`[":c",{"value":1}],"query":[{"key":"d"}],"variable":[{"id":"c","value":true}]},"header":` +
		`"A: {{b}}","body":{"mode":"graphql","graphql":{"query":"{a}","variables":` +
		`{"b":"{{c}}"}}}}}]}`,
		`{"info":{"schema":"/v2.1.0/"},"variable":[{"key":"r","value":"/"},{"key":"s","value":` +
			`"{{s}}{{r}}"}],"auth":{"type":"apikey","apikey":[{"key":"in","value":"query"}]},` +
			`"item":[{"item":[{"item":[]},{"request":"{{r}}/a?b=c"}]},{"request":{"url":` +
			`{"raw":"http://{{h}}:{{p}}/:id","variable":[{"key":"id"}]},"body":{"mode":"raw",` +
			`"raw":"{{$guid}}{{s}}"}}},{"request":{"method":"COPY","url":"https://a.test"}},` +
			`{"request":{"url":"a.test/b","header":[{"key":"c","value":"d","disabled":true}]}}]}`},
	Log: {`h - - [22/Nov/2026:09:00:00 +0000] "GET /a?token=b HTTP/1.1" 200 1`,
		`h - - [22/Nov/2026:09:00:00 +0000] "GET /\x22\"\\ #|{\x00 HTTP/1.1" 206 1`,
		`h - - [22/Nov/2026:09:00:00 +0000] "\x16\x03\x01" 400 1` + "\n" +
			`h - - [22/Nov/2026:09:00:00 +0000] "-" 408 0` + "\nother\n" +
			`h - - [31/Nov/2026:09:00:00 +0000] "GET / HTTP/1.1" 200 1` + "\n" +
			`h - u v [22/Nov/2026:09:09:00 +0530] "HEAD / HTTP/1.0" 304 - "-" "-" 7`,
		iisLog, cloudFrontLog, albLog, haproxyLog},
}

// fuzz requires of any bytes that reading them is bounded, that each request found is in the draft
// or left out for a reason, and that the draft is a valid suite.
func fuzz(f *testing.F, kind string) {
	names, _ := filepath.Glob("testdata/*" + kind + "*")
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, s := range seeds[kind] {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte{0}) { // texts have none: see package file
			return
		}
		var d *Draft
		var err error
		testsets.Allocates(t, allocatedMax+allocatedEach*uint64(len(data)), func() {
			d, err = Options{Kind: kind, ReadOnly: len(data)%2 == 0}.Read("f", data)
		})
		if err != nil {
			return
		}
		checkCounted(t, d, string(data))
		for _, list := range [][]Request{d.Requests, d.Held} {
			if len(list) > kindsMax {
				t.Errorf("%d requests of one kind", len(list))
			}
		}
		text, trace := print(t, d, "f")
		asSuite(t, text, trace)
	})
}

func FuzzOpenAPI(f *testing.F) { fuzz(f, OpenAPI) }

func FuzzHAR(f *testing.F) { fuzz(f, HAR) }

func FuzzCurl(f *testing.F) { fuzz(f, Curl) }

func FuzzPostman(f *testing.F) { fuzz(f, Postman) }

func FuzzLog(f *testing.F) { fuzz(f, Log) }
