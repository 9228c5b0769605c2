package importer

import (
	"strings"
	"testing"
)

// postman is a collection of items, with what stands beside them.
func postman(beside, items string) string {
	return `{"info": {"name": "x", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/` +
		`collection.json"}, ` + beside + `"item": [` + items + `]}`
}

// An address may be open at any place; its path is what counts.
func TestPostmanAddresses(t *testing.T) {
	check := func(url string, want ...string) {
		t.Helper()
		checkTold(t, Options{}, postman(`"variable": [{"id": "page", "value": 3}, {"key": "home",
"value": "{{host}}:81/v1"}, {"key": "h", "value": "shop.test"}, {"key": "and", "value": "a&b#c"},
{"key": "off", "value": "x", "disabled": true},
{"key": "root", "value": "/"}], `, `{"request": {"url": `+url+`}}`), want...)
	}
	for _, base := range []string{"{{baseUrl}}", "{{host}}:3000", "http://{{host}}:{{port}}",
		"{{protocol}}://{{host}}", "{{sub}}.shop.test", "https://{{sub}}.shop.test",
		"http://localhost:{{port}}", "http://{{h}}:{{port}}", "{{a}}{{b}}", "{{a}}://shop.test",
		""} {
		check(`{"raw": "`+base+`/api/0?q=a"}`, "GET /api/0?q=a")
		check(`"`+base+`/api/0?q=http://x/{{h}}"`, "GET /api/0?q=http://x/shop.test")
	}
	check(`"https://{{user}}@shop.test/a"`, "GET /a Authorization=Basic ${BASIC_AUTH}")
	check(`"https://ann:{{pass}}@{{host}}/a"`, "GET /a Authorization=Basic ${BASIC_AUTH}")
	check(`"{{baseUrl}}api/0"`, "GET /api/0")
	check(`"{{baseUrl}}"`, "GET /")
	check(`"{{baseUrl}}?q=1"`, "GET /?q=1")
	check(`"{{root}}/api/0"`, "GET /api/0")
	check(`"{{home}}/api/0"`, "GET /v1/api/0")
	check(`"shop.test/api/0"`, "GET /api/0")
	check(`"http://shop.test/{{x}}/{{off}}"`, "GET /${X}/${OFF}")
	check(`{"protocol": "https", "host": ["shop", "test"], "port": 8443, "path": ["items", "7"],
"query": [{"key": "q", "value": "a"}, {"key": "z", "value": "b", "disabled": true}]}`,
		"GET /items/7?q=a")
	check(`{"host": "{{baseUrl}}", "path": "items/7", "query": [{"key": "flag", "value": null},
{"key": "empty", "value": ""}, {"key": "n", "value": 1.50}, {"key": "c", "value": "{{and}}"}]}`,
		"GET /items/7?flag&empty=&n=1.50&c=a%26b%23c")
	check(`{"raw": "http://old.test/stale?x=1", "host": ["shop", "test"], "path": [{"type": "string",
"value": "new"}, ""], "query": []}`, "GET /new/")
	check(`{"raw": "http://shop.test/:id?p={{page}}", "variable": [{"id": "id", "value": 8}]}`,
		"GET /8?p=3")
	check(`{"host": ["shop", "test"], "path": [":a", ":b", "c"], "variable":
[{"key": "a", "value": true}, {"key": "b", "value": null}]}`,
		"read f as postman: every request wants a value that has no "+
			"example: GET /true/{b}/c, no example of b; add an example to the file, or pass only "+
			"--url")
	check(`{}`, "read f as postman: every request was left out: 1: a request without an "+
		"address; add an example to the file, or pass only --url")
	check(`{"raw": "ws://shop.test/a"}`, "read f as postman: every request was left out: 1: a "+
		"request whose address is not an http or https URL; add an example to the file, or pass "+
		"only --url")
}

// Postman sends a body with those methods alone that have one, unless it is told to.
func TestPostmanBodies(t *testing.T) {
	check := func(method, body, want string, more ...string) {
		t.Helper()
		checkTold(t, Options{}, postman(`"variable": [{"key": "n", "value": 7}, {"key": "q",
"value": "a \"b\" & c"}], `, `{"request": {"method": "`+method+`", "url": "/a",
"body": `+body+`}}`),
			append([]string{want}, more...)...)
	}
	const pruned = "~1: Postman does not send the body of "
	check("GET", `{"mode": "raw", "raw": "stale"}`, "GET /a", pruned+"GET")
	check("HEAD", `{"mode": "file", "file": {"src": "a"}}`, "HEAD /a", pruned+"HEAD")
	check("GET", `{"mode": "formdata", "formdata": []}`, "GET /a")
	check("get", `{"mode": "formdata", "formdata": [{"key": "a", "value": "b"}]}`, "GET /a",
		pruned+"GET")
	check("POST", `{"mode": "formdata", "formdata": []}`, "POST /a")
	check("POST", `{"mode": "formdata", "formdata": [{"key": "a", "disabled": true}]}`, "POST /a")
	check("POST", `{"mode": "urlencoded", "urlencoded": [{"key": "a", "value": "{{q}}"},
{"key": "b", "value": "{{other}}"}, {"key": "c", "value": 1}]}`,
		"POST /a [a=a+%22b%22+%26+c&b=${OTHER}&c=1] application/x-www-form-urlencoded")
	check("POST", `{"mode": "urlencoded", "urlencoded": "a=1&b=2"}`,
		"POST /a [a=1&b=2] application/x-www-form-urlencoded")
	check("DELETE", `{"mode": "raw", "raw": "{\"n\":{{n}}}",
"options": {"raw": {"language": "json"}}}`,
		`DELETE /a [{"n":7}] application/json`)
	check("POST", `{"mode": "raw", "raw": "x", "disabled": true}`, "POST /a")
	check("POST", `null`, "POST /a")
	const kind = " application/json"
	check("POST", `{"mode": "graphql", "graphql": {"query": "{a}", "variables": {"n": 1.50}}}`,
		`POST /a [{"query":"{{a}}","variables":{"n":1.50}}]`+kind)
	check("POST", `{"mode": "graphql", "graphql": {"query": "{a(b: \"{{q}}\")}", "variables":
"{\"n\": {{n}}, \"m\": \"{{m}}\"}", "operationName": "o"}}`,
		`POST /a [{"query":"{a(b: \"a \"b\" & c\")}","variables":{"n": 7, "m": "${M}"},`+
			`"operationName":"o"}]`+kind)
	check("POST", `{"mode": "graphql", "graphql": {"query": "{a}", "variables": ""}}`,
		`POST /a [{"query":"{{a}}","variables":{}}]`+kind)
	checkTold(t, Options{}, postman("", `{"request": "/ok"}, {"request": {"method": "POST",
"url": "/a", "body": {"mode": "graphql", "graphql": {"query": "{a}", "variables": "{n: 1}"}}}},
{"request": {"method": "POST", "url": "/a", "body": {"mode": "formdata",
"formdata": [{"key": "a", "type": "file", "src": "b"}]}}}, {"request": {"method": "PROPFIND",
"url": "/a"}}, {"request": {"method": 7, "url": "/a"}}`), "GET /ok",
		"-1: a body of GraphQL whose variables are not JSON",
		"-1: "+fileField,
		"-1: the method PROPFIND, which suites do not have",
		"-1: the method 7, which suites do not have")
	checkTold(t, Options{}, postman(`"protocolProfileBehavior": {"disableBodyPruning": true}, `,
		`{"request": {"url": "/a", "body": {"mode": "raw", "raw": "kept"}}}, {"item": [{"request":
{"url": "/b", "body": {"mode": "raw", "raw": "gone"}}}], "protocolProfileBehavior":
{"disableBodyPruning": false}}`), "GET /a [kept] text/plain", "GET /b", pruned+"GET")
}

// A value of a collection is a text, a number, a boolean or nothing; one item that is none of all
// that does not take the others with it.
func TestPostmanTypes(t *testing.T) {
	checkTold(t, Options{}, postman("", `{"request": {"url": {"raw": "http://shop.test/a"},
"header": "Accept: text/plain\n// X-Off: 1\nX-A: b:c"},
"response": [{"code": 404}, {"code": "201"}]},
{"name": 7, "request": {"url": "http://shop.test/b", "header": [{"key": "X-N", "value": 1.0},
{"key": "X-T", "value": true}, {"name": "X-O", "value": null}]}, "response": null},
{"request": {"url": "http://shop.test/c", "header": null, "auth": {"type": "apikey", "apikey":
{"key": "k", "in": "query", "value": 1}}}}, {"request": {"url": "http://shop.test/d", "auth":
{"type": "bearer", "bearer": [{"key": "token", "value": "{{t}}"}]}}},
{"request": {"url": 7}}, {"request": [1]}, 8, {"item": []},
{"request": "http://shop.test/:id"}, {"request": {"url": {"raw": "http://shop.test/:id"}}}`),
		"GET /a Accept=text/plain X-A=b:c 201", "GET /b X-N=1.0 X-T=true X-O=",
		"GET /c?k=${API_KEY}", "GET /d Authorization=Bearer ${T}", "?GET /{id} no example of id",
		"-1: an address that is not understood: it is of type number, which is not expected; is "+
			"it the file that you meant?",
		"-1: a request that is not understood: it is of type array, which is not expected; is it "+
			"the file that you meant?",
		"-1: an item that is not understood: it is of type number, which is not expected; is it "+
			"the file that you meant?")
}

// A secret of a body leaves the JSON around it as it is.
func TestSecretsInJSON(t *testing.T) {
	check := func(raw, want string) {
		t.Helper()
		checkTold(t, Options{}, postman("", `{"request": {"method": "POST", "url": "/a", "body": `+
			`{"mode": "raw", "raw": `+marshal(raw)+`}}}`), "POST /a ["+want+"] text/plain")
	}
	check(`{"user":{"email":"{{MAIL}}","password":"{{PASSWORD}}"}}`,
		`{"user":{"email":"${MAIL}","password":"${PASSWORD}"}}`)
	check(`{"password":{{PASSWORD}},"a":1}`, `{"password":${PASSWORD},"a":1}`)
	check(`{"pin": -12.5e3, "a": 1}`, `{"pin": ${PIN}, "a": 1}`)
	check(`{"password":"a\"b","token":"x{{T}}y"}`, `{"password":"${PASSWORD}","token":"${TOKEN}"}`)
	check(`{"password":"","token":null}`, `{"password":"","token":null}`)
}

// Folders hand down variables, authorization and scripts.
func TestPostmanFolders(t *testing.T) {
	deep := `{"request": "http://shop.test/{{v}}"}`
	for range 60 {
		deep = `{"item": [` + deep + `]}`
	}
	checkTold(t, Options{}, postman(`"variable": [{"key": "v", "value": "out"}], "event":
[{"listen": "prerequest", "script": {"exec": [""]}},
{"listen": "test", "script": {"exec": ["x()"]}}], `,
		deep+`, {"variable": [{"key": "v", "value": "in"}], "auth": {"type": "basic"}, "event":
[{"listen": "prerequest", "script": {"exec": ["x()"]}}], "item":
[{"request": "http://shop.test/{{v}}"}]}`),
		"GET /out", "GET /in Authorization=Basic ${BASIC_AUTH}",
		"~1: a script before the request is not run")
}

// The collection may be within what Postman's API gives, and one of version 1 says so.
func TestPostmanKinds(t *testing.T) {
	checkTold(t, Options{}, `{"collection": `+postman("", `{"request": "http://shop.test/a"}`)+`}`,
		"GET /a")
	checkTold(t, Options{}, `{"item": [{"request": "http://shop.test/a"}]}`, "GET /a")
	_, err := Options{}.Read("f", []byte(`{"id": "x", "name": "y", "order": [], "requests": [{}]}`))
	if err == nil || !strings.Contains(err.Error(), "export it as Collection v2.1") {
		t.Errorf("version 1 says %v", err)
	}
}

// Entries of a HAR as programs write them.
func TestHAREntries(t *testing.T) {
	check := func(request, response string, want ...string) {
		t.Helper()
		checkTold(t, Options{}, `{"log": {"entries": [{"request": {`+request+`}`+response+`},
{"request": {"url": "http://shop.test/ok"}, "response": {"status": 200}}]}}`, want...)
	}
	const fine = `, "response": {"status": 200, "content": {"mimeType": "application/json"}}`
	check(`"method": "GET", "url": "http://shop.test/a"`, `, "response": {"status": "200"}`,
		"GET /a", "GET /ok")
	check(`"method": "GET", "url": "http://shop.test/a"`, ``, "GET /a", "GET /ok")
	check(`"method": "GET", "url": "http://shop.test/a"`, `, "response": {"status": 0}`,
		"GET /ok", "-1: the client ended the request before a response")
	check(`"url": "http://shop.test/a", "headers": [{"name": "X-N", "value": 7}], "queryString":
[{"name": "q", "value": 1}]`, fine, "GET /a?q=1 X-N=7", "GET /ok")
	check(`"url": "http://shop.test/a", "cookies": [{"name": "a", "value": "1"},
{"name": "b", "value": "2"}]`,
		fine, "GET /a Cookie=${COOKIE}", "GET /ok")
	check(`"method": "POST", "url": "http://shop.test/a", "headers": [{"name": "content-type",
"value": "multipart/form-data; boundary=X"}], "postData": {"mimeType": "multipart/form-data",
"text": "--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--X--\r\n"}`, fine,
		"POST /a [--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--X--\r\n] "+
			"multipart/form-data; boundary=X", "GET /ok")
	check(`"method": "POST", "url": "http://shop.test/a", "bodySize": 17`, fine, "GET /ok",
		"-1: its body is not in the file")
	check(`"method": "POST", "url": "http://shop.test/a", "headers": [{"name": "Content-Length",
"value": "3"}]`, fine, "GET /ok", "-1: its body is not in the file")
	check(`"method": "POST", "url": "http://shop.test/a", "bodySize": -1, "postData": {"mimeType":
"text/plain", "text": "aGk=", "encoding": "base64"}`, fine, "POST /a [hi] text/plain", "GET /ok")
	check(`"method": "POST", "url": "http://shop.test/a",
"postData": {"text": "/w==", "encoding": "base64"}`,
		fine, "GET /ok", "-1: a body that is not text")
	check(`"method": "POST", "url": "http://shop.test/a", "postData": {"mimeType":
"application/x-www-form-urlencoded", "params": [{"name": "a", "value": 1.50}]}`, fine,
		"POST /a [a=1.50] application/x-www-form-urlencoded", "GET /ok")
	for _, none := range []string{``, `"method": "POST"`, `"url": null`, `"url": "", "queryString":
[{"name": "q", "value": 1}]`} {
		check(none, fine, "GET /ok", "-1: a request without an address")
	}
	check(`"url": "http://shop.test/a", "headers": {}`, fine, "GET /ok",
		"-1: an entry that is not understood: request.headers is of type object, which is not "+
			"expected; is it the file that you meant?")
	check(`"url": "http://shop.test/a", "headers": [{"name": "GET /a", "value": "HTTP/1.1"}]`, fine,
		"GET /a", "GET /ok", "~1: a header field is not sent, because its name is not valid")
	check(`"url": "http://shop.test/a", "cookies": {"name": "a", "value": "1"}`, fine,
		"GET /a Cookie=${COOKIE}", "GET /ok")
	check(`"url": "blob:http://shop.test/a"`, fine, "GET /ok",
		"-1: a request whose address is not an http or https URL")
	checkTold(t, Options{Only: []string{"/a/*"}}, `{"log": {"entries": [{"request": {"url":
"http://shop.test/a/b?c=/d"}}, {"request": {"url": "http://shop.test/b/a/"}}]}}`, "GET /a/b?c=/d",
		"-1: not of --only or --tag")
}
