package importer

import "testing"

// A path item has the operations and parameters of its reference, and those beside it.
func TestItemsWithReferences(t *testing.T) {
	parameter := func(name string, value int) string {
		return `{name: ` + name + `, in: query, example: ` + string(rune('0'+value)) + `}`
	}
	checkTold(t, Options{}, written3("", `/a: {get: {`+ok+`}, parameters: [`+parameter("x", 1)+
		`, `+parameter("y", 2)+`]}, `+
		`/b: {$ref: '#/paths/~1a', head: {`+ok+`}, parameters: [`+parameter("y", 3)+`]}, `+
		`/c: {$ref: '#/paths/~1b', OPTIONS: {`+ok+`}}`),
		"GET /a?x=1&y=2", "GET /b?x=1&y=3", "GET /c?x=1&y=3", "HEAD /b?x=1&y=3", "HEAD /c?x=1&y=3",
		"-1: OPTIONS, a browser's question before a request (CORS)")
	checkTold(t, Options{}, written3("",
		`/a: {GET: {`+ok+`}}, /b: {$ref: 'x.yaml', get: {`+ok+`}}`),
		"GET /a", "GET /b", "-1: a path whose operations are in another file; bundle "+
			"the document into one file first",
		"~1: a reference leads to nothing that init reads: x.yaml")
	checkTold(t, Options{}, written3("", `/a: {get: {`+ok+`}}, /b: {$ref: '#/paths/~1c'}, `+
		`/c: {$ref: '#/paths/~1b'}, /d: {$ref: '#/no'}`),
		"GET /a", "-3: a path whose reference leads to no operations",
		"~1: a reference leads to nothing that init reads: #/no")
}

// What stands beside a reference to a schema is a part of the schema, since OpenAPI 3.1.
func TestBesideSchemas(t *testing.T) {
	const schemas = `components: {schemas: {A: {required: [n], properties: {n: {example: 1}}}}}`
	body := func(schema string) string {
		return written3(schemas, `/a: {post: {requestBody: {content: {application/json: {schema: `+
			schema+`}}}, `+ok+`}}`)
	}
	const a = `$ref: '#/components/schemas/A'`
	checkTold(t, Options{}, body(`{`+a+`, description: d, properties: {m: {example: 2}}}`),
		`POST /a [{"m":2,"n":1}] application/json`)
	checkTold(t, Options{}, body(`{`+a+`, required: [m], properties: {m: {type: string}}}`),
		none("POST /a, no example of its body"))
	checkTold(t, Options{}, body(`{allOf: [{`+a+`, properties: {n: {example: 3}}}]}`),
		`POST /a [{"n":3}] application/json`)
}

// Examples may be in a list, a text may be a number, and a part of a form may be JSON.
func TestFormsOfExamples(t *testing.T) {
	body := func(kind, media string) string {
		return written3("", `/a: {post: {requestBody: {content: {`+kind+`: `+media+`}}, `+ok+`}}`)
	}
	checkTold(t, Options{}, body("application/json", `{examples: [{n: 1}, {n: 2}]}`),
		`POST /a [{"n":1}] application/json`)
	checkTold(t, Options{}, written3("", `/a: {get: {parameters: [{name: q, in: query, `+
		`examples: [x, y]}], `+ok+`}}`), "GET /a?q=x")
	checkTold(t, Options{}, body("text/plain", `{schema: {type: integer, examples: [2, 3]}}`),
		"POST /a [2] text/plain")
	checkTold(t, Options{}, body("text/plain", `{example: {a: 1}}`),
		none("POST /a, no example of its body (text/plain)"))
	const text = "multipart/form-data"
	const list = `{type: array, items: {type: string}, example: [b, c]}`
	encoded := func(schema, kind string) string {
		return `{schema: {properties: {a: ` + schema + `}}, encoding: {a: {contentType: ` +
			kind + `}}}`
	}
	part := func(value string) string {
		return "--prony-form\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Type: " +
			value + "\r\n"
	}
	const end = "--prony-form--\r\n] multipart/form-data; boundary=prony-form"
	checkTold(t, Options{}, body(text, encoded(`{type: string, example: b}`, jsonBody)),
		"POST /a ["+part(jsonBody+"\r\n\r\n\"b\"")+end)
	checkTold(t, Options{}, body(text, encoded(list, jsonBody)), "POST /a ["+
		part(jsonBody+"\r\n\r\n\"b\"")+part(jsonBody+"\r\n\r\n\"c\"")+end)
	checkTold(t, Options{}, body(text, encoded(`{example: {b: 1}}`, jsonBody)),
		"POST /a ["+part(jsonBody+"\r\n\r\n{\"b\":1}")+end)
	checkTold(t, Options{}, body(text, encoded(`{type: string, example: b}`, "text/csv")),
		"POST /a ["+part("text/csv\r\n\r\nb")+end)
}
