package importer

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"prony.example/internal/base/strictyaml"
)

// The body of a request is the document's example, in any of its forms.
func TestSchemas(t *testing.T) {
	check := func(schema, want string) {
		t.Helper()
		text := `openapi: 3.1.0
info: {title: t, version: "1"}
components:
  schemas:
    Color: {type: string, enum: [red, green]}
    Base: {type: object, required: [id], properties: {id: {type: integer, example: 7}}}
    Named: {allOf: [{$ref: '#/components/schemas/Base'}, {properties: {name: {default: Ann}}}]}
    Loop: {allOf: [{$ref: '#/components/schemas/Loop'}, {$ref: '#/components/schemas/Loop'}]}
paths: {/x: {post: {requestBody: {required: true, content: {application/json: {schema: ` +
			schema + `}}}, responses: {"200": {description: ok}}}}}
`
		d, err := Options{Kind: OpenAPI}.Read("f", []byte(text))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = d.Requests[0].Body
		}
		if got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
	const ref = `$ref: '#/components/schemas/`
	const none = "read f as openapi: every request wants a value that has no example: POST /x, " +
		"no example of its body; add an example to the file, or pass only --url"
	check(`{`+ref+`Base'}`, `{"id":7}`)
	check(`{`+ref+`Named'}`, `{"id":7,"name":"Ann"}`)
	check(`{allOf: [{`+ref+`Named'}, {properties: {x: {const: 1}}}]}`,
		`{"id":7,"name":"Ann","x":1}`) // allOf within allOf
	check(`{allOf: [{`+ref+`Base'}, {required: [y]}]}`, none)
	check(`{properties: {c: {allOf: [{`+ref+`Color'}]}}}`, `{"c":"red"}`)
	check(`{properties: {c: {`+ref+`Color', default: green}}}`, `{"c":"green"}`)
	check(`{properties: {c: {anyOf: [{type: integer}, {`+ref+`Color'}]}}}`, `{"c":"red"}`)
	check(`{`+ref+`Loop'}`, none)
	check(`{type: array, items: {`+ref+`Named'}}`, `[{"id":7,"name":"Ann"}]`)
}

// A document of several files is reported.
func TestOtherFiles(t *testing.T) {
	_, err := Options{Kind: OpenAPI}.Read("f",
		[]byte(`{"openapi":"3.0.0","paths":{"/a":{"$ref":"a.yaml"}}}`))
	if err == nil || !strings.Contains(err.Error(), "1: a path whose operations are in another "+
		"file; bundle") {
		t.Errorf("it says %v", err)
	}
}

// The operations of a document and their parameters, with references followed and those of a path
// overridden, are the same as by kin-openapi.
func TestAgainstKin(t *testing.T) {
	for _, name := range []string{"testdata/shop.openapi.yaml", "../../server/openapi.yaml",
		"../../../contract/openapi.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := openapi3.NewLoader().LoadFromData(data)
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for path, item := range doc.Paths.Map() {
			for method, op := range item.Operations() {
				want = append(want, method+" "+path)
				for _, p := range item.Parameters {
					if op.Parameters.GetByInAndName(p.Value.In, p.Value.Name) == nil {
						want = append(want, fmt.Sprint(method, path, p.Value.In, p.Value.Name))
					}
				}
				for _, p := range op.Parameters {
					want = append(want, fmt.Sprint(method, path, p.Value.In, p.Value.Name))
				}
			}
		}
		o := openAPI{outside: map[string]bool{}}
		if err := strictyaml.Decode(name, data, &o.root); err != nil {
			t.Fatal(err)
		}
		for path, at := range o.tree(o.root["paths"]) {
			item := o.tree(at)
			for _, method := range append(methods, "TRACE") {
				op := o.tree(item[strings.ToLower(method)])
				if op == nil {
					continue
				}
				got = append(got, method+" "+path)
				for _, p := range o.parameters(item, op) {
					got = append(got, fmt.Sprint(method, path, plain(p["in"]), plain(p["name"])))
				}
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if len(got) < 5 || !slices.Equal(got, want) {
			t.Errorf("%s: it has\n%q, kin-openapi\n%q", name, got, want)
		}
	}
}

// The property of a discriminator names the schema that the rest of the body has, not the first
// value of a list.
func TestDiscriminators(t *testing.T) {
	check := func(schema, want string) {
		t.Helper()
		text := `openapi: 3.0.3
info: {title: t, version: "1"}
components:
  schemas:
    Pet:
      type: object
      required: [kind]
      discriminator: {propertyName: kind, mapping: {kitty: '#/components/schemas/Cat', hen: Hen}}
      properties: {kind: {type: string, enum: [kitty, Dog, hen]}}
    Mammal: {allOf: [{$ref: '#/components/schemas/Pet'}]}
    Cat: {allOf: [{$ref: '#/components/schemas/Pet'}, {properties: {lives: {example: 9}}}]}
    Dog: {allOf: [{$ref: '#/components/schemas/Mammal'}, {properties: {barks: {example: true}}}]}
    Hen: {allOf: [{$ref: '#/components/schemas/Pet'}], example: {kind: own, eggs: 1}}
    Car: {required: [type, doors], properties: {type: {type: string}, doors: {example: 5}}}
    Bus: {required: [type], properties: {type: {enum: [coach]}, doors: {example: 3}}}
paths: {/x: {post: {requestBody: {required: true, content: {application/json: {schema: ` +
			schema + `}}}, responses: {"200": {description: ok}}}}}
`
		d, err := Options{Kind: OpenAPI}.Read("f", []byte(text))
		body := ""
		if err != nil {
			body = err.Error()
		} else {
			body = d.Requests[0].Body
		}
		if body != want {
			t.Errorf("%s: %s, want %s", schema, body, want)
		}
	}
	ref := func(name string) string { return `{$ref: '#/components/schemas/` + name + `'}` }
	check(ref("Cat"), `{"kind":"kitty","lives":9}`)
	check(ref("Dog"), `{"barks":true,"kind":"Dog"}`)
	check(ref("Hen"), `{"eggs":1,"kind":"own"}`)
	check(`{type: array, items: `+ref("Dog")+`}`, `[{"barks":true,"kind":"Dog"}]`)
	check(`{properties: {pet: `+ref("Dog")+`}}`, `{"pet":{"barks":true,"kind":"Dog"}}`)
	vehicle := `, discriminator: {propertyName: type, mapping: {auto: '#/components/schemas/Car'}}}`
	check(`{oneOf: [`+ref("Car")+`, `+ref("Bus")+`]`+vehicle, `{"doors":5,"type":"auto"}`)
	check(`{anyOf: [`+ref("Bus")+`]`+vehicle, `{"doors":3,"type":"coach"}`) // its only value
	check(`{oneOf: [`+ref("Dog")+`], discriminator: {propertyName: kind}}`,
		`{"barks":true,"kind":"Dog"}`)
}
