package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"prony.example/internal/base/strictyaml"
)

const (
	depthMax  = 20   // references that lead to references, and schemas within each other
	lookedMax = 2000 // schemas of one value: properties that name each other grow without end

	filesMax    = 10_000   // other files of a document
	filesLength = 64 << 20 // bytes of them
)

// tree is a mapping of a document.
type tree = map[string]any

// openAPI is a document of version 3 (https://spec.openapis.org/oas/latest.html), or of version 2
// (https://spec.openapis.org/oas/v2.0.html), in JSON or YAML.
type openAPI struct {
	root    tree
	second  bool           // it is of version 2
	inside  []string       // references whose schemas are being looked into
	looked  int            // schemas of this value so far
	files   fs.FS          // the folder of the document; nil: none is read
	loaded  map[string]any // documents of that folder, by path; nil: one that cannot be read
	length  int            // bytes of those
	outside map[string]bool
}

// operation is one on its way to a request.
type operation struct {
	raw
	origin    string // of its server; "": the document leaves it open
	elsewhere bool   // its own server has a host, which the document may leave open
	path      string // with its server's, in braces what is filled in
	values    map[string]string
	query     []string
	missing   []string // names
	ignored   []string // header parameters that OpenAPI has readers ignore
}

func (d *Draft) readOpenAPI(name string, data []byte) error {
	root, err := document(name, data)
	if err != nil {
		return err
	}
	o := openAPI{root: root, files: d.files, loaded: map[string]any{},
		outside: map[string]bool{}}
	switch version := oneLine(cmp.Or(plain(root["openapi"]), plain(root["swagger"]))); {
	case root["openapi"] == nil && (version == "2.0" || version == "2"):
		o.second = true
	case root["swagger"] != nil || version != "3" && !strings.HasPrefix(version, "3."):
		return fmt.Errorf("its version is %q; convert it to OpenAPI 3", version)
	}
	all := d.operations(&o)
	home, _, _ := o.server(d.want, nil, nil)
	open := home == "" && slices.ContainsFunc(all, func(op operation) bool {
		return op.origin == ""
	})
	for _, op := range all {
		switch {
		case open && op.origin != "" && op.origin != d.want:
			d.leave("of another host than the document's: " + op.origin)
		case home != "" && op.origin == "" && op.elsewhere:
			d.leave("of a host that the document does not name")
		default:
			d.add(op.raw)
		}
	}
	if hooks := o.tree(root["webhooks"]); len(hooks) > 0 {
		d.Found += len(hooks)
		d.leaveAll("webhooks, which the service sends", len(hooks))
	}
	for _, ref := range slices.Sorted(maps.Keys(o.outside)) {
		d.change("a reference leads to nothing that init reads: "+oneLine(ref), 1)
	}
	return nil
}

// document is the mapping that a file of JSON or YAML has, with the digits of its numbers.
func document(name string, data []byte) (out tree, err error) {
	var failed error
	if strings.HasPrefix(strings.TrimSpace(string(data)), "{") {
		if failed = exactJSON(data, &out); failed == nil {
			return out, nil
		}
	}
	out, err = strictyaml.DecodeExact(name, data) // also in its flow style
	if err != nil && failed != nil {
		return nil, broken(failed)
	} else if err != nil {
		return nil, errors.New(problem(err) + "; save the file again, or as JSON")
	}
	return out, nil
}

// unasked are methods of operations that are not requested.
var unasked = []struct{ method, why string }{
	{"delete", "DELETE, whose repetition has another response"},
	{"options", "OPTIONS, a browser's question before a request (CORS)"},
	{"trace", "TRACE, a method that suites do not have"},
	{"query", "QUERY, a method that suites do not have"},
}

// operations lists those of the document. What only reads comes first: it may be sent as often as
// one likes.
func (d *Draft) operations(o *openAPI) (out []operation) {
	items := map[string]tree{}
	for p, value := range o.tree(o.root["paths"]) {
		if !strings.HasPrefix(p, "x-") {
			items[p] = o.item(value)
		}
	}
	paths := slices.Sorted(maps.Keys(items))
	visit := func(method string, do func(p string, item, op tree)) {
		for _, p := range paths {
			item := items[p]
			op := o.tree(item[method])
			if op == nil {
				continue
			}
			d.Found++
			tags := o.texts(op["tags"])
			_, base, _ := o.server(d.want, item, op)
			if !d.chosen(p, tags) && !d.chosen(base+p, tags) {
				d.leave(unchosen)
				continue
			}
			do(p, item, op)
		}
	}
	for _, method := range []string{"get", "head", "post", "put", "patch"} {
		visit(method, func(p string, item, op tree) {
			call, why := d.operation(o, method, p, item, op)
			if why != "" {
				d.leave(why)
				return
			}
			out = append(out, call)
		})
	}
	for _, r := range unasked {
		visit(r.method, func(string, tree, tree) { d.leave(r.why) })
	}
	for _, p := range paths {
		if more := o.tree(items[p]["additionalOperations"]); len(more) > 0 {
			d.Found += len(more)
			d.leaveAll("a method that suites do not have", len(more))
		}
		ref, is := items[p]["$ref"].(string)
		switch {
		case !is:
			continue
		case strings.HasPrefix(ref, "#"):
			d.leave("a path whose reference leads to no operations")
		default:
			d.leave("a path whose operations are in another file; bundle the document into one " +
				"file first")
		}
		d.Found++
	}
	return out
}

// list is a list of a document; anything else has no items.
func (o *openAPI) list(value any) []any {
	all, _ := value.([]any)
	return all
}

// texts are those of a list.
func (o *openAPI) texts(list any) (out []string) {
	for _, v := range o.list(list) {
		out = append(out, plain(v))
	}
	return out
}

// tree returns a mapping, or the target of a reference; nil: there is none.
func (o *openAPI) tree(value any) tree {
	for range depthMax {
		t, _ := value.(tree)
		ref, ok := t["$ref"].(string)
		if !ok {
			return t
		}
		value = o.target(ref)
	}
	return nil
}

// item is a path item: what stands beside its reference, and what the reference leads to. A
// reference that leads to nothing stays in it.
func (o *openAPI) item(value any) tree {
	out := tree{}
	for range depthMax {
		t, _ := value.(tree)
		delete(out, "$ref")
		for key, v := range t {
			if slices.Contains(methods, key) {
				key = strings.ToLower(key)
			}
			switch _, known := out[key]; {
			case key == "parameters": // those of the reference come first: others replace them
				out[key] = slices.Concat(o.list(v), o.list(out[key]))
			case !known:
				out[key] = v
			}
		}
		ref, is := t["$ref"].(string)
		if !is {
			break
		}
		if value = o.target(ref); value == nil {
			break
		}
	}
	return out
}

// target is what a reference leads to (RFC 6901); nil: nothing that can be read.
func (o *openAPI) target(ref string) (value any) {
	file, pointer, _ := strings.Cut(ref, "#")
	if value = o.root; file != "" {
		value = o.load(file)
	}
	for p := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" || value == nil {
			break
		}
		if u, err := url.PathUnescape(p); err == nil {
			p = u
		}
		switch v := value.(type) {
		case tree:
			value = v[strings.NewReplacer("~1", "/", "~0", "~").Replace(p)]
		case []any:
			i, err := strconv.Atoi(p)
			if value = nil; err == nil && i >= 0 && i < len(v) {
				value = v[i]
			}
		default:
			value = nil
		}
	}
	if value == nil {
		o.outside[ref] = true
	}
	return value
}

// load is a document of the folder, whose references say from where they lead.
func (o *openAPI) load(name string) any {
	if u, err := url.PathUnescape(name); err == nil {
		name = u
	}
	if name = path.Clean(name); o.loaded[name] != nil || o.files == nil ||
		len(o.loaded) >= filesMax || o.length > filesLength {
		return o.loaded[name]
	}
	if _, known := o.loaded[name]; known {
		return nil
	}
	o.loaded[name] = nil
	info, err := fs.Stat(o.files, name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > filesLength {
		return nil
	}
	data, err := fs.ReadFile(o.files, name)
	if err != nil {
		return nil
	}
	o.length += len(data)
	if t, err := document(name, data); err == nil {
		from(name, t, map[uintptr]bool{})
		o.loaded[name] = t
	}
	return o.loaded[name]
}

// from puts the name of its file into each reference below a value, once: a mapping that YAML's
// aliases repeat is one.
func from(name string, value any, done map[uintptr]bool) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			from(name, item, done)
		}
	case tree:
		place := reflect.ValueOf(v).Pointer()
		if done[place] {
			return
		}
		done[place] = true
		if ref, is := v["$ref"].(string); is && !strings.Contains(ref, "://") {
			file, pointer, _ := strings.Cut(ref, "#")
			v["$ref"] = cmp.Or(file, path.Base(name)) + "#" + pointer
			if dir := path.Dir(name); dir != "." {
				v["$ref"] = path.Join(dir, cmp.Or(file, path.Base(name))) + "#" + pointer
			}
		}
		for _, item := range v {
			from(name, item, done)
		}
	}
}

// operation makes a request of one, or says why it cannot.
func (d *Draft) operation(o *openAPI, method, p string, item, op tree) (c operation, why string) {
	c = operation{raw: raw{method: method}, values: map[string]string{}}
	if c.origin, c.path, why = o.server(d.want, item, op); why != "" {
		return c, why
	}
	if c.path += "/" + strings.TrimPrefix(p, "/"); strings.Contains(c.path, "#") {
		return c, "a path with #, which is not sent"
	}
	if !strings.HasPrefix(p, "/") {
		c.differ("a path that does not begin with / is sent with it")
	}
	servers := slices.Concat(o.list(op["servers"]), o.list(item["servers"]))
	c.elsewhere = slices.ContainsFunc(servers, func(server any) bool {
		return strings.Contains(plain(o.tree(server)["url"]), "//")
	})
	c.note, _ = op["summary"].(string)
	status, bad := success(o.tree(op["responses"]))
	if c.status = status; bad {
		c.note = strings.TrimSpace(c.note + " (its only documented answers are errors)")
	}
	for _, param := range o.parameters(item, op) {
		d.parameter(o, &c, param)
	}
	for _, name := range o.lost(item, op) {
		c.miss(name)
	}
	d.secure(o, op, &c)
	body := o.tree(op["requestBody"])
	if body == nil && o.second {
		body = o.bodyOf2(item, op, &c.raw)
	}
	switch {
	case method == "get" || method == "head":
		if body != nil {
			c.differ("the body of a GET or HEAD is not sent, because it has no meaning (RFC 9110)")
		}
	case body != nil:
		if why := o.body(body, &c.raw); why != "" {
			c.miss(why)
		}
	case op["requestBody"] != nil:
		c.miss("its body")
	case len(c.query)+len(c.missing) == 0:
		c.note = strings.TrimSpace(c.note + " (sent without a body)")
	}
	for _, name := range c.ignored {
		byBody := name == "Content-Type" && c.body != ""
		if !byBody && !slices.ContainsFunc(c.headers, isField(name)) {
			c.differ("the header parameter " + name + " is not sent, because OpenAPI prescribes " +
				"to ignore it")
		}
	}
	c.finish()
	return c, ""
}

// miss notes what has no value.
func (c *operation) miss(name string) {
	if !slices.Contains(c.missing, name) {
		c.missing = append(c.missing, name)
	}
}

// inTemplate is what is filled in of a path or a server.
var inTemplate = regexp.MustCompile(`\{([^{}/]*)\}`)

// finish makes the address. What it lacks stays in braces, which the reader fills in.
func (c *operation) finish() {
	c.url = c.origin + inTemplate.ReplaceAllStringFunc(c.path, func(m string) string {
		value, ok := c.values[m[1:len(m)-1]]
		if !ok {
			c.miss(m[1 : len(m)-1])
			return hole(m)
		}
		return value
	})
	if len(c.query) > 0 {
		sign := "?"
		if strings.Contains(c.path, "?") {
			sign = "&"
		}
		c.url += sign + strings.Join(c.query, "&")
	}
	if len(c.missing) > 0 {
		c.unknown = true
		c.note = "no example of " + strings.Join(c.missing, ", ")
	}
}

// success is the lowest good status that is documented; 0: none is, or it is one of several. It
// says whether all that are documented are errors.
func success(responses tree) (status int, bad bool) {
	open, answers := len(responses) == 0, 0
	for code := range responses {
		n, err := strconv.Atoi(code)
		switch {
		case err != nil:
			open = open || code == "default" || strings.EqualFold(code, "2xx") ||
				strings.EqualFold(code, "3xx") || strings.HasPrefix(code, "x-")
		case n >= 200 && n < 400 && (status == 0 || n < status):
			status = n
		}
		if n >= 200 && n < 300 && n != http.StatusPartialContent {
			answers++
		}
	}
	if answers > 1 || status >= 300 && open {
		return 0, false
	}
	return status, status == 0 && !open
}
