package suite

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"prony.example/internal/base/strictyaml"
	"prony.example/record"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "write docs/formats/suite.md's table and suite.schema.json")

const (
	root      = "../../"
	docFile   = root + "docs/formats/suite.md"
	schemaOf  = root + "docs/formats/suite.schema.json"
	ownDoc    = root + "docs/formats/project.md"
	ownSchema = root + "docs/formats/prony.schema.json"
	tableFrom = "<!-- parameters: made by go test ./internal/suite -update -->\n"
	tableTo   = "<!-- end of parameters -->\n"
)

// object is a JSON object; encoding/json sorts its keys, so that files are reproducible.
type object map[string]any

// together are the rules of JSON Schema for combinations of values, by type: only those that a
// schema can express readably. Read checks all.
var together = map[reflect.Type]object{
	reflect.TypeFor[Expect](): {"allOf": []object{
		atMostOne("body", "size"), atMostOne("body", "lorem"), atMostOne("size", "lorem")}},
	reflect.TypeFor[Load](): {
		"if": object{"properties": object{"model": object{"const": record.Open}}},
		"then": object{
			"oneOf": oneOf("rate", "trace"),
			"allOf": []object{without("users"), without("think")},
		},
		"else": object{"allOf": []object{without("rate"), without("arrivals"), without("trace")}},
	},
	reflect.TypeFor[Source](): {"oneOf": oneOf("command", "url", "image")},
	reflect.TypeFor[Scenario](): {
		"if": object{"properties": object{"flow": object{"const": true}},
			"required": []string{"flow"}},
		"then":              everyRequest(without("weight")),
		"else":              everyRequest(without("extract"), without("pause")),
		"dependentRequired": object{"zipf": []string{"keys"}},
	},
	reflect.TypeFor[Request](): {
		"dependentSchemas": object{"type": object{"anyOf": oneOf("body", "bodyFile")}},
		"allOf":            []object{atMostOne("body", "bodyFile")},
	},
	reflect.TypeFor[Place](): {"oneOf": oneOf("json", "header", "regex", "body")},
	reflect.TypeFor[Check](): {"allOf": []object{
		{"oneOf": oneOf("json", "header", "regex", "body")},
		{"oneOf": oneOf("is", "contains", "matches", "exists")}}},
}

func everyRequest(rules ...object) object {
	return object{"properties": object{"requests": object{"items": object{"allOf": rules}}}}
}

func oneOf(keys ...string) (out []object) {
	for _, k := range keys {
		out = append(out, object{"required": []string{k}})
	}
	return out
}

func atMostOne(a, b string) object { return object{"not": object{"required": []string{a, b}}} }

func without(key string) object { return object{"not": object{"required": []string{key}}} }

// schema describes a type at a key, as JSON Schema 2020-12.
func schema(t reflect.Type, key string) object {
	row := rows[strings.TrimSuffix(key, "[]")]
	if row == nil || strings.HasSuffix(key, "[]") {
		row = &parameter{} // the whole file, or an item: the row is the list's
	}
	o := object{}
	if unit(o, t, row) {
		describe(o, row)
		return o
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schema(t.Elem(), key)
	case reflect.Slice:
		o["type"], o["items"] = "array", schema(t.Elem(), key+"[]")
		if o["minItems"] = row.min; row.max > 0 { // otherwise the containing list limits it
			o["maxItems"] = row.max
		}
		if len(row.choices) > 0 {
			o["items"], o["uniqueItems"] = object{"enum": row.choices}, true
		}
	case reflect.Map:
		o["type"], o["maxProperties"] = "object", row.max
		o["propertyNames"] = object{"pattern": row.form.String()}
		o["additionalProperties"] = schema(t.Elem(), key+".NAME")
	case reflect.Struct:
		o = group(t, key)
	case reflect.String:
		o["type"] = "string"
		if row.form != nil {
			o["pattern"], o["examples"] = row.form.String(), []string{row.such}
		}
		if len(row.choices) > 0 {
			o["enum"] = row.choices
		}
	case reflect.Bool:
		o["type"] = "boolean"
	case reflect.Float64:
		numeric(o, "number", row)
	default:
		numeric(o, "integer", row)
	}
	describe(o, row)
	return o
}

func numeric(o object, kind string, row *parameter) {
	o["type"] = kind
	if row.min != 0 || row.max != 0 {
		o["minimum"], o["maximum"] = row.min, row.max
	}
}

// unit describes the types that are written as one text, or as a list; it does not change others.
func unit(o object, t reflect.Type, row *parameter) bool {
	switch t {
	case reflect.TypeFor[Duration]():
		o["anyOf"] = []object{{"type": "string", "pattern": strictyaml.DurationForm}, {"const": 0}}
	case reflect.TypeFor[strictyaml.Size]():
		o["type"], o["pattern"] = "string", strictyaml.SizeForm
	case reflect.TypeFor[Percent]():
		o["type"], o["pattern"] = "string", percentForm
	case reflect.TypeFor[Rate]():
		o["anyOf"] = []object{{"type": "string", "pattern": rateForm},
			{"type": "string", "pattern": shapeForm},
			{"type": "number", "exclusiveMinimum": 0, "maximum": ratePerSMax}}
	case reflect.TypeFor[Users]():
		o["anyOf"] = []object{{"type": "string", "pattern": shapeForm},
			{"type": "number", "minimum": 1, "maximum": usersMax}}
	case reflect.TypeFor[Think]():
		o["type"], o["pattern"] = "string", thinkForm
	case reflect.TypeFor[Network]():
		o["type"], o["pattern"] = "string", "^(none|delay .+)$"
	case reflect.TypeFor[Keys]():
		o["type"], o["minItems"], o["maxItems"] = "array", 2, 2
		o["items"] = object{"type": "integer", "minimum": 0, "maximum": row.max}
	case reflect.TypeFor[Text]():
		o["type"] = []string{"string", "number", "boolean"}
	default:
		return false
	}
	return true
}

func describe(o object, row *parameter) {
	if row.about != "" {
		o["description"] = strings.ReplaceAll(row.about, "`", "")
	}
	if row.def != "" && row.when == "" {
		var v any
		if err := yaml.Unmarshal([]byte(row.def), &v); err != nil {
			panic(err)
		}
		o["default"] = v
	}
}

func group(t reflect.Type, key string) object {
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name := f.Tag.Get("yaml")
		if f.Anonymous || name == "" || name == "-" {
			continue
		}
		at := strings.TrimPrefix(key+"."+name, ".")
		properties[name] = schema(f.Type, at)
		if rows[at].required {
			required = append(required, name)
		}
	}
	o := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	for k, v := range together[t] {
		o[k] = v
	}
	return o
}

// projectSchema is a suite's schema with the differences of a project: only targets are required,
// and requests may replace a scenario, here and in the suites.
func projectSchema() object {
	experiment := func() (o, properties object) {
		o = schema(reflect.TypeFor[Suite](), "")
		delete(o, "required")
		properties = o["properties"].(object)
		delete(properties, "contract")
		scenario := properties["scenarios"].(object)["items"].(object)["properties"].(object)
		properties["requests"] = scenario["requests"]
		o["allOf"] = []object{atMostOne("requests", "scenarios")}
		return o, properties
	}
	o, properties := experiment()
	for key, value := range group(reflect.TypeFor[Project](), "project")["properties"].(object) {
		properties[key] = value
	}
	each, _ := experiment()
	properties["suites"].(object)["additionalProperties"] = each
	o["required"] = []string{"targets"}
	return o
}

func schemaText(t *testing.T, o object, title string) []byte {
	t.Helper()
	o["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	o["title"] = title
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(o); err != nil {
		t.Fatal(err)
	}
	return []byte(b.String())
}

// table returns the parameters of a type as Markdown, in the order of the rows, without the prefix
// of their keys.
func table(of reflect.Type, parameters []parameter, prefix string) string {
	types := map[string]reflect.Type{}
	var collect func(reflect.Type, string)
	collect = func(t reflect.Type, key string) {
		for _, f := range reflect.VisibleFields(t) {
			name := f.Tag.Get("yaml")
			if f.Anonymous || name == "" || name == "-" {
				continue
			}
			types[key+name] = f.Type
			if isGroup(f.Type) {
				collect(f.Type, key+name+".")
			}
			if isList(f.Type) {
				collect(f.Type.Elem(), key+name+"[].")
			}
			if isMapping(f.Type) {
				collect(f.Type.Elem(), key+name+".NAME.")
			}
		}
	}
	collect(of, prefix)
	var b strings.Builder
	b.WriteString("| key | default | range | meaning |\n|---|---|---|---|\n")
	for i := range parameters {
		p := &parameters[i]
		b.WriteString("| " + strings.Join([]string{
			"`" + strings.TrimPrefix(p.key, prefix) + "`", p.showDefault(),
			p.showRange(types[p.key]), p.about,
		}, " | ") + " |\n")
		delete(types, p.key)
	}
	for key := range types {
		panic("no row for " + key)
	}
	return strings.ReplaceAll(b.String(), "  |", " |")
}

func (p *parameter) showDefault() string {
	switch {
	case p.required:
		return "*required*"
	case p.when != "":
		return "`" + p.def + "` when " + p.when
	case p.def != "":
		return "`" + p.def + "`"
	}
	return ""
}

func (p *parameter) showRange(t reflect.Type) string {
	switch {
	case len(p.choices) > 0:
		return "`" + strings.Join(p.choices, "`, `") + "`"
	case t.Kind() == reflect.Map:
		return "names such as `" + p.such + "`"
	case p.such != "":
		return "such as `" + p.such + "`"
	case t == reflect.TypeFor[Rate]():
		return "above 0, at most 10000000/s or 1000%"
	case t == reflect.TypeFor[Percent]():
		return "0% to 100%"
	case t == reflect.TypeFor[Users]():
		return "1 to 65535"
	case t == reflect.TypeFor[Think]():
		return "above 0s, at most 1h"
	case p.min == 0 && p.max == 0:
		return ""
	case t.Kind() == reflect.Slice:
		return p.bounds(t) + " items"
	}
	return p.bounds(t)
}

// TestPublished compares the published schema and table with the code, or writes them.
func TestPublished(t *testing.T) {
	check := func(file string, want []byte) {
		t.Helper()
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s is not what the code says (%v): run go test ./internal/suite -update",
				file, err)
		}
	}
	check(schemaOf, schemaText(t, schema(reflect.TypeFor[Suite](), ""), "Prony suite"))
	check(ownSchema, schemaText(t, projectSchema(), "Prony project"))
	head, _ := paged(t, check, ownDoc, table(reflect.TypeFor[Project](), projectParameters,
		project))
	_, own, _ := strings.Cut(head, "```yaml\n")
	own, _, _ = strings.Cut(own, "```")
	if _, err := ReadProject(ownDoc, []byte(own)); err != nil {
		t.Errorf("the page's example is not a project: %v", err)
	}

	before, after := paged(t, check, docFile, table(reflect.TypeFor[Suite](), parameters, ""))
	_, example, _ := strings.Cut(before, "```yaml\nname:")
	example, _, _ = strings.Cut(example, "```")
	if _, err := Read(docFile, []byte("name:"+example)); err != nil {
		t.Errorf("the page's example is not a suite: %v", err)
	}
	_, flow, _ := strings.Cut(after, "```yaml\n")
	flow, _, _ = strings.Cut(flow, "```")
	got, err := ReadScenario(docFile, []byte(flow))
	if err != nil {
		t.Fatalf("the page's flow is not a scenario: %v", err)
	}
	if names, _ := got.Variables(); !got.Flow || strings.Join(names, " ") != "ownerId petId" {
		t.Errorf("the page's flow is %+v", got)
	}
}

// paged checks the table of a page, and returns the text before and after it.
func paged(t *testing.T, check func(string, []byte), file, table string) (before, after string) {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableFrom)
	_, after, ok2 := strings.Cut(rest, tableTo)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the marks\n%s%s", file, tableFrom, tableTo)
	}
	check(file, []byte(before+tableFrom+table+tableTo+after))
	return before, after
}

// walk visits every row: otherwise a row would promise a check that does not happen.
func TestEveryRowIsChecked(t *testing.T) {
	text, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Read("testdata/full.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	visited := map[*parameter]bool{}
	walk(reflect.ValueOf(s).Elem(), "", "", func(row *parameter, _ reflect.Value, _ string) {
		visited[row] = true
	})
	for i := range parameters {
		if !visited[&parameters[i]] {
			t.Errorf("%s is not checked", parameters[i].key)
		}
	}
}
