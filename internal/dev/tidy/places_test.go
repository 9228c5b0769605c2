package tidy

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// registries are hosts of package downloads, which each building machine selects itself. They are
// in parts, so that this file passes. Names of images contain their registry, so registries of
// images are not listed.
var registries = []string{
	"api.nu" + "get.org", "conda.ana" + "conda.org", "crates" + ".io",
	"files.python" + "hosted.org",
	"goproxy" + ".cn", "goproxy" + ".io", "index.crates" + ".io", "maven" + "central.org",
	"maven.goo" + "gle.com", "np" + "mmirror.com", "plugins.gra" + "dle.org",
	"proxy.go" + "lang.org", "py" + "pi.org", "registry.np" + "mjs.org",
	"registry.yarn" + "pkg.com", "repo.ma" + "ven.apache.org", "repo.spr" + "ing.io",
	"repo1.ma" + "ven.org", "ruby" + "gems.org", "static.crates" + ".io", "sum.go" + "lang.org",
}

var (
	registry = regexp.MustCompile(`(?i)(^|[^\w.-])((art` + `ifactory|ne` + `xus)(\.[\w-]+)+|` +
		alternatives(registries) + `)($|[^\w.-]|[.-]($|\W))`)
	// A file below a user's home folder, on Linux, macOS or Windows.
	homePath = regexp.MustCompile(`(^|[^\w.~*-])(/ro` + `ot/|/ho` + `me/\w|/Use` + `rs/\w|` +
		`[A-Z]:\\Use` + `rs\\)`)
	// Cargo uses this name of its own registry for every mirror.
	cargoSource = regexp.MustCompile(`^source = "registry\+[^"]*"$`)
)

func alternatives(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = regexp.QuoteMeta(text)
	}
	return strings.Join(quoted, "|")
}

// ownPlaces returns the folders of this machine that no file may name. A folder of a single step,
// such as /app, is too general.
func ownPlaces() []string {
	var places []string
	root, err := Root()
	if err == nil && strings.Count(root, "/") > 1 {
		places = append(places, root)
	}
	if home, err := os.UserHomeDir(); err == nil && strings.Count(home, "/") > 1 {
		places = append(places, home)
	}
	return places
}

// findPlaces searches all text for facts of a single machine. A Dockerfile's paths are the image's;
// go.mod and go.sum name modules, which are addresses.
func findPlaces(t tree, own []string) []problem {
	var problems []problem
	for _, name := range t.names() {
		base := path.Base(name)
		if base == "go.mod" || base == "go.sum" {
			continue
		}
		if !mayNamePlaces(t[name], own) {
			continue
		}
		image := strings.HasPrefix(base, "Dockerfile")
		for i, line := range strings.Split(t[name], "\n") {
			if m := homePath.FindStringSubmatch(line); m != nil && !image {
				problems = append(problems, problem{name, i + 1, "names a home folder (" + m[2] +
					"): use a relative path, or $HOME"})
			}
			for _, place := range own {
				if strings.Contains(line, place) && !image {
					problems = append(problems, problem{name, i + 1, "names " + place +
						", which is a folder of this machine: use a relative path"})
				}
			}
			if base == "Cargo.lock" && cargoSource.MatchString(line) {
				continue
			}
			if m := registry.FindStringSubmatch(line); m != nil {
				problems = append(problems, problem{name, i + 1, "names the registry " + m[2] +
					": that is for the tools' own configuration to say"})
			}
		}
	}
	return problems
}

// mayNamePlaces reports whether a text contains a word of what findPlaces searches. It is ten times
// as fast as the search of each line.
func mayNamePlaces(text string, own []string) bool {
	lower := strings.ToLower(text)
	words := slices.Concat(registries, []string{"/ro" + "ot/", "/ho" + "me/", "/use" + "rs/",
		`:\use` + `rs\`, "art" + "ifactory", "ne" + "xus"})
	for _, place := range own {
		words = append(words, strings.ToLower(place))
	}
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower, w) })
}

func TestPlaces(t *testing.T) {
	const home, dir = "/ho" + "me/", "/ro" + "ot/"
	const npm, crates, pip = "registry.np" + "mjs.org", "crates" + ".io", "py" + "pi.org"
	for _, row := range []struct{ name, text, want string }{
		{"a.go", "x = \"" + home + "jane/prony\"", "a.go:1: names a home folder"},
		{"docs/a.md", "\nin `" + dir + "x`", "docs/a.md:2: names a home folder"},
		{"a.md", "file://" + home + "jane", "a.md:1: names a home folder"},
		{"a.md", "C:\\Use" + "rs\\jane", "a.md:1: names a home folder"},
		{"a.md", "/Use" + "rs/jane", "a.md:1: names a home folder"},
		{"a.md", "~" + home + "x, ${X}x" + dir + "y, /chroot/x, /home", ""},
		{"services/x/Dockerfile", "COPY x " + dir + ".m2/", ""},
		{"a.md", "see /srv/lab/prony/x", "a.md:1: names /srv/lab/prony, which is"},
		{"package-lock.json", "https://" + npm + "/x",
			"package-lock.json:1: names the registry"},
		{"Dockerfile", "RUN pip -i https://" + pip + "/simple", "Dockerfile:1: names the registry"},
		{"a.md", "from " + crates + ".", "a.md:1: names the registry " + crates},
		{"a.yaml", "url: https://ne" + "xus.example.org/", "a.yaml:1: names the registry"},
		{"Cargo.lock", "source = \"registry+https://github.com/x/" + crates + "-index\"", ""},
		{"a.toml", "source = \"registry+https://" + crates + "/\"", "a.toml:1: names the reg"},
		{"Cargo.lock", "url = \"https://" + crates + "\"", "Cargo.lock:1: names the registry"},
		{"a.md", "https://github.com/x/" + crates + "-index", ""}, // the name of a repository
		{"go.sum", pip + "/x v1.0.0", ""},
		{"a.md", "the nexus of nodes; my" + pip, ""},
	} {
		var want []string
		if row.want != "" {
			want = []string{row.want}
		}
		find := func(t tree) []problem { return findPlaces(t, []string{"/srv/lab/prony"}) }
		red(t, find, tree{row.name: row.text}, want...)
	}
}
