package importer

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"

	"prony.example/internal/base/strictyaml"
)

// example is what stands beside a schema, in the type that the schema has.
func (o *openAPI) example(node tree, schema any) (any, bool) {
	if v, ok := node["example"]; ok {
		return o.written(o.tree(schema), v, 0, true), true
	}
	all := o.tree(node["examples"])
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if v, ok := o.tree(all[name])["value"]; ok {
			return o.written(o.tree(schema), v, 0, true), true
		}
	}
	if list := o.list(node["examples"]); len(list) > 0 { // as in a schema
		return o.written(o.tree(schema), list[0], 0, true), true
	}
	v, ok := node["x-example"]
	return o.written(o.tree(schema), v, 0, true), ok
}

// media is the value of a media type: its own example, or what its schema names.
func (o *openAPI) media(node tree) (any, bool) {
	if v, ok := o.example(node, node["schema"]); ok {
		return v, true
	}
	return o.sampled(node["schema"])
}

// sampled is a value that a schema names itself. A schema that is too large has none: a part of it
// would be another value.
func (o *openAPI) sampled(schema any) (any, bool) {
	o.looked = 0
	v, ok := o.sample(schema, 0)
	return v, ok && o.looked <= lookedMax
}

// composed is what a schema and the schemas that it is made of have in common.
type composed struct {
	fields   tree     // of an object, without those that only answers have
	required []string // names of fields
	reads    []string // names of fields that only answers have
	value    any      // of what is no object
	known    bool     // there is such a value
	failed   bool     // a part has no value
	ref      string   // by which the first of the schemas is named
	kind     discriminator
}

// sample is a value that a schema names; of an object the properties that have one, if all that are
// required do.
func (o *openAPI) sample(schema any, depth int) (any, bool) {
	return o.sampleOf(schema, depth, discriminator{})
}

// sampleOf is a sample of a schema that a discriminator selects, if it has a property.
func (o *openAPI) sampleOf(schema any, depth int, kind discriminator) (any, bool) {
	c := composed{fields: tree{}, kind: kind}
	o.compose(schema, depth, &c, true)
	if name := c.kind.property; name != "" && slices.Contains(c.required, name) {
		if _, ok := c.fields[name]; !ok {
			c.fields[name] = c.kind.value
		}
	}
	for _, name := range c.required {
		if _, ok := c.fields[name]; !ok && !slices.Contains(c.reads, name) {
			return nil, false
		}
	}
	switch {
	case c.failed:
		return nil, false
	case c.known:
		return c.value, true
	}
	return c.fields, len(c.fields) > 0
}

// compose adds a schema to c, and the schemas that it is made of, one below the other. The first
// may have a value for all of it.
func (o *openAPI) compose(schema any, depth int, c *composed, first bool) {
	s := o.tree(schema)
	if o.looked++; s == nil || depth > depthMax || o.looked > lookedMax {
		c.failed = c.failed || first
		return
	}
	named, _ := schema.(tree)
	if ref, is := named["$ref"].(string); is {
		if first {
			c.ref = ref
		}
		if slices.Contains(o.inside, ref) {
			c.failed = c.failed || first
			return
		}
		o.inside = append(o.inside, ref)
		defer func() { o.inside = o.inside[:len(o.inside)-1] }()
	}
	v, ok := stated(named) // OpenAPI 3.1: what stands beside a reference comes first
	if !ok {
		v, ok = stated(s)
	}
	if ok {
		c.take(o.written(s, v, depth, false))
		if _, is := v.(tree); first || !is {
			return
		}
	}
	if !first && c.kind.property == "" { // of the schema that others extend
		c.kind = o.discriminator(s, c.ref)
	}
	parts, _ := s["allOf"].([]any)
	for _, part := range parts {
		o.compose(part, depth+1, c, false)
	}
	o.choose(s, depth, c)
	if items, is := s["items"]; is {
		v, ok := o.sample(items, depth+1)
		if least, err := strconv.Atoi(plain(s["minItems"])); err == nil && least > 1 {
			ok = false // one item is too few, and others would be made up
		}
		if c.failed = c.failed || !ok; ok {
			c.take([]any{v})
		}
	}
	o.properties(s, depth, c)
	if _, is := named["$ref"].(string); is && len(named) > 1 { // OpenAPI 3.1: a part, too
		siblings := maps.Clone(named)
		delete(siblings, "$ref")
		o.compose(siblings, depth+1, c, false)
	}
}

// take adds a value.
func (c *composed) take(v any) {
	if fields, is := v.(tree); is {
		maps.Copy(c.fields, fields)
		if len(fields) > 0 {
			return
		}
	}
	c.value, c.known = v, true
}

// choose adds the first of several schemas that has a value.
func (o *openAPI) choose(s tree, depth int, c *composed) {
	for _, key := range []string{"oneOf", "anyOf"} {
		list, is := s[key].([]any)
		if !is {
			continue
		}
		i := slices.IndexFunc(list, func(single any) bool {
			named, _ := single.(tree)
			v, ok := o.sampleOf(single, depth+1, o.discriminator(s, plain(named["$ref"])))
			if ok {
				c.take(v)
			}
			return ok
		})
		c.failed = c.failed || i < 0
	}
}

// properties adds those of a schema, without what only answers have (readOnly).
func (o *openAPI) properties(s tree, depth int, c *composed) {
	all := o.tree(s["properties"])
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if o.readOnly(all[name], 0) {
			c.reads = append(c.reads, name)
			delete(c.fields, name)
		} else if c.kind.property == name && o.allows(all[name], c.kind.value) {
			c.fields[name] = c.kind.value
		} else if v, ok := o.sample(all[name], depth+1); ok {
			c.fields[name] = v
		}
	}
	c.required = append(c.required, o.texts(s["required"])...)
}

// discriminator is the property by which a service tells schemas apart, and its value for one of
// them.
type discriminator struct{ property, value string }

// discriminator returns that of a schema for another schema, which a reference names: the key of
// the mapping, or the schema's name (OpenAPI 3.1, section 4.8.25).
func (o *openAPI) discriminator(s tree, ref string) discriminator {
	node := o.tree(s["discriminator"])
	property := plain(node["propertyName"])
	if o.second {
		property = plain(s["discriminator"])
	}
	if property == "" || ref == "" {
		return discriminator{}
	}
	name := path.Base(ref)
	mapping := o.tree(node["mapping"])
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		if target := plain(mapping[key]); target == ref || target == name {
			return discriminator{property, key}
		}
	}
	return discriminator{property, name}
}

// allows reports whether a schema has no list of values, or one with this value.
func (o *openAPI) allows(schema any, value string) bool {
	s := o.tree(schema)
	list, is := s["enum"].([]any)
	fixed, single := s["const"]
	return (!is || slices.ContainsFunc(list, func(v any) bool { return plain(v) == value })) &&
		(!single || plain(fixed) == value)
}

// composedMax bounds schemas that are made of each other where only a mark is looked for.
const composedMax = 4

// readOnly says whether a property is one that only answers have.
func (o *openAPI) readOnly(schema any, depth int) bool {
	named, _ := schema.(tree)
	s := o.tree(schema)
	if isTrue(named["readOnly"]) || isTrue(s["readOnly"]) {
		return true
	}
	parts, _ := s["allOf"].([]any)
	return depth < composedMax && slices.ContainsFunc(parts, func(part any) bool {
		return o.readOnly(part, depth+1)
	})
}

// written is a value of a schema; unless it is complete, without what only answers have. A number
// or a boolean of a schema for texts is a text, as in {type: string, example: 1.10}.
func (o *openAPI) written(s tree, v any, depth int, complete bool) any {
	if depth > depthMax {
		return v
	}
	switch v := v.(type) {
	case []any:
		items := o.tree(s["items"])
		out := slices.Clone(v)
		for i := range out {
			out[i] = o.written(items, out[i], depth+1, complete)
		}
		return out
	case tree:
		out := any(maps.Clone(v))
		all := o.tree(s["properties"])
		for name, value := range v {
			if p, ok := all[name]; ok && !complete && o.readOnly(p, 0) {
				delete(out.(tree), name)
			} else if ok {
				out.(tree)[name] = o.written(o.tree(p), value, depth+1, complete)
			}
		}
		parts, _ := s["allOf"].([]any)
		for _, part := range parts[:min(len(parts), composedMax)] {
			out = o.written(o.tree(part), out, depth+1, complete)
		}
		return out
	case strictyaml.Spelling:
		if o.isText(s, depth) {
			return v.Text
		}
	case json.Number, bool:
		if o.isText(s, depth) {
			return plain(v)
		}
	}
	return v
}

// isText reports whether a schema describes texts, and neither numbers nor booleans.
func (o *openAPI) isText(s tree, depth int) bool {
	kinds := append(o.texts(s["type"]), plain(s["type"]))
	parts := o.list(s["allOf"])
	return slices.Contains(kinds, "string") && !slices.ContainsFunc(kinds, func(kind string) bool {
		return kind == "number" || kind == "integer" || kind == "boolean"
	}) || depth < depthMax && slices.ContainsFunc(parts[:min(len(parts), composedMax)],
		func(part any) bool { return o.isText(o.tree(part), depth+1) })
}

// stated is a value that stands in a schema itself.
func stated(s tree) (any, bool) {
	for _, key := range []string{"example", "x-example", "const", "default"} {
		if v, ok := s[key]; ok {
			return v, true
		}
	}
	for _, key := range []string{"examples", "enum"} {
		list, _ := s[key].([]any)
		for _, v := range list {
			if v != nil {
				return v, true
			}
		}
		if len(list) > 0 {
			return nil, true // null is the only value
		}
	}
	return nil, false
}
