package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"prony.example/internal/base/strictyaml"
)

// parameters are those of an operation and of its path, which it may replace.
func (o *openAPI) parameters(item, op tree) (out []tree) {
	for _, node := range []tree{item, op} {
		all, _ := node["parameters"].([]any)
		for _, p := range all {
			t := o.tree(p)
			if t == nil {
				continue
			}
			out = slices.DeleteFunc(out, func(old tree) bool {
				return plain(old["name"]) == plain(t["name"]) && plain(old["in"]) == plain(t["in"])
			})
			out = append(out, t)
		}
	}
	return out
}

// lost names the parameters that a reference leads to in vain.
func (o *openAPI) lost(item, op tree) (out []string) {
	for _, node := range []tree{item, op} {
		all, _ := node["parameters"].([]any)
		for _, p := range all {
			if t, _ := p.(tree); t != nil && o.tree(t) == nil {
				ref := strings.TrimRight(plain(t["$ref"]), "#/")
				out = append(out, oneLine(path.Base(ref)))
			}
		}
	}
	return out
}

// parameter puts a parameter into the operation.
func (d *Draft) parameter(o *openAPI, c *operation, p tree) {
	name, in := plain(p["name"]), plain(p["in"])
	required := isTrue(p["required"]) || in == "path"
	if nul(name) || o.second && (in == "body" || in == "formData") {
		return
	}
	v, ok := o.value(p)
	if !o.second && in == "header" && elsewhere.MatchString(name) {
		if ok || required {
			c.ignored = append(c.ignored, http.CanonicalHeaderKey(name))
		}
		return
	}
	if isSecret(name) && in != "path" {
		v, ok = d.variable(name), required
	}
	switch {
	case ok:
		f := o.format(p, in)
		switch text := f.write(name, v); in {
		case "path":
			c.values[name] = text
		case "query", "querystring":
			c.query = append(c.query, text)
		case "header":
			c.headers = append(c.headers, Field{name, text})
		case "cookie":
			text = strings.ReplaceAll(text, "&", "; ")
			c.headers = append(c.headers, Field{"Cookie", text})
		}
	case required && !(in == "header" && elsewhere.MatchString(name)):
		c.miss(name)
	}
}

// elsewhere are the fields that other parts of a document describe. Version 3 has parameters of
// these names ignored (OpenAPI 3.1, section 4.8.12.2).
var elsewhere = regexp.MustCompile(`(?i)^(accept|content-type|authorization)$`)

// value is the one that the document has for a parameter.
func (o *openAPI) value(p tree) (v any, ok bool) {
	content := o.tree(p["content"])
	for _, kind := range slices.Sorted(maps.Keys(content)) {
		media := o.tree(content[kind])
		if v, ok = o.media(media); ok && ofJSON.MatchString(kind) {
			v = o.jsonText(media, v)
		}
		break // there is one
	}
	if len(content) == 0 {
		schema := p["schema"]
		if o.second {
			schema = any(p) // which describes its value itself
		}
		if v, ok = o.example(p, schema); !ok {
			v, ok = o.sampled(schema)
		}
	}
	switch t := v.(type) {
	case nil:
		return nil, false
	case string:
		ok = ok && (t != "" || plain(p["in"]) != "path")
	case []any:
		ok = ok && len(t) > 0
	case tree:
		ok = ok && len(t) > 0
	}
	return v, ok && !nul(plain(v))
}

// format is how a value is written into a request (OpenAPI 3.1, section 4.8.12.6, and RFC 6570).
type format struct {
	style   string
	explode bool
	escape  func(string) string
}

// formats are those of parameters that name none, by where they are.
var formats = map[string]format{
	"path":     {"simple", false, func(s string) string { return around(s, url.PathEscape) }},
	"query":    {"form", true, formWord},
	"cookie":   {"form", true, formWord},
	"header":   {"simple", false, func(s string) string { return s }},
	"formData": {"form", true, formWord},
}

// collections are the styles by a collectionFormat of version 2, which names lists alone.
var collections = map[string]string{"ssv": "spaceDelimited", "tsv": "tabDelimited",
	"pipes": "pipeDelimited"}

// between are the styles of lists in a query that have a character between the items.
var between = map[string]string{"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C",
	"tabDelimited": "%09"}

// format is the one of a parameter, or of a field of a form.
func (o *openAPI) format(p tree, in string) format {
	f, known := formats[in]
	if !known {
		f = formats["query"]
	}
	if style := plain(p["style"]); style != "" {
		f.style, f.explode = style, style == "form"
	}
	if o.second {
		kind := plain(p["collectionFormat"])
		f.style, f.explode = cmp.Or(collections[kind], f.style), kind == "multi"
	}
	if explode, is := p["explode"]; is {
		f.explode = isTrue(explode)
	}
	if isTrue(p["allowReserved"]) && in == "query" {
		f.escape = func(s string) string { return around(s, reserve) }
	}
	return f
}

// reservedChars are those that a parameter with allowReserved keeps, and percents.
var reservedChars = regexp.MustCompile(`%[0-9A-Fa-f]{2}|[:/?\[\]@!$&'()*+,;=]`)

func reserve(s string) string {
	var b strings.Builder
	pos := 0
	for _, m := range append(reservedChars.FindAllStringIndex(s, -1), []int{len(s), len(s)}) {
		b.WriteString(strings.ReplaceAll(url.QueryEscape(s[pos:m[0]]), "+", "%20") + s[m[0]:m[1]])
		pos = m[1]
	}
	return b.String()
}

// write is the text for a value: in a query and a cookie with the name.
func (f format) write(name string, v any) string {
	key, sign := url.QueryEscape(name)+"=", "&"
	switch f.style {
	case "label":
		key, sign = "", "."
	case "matrix":
		key, sign = url.PathEscape(name)+"=", ";"
	case "simple":
		key, sign = "", ","
	case "deepObject":
		if t, is := v.(tree); is {
			return strings.Join(f.deep(name, t), "&")
		}
	}
	text := f.parts(key, sign, v)
	switch f.style {
	case "label", "matrix":
		return sign + text
	}
	return text
}

// parts joins what a value has. Each item of an exploded list has the key, and each of a mapping
// its own.
func (f format) parts(key, sign string, v any) string {
	var out []string
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			out = append(out, f.escape(plain(item)))
		}
		if f.explode {
			return key + strings.Join(out, sign+key)
		}
	case tree:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, f.escape(name), f.escape(plain(v[name])))
		}
		if f.explode {
			for i := 0; i < len(out); i += 2 {
				out[i/2] = out[i] + "=" + out[i+1]
			}
			return strings.Join(out[:len(out)/2], sign)
		}
	default:
		return key + f.escape(plain(v))
	}
	return key + strings.Join(out, cmp.Or(between[f.style], ","))
}

// deep names each value of a mapping by its way there, in brackets.
func (f format) deep(name string, v any) (out []string) {
	switch v := v.(type) {
	case tree:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, f.deep(name+"["+key+"]", v[key])...)
		}
	case []any:
		for _, item := range v {
			out = append(out, f.deep(name, item)...)
		}
	default:
		out = []string{url.QueryEscape(name) + "=" + f.escape(plain(v))}
	}
	return out
}

// secure adds the credentials that the operation, or the whole document, requires.
func (d *Draft) secure(o *openAPI, op tree, c *operation) {
	all, ok := op["security"].([]any)
	if !ok {
		all, _ = o.root["security"].([]any)
	}
	if len(all) == 0 {
		return
	}
	schemes := o.tree(o.tree(o.root["components"])["securitySchemes"])
	if o.second {
		schemes = o.tree(o.root["securityDefinitions"])
	}
	// One of them is enough, and an empty one means nobody.
	best := max(0, slices.IndexFunc(all, func(v any) bool {
		names, _ := v.(tree)
		for name := range names {
			if !slices.Contains(authorizations, authorization(o.tree(schemes[name]))) {
				return false
			}
		}
		return true
	}))
	chosen, _ := all[best].(tree)
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		s := o.tree(schemes[name])
		field, kind, in := plain(s["name"]), authorization(s), plain(s["in"])
		switch {
		case kind == "apiKey":
			c.key(in, field, d.variable(field))
		case kind == "basic":
			c.key("header", "Authorization", "Basic "+hole("BASIC_AUTH"))
		case kind == "bearer" || kind == "oauth2" || kind == "openIdConnect":
			c.key("header", "Authorization", "Bearer "+hole("TOKEN"))
		case kind == "mutualTLS": // of the connection, not of the request
		default:
			c.miss(oneLine("the authorization " + name))
		}
	}
}

// authorizations are those that a request can have.
var authorizations = []string{"apiKey", "basic", "bearer", "oauth2", "openIdConnect", "mutualTLS"}

// authorization is what a security scheme wants, in the words of version 3.
func authorization(scheme tree) string {
	kind := plain(scheme["type"])
	if kind == "http" {
		return strings.ToLower(plain(scheme["scheme"]))
	}
	return kind
}

// key adds a credential, in place of a parameter that describes it, too.
func (c *operation) key(in, name, value string) {
	key := url.QueryEscape(name) + "="
	switch in {
	case "query":
		c.query = slices.DeleteFunc(c.query, func(p string) bool {
			return strings.HasPrefix(p, key)
		})
		c.query = append(c.query, key+value)
	case "header":
		c.headers = append(slices.DeleteFunc(c.headers, isField(name)), Field{name, value})
	default:
		c.headers = slices.DeleteFunc(c.headers, func(f Field) bool {
			return f.Name == "Cookie" && strings.HasPrefix(f.Value, key)
		})
		c.headers = append(c.headers, Field{"Cookie", name + "=" + value})
	}
	c.missing = slices.DeleteFunc(c.missing, func(m string) bool {
		return m == name || in == "header" && strings.EqualFold(m, name)
	})
}

// body takes the example of a body, of JSON where there is a choice, or names what is missing.
func (o *openAPI) body(node tree, r *raw) (missing string) {
	content := o.tree(node["content"])
	kinds := slices.Sorted(maps.Keys(content))
	slices.SortStableFunc(kinds, func(a, b string) int { return rank(a) - rank(b) })
	odd := len(kinds) > 0
	for _, kind := range kinds {
		media := o.tree(content[kind])
		v, ok := o.media(media)
		_, isText := v.(string)
		switch v.(type) {
		case json.Number, bool, strictyaml.Spelling:
			isText = true
		}
		text := plain(v)
		odd = odd && !ok && rank(kind) == 2
		switch {
		case !ok || nul(plain(v)):
			continue
		case rank(kind) == 0:
			r.body, r.kind = o.jsonText(media, v), kind
		case strings.HasPrefix(kind, "application/x-www-form-urlencoded"):
			fields, is := v.(tree)
			if r.body, r.kind = text, kind; is {
				r.body = o.form(o.tree(media["encoding"]), fields)
			}
		case strings.HasPrefix(kind, "multipart/form-data"):
			if fields, is := v.(tree); is {
				r.body, r.kind = o.parts(media, fields, r)
			}
		case strings.Contains(kind, "*"):
			r.body, r.kind = o.jsonText(media, v), "application/json"
		case isText && !strings.HasPrefix(kind, "multipart/"):
			r.body, r.kind = text, kind
		}
		if r.body != "" {
			return ""
		}
	}
	if !isTrue(node["required"]) && len(content) == 0 {
		return ""
	}
	if odd || len(kinds) == 1 && rank(kinds[0]) == 2 {
		return "its body (" + oneLine(kinds[0]) + ")"
	}
	return "its body"
}

// ofJSON are media types whose content is one value of JSON.
var ofJSON = regexp.MustCompile(`(?i)^[^;/]+/([^;]+\+)?json([-a-z]*patch\+json)?( *;|$)`)

// rank orders media types by how well their bodies can be made.
func rank(kind string) int {
	switch {
	case ofJSON.MatchString(kind):
		return 0
	case strings.HasPrefix(kind, "application/x-www-form-urlencoded"):
		return 1
	}
	return 2
}

// form is a form of the fields, each as the encoding says, or its parts by name. A mapping is JSON.
func (o *openAPI) form(encoding, fields tree) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		v, e := fields[name], o.tree(encoding[name])
		if t, is := v.(tree); is && e["style"] == nil && e["explode"] == nil {
			v = plain(t)
		}
		f := formats["formData"]
		if e != nil {
			f = o.format(e, "formData")
		}
		if list, is := v.([]any); !is || len(list) > 0 {
			out = append(out, f.write(name, v))
		}
	}
	return strings.Join(out, "&")
}

// parts is a form of several parts and its media type; "": it needs a file. Texts, numbers and
// booleans have no type of their own, other values are JSON, and each item of a list is a part
// (OpenAPI 3.0, "Special Considerations for multipart Content").
func (o *openAPI) parts(media, fields tree, r *raw) (body, kind string) {
	encoding, schema := o.tree(media["encoding"]), o.tree(media["schema"])
	properties, required := o.tree(schema["properties"]), o.texts(schema["required"])
	var out []part
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if isFile(o.tree(properties[name])) {
			if slices.Contains(required, name) {
				return "", ""
			}
			r.differ("a file of a form that is not required is not sent")
			continue
		}
		items, is := fields[name].([]any)
		if kind := plain(o.tree(encoding[name])["collectionFormat"]); !is {
			items = []any{fields[name]}
		} else if o.second && (kind == "" || kind == "csv") {
			items = []any{formats["header"].parts("", ",", items)} // with commas
		}
		for _, v := range items {
			p := part{name: name, value: plain(v)}
			switch v.(type) {
			case tree, []any:
				p.kind = "application/json"
			}
			if media := plain(o.tree(encoding[name])["contentType"]); media != "" {
				p.kind, _, _ = strings.Cut(media, ",")
			}
			if ofJSON.MatchString(p.kind) {
				p.value = o.jsonText(tree{"schema": properties[name]}, v)
			}
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return "", ""
	}
	return multipartForm(out)
}

// isFile reports whether the schema of a part is that of a file, or of a list of files.
func isFile(schema tree) bool {
	if items, is := schema["items"].(tree); is {
		return isFile(items)
	}
	return schema["format"] == "binary" || schema["type"] == "file" ||
		schema["contentMediaType"] == "application/octet-stream"
}

// jsonText is a value as JSON. A text of the document may be JSON already.
func (o *openAPI) jsonText(media tree, v any) string {
	text, is := v.(string)
	if is && json.Valid([]byte(text)) && plain(o.tree(media["schema"])["type"]) != "string" {
		return text
	}
	return marshal(v)
}

// bodyOf2 is what version 3 would have for the body of version 2, without a file that is not
// required; nil: there is none.
func (o *openAPI) bodyOf2(item, op tree, r *raw) tree {
	kinds := o.texts(op["consumes"])
	if len(kinds) == 0 {
		kinds = o.texts(o.root["consumes"])
	}
	properties, encoding, required, file := tree{}, tree{}, []any{}, false
	for _, p := range o.parameters(item, op) {
		switch name := plain(p["name"]); plain(p["in"]) {
		case "body":
			if len(kinds) == 0 {
				kinds = []string{"application/json"}
			}
			content := tree{}
			for _, kind := range kinds {
				media := tree{"schema": p["schema"]}
				if v, ok := o.exampleOf2(p, kind); ok {
					media["example"] = v
				}
				content[kind] = media
			}
			return tree{"content": content, "required": p["required"]}
		case "formData":
			if p["type"] == "file" && !isTrue(p["required"]) {
				r.differ("a file of a form that is not required is not sent")
				continue
			}
			properties[name], encoding[name] = p, p
			file = file || p["type"] == "file"
			if isTrue(p["required"]) {
				required = append(required, name)
			}
		}
	}
	if len(properties) == 0 {
		return nil
	}
	kind := "application/x-www-form-urlencoded"
	if file || !slices.Contains(kinds, kind) && slices.Contains(kinds, "multipart/form-data") {
		kind = "multipart/form-data"
	}
	schema := tree{"properties": properties, "required": required}
	return tree{"content": tree{kind: tree{"schema": schema, "encoding": encoding}},
		"required": len(required) > 0}
}

// exampleOf2 is the one of a body of version 2, which has no word for it: springfox and swagger-ui
// have x-examples by media type or by name, dredd has x-example.
func (o *openAPI) exampleOf2(p tree, kind string) (any, bool) {
	named := o.tree(p["x-examples"])
	for _, key := range append([]string{kind, "default"}, slices.Sorted(maps.Keys(named))...) {
		if v, ok := named[key]; ok && (key == kind || !strings.Contains(key, "/")) {
			return v, true
		}
	}
	return o.example(p, p["schema"])
}

// isTrue reports whether a document says yes, as true or True.
func isTrue(v any) bool { return plain(v) == "true" }

// plain is a value as a text: texts as they are, everything else as JSON.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case fmt.Stringer: // a number
		return v.String()
	}
	return marshal(v)
}
