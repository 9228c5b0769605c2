package importer

import (
	"fmt"
	"testing"
)

// formOf is a form of several parts, given as names and values, as tests show a body and its type.
func formOf(fields ...string) string {
	return "[" + partsText("prony-form", fields...) + "] multipart/form-data; boundary=prony-form"
}

func partsText(boundary string, fields ...string) (out string) {
	for i := 0; i < len(fields); i += 2 {
		out += "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + fields[i] +
			"\"\r\n\r\n" + fields[i+1] + "\r\n"
	}
	return out + "--" + boundary + "--\r\n"
}

// Forms of several parts are sent if all their contents are in the document, and secrets in them
// become variables. The parts of curl were compared with those that curl 7.88 sends.
func TestFormsOfParts(t *testing.T) {
	curl := drafted(t, Curl)
	const a = "curl http://a/a "
	curl(a+`-F n=v -F 'q="x;y\"z"' --form-string 's=@;type=x' -F e=`,
		"POST /a 1×200 "+formOf("n", "v", "q", `x;y"z`, "s", "@;type=x", "e", ""))
	curl(a+`-X PUT -H 'Content-Type: multipart/form-data' -F 'a"b= c '`,
		"PUT /a 1×200 "+formOf("a%22b", "c"))
	curl(a+`-F 'j=[1];type=application/json'`, "POST /a 1×200 [--prony-form\r\n"+
		"Content-Disposition: form-data; name=\"j\"\r\nContent-Type: application/json\r\n\r\n"+
		"[1]\r\n--prony-form--\r\n] multipart/form-data; boundary=prony-form")
	curl(a+"-F password=hunter22", "POST /a 1×200 "+formOf("password", "${PASSWORD}")+
		"\nPASSWORD: password of a form")
	curl(a+"-F b=prony-form", "POST /a 1×200 ["+partsText("prony-form-2", "b", "prony-form")+
		"] multipart/form-data; boundary=prony-form-2")

	checkTold(t, Options{}, postman("", `{"request": {"method": "POST", "url": "/a", "header":
[{"key": "Content-Type", "value": "multipart/form-data"}], "body": {"mode": "formdata", "formdata":
[{"key": "n", "value": "v", "type": "text"}, {"key": "o", "value": "w", "disabled": true}]}}}`),
		"POST /a "+formOf("n", "v"))

	har := func(kind, data, want string) {
		t.Helper()
		checkTold(t, Options{}, fmt.Sprintf(`{"log": {"entries": [{"request": {"url": "http://a/"}},
{"request": {"method": "POST", "url": "http://a/a", "headers": [{"name": "Content-Type", "value":
%q}], "postData": {"mimeType": %q, %s}}}]}}`, kind, kind, data), "GET /", want)
	}
	const ab = "multipart/form-data; boundary=ab"
	const lost = "-1: its body is a form of several parts, which the file holds in part"
	har(ab, `"params": [{"name": "n", "value": "v"}]`, "POST /a "+formOf("n", "v"))
	har(ab, `"params": [{"name": "n", "fileName": "f"}]`, "-1: "+fileField)
	har(ab, fmt.Sprintf(`"text": %q`, partsText("ab", "n", "v")), "POST /a ["+
		partsText("ab", "n", "v")+"] "+ab)
	har(ab, fmt.Sprintf(`"text": %q`, partsText("ab", "n\"; filename=\"f", "v")), "POST /a ["+
		partsText("ab", "n\"; filename=\"f", "v")+"] "+ab)
	har(ab, fmt.Sprintf(`"text": %q`, partsText("ab", "n\"; filename=\"f", "")), lost)
	har(ab, fmt.Sprintf(`"text": %q`, "--ab\r\nContent-Disposition: form-data; name=n\r\n\r\nv"),
		lost)
	har("multipart/form-data", fmt.Sprintf(`"text": %q`, partsText("ab", "n", "v")), lost)
}

// A form of a document has a part for each field, as its schema and its encoding say.
func TestFormsOfDocuments(t *testing.T) {
	check := func(fields, encoding string, want ...string) {
		t.Helper()
		checkTold(t, Options{}, written3("", `/ok: {get: {`+ok+`}}, /a: {post: {requestBody: `+
			`{required: true, content: {multipart/form-data: {schema: {type: object, `+fields+
			`}`+encoding+`}}}, `+ok+`}}`), append([]string{"GET /ok"}, want...)...)
	}
	const optional = "~1: a file of a form that is not required is not sent"
	check(`properties: {n: {type: integer, example: 7}, s: {example: x}}`, "",
		"POST /a "+formOf("n", "7", "s", "x"))
	check(`properties: {l: {type: array, example: [1, b]}}`, "", "POST /a "+
		formOf("l", "1", "l", "b"))
	check(`properties: {o: {type: object, example: {a: 1}}}`, "", "POST /a [--prony-form\r\n"+
		"Content-Disposition: form-data; name=\"o\"\r\nContent-Type: application/json\r\n\r\n"+
		"{\"a\":1}\r\n--prony-form--\r\n] multipart/form-data; boundary=prony-form")
	check(`properties: {s: {example: x}}`, ", encoding: {s: {contentType: text/csv}}",
		"POST /a [--prony-form\r\nContent-Disposition: form-data; name=\"s\"\r\nContent-Type: "+
			"text/csv\r\n\r\nx\r\n--prony-form--\r\n] multipart/form-data; boundary=prony-form")
	check(`properties: {s: {example: x}, f: {format: binary, example: y}}`, "",
		"POST /a "+formOf("s", "x"), optional)
	check(`required: [f], properties: {s: {example: x}, f: {format: binary, example: y}}`, "",
		"?POST /a no example of its body (multipart/form-data)")
}
