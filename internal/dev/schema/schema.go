// Package schema publishes JSON Schemas of Prony's documents, made from the types that are written
// and their comments, and checks documents against them.
package schema

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/base/files"
)

// Document is a kind of document that Prony writes.
type Document struct {
	Name  string // of docs/formats/NAME.schema.json
	Title string
	Of    any // a value of the written type
	// Version is the version of the format in the document; 0: the document has none.
	Version int
	// Printed means that internal/base/format writes it, with null for numbers that are NaN and
	// never for lists; otherwise encoding/json writes it.
	Printed bool
}

// object is a JSON object; encoding/json sorts its keys, so that files are reproducible.
type object = map[string]any

// Publish compares the published schema with the document's type, or with update writes it.
func Publish(t *testing.T, update bool, d Document) {
	t.Helper()
	m := maker{Document: d, t: t, definitions: object{}, words: map[string]map[string]string{}}
	s := m.structure(reflect.TypeOf(d.Of))
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = d.Title
	if d.Version != 0 {
		s["properties"].(object)["version"] = object{"const": d.Version,
			"description": "of this form; new fields may be added, and none changes its meaning"}
	}
	if len(m.definitions) > 0 {
		s["$defs"] = m.definitions
	}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	name := published(d.Name)
	if update {
		if err := files.Put(name, want.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(have, want.Bytes()) {
		t.Errorf("docs/formats/%s is not what %T is (error %v): run the package's tests with "+
			"-update", filepath.Base(name), d.Of, err)
	}
}

// Valid checks a document against its published schema.
func Valid(t *testing.T, name string, document []byte) {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(published(name))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := s.Validate(doc); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// root returns the module's folder: the nearest folder upwards that contains docs/formats.
func root() string {
	location, err := os.Getwd()
	for err == nil && location != filepath.Dir(location) {
		if _, err := os.Stat(filepath.Join(location, "docs", "formats")); err == nil {
			return location
		}
		location = filepath.Dir(location)
	}
	return "."
}

func published(name string) string {
	return filepath.Join(root(), "docs", "formats", name+".schema.json")
}

// maker makes one schema.
type maker struct {
	Document
	t           *testing.T
	definitions object
	words       map[string]map[string]string // by package: comments of fields by TYPE.FIELD
}

// of returns the schema of a type.
func (m *maker) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		m.t.Fatalf("%v writes itself: say how", t)
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return m.orNull(object{"type": "number"}, m.Printed)
	case reflect.Pointer:
		return m.orNull(m.of(t.Elem()), true)
	case reflect.Slice:
		return m.orNull(object{"type": "array", "items": m.of(t.Elem())}, !m.Printed)
	case reflect.Array:
		return object{"type": "array", "items": m.of(t.Elem()), "minItems": t.Len(),
			"maxItems": t.Len()}
	case reflect.Map:
		return m.orNull(object{"type": "object", "additionalProperties": m.of(t.Elem())},
			!m.Printed)
	case reflect.Struct:
		return m.definition(t)
	}
	if !t.ConvertibleTo(reflect.TypeFor[int64]()) {
		m.t.Fatalf("%v has no schema", t)
	}
	return object{"type": "integer"}
}

// orNull also permits null.
func (m *maker) orNull(s object, null bool) object {
	if !null {
		return s
	}
	if kind, ok := s["type"].(string); ok {
		s["type"] = []string{kind, "null"}
		return s
	}
	return object{"anyOf": []object{s, {"type": "null"}}}
}

// definition returns a reference to a struct's schema, or the schema itself if the struct has no
// name.
func (m *maker) definition(t reflect.Type) object {
	if t.Name() == "" {
		return m.structure(t)
	}
	name := strings.TrimPrefix(t.Name(), "json")
	if m.definitions[name] == nil {
		m.definitions[name] = object{} // for recursive types
		m.definitions[name] = m.structure(t)
	}
	return object{"$ref": "#/$defs/" + name}
}

func (m *maker) structure(t reflect.Type) object {
	properties, required := object{}, []string{}
	m.fields(t, properties, &required)
	s := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// fields adds the fields of a struct, including those of embedded structs.
func (m *maker) fields(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			m.fields(f.Type, properties, required)
			continue
		case name == "-" || !f.IsExported(), name == "" && m.Printed:
			continue
		}
		name = cmp.Or(name, f.Name)
		s := m.of(f.Type)
		if text := m.said(t, f.Name); text != "" {
			s["description"] = text
		}
		properties[name] = s
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}

// said returns the comment of a struct's field.
func (m *maker) said(t reflect.Type, field string) string {
	path, ours := strings.CutPrefix(t.PkgPath(), buildflags.Module+"/")
	if !ours || t.Name() == "" {
		return ""
	}
	if m.words[path] == nil {
		m.words[path] = comments(m.t, filepath.Join(root(), filepath.FromSlash(path)))
	}
	return m.words[path][t.Name()+"."+field]
}

// comments returns the comments of the fields of a package's structs, by TYPE.FIELD, each in one
// line.
func comments(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, name := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					text := strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
					for _, id := range f.Names {
						out[spec.Name.Name+"."+id.Name] = text
					}
				}
			}
			return true
		})
	}
	return out
}
