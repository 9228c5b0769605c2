package importer

import "testing"

// Values that a schema describes as texts keep the spelling of the file, and so do keys.
func TestSpelling(t *testing.T) {
	object := func(example string) string {
		return written3("", `/a: {post: {requestBody: {content: {application/json: `+example+`}}, `+
			ok+`}}`)
	}
	const texts = `schema: {properties: {a: {type: string}, b: {type: integer},
  c: {type: boolean}}}`
	checkTold(t, Options{}, object(`{`+texts+`, example: {a: 0x1F, b: 0x1F, c: True}}`),
		`POST /a [{"a":"0x1F","b":31,"c":true}] application/json`)
	checkTold(t, Options{}, object(`{`+texts+`, examples: {e: {value: {a: True, b: 1}}}}`),
		`POST /a [{"a":"True","b":1}] application/json`)
	checkTold(t, Options{}, object(`{schema: {properties: {a: {type: string, example: FALSE}, `+
		`b: {type: array, items: {type: string}, example: [.5, 1., 0o17, .inf]}}}}`),
		`POST /a [{"a":"FALSE","b":[".5","1.","0o17",".inf"]}] application/json`)
	checkTold(t, Options{}, object(`{example: {1.0: a, 010: b, 0x10: c, True: d, 1e3: e}}`),
		`POST /a [{"010":"b","0x10":"c","1.0":"a","1e3":"e","True":"d"}] application/json`)
	parameter := func(schema string) string {
		return `/a: {get: {parameters: [{name: q, in: query, required: True, explode: False, ` +
			schema + `}], ` + ok + `}}`
	}
	checkTold(t, Options{}, written3("", parameter(`schema: {type: string}, example: True`)),
		"GET /a?q=True")
	checkTold(t, Options{}, written3("", parameter(`schema: {type: boolean}, example: True`)),
		"GET /a?q=true")
	checkTold(t, Options{}, written3("", parameter(`schema: {items: {type: string}}, `+
		`example: [0x1F, 1]`)), "GET /a?q=0x1F,1")
	checkTold(t, Options{}, written3("", parameter(`schema: {allOf: [{type: string}]}, `+
		`example: .5`)),
		"GET /a?q=.5")
	checkTold(t, Options{}, written3("", parameter(`schema: {type: string}`)),
		none("GET /a, no example of q"))
}
