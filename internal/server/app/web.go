// Package app is the web app: the pages of prony serve and of prony site, built from web/app by
// `npm run build` and committed, so that a checkout without Node has them; a test builds it again
// and compares.
//
// It has no state and no data of runs: a server serves its files, a site has copies of them next to
// its data, and the app requests documents from either (docs/decisions/0034-app.md).
package app

import (
	"embed"
	"html/template"
	"strings"
)

// Policy is the content security policy of the app, for the header of a server and for the page
// itself: it allows only the app's own files, and no script or style within the page.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; base-uri 'none'; form-action 'none'"

// Sources of documents.
const (
	Server = "server" // an API below /api/v1
	Site   = "site"   // files next to the page
)

// The app's script and style.
const (
	Script = "app.js"
	Style  = "app.css"
)

//go:embed app/app.js app/app.css
var built embed.FS

// File returns one of the app's files, by the names above; it panics for any other name.
func File(name string) []byte {
	b, err := built.ReadFile("app/" + name)
	if err != nil {
		panic("web: missing file " + name)
	}
	return b
}

var page = template.Must(template.New("index").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="prony-source" content="{{.Source}}">
<title>Prony</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{{.Style}}">
{{- if .Feed}}
<link rel="alternate" type="application/rss+xml" title="Runs" href="feed.xml">
{{- end}}
<script src="{{.Script}}" defer></script>
</head>
<body>
<div id="app"><noscript><p>This page lists runs by a script. Each run's report reads without one:
it is {{if .Feed}}runs/RUN/report.html beside this page{{else}}the page of its folder{{end}}.</p>
</noscript></div>
</body>
</html>
`))

// Index returns the app's page for one of the sources.
func Index(source string) []byte {
	var b strings.Builder
	err := page.Execute(&b, map[string]any{"Policy": Policy, "Source": source, "Script": Script,
		"Style": Style, "Feed": source == Site})
	if err != nil {
		panic("web: " + err.Error()) // its template and its data are both in this file
	}
	return []byte(b.String())
}

// Page returns one of the app's files for a server, including index.html.
func Page(name string) ([]byte, error) {
	if name == "index.html" {
		return Index(Server), nil
	}
	return built.ReadFile("app/" + name)
}
