package importer

import (
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// collection is the part of a Postman collection that is read, version 2.1
// (https://schema.postman.com/collection/json/v2.1.0/draft-07/docs/index.html).
type collection struct {
	Info     struct{ Schema string }
	Item     []item
	Variable []pair
	Auth     *auth
}

type item struct {
	Name     string
	Item     []item
	Request  json.RawMessage // an address, or an object
	Response []struct{ Code int }
	Auth     *auth
}

type postmanRequest struct {
	Method string
	URL    json.RawMessage // a string, or an object
	Header json.RawMessage // fields, or a string
	Body   *struct {
		Mode, Raw  string
		URLEncoded []pair
		GraphQL    struct{ Query, Variables string }
		Disabled   bool
		Options    struct{ Raw struct{ Language string } }
	}
	Auth *auth
}

type auth struct {
	Type                  string
	Bearer, Basic, APIKey json.RawMessage // pairs in 2.1, a mapping in 2.0
}

// itemDepth limits nested folders.
const itemDepth = 50

func (d *Draft) readPostman(_ string, data []byte) error {
	var c collection
	if err := json.Unmarshal(data, &c); err != nil {
		return broken(err)
	}
	if !strings.Contains(c.Info.Schema, "/v2.") {
		return errors.New("the file is not a Postman collection of version 2; export it as " +
			"Collection v2.1")
	}
	variables := map[string]string{}
	for _, v := range c.Variable {
		if !v.Disabled {
			variables[cmp.Or(v.Key, v.Name)] = v.Value
		}
	}
	d.items(c.Item, c.Auth, variables, 0)
	return nil
}

func (d *Draft) items(all []item, above *auth, variables map[string]string, depth int) {
	for _, i := range all {
		ownAuth := i.Auth
		if ownAuth == nil {
			ownAuth = above
		}
		switch {
		case len(i.Item) > 0 && depth < itemDepth:
			d.items(i.Item, ownAuth, variables, depth+1)
		case len(i.Request) > 0 && string(i.Request) != "null":
			d.Found++
			d.request(i, ownAuth, variables)
		}
	}
}

func (d *Draft) request(i item, above *auth, variables map[string]string) {
	var q postmanRequest
	if json.Unmarshal(i.Request, &q) != nil || len(q.URL) == 0 {
		if q.URL = i.Request; i.Request[0] != '"' {
			d.leave("a request without a URL")
			return
		}
	}
	r := raw{method: q.Method, note: i.Name}
	var ok bool
	if r.url, ok = addressOf(q.URL); !ok {
		d.leave("a request whose path has a variable (:name) without a value")
		return
	}
	var fields []pair
	_ = json.Unmarshal(q.Header, &fields) // the string form of old versions is ignored
	for _, f := range fields {
		if !f.Disabled {
			r.headers = append(r.headers, Field{cmp.Or(f.Key, f.Name), f.Value})
		}
	}
	if why := r.postmanBody(&q); why != "" {
		d.leave(why)
		return
	}
	if q.Auth == nil {
		q.Auth = above
	}
	if why := r.postmanAuth(q.Auth); why != "" {
		d.leave(why)
		return
	}
	if len(i.Response) > 0 {
		r.status = i.Response[0].Code
	}
	if nul(r.url, r.body) {
		d.leave("a request whose text contains a NUL character")
		return
	}
	if !d.resolve(&r, variables) {
		d.leave("a request with a dynamic value that Prony has no placeholder for, such as " +
			"{{$timestamp}}")
		return
	}
	if r.status >= 400 {
		r.status = 0
	}
	d.add(r)
}

// addressOf returns the address of a request, with the values of its path variables.
func addressOf(data json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text, true
	}
	var u struct {
		Raw      string
		Variable []pair
	}
	if json.Unmarshal(data, &u) != nil || u.Raw == "" {
		return "", false
	}
	path, query, requested := strings.Cut(u.Raw, "?")
	known := true
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, ":"); ok && name != "" {
			index := slices.IndexFunc(u.Variable, func(v pair) bool {
				return cmp.Or(v.Key, v.Name) == name
			})
			if index < 0 || u.Variable[index].Value == "" {
				known = false
				continue
			}
			parts[i] = u.Variable[index].Value
		}
	}
	path = strings.Join(parts, "/")
	if requested {
		path += "?" + query
	}
	return path, known
}

func (r *raw) postmanBody(q *postmanRequest) (why string) {
	if q.Body == nil || q.Body.Disabled {
		return ""
	}
	switch b := q.Body; b.Mode {
	case "raw":
		r.body = b.Raw
		kinds := map[string]string{"json": "application/json", "xml": "application/xml",
			"html": "text/html"}
		r.kind = kinds[b.Options.Raw.Language]
	case "urlencoded":
		// Variables in double braces are still unresolved and must not be escaped.
		r.body, r.kind = form(b.URLEncoded), "application/x-www-form-urlencoded"
		r.body = strings.NewReplacer("%7B%7B", "{{", "%7D%7D", "}}").Replace(r.body)
	case "graphql":
		variables := json.RawMessage(b.GraphQL.Variables)
		if !json.Valid(variables) {
			variables = json.RawMessage("{}")
		}
		body, err := json.Marshal(map[string]any{"query": b.GraphQL.Query,
			"variables": variables})
		if err != nil {
			return "a GraphQL body that is not valid"
		}
		r.body, r.kind = string(body), "application/json"
	case "", "none":
	default:
		return "a body from a file, or a multipart form"
	}
	for _, f := range r.headers {
		if strings.EqualFold(f.Name, "content-type") {
			r.kind = f.Value
		}
	}
	return ""
}

func (r *raw) postmanAuth(a *auth) (why string) {
	if a == nil || slices.ContainsFunc(r.headers, isField("authorization")) {
		return ""
	}
	switch a.Type {
	case "", "noauth", "inherit":
	case "bearer":
		token := values(a.Bearer)["token"]
		if token == "" {
			token = hole("TOKEN")
		}
		r.headers = append(r.headers, Field{"Authorization", "Bearer " + token})
	case "basic":
		// User and password are one word in base64, so they cannot be filled in separately.
		r.headers = append(r.headers, Field{"Authorization", "Basic " + hole("BASIC_AUTH")})
	case "apikey":
		v := values(a.APIKey)
		name, value := cmp.Or(v["key"], "X-Api-Key"), hole("API_KEY")
		if v["in"] != "query" {
			r.headers = append(r.headers, Field{name, value})
			break
		}
		sign := "?"
		if strings.Contains(r.url, "?") {
			sign = "&"
		}
		r.url += sign + name + "=" + value
	default:
		return "a request whose authorization (" + oneLine(a.Type) + ") needs a program: set a " +
			"token by hand"
	}
	return ""
}

// values returns the values of an authorization, in either form.
func values(data json.RawMessage) map[string]string {
	out := map[string]string{}
	var pairs []struct {
		Key   string
		Value any
	}
	if json.Unmarshal(data, &pairs) == nil {
		for _, p := range pairs {
			out[p.Key], _ = p.Value.(string)
		}
		return out
	}
	_ = json.Unmarshal(data, &out) // other forms have no values
	return out
}

// inBraces matches a variable of Postman.
var inBraces = regexp.MustCompile(`\{\{([^{}]{1,100})\}\}`)

// drawn are Postman's dynamic variables that equal a placeholder.
var drawn = map[string]string{"$guid": "{uuid}", "$randomUUID": "{uuid}",
	"$randomInt": "{random 0..1000}"}

// resolve fills in the collection's variables. The environment gives variables without a value and
// variables whose name indicates a secret.
func (d *Draft) resolve(r *raw, variables map[string]string) bool {
	ok := true
	var fill func(s string, depth int) string
	fill = func(s string, depth int) string {
		return inBraces.ReplaceAllStringFunc(s, func(m string) string {
			name := strings.TrimSpace(m[2 : len(m)-2])
			value, present := variables[name]
			switch {
			case drawn[name] != "":
				return hole(drawn[name])
			case strings.HasPrefix(name, "$"):
				ok = false
				return ""
			case present && value != "" && isSecret(name):
				return d.secret(name, value, "the variable "+name+" of the collection")
			case present && value != "" && depth < 5: // a value may contain variables
				return fill(value, depth+1)
			}
			return d.variable(name)
		})
	}
	if base, tail, cut := strings.Cut(r.url, "}}"); cut && strings.HasPrefix(base, "{{") {
		// Usually, the first variable is the host. Without its value, only the path is known.
		if name := strings.TrimSpace(base[2:]); variables[name] == "" {
			r.url = "/" + strings.TrimPrefix(tail, "/")
		}
	}
	r.url, r.body = fill(r.url, 0), fill(r.body, 0)
	if !strings.Contains(r.url, "://") && !strings.HasPrefix(r.url, "/") {
		r.url = "http://" + r.url
	}
	for i := range r.headers {
		r.headers[i].Value = fill(r.headers[i].Value, 0)
	}
	return ok
}

// variable returns the hole of a name for which the user must set a value.
func (d *Draft) variable(name string) string {
	name = strings.Trim(notName.ReplaceAllString(strings.ToUpper(name), "_"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "VAR_" + name
	}
	d.tell(name, "a variable that has no value in the file")
	return hole(name)
}
