package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sort"
	"strings"

	"prony.example/internal/base/strictyaml"
)

const (
	depthMax  = 20   // of references to references, and of nested schemas
	lookedMax = 2000 // schemas of one value: properties that reference each other would never end
)

// tree is a mapping of a document.
type tree = map[string]any

// openAPI is a document of version 3 (https://spec.openapis.org/oas/latest.html), in JSON or YAML.
type openAPI struct {
	root   tree
	base   string   // path of the server
	inside []string // references whose schemas are in progress
	looked int      // schemas of this value so far
	// outside are references to other files, which are not read.
	outside map[string]bool
}

func (d *Draft) readOpenAPI(name string, data []byte) error {
	o := openAPI{outside: map[string]bool{}}
	if trimmed := strings.TrimSpace(string(data)); strings.HasPrefix(trimmed, "{") {
		if err := json.Unmarshal(data, &o.root); err != nil {
			return broken(err)
		}
	} else if err := strictyaml.Decode(name, data, &o.root); err != nil {
		return errors.New(problem(err) + "; save the file again, or save it as JSON")
	}
	version := fmt.Sprint(o.root["openapi"])
	if !strings.HasPrefix(version, "3.") {
		return errors.New("the file is not an OpenAPI 3 document; convert it, for example with " +
			"https://converter.swagger.io")
	}
	d.server(&o)
	paths := o.tree(o.root["paths"])
	// Reading operations come first, because they can be repeated without effects.
	for _, method := range []string{"get", "head", "post", "put", "patch"} {
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			item := o.tree(paths[path])
			if op := o.tree(item[method]); op != nil {
				d.Found++
				d.operation(&o, method, path, item, op)
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if o.tree(o.tree(paths[path])["delete"]) != nil {
			d.Found++
			d.leave("DELETE requests, because a second one gets another response")
		}
	}
	if len(o.outside) > 0 {
		d.leaveAll("references to other files; first bundle the document into one file",
			len(o.outside))
	}
	return nil
}

// server reads the origin and path of the first server.
func (d *Draft) server(o *openAPI) {
	servers, _ := o.root["servers"].([]any)
	if len(servers) == 0 {
		return
	}
	s := o.tree(servers[0])
	address, _ := s["url"].(string)
	for name, v := range o.tree(s["variables"]) {
		value := plain(o.tree(v)["default"])
		address = strings.ReplaceAll(address, "{"+name+"}", value)
	}
	origin, path, _, err := place(address)
	if err != nil || nul(address) {
		return
	}
	o.base = strings.TrimRight(path, "/")
	if origin != "" {
		d.hosts[origin], d.order = 1, append(d.order, origin)
	}
}

// tree returns a mapping, or the target of a reference; nil: there is none.
func (o *openAPI) tree(value any) tree {
	for range depthMax {
		t, _ := value.(tree)
		keyPath, ok := t["$ref"].(string)
		if !ok {
			return t
		}
		parts, inside := strings.CutPrefix(keyPath, "#/")
		if !inside {
			o.outside[keyPath] = true
			return nil
		}
		value = o.root
		for p := range strings.SplitSeq(parts, "/") {
			if u, err := url.PathUnescape(p); err == nil {
				p = u
			}
			m, _ := value.(tree)
			value = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(p)]
		}
	}
	return nil
}

func (d *Draft) operation(o *openAPI, method, path string, item, op tree) {
	r := raw{method: method, status: success(o.tree(op["responses"]))}
	r.note, _ = op["summary"].(string)
	filled, query, missing := o.base+path, []string{}, []string{}
	for _, p := range o.parameters(item, op) {
		name, in := plain(p["name"]), plain(p["in"])
		required := p["required"] == true || in == "path"
		value, ok := o.value(p)
		if isSecret(name) && in != "path" {
			value, ok = d.variable(name), required
		}
		switch {
		case nul(name) || !ok && !required:
			continue
		case !ok:
			missing = append(missing, name)
		case in == "path":
			filled = strings.ReplaceAll(filled, "{"+name+"}", url.PathEscape(value))
		case in == "query":
			query = append(query, url.QueryEscape(name)+"="+formWord(value))
		case in == "header":
			r.headers = append(r.headers, Field{name, value})
		case in == "cookie":
			r.headers = append(r.headers, Field{"Cookie", name + "=" + value})
		}
	}
	query = append(query, d.secure(o, op, &r)...)
	if body := o.tree(op["requestBody"]); body != nil && method != "get" && method != "head" {
		if !o.body(body, &r) {
			missing = append(missing, "its body")
		}
	} else if method != "get" && method != "head" && len(query)+len(missing) == 0 {
		r.note = strings.TrimSpace(r.note + " (sent without a body)")
	}
	if r.url = filled; len(query) > 0 {
		r.url += "?" + strings.Join(query, "&")
	}
	if len(missing) > 0 {
		r.unknown = true
		r.note = "no example value for " + strings.Join(missing, ", ")
		for _, name := range missing { // the reader fills in the part in braces
			r.url = strings.ReplaceAll(r.url, "{"+name+"}", hole("{"+name+"}"))
		}
	}
	d.add(r)
}

// parameters returns the parameters of an operation and of its path. The operation's override.
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

// value returns the document's value for a parameter.
func (o *openAPI) value(p tree) (string, bool) {
	v, ok := o.example(p)
	if !ok {
		v, ok = o.sample(p["schema"], 0)
	}
	if list, is := v.([]any); is && len(list) > 0 {
		v = list[0]
	}
	if _, is := v.(tree); is || v == nil || nul(plain(v)) {
		return "", false
	}
	return plain(v), ok
}

// example returns the example beside a schema.
func (o *openAPI) example(node tree) (any, bool) {
	if v, ok := node["example"]; ok {
		return v, true
	}
	all := o.tree(node["examples"])
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if v, ok := o.tree(all[name])["value"]; ok {
			return v, true
		}
	}
	return nil, false
}

// sample returns a value from a schema: for an object, all properties with a value, if these
// include all required ones.
func (o *openAPI) sample(schema any, depth int) (any, bool) {
	s := o.tree(schema)
	if depth == 0 {
		o.looked = 0
	}
	if o.looked++; s == nil || depth > depthMax || o.looked > lookedMax {
		return nil, false
	}
	if named, _ := schema.(tree); named["$ref"] != nil {
		if v, ok := given(named); ok { // OpenAPI 3.1: keys beside a reference take precedence
			return v, true
		}
		keyPath := plain(named["$ref"])
		if slices.Contains(o.inside, keyPath) {
			return nil, false
		}
		o.inside = append(o.inside, keyPath)
		defer func() { o.inside = o.inside[:len(o.inside)-1] }()
	}
	if v, ok := given(s); ok {
		return v, true
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		list, is := s[key].([]any)
		for _, single := range list {
			if v, ok := o.sample(single, depth+1); ok {
				return v, true
			}
		}
		if is {
			return nil, false
		}
	}
	if items, ok := s["items"]; ok {
		v, ok := o.sample(items, depth+1)
		return []any{v}, ok
	}
	if parts, _ := s["allOf"].([]any); len(parts) == 1 && s["properties"] == nil {
		return o.sample(parts[0], depth+1) // the usual way to describe a reference
	}
	out := tree{}
	for _, name := range o.object(s, depth, out) {
		if _, ok := out[plain(name)]; !ok {
			return nil, false
		}
	}
	return out, len(out) > 0
}

// given returns a value that is part of a schema.
func given(s tree) (any, bool) {
	for _, key := range []string{"example", "const", "default"} {
		if v, ok := s[key]; ok {
			return v, true
		}
	}
	for _, key := range []string{"examples", "enum"} {
		if list, _ := s[key].([]any); len(list) > 0 {
			return list[0], true
		}
	}
	return nil, false
}

// object adds the properties of a schema and of its parts to out. It returns the names of the
// required ones.
func (o *openAPI) object(s tree, depth int, out tree) (required []any) {
	if o.looked++; depth > depthMax || o.looked > lookedMax {
		return nil
	}
	parts, _ := s["allOf"].([]any)
	for _, part := range parts {
		required = append(required, o.object(o.tree(part), depth+1, out)...)
	}
	properties := o.tree(s["properties"])
	for name := range properties {
		if v, ok := o.sample(properties[name], depth+1); ok {
			out[name] = v
		}
	}
	ownPart, _ := s["required"].([]any)
	return append(required, ownPart...)
}

// body sets the example of a body, in JSON if there is a choice.
func (o *openAPI) body(node tree, r *raw) bool {
	content := o.tree(node["content"])
	kinds := slices.Sorted(maps.Keys(content))
	isJSON := func(kind string) bool { return strings.Contains(kind, "json") }
	sort.SliceStable(kinds, func(i, j int) bool { return isJSON(kinds[i]) && !isJSON(kinds[j]) })
	for _, kind := range kinds {
		media := o.tree(content[kind])
		v, ok := o.example(media)
		if !ok {
			v, ok = o.sample(media["schema"], 0)
		}
		text, isText := v.(string)
		switch {
		case !ok || nul(plain(v)):
			continue
		case strings.HasPrefix(kind, "application/x-www-form-urlencoded"):
			fields, _ := v.(tree)
			var pairs []pair
			for _, name := range slices.Sorted(maps.Keys(fields)) {
				pairs = append(pairs, pair{Name: name, Value: plain(fields[name])})
			}
			r.body, r.kind = form(pairs), kind
		case isText && !isJSON(kind):
			r.body, r.kind = text, kind
		case isJSON(kind):
			r.body, r.kind = plain(v), kind
			if isText && !json.Valid([]byte(text)) {
				quoted, _ := json.Marshal(text) // encoding a string cannot fail
				r.body = string(quoted)
			}
		default:
			continue
		}
		return r.body != ""
	}
	return node["required"] != true && len(content) == 0
}

// secure adds the credentials that the operation, or the whole document, requires: header fields to
// the request, and query parameters to the result.
func (d *Draft) secure(o *openAPI, op tree, r *raw) (query []string) {
	all, ok := op["security"].([]any)
	if !ok {
		all, _ = o.root["security"].([]any)
	}
	if len(all) == 0 {
		return nil
	}
	schemes := o.tree(o.tree(o.root["components"])["securitySchemes"])
	first, _ := all[0].(tree) // one scheme suffices, and an empty list means none
	for _, name := range slices.Sorted(maps.Keys(first)) {
		s := o.tree(schemes[name])
		field := plain(s["name"])
		switch kind := plain(s["type"]); {
		case kind == "apiKey" && s["in"] == "query":
			query = append(query, url.QueryEscape(field)+"="+d.variable(field))
		case kind == "apiKey" && s["in"] == "header":
			r.headers = append(r.headers, Field{field, d.variable(field)})
		case kind == "apiKey":
			r.headers = append(r.headers, Field{"Cookie", field + "=" + d.variable(field)})
		case kind == "http" && strings.EqualFold(plain(s["scheme"]), "basic"):
			r.headers = append(r.headers, Field{"Authorization", "Basic " + hole("BASIC_AUTH")})
		case s != nil:
			r.headers = append(r.headers, Field{"Authorization", "Bearer " + hole("TOKEN")})
		}
	}
	return query
}

// success returns the lowest documented 2xx status; 0: there is none.
func success(responses tree) int {
	best := 0
	for code := range responses {
		n := 0
		if len(code) == 3 && code[0] == '2' {
			_, err := fmt.Sscanf(code, "%d", &n)
			if err == nil && n > 199 && n < 300 && (best == 0 || n < best) {
				best = n
			}
		}
	}
	return best
}

// plain formats a value: strings as they are, other values as JSON.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	out, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(out)
}
