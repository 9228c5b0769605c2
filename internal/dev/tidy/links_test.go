package tidy

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	inlineLink  = regexp.MustCompile(`\]\(\s*<?([^)>\s]+)`)
	linkTarget  = regexp.MustCompile(`^ {0,3}\[[^\]^][^\]]*\]:\s*<?([^>\s]+)`)
	htmlLink    = regexp.MustCompile(`(?:src|href)="([^"]+)"`)
	htmlAnchor  = regexp.MustCompile(`(?:id|name)="([^"]+)"`)
	linkInTitle = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// link is a relative link: its target path, from the root, and the fragment.
type link struct {
	target, fragment string
	line             int
}

// links returns the links of a Markdown text inside the repository, outside of code.
func links(name, text string) []link {
	var all []link
	for _, line := range markdown(text) {
		if line.code {
			continue
		}
		prose := codeSpan.ReplaceAllString(line.text, "")
		for _, form := range []*regexp.Regexp{inlineLink, linkTarget, htmlLink} {
			for _, m := range form.FindAllStringSubmatch(prose, -1) {
				to, err := url.Parse(m[1])
				if err != nil || to.Scheme != "" || to.Host != "" {
					continue
				}
				all = append(all, link{resolve(name, to.Path), to.Fragment, line.number})
			}
		}
	}
	return all
}

// resolve joins a link's path to its page's folder. A path that starts with a slash is relative to
// the root, an empty one is the page.
func resolve(page, to string) string {
	switch {
	case to == "":
		return page
	case strings.HasPrefix(to, "/"):
		return path.Clean(strings.TrimLeft(to, "/"))
	}
	return path.Join(path.Dir(page), to)
}

func pages(t tree) []string {
	return slices.DeleteFunc(t.names(), func(name string) bool {
		return path.Ext(name) != ".md" || inTestdata(name)
	})
}

// findLinks checks every relative link to a file or folder that git tracks, and to a heading in it.
func findLinks(t tree) []problem {
	var problems []problem
	for _, name := range pages(t) {
		for _, l := range links(name, t[name]) {
			switch {
			case !t.has(l.target):
				problems = append(problems, problem{name, l.line, "leads to " + l.target +
					", which does not exist"})
			case l.fragment != "" && path.Ext(l.target) == ".md" &&
				!slices.Contains(anchors(t[l.target]), l.fragment):
				problems = append(problems, problem{name, l.line,
					fmt.Sprintf("leads to #%s, which %s does not have", l.fragment, l.target)})
			}
		}
	}
	return problems
}

// anchors returns the fragments of a page: its headings as GitHub writes them (letters and digits
// in lower case, hyphens for spaces, -1 and so on for the second of a name), and HTML's own.
func anchors(text string) []string {
	var all []string
	seen := map[string]int{}
	for _, title := range headings(text) {
		title = linkInTitle.ReplaceAllString(title, "$1")
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, title)
		if n := seen[slug]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", slug, n))
		} else {
			all = append(all, slug)
		}
		seen[slug]++
	}
	for _, m := range htmlAnchor.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// findFormats requires a link to each page about a format on one of the two front pages.
func findFormats(t tree) []problem {
	var linked []string
	for _, front := range []string{architecture, "README.md"} {
		for _, l := range links(front, t[front]) {
			linked = append(linked, l.target)
		}
	}
	var problems []problem
	for _, name := range t.glob("docs/formats/*.md") {
		if !slices.Contains(linked, name) {
			problems = append(problems, problem{name, 0, "neither ARCHITECTURE.md nor README.md " +
				"has a link to it"})
		}
	}
	return problems
}

// findCommands requires that every command in the docs can run as it is; cmd/prony's tests run
// them.
func findCommands(t tree) []problem {
	var problems []problem
	for _, name := range t.names() {
		if !showsCommands(name) {
			continue
		}
		if _, err := commandsIn(name, t[name]); err != nil {
			problems = append(problems, problem{name, 0, err.Error()})
		}
	}
	return problems
}

func TestLinks(t *testing.T) {
	const target = "# A title: `code`, and [more](x.md)\n\n## Twice\n\n## Twice\n<a id=\"own\"></a>"
	for _, row := range []struct{ text, want string }{
		{"[a](b.md) [b](../README.md#top) [c](/docs) [d](#here)\n# Here", ""},
		{"[a](https://example.org/gone.md) [m](mailto:a@x.org#x) [n](//x.org/x)", ""},
		{"`[a](gone.md)`\n```\n[a](gone.md)\n```\n[^1]: a footnote", ""},
		{"[a](<b.md>) [b](b.md \"title\") [`c`](b.md) ![d](b%2Emd)", ""},
		{"[a](gone.md)", "docs/a.md:1: leads to docs/gone.md, which does not exist"},
		{"\n![a](../img/gone.png)", "docs/a.md:2: leads to img/gone.png"},
		{"[`code`](gone.md)", "docs/a.md:1: leads to docs/gone.md"},
		{"[a]: gone.md", "docs/a.md:1: leads to docs/gone.md"},
		{"<img src=\"gone.png\">", "docs/a.md:1: leads to docs/gone.png"},
		{"[a](b.md#a-title-code-and-more) [b](b.md#twice-1) [c](b.md#own)", ""},
		{"[a](b.md#twice-2)", "docs/a.md:1: leads to #twice-2, which docs/b.md does not have"},
	} {
		var want []string
		if row.want != "" {
			want = []string{row.want}
		}
		red(t, findLinks, tree{"docs/a.md": row.text, "docs/b.md": target + "\n", "docs/x.md": "",
			"README.md": "# Top"}, want...)
	}
}

func TestFormats(t *testing.T) {
	const a, b = "docs/formats/a.md", "docs/formats/b.md"
	pages := tree{a: "", b: "", "README.md": "[a](docs/formats/a.md)",
		"docs/method.md": "[b](formats/b.md)"}
	red(t, findFormats, pages, b+": neither ARCHITECTURE.md nor README.md")
	pages[architecture] = "[b](docs/formats/b.md#top)"
	red(t, findFormats, pages)
}

func TestCommandsCheck(t *testing.T) {
	block := func(command string) string { return "```\n$ " + command + "\n```\n" }
	red(t, findCommands, tree{"README.md": block("prony run"), "docs/a.txt": block("prony 'x")})
	red(t, findCommands, tree{"docs/a.md": block("prony run | less")}, "docs/a.md: docs/a.md:2: ")
}
