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

// fuzz requires of any bytes that reading them is bounded, that each request found is in the draft
// or left out for a reason, and that the draft is a valid suite.
func fuzz(f *testing.F, kind string, samples ...string) {
	names, _ := filepath.Glob("testdata/*" + kind + "*")
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, s := range samples {
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

func FuzzOpenAPI(f *testing.F) {
	fuzz(f, OpenAPI, `{"openapi":"3.1.0","paths":{"/a":{"get":{"parameters":[`+
		`{"$ref":"#/paths"}]}}}}`, `{"swagger":"2.0","host":"h","paths":{"/a/{b}":{"post":{`+
		`"parameters":[{"in":"formData","name":"c","type":"array","default":[1,{"d":2}]}]}}}}`,
		"openapi: 3\nservers: [{url: '{s}://{h}/{p}'}]\npaths: {'/{a}': {get: {parameters: "+
			"[{name: a, in: path, style: matrix, explode: true, example: {b: [01, .5]}}]}}}\n")
}
func FuzzHAR(f *testing.F) {
	fuzz(f, HAR, `{"log":{"entries":[{"request":{"url":"http://a"}}]}}`, `{"log":{"entries":[7,`+
		`{"request":{"url":"http://a","cookies":[{"name":1}],"postData":{"text":"aA==",`+
		`"encoding":"base64"}},"response":{"status":"200"}}]}}`)
}
func FuzzCurl(f *testing.F) {
	fuzz(f, Curl, "curl -H a:b -d $'x\\u0000' http://a/{b}?c=${D}#e; curl a &",
		"curl ^\"http://a/?b^&c\" ^\r\n -H ^\"d: e\\^\"^\"", "curl $A/../b -GId c --next -r 0-9 d",
		"curl 'http://[::1]/\\[a\\]?b#c' --json $'\\ud83d\\ude00' -b d=e -b f=g --url-query h=i")
}
func FuzzPostman(f *testing.F) {
	fuzz(f, Postman, `{"item":[{"request":{"method":"POST","url":{"host":["{{a}}","b"],"path":`+
		`[":c",{"value":1}],"query":[{"key":"d"}],"variable":[{"id":"c","value":true}]},"header":`+
		`"A: {{b}}","body":{"mode":"graphql","graphql":{"query":"{a}","variables":`+
		`{"b":"{{c}}"}}}}}]}`)
}
func FuzzLog(f *testing.F) {
	fuzz(f, Log, `h - - [22/Nov/2026:09:00:00 +0000] "GET /a?token=b HTTP/1.1" 200 1`,
		`h - - [22/Nov/2026:09:00:00 +0000] "GET /\x22\"\\ #|{\x00 HTTP/1.1" 206 1`)
}
