package importer

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// overrides says whether an item has an authorization, instead of that of the folder around it.
func (a *auth) overrides() bool { return a != nil && a.Type != "inherit" }

// authorize adds the authorization of a request, or returns why it cannot. Different secrets get
// different names, also if the collection has their values in variables.
func (f *filler) authorize(r *raw, a *auth) (why string) {
	if a == nil || slices.ContainsFunc(r.headers, isField("authorization")) {
		return ""
	}
	switch a.Type {
	case "", "noauth":
	case "bearer":
		token := f.text(values(a.Bearer)["token"])
		r.headers = append(r.headers, Field{"Authorization",
			"Bearer " + cmp.Or(token, hole("TOKEN"))})
	case "basic":
		v := values(a.Basic)
		r.headers = append(r.headers, Field{"Authorization", "Basic " +
			f.basic(f.text(v["username"]), f.text(v["password"]))})
	case "apikey":
		return f.apiKey(r, values(a.APIKey))
	case "oauth2":
		return f.oauth(r, values(a.OAuth2))
	default:
		return needsProgram(a.Type)
	}
	return ""
}

func needsProgram(kind scalar) string {
	return "its authorization (" + oneLine(string(kind)) + ") needs a program: take a token by hand"
}

// basic returns the placeholder of a user and password. They are one word in base64, so they cannot
// be filled in separately.
func (f *filler) basic(user, password string) string {
	if user+password == "" {
		return hole("BASIC_AUTH")
	}
	return f.d.secret("BASIC_AUTH", base64.StdEncoding.EncodeToString([]byte(user+":"+password)),
		"user:password in base64 (printf user:password | base64)")
}

func (f *filler) apiKey(r *raw, v map[string]string) (why string) {
	name := cmp.Or(f.text(v["key"]), "X-Api-Key")
	if nul(name) {
		return "an API key whose name is a variable"
	}
	value := func(about string) string {
		return cmp.Or(f.d.secret("API_KEY", f.text(v["value"]), about), hole("API_KEY"))
	}
	if v["in"] == "query" {
		f.requery(r, name, value(name+" of a query"))
		return ""
	}
	r.headers = append(r.headers, Field{name, value("the header field " + name)})
	return ""
}

// oauth adds the token of OAuth 2.0 that the collection has. Without one, a program has to get it.
func (f *filler) oauth(r *raw, v map[string]string) (why string) {
	token := f.text(v["accessToken"])
	if token == "" {
		return needsProgram("oauth2")
	}
	if v["addTokenTo"] == "queryParams" {
		f.requery(r, "access_token", token)
		return ""
	}
	prefix, set := v["headerPrefix"]
	if !set {
		prefix = "Bearer"
	}
	r.headers = append(r.headers, Field{"Authorization",
		strings.TrimSpace(strings.TrimSpace(f.text(prefix)) + " " + token)})
	return ""
}

// requery adds a parameter to the query of a request.
func (f *filler) requery(r *raw, name, value string) {
	sign := "?"
	if strings.Contains(r.url, "?") {
		sign = "&"
	}
	r.url += sign + formWord(name) + "=" + formWord(value)
}

// values returns the values of an authorization, in either form.
func values(data json.RawMessage) map[string]string {
	out := map[string]string{}
	var pairs []pair
	if json.Unmarshal(data, &pairs) == nil {
		for _, p := range pairs {
			out[p.name()] = string(p.Value)
		}
		return out
	}
	var fields map[string]scalar
	_ = json.Unmarshal(data, &fields) // anything else has no values
	for name, value := range fields {
		out[name] = string(value)
	}
	return out
}
