package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"prony/internal/comparison"
	"prony/internal/print"
	"prony/internal/result"
	"prony/internal/shelf"
	"prony/internal/table"
)

// The bundle is built from web/ by `npm run build` and committed, so that a checkout without Node
// prints reports; a test builds it again and compares.
//
//go:embed page/page.js
var pageJS string

//go:embed page/page.css
var pageCSS string

//go:embed *.gohtml
var pageFiles embed.FS

// pages are the templates of all pages, by their files' names.
var pages = sync.OnceValues(func() (*template.Template, error) {
	return template.New("").Funcs(pageFuncs).ParseFS(pageFiles, "*.gohtml")
})

// HTMLOptions are what the page shows beyond the study.
type HTMLOptions struct {
	Title   string           // the tab's; the suite's name when empty
	Samples []result.Samples // the probe's series; none leaves the panels of CPU and memory out
	// Profiles are what ReadProfiles read; none leaves the flame graphs out.
	Profiles []Profiled
	// Host is what prony doctor said before the first trial (result.Run.Host); nil leaves it out.
	Host *result.Grading
	// Gate is the decision about what Compare prints, whose margins it shades; nil: none.
	Gate *comparison.Gate
}

// OfRun are the options of a run's own page: what lies in its folder beside the records.
func OfRun(r *shelf.Run, s table.Study) HTMLOptions {
	return HTMLOptions{Samples: r.Samples(), Host: r.Head.Host,
		Profiles: ReadProfiles(os.DirFS(r.Dir), slices.Concat(s.Records, s.Beside))}
}

// HTML prints one file that needs nothing else: no server, no network. The comparison is in the
// HTML, so it reads without scripts; the plots are drawn from a block of JSON by the page's script,
// which computes no statistics. A content security policy lets exactly that script and that style
// run, so nothing that a service wrote into its log can.
func HTML(w io.Writer, s table.Study, o HTMLOptions) error {
	data := dataOf(s, o)
	v := viewOf(s, o, data)
	return write(w, "page.gohtml", data, &v.frame, &v)
}

// frame is what every page has: the policy, the bundle and the data that its script draws.
type frame struct {
	Policy string
	Style  template.CSS
	Script template.JS
	Data   template.JS
}

// write fills the frame of a view, and a page's template with the view.
func write(w io.Writer, page string, data any, f *frame, view any) error {
	block, err := json.Marshal(data) // escapes <, > and &: it cannot end its element
	if err != nil {
		return fmt.Errorf("encode the report's data: %w", err)
	}
	*f = frame{
		Policy: "default-src 'none'; base-uri 'none'; form-action 'none'; script-src " +
			digest(pageJS) + "; style-src " + digest(pageCSS),
		Script: template.JS(pageJS), Style: template.CSS(pageCSS), Data: template.JS(block),
	}
	all, err := pages()
	if err != nil {
		return fmt.Errorf("parse the report's template: %w", err)
	}
	var b bytes.Buffer // so that a failure leaves no half page
	if err := all.ExecuteTemplate(&b, page, view); err != nil {
		return fmt.Errorf("fill the report's template: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// digest is a source expression of Content Security Policy Level 2, §4.2.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var pageFuncs = template.FuncMap{
	"lower": strings.ToLower,
	// parts cuts a name where a line may break.
	"parts": func(name string) []string { return strings.SplitAfter(name, "/") },
	// named tells the column that names the rows.
	"named": func(c table.Column) bool { return strings.HasSuffix(c.Key, "target") },
	"add":   func(a, b int) int { return a + b },
	"classes": func(c table.Column, first bool) string {
		var classes []string
		for _, class := range []struct {
			name string
			has  bool
		}{
			{"tier", c.Key == "tier"}, {"left", c.Align == print.Left && c.Key != "tier"},
			{"first", first}, {"extra", c.Weight >= table.Extra},
		} {
			if class.has {
				classes = append(classes, class.name)
			}
		}
		return strings.Join(classes, " ")
	},
}
