package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// collection is the part of a Postman collection that is read, version 2.1
// (https://schema.postman.com/collection/json/v2.1.0/draft-07/docs/index.html).
type collection struct {
	Info       struct{ Schema scalar }
	Collection json.RawMessage // around a collection that Postman's API gives
	folder
}

// folder is what a collection, a folder and a request have in common. An item is either.
type folder struct {
	Name                    scalar
	Item                    []json.RawMessage
	Request                 json.RawMessage // an address, or more
	Response                json.RawMessage
	Auth                    *auth
	Variable                []pair
	Event                   json.RawMessage
	ProtocolProfileBehavior struct{ DisableBodyPruning any }
}

// scope is what the folders around a request say.
type scope struct {
	auth      *auth
	variables map[string]string
	bodies    bool // of methods that have none mostly are sent
	scripts   bool // run before the request
}

type postmanRequest struct {
	Method scalar
	URL    json.RawMessage // a text, or an address in parts
	Header json.RawMessage // fields, or a text
	Body   *struct {
		Mode       scalar
		Raw        scalar
		URLEncoded json.RawMessage // fields, or a text
		FormData   json.RawMessage
		GraphQL    struct {
			Query, OperationName scalar
			Variables            scalar // their JSON, mostly as a text
		}
		Disabled bool
		Options  struct{ Raw struct{ Language scalar } }
	}
	Auth *auth
}

type auth struct {
	Type                          scalar
	Bearer, Basic, APIKey, OAuth2 json.RawMessage // pairs in 2.1, a mapping in 2.0
}

func (d *Draft) readPostman(_ string, data []byte) error {
	var c collection
	if err := json.Unmarshal(data, &c); err != nil {
		return broken(err)
	}
	if len(c.Collection) > 0 {
		return d.readPostman("", c.Collection)
	}
	if c.Info.Schema != "" && !strings.Contains(string(c.Info.Schema), "/v2.") ||
		c.Info.Schema == "" && c.Item == nil {
		return errors.New("it is not a collection of version 2; export it as Collection v2.1")
	}
	d.items(c.folder, scope{})
	return nil
}

func (d *Draft) items(f folder, s scope) {
	s.add(f)
	for _, data := range f.Item {
		var i folder
		if err := json.Unmarshal(data, &i); err != nil {
			d.Found++
			d.leave("an item that is not understood: " + broken(err).Error())
			continue
		}
		switch {
		case len(i.Item) > 0:
			d.items(i, s)
		case len(i.Request) > 0 && string(i.Request) != "null":
			d.Found++
			inner := s
			inner.add(i)
			if why := d.request(i, inner); why != "" {
				d.leave(why)
			}
		}
	}
}

// add is what a folder says of what it holds.
func (s *scope) add(f folder) {
	if f.Auth.overrides() {
		s.auth = f.Auth
	}
	s.variables = maps.Clone(s.variables)
	if s.variables == nil {
		s.variables = map[string]string{}
	}
	for _, v := range f.Variable {
		if !v.Disabled && !nul(string(v.Value)) {
			s.variables[v.name()] = string(v.Value)
		}
	}
	if flag := f.ProtocolProfileBehavior.DisableBodyPruning; flag != nil {
		s.bodies = flag == true
	}
	var events []struct {
		Listen   scalar
		Disabled bool
		Script   struct{ Exec any }
	}
	_ = json.Unmarshal(f.Event, &events) // what is no list has no scripts
	for _, e := range events {
		lines, isList := e.Script.Exec.([]any)
		text, _ := e.Script.Exec.(string)
		written := slices.ContainsFunc(lines, func(line any) bool { return line != "" })
		s.scripts = s.scripts || e.Listen == "prerequest" && !e.Disabled &&
			(isList && written || strings.TrimSpace(text) != "")
	}
}

// bodiless are the methods whose body Postman does not send by itself.
var bodiless = []string{"GET", "HEAD", "COPY", "PURGE", "UNLOCK"}

// request takes a request, or says why it cannot.
func (d *Draft) request(i folder, s scope) (why string) {
	var q postmanRequest
	if i.Request[0] == '"' {
		q.URL = i.Request
	} else if err := json.Unmarshal(i.Request, &q); err != nil {
		return "a request that is not understood: " + broken(err).Error()
	}
	if bytes.Contains(i.Request, []byte(`\u0000`)) {
		return "a NUL in its text"
	}
	f := filler{d: d, variables: s.variables}
	r := raw{method: strings.ToUpper(cmp.Or(string(q.Method), "GET")), note: string(i.Name)}
	var missing []string
	if r.url, missing, why = f.address(q.URL); why != "" {
		return why
	}
	for _, h := range fieldsOf(q.Header) {
		h.Name, h.Value = f.text(h.Name), f.text(h.Value)
		if nul(h.Name) {
			return "a header field whose name is a variable"
		}
		r.headers = append(r.headers, h)
	}
	if why = f.body(&r, &q, s.bodies); why != "" {
		return why
	}
	if q.Auth.overrides() {
		s.auth = q.Auth
	}
	if why = f.authorize(&r, s.auth); why != "" {
		return why
	}
	if f.drawn != "" {
		return "it draws {{" + oneLine(f.drawn) + "}}, which Prony has no placeholder for"
	}
	if s.scripts {
		r.changes = append(r.changes, "a script before the request is not run")
	}
	if r.status = answered(i.Response); len(missing) > 0 {
		r.unknown, r.note = true, "no example of "+strings.Join(missing, ", ")
	}
	d.add(r)
	return ""
}

// answered is the status of the first good answer that was saved; 0: there is none.
func answered(data json.RawMessage) int {
	var all []struct{ Code scalar }
	_ = json.Unmarshal(data, &all) // anything else has no answers
	for _, a := range all {
		if code, err := strconv.Atoi(string(a.Code)); err == nil && code >= 200 && code < 400 {
			return code
		}
	}
	return 0
}

// fieldsOf are header fields: a list of them, or a text of lines.
func fieldsOf(data json.RawMessage) (out []Field) {
	var text string
	if json.Unmarshal(data, &text) == nil {
		for line := range strings.Lines(text) {
			name, value, is := strings.Cut(line, ":")
			if is && !strings.HasPrefix(strings.TrimSpace(line), "//") {
				out = append(out, Field{strings.TrimSpace(name), strings.TrimSpace(value)})
			}
		}
		return out
	}
	var pairs []pair
	_ = json.Unmarshal(data, &pairs) // null has none
	for _, p := range pairs {
		if !p.Disabled {
			out = append(out, Field{p.name(), string(p.Value)})
		}
	}
	return out
}

// postmanURL is an address in parts.
type postmanURL struct {
	Raw, Protocol, Port scalar
	Host, Path          []json.RawMessage
	Query, Variable     []pair
}

// listed makes a list of what may also be a text.
func listed(data json.RawMessage) json.RawMessage {
	if len(data) > 0 && data[0] == '"' {
		return slices.Concat(json.RawMessage("["), data, json.RawMessage("]"))
	}
	return data
}

// UnmarshalJSON implements json.Unmarshaler.
func (u *postmanURL) UnmarshalJSON(data []byte) error {
	var parts struct {
		Raw, Protocol, Port scalar
		Host, Path          json.RawMessage
		Query, Variable     []pair
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	*u = postmanURL{Raw: parts.Raw, Protocol: parts.Protocol, Port: parts.Port,
		Query: parts.Query, Variable: parts.Variable}
	for _, list := range []struct {
		from json.RawMessage
		to   *[]json.RawMessage
	}{{parts.Host, &u.Host}, {parts.Path, &u.Path}} {
		if len(list.from) == 0 {
			continue
		}
		if err := json.Unmarshal(listed(list.from), list.to); err != nil {
			return err
		}
	}
	return nil
}

// joined puts a separator between parts, each of which is a text or has one.
func joined(parts []json.RawMessage, sign string) string {
	var out []string
	for _, p := range parts {
		var inner struct{ Value scalar }
		var text scalar
		if json.Unmarshal(p, &inner) != nil {
			_ = text.UnmarshalJSON(p) // any value is one
			inner.Value = text
		}
		out = append(out, string(inner.Value))
	}
	return strings.Join(out, sign)
}

// address is the address of a request with the values of variables. A host of unknown value is
// left out, and so is what begins the address: the path is what is known. The variables of the
// path without a value are missing.
func (f *filler) address(data json.RawMessage) (address string, missing []string, why string) {
	var u postmanURL
	if len(data) > 0 && data[0] == '"' {
		_ = u.Raw.UnmarshalJSON(data) // a text always can be
	} else if err := json.Unmarshal(data, &u); err != nil && len(data) > 0 {
		return "", nil, "an address that is not understood: " + broken(err).Error()
	}
	before, query, requested := strings.Cut(string(u.Raw), "?")
	if len(u.Host) > 0 || u.Raw == "" {
		before = joined(u.Host, ".")
		if u.Protocol != "" {
			before = strings.TrimSuffix(string(u.Protocol), "://") + "://" + before
		}
		if u.Port != "" {
			before += ":" + string(u.Port)
		}
		if len(u.Path) > 0 {
			before += "/" + strings.TrimPrefix(joined(u.Path, "/"), "/")
		}
	}
	if before == "" {
		return "", nil, unaddressed
	}
	variable := strings.HasPrefix(before, "{{")
	before, missing = f.segments(before, u.Variable)
	if variable && strings.HasPrefix(before, "//") {
		before = before[1:] // the variable is /
	}
	if query = f.text(query); u.Query != nil {
		query = f.query(u.Query)
		requested = query != ""
	}
	if requested {
		before += "?" + query
	}
	return anchored(before), missing, ""
}

// segments fills an address but for its query, in which :name is a variable of the path.
func (f *filler) segments(before string, values []pair) (address string, missing []string) {
	parts := strings.Split(before, "/")
	for i, p := range parts {
		name, is := strings.CutPrefix(p, ":")
		if parts[i] = f.text(p); !is || name == "" {
			continue
		}
		index := slices.IndexFunc(values, func(v pair) bool { return v.name() == name })
		if index >= 0 && values[index].Value != "" {
			parts[i] = inPath.Replace(f.text(string(values[index].Value)))
			continue
		}
		missing = append(missing, name)
		parts[i] = hole("{" + strings.Map(func(r rune) rune {
			if r == '{' || r == '}' {
				return -1
			}
			return r
		}, name) + "}")
	}
	return strings.Join(parts, "/"), missing
}

// inPath escapes what would end a path.
var inPath = strings.NewReplacer("?", "%3F", "#", "%23")

// query joins parameters, each escaped so that it stays one.
func (f *filler) query(all []pair) string {
	var out []string
	escape := strings.NewReplacer("&", "%26", "#", "%23")
	for _, p := range all {
		if p.Disabled {
			continue
		}
		text := strings.ReplaceAll(escape.Replace(f.text(p.name())), "=", "%3D")
		if p.valued {
			text += "=" + escape.Replace(f.text(string(p.Value)))
		}
		out = append(out, text)
	}
	return strings.Join(out, "&")
}

// anchored gives an address the scheme that it leaves out, and takes away a variable that stands
// for all that is before the path.
func anchored(address string) string {
	host := textBefore(address, "/?#")
	if i := strings.Index(address, "://"); i >= 0 && i < len(host)+1 ||
		strings.HasPrefix(address, "/") {
		return address
	}
	if m := holeRe.FindStringIndex(host); m != nil && m[0] == 0 &&
		!strings.ContainsAny(host[m[1]:], ".:\x00") {
		return "/" + strings.TrimPrefix(address[m[1]:], "/")
	}
	return "http://" + address
}

func (f *filler) body(r *raw, q *postmanRequest, always bool) (why string) {
	b := q.Body
	if b == nil || b.Disabled {
		return ""
	}
	switch b.Mode {
	case "raw":
		kinds := map[scalar]string{"json": "application/json", "xml": "application/xml",
			"html": "text/html", "javascript": "application/javascript"}
		r.body = f.text(string(b.Raw))
		r.kind = cmp.Or(kinds[b.Options.Raw.Language], "text/plain")
		if plain := withoutComments(r.body); b.Options.Raw.Language == "json" && plain != r.body {
			r.body = plain
			r.changes = append(r.changes, "comments of a JSON body are not sent, as in Postman")
		}
	case "urlencoded":
		var words []string
		for _, p := range formFields(b.URLEncoded) {
			if !p.Disabled {
				words = append(words, formWord(f.text(p.name()))+"="+
					formWord(f.text(string(p.Value))))
			}
		}
		r.body, r.kind = strings.Join(words, "&"), "application/x-www-form-urlencoded"
	case "graphql":
		if r.body, r.kind = f.graphQL(q), "application/json"; r.body == "" {
			return "a body of GraphQL whose variables are not JSON"
		}
	case "formdata":
		var parts []part
		parts, why = partsOf(formFields(b.FormData), func(s scalar) string {
			return f.text(string(s))
		})
		if r.body = "…"; why == "" && len(parts) > 0 {
			r.body, r.kind = multipartForm(parts)
		} else if why == "" {
			r.body = ""
		}
	case "", "none":
	default:
		r.body, why = "…", "a body of a file"
	}
	if r.body != "" && !always && slices.Contains(bodiless, r.method) {
		r.body, r.kind, why = "", "", ""
		r.changes = append(r.changes, "Postman does not send the body of "+r.method)
	}
	i := slices.IndexFunc(r.headers, isField("content-type"))
	if i >= 0 && why == "" && b.Mode != "formdata" { // which needs the boundary of its body
		r.kind = r.headers[i].Value
	}
	return why
}

// formFields are the fields of a form: a list of them, or a text such as a=1&b=2.
func formFields(data json.RawMessage) (out []pair) {
	var text string
	if json.Unmarshal(data, &text) == nil {
		for word := range strings.SplitSeq(text, "&") {
			name, value, _ := strings.Cut(word, "=")
			if word != "" {
				out = append(out, pair{Key: scalar(name), Value: scalar(value)})
			}
		}
		return out
	}
	_ = json.Unmarshal(data, &out) // null has none
	return out
}

// graphQL is a body of GraphQL over HTTP; "": its variables are no JSON.
func (f *filler) graphQL(q *postmanRequest) string {
	g := q.Body.GraphQL
	quoted := func(s scalar) string { return around(f.text(string(s)), inJSON) }
	variables := f.text(strings.TrimSpace(string(g.Variables)))
	if !json.Valid([]byte(holeRe.ReplaceAllString(cmp.Or(variables, "{}"), "0"))) {
		return ""
	}
	body := `{"query":"` + quoted(g.Query) + `","variables":` + cmp.Or(variables, "{}")
	if g.OperationName != "" {
		body += `,"operationName":"` + quoted(g.OperationName) + `"`
	}
	return body + "}"
}

// inJSON is a text as it is within a string of JSON.
func inJSON(s string) string {
	text := marshal(s)
	return text[1 : len(text)-1]
}

// inBraces matches a variable of Postman.
var inBraces = regexp.MustCompile(`\{\{([^{}]{1,100})\}\}`)

// drawn are Postman's dynamic variables that equal a placeholder.
var drawn = map[string]string{"$guid": "{uuid}", "$randomUUID": "{uuid}",
	"$randomInt": "{random 0..1000}"}

// filler puts the variables of a collection into texts. One that it does not hold, or whose name
// says that it is a secret, comes from the environment.
type filler struct {
	d         *Draft
	variables map[string]string
	drawn     string // a variable that nothing stands for
}

// variableDepth bounds variables whose values name others.
const variableDepth = 5

func (f *filler) text(s string) string { return f.fill(s, 0) }

func (f *filler) fill(s string, depth int) string {
	return inBraces.ReplaceAllStringFunc(s, func(m string) string {
		name := strings.TrimSpace(m[2 : len(m)-2])
		value := f.variables[name]
		switch {
		case drawn[name] != "":
			return hole(drawn[name])
		case strings.HasPrefix(name, "$"):
			f.drawn = name
			return ""
		case value != "" && isSecret(name):
			return f.d.secret(name, value, "the variable "+name+" of the collection")
		case value != "" && depth < variableDepth:
			return f.fill(value, depth+1)
		}
		return f.d.variable(name)
	})
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
