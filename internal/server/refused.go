package server

import (
	"encoding/json"
	"html/template"
	"mime"
	"net/http"
	"strings"
)

// say responds with an error: as a page if a browser opens the address, else as JSON.
func say(w http.ResponseWriter, r *http.Request, status int, text string) {
	h := w.Header()
	h.Del("Content-Length")
	h.Del("Etag")
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Accept")
	if opened(r) {
		h.Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		// The page has no style of its own, so that it needs no file that requires the token.
		_ = refusedPage.Execute(w, refusedView{http.StatusText(status), text,
			status != http.StatusUnauthorized}) // the client may be gone
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text}) // the client may be gone
}

type refusedView struct {
	Title, Text string
	Runs        bool // whether the reader may see the list of runs
}

var refusedPage = template.Must(template.New("refused").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{.Title}} · Prony</title>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
{{- if .Runs}}
<p><a href="/">All runs</a></p>
{{- end}}
</main>
</body>
</html>
`))

// opened reports whether a request accepts an HTML page, as a browser's request for an address
// does. The scripts of Prony's own pages accept anything, and get JSON.
func opened(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	for accepted := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if kind, _, err := mime.ParseMediaType(accepted); err == nil && kind == "text/html" {
			return true
		}
	}
	return false
}
