package tidy

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

const security = "SECURITY.md"

var (
	listens = regexp.MustCompile(`\bnet\.Listen(TCP|Unix|Packet)?\(|\bListenAndServe\(`)
	// A flag's default, and the ports that Compose publishes.
	defaultPort   = regexp.MustCompile(`"[a-z-]+", "[\d.]+:(\d+)"`)
	publishedPort = regexp.MustCompile(`"(?:127\.0\.0\.1|\$\{BIND\}):(\d+):\d+"`)
	portCell      = regexp.MustCompile(`\b\d{4,5}\b`)
)

// findSecurity requires each package that listens, and each default port, on the page about access;
// and no other port there.
func findSecurity(t tree) []problem {
	page, ok := t[security]
	if !ok {
		return []problem{{security, 0, "missing"}}
	}
	_, listening, _ := strings.Cut(page, "\n## What listens where\n")
	listening, _, _ = strings.Cut(listening, "\n## ")
	var problems []problem
	want := func(name, what string) {
		if !regexp.MustCompile(`(^|[^\w/-])` + regexp.QuoteMeta(what) + `($|[^\w/-])`).
			MatchString(listening) {
			problems = append(problems, problem{security, 0, "does not say who may ask " + what +
				", where " + name + " listens"})
		}
	}
	ports := map[string]bool{"8080": true} // the port inside a container
	port := func(name string, found [][]string) {
		for _, m := range found {
			ports[m[1]] = true
			want(name, m[1])
		}
	}
	for _, s := range t.sources() {
		dir := path.Dir(s.name)
		if s.test || !s.module || strings.HasSuffix(dir, "test") {
			continue // the end of names of suites for tests
		}
		if listens.MatchString(s.text) {
			want(s.name, dir)
		}
		port(s.name, defaultPort.FindAllStringSubmatch(s.text, -1))
	}
	for _, name := range t.glob("deploy/*.yaml") {
		port(name, publishedPort.FindAllStringSubmatch(t[name], -1))
	}
	for row := range strings.Lines(listening) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 {
			continue
		}
		for _, p := range portCell.FindAllString(cells[2], -1) {
			if !ports[p] {
				problems = append(problems, problem{security, 0, "names port " + p +
					", at which nothing listens by itself"})
			}
		}
	}
	return problems
}

func TestSecurity(t *testing.T) {
	const head = "# Security\n\n## What listens where\n\n| what | address | who |\n|---|---|---|\n"
	const listener = "package p\n\nimport \"net\"\n\nvar l, err = net.Listen(\"tcp\", \"\")\n" +
		"var d = f(\"at\", \"127.0.0.1:4317\", \"usage\")\n"
	files := func(rows string) tree {
		return tree{
			security: head + rows + "\n## What runs\n\n1234 `internal/other`\n",
			// Ports of services and tests need no row.
			"internal/a/a.go":      listener,
			"internal/a/a_test.go": strings.ReplaceAll(listener, "43", "99"),
			"deploy/x.yaml": "ports: [\"127.0.0.1:3100:3100\", \"${BIND}:3000:3001\", " +
				"\"127.0.0.1::8080\"]",
		}
	}
	const all = "| `internal/a` | 4317 | x |\n| y | 3100, 3000, 8080 | 2026 |\n"
	red(t, findSecurity, files(all))
	red(t, findSecurity, files("| `internal/ab` | 43170, 3100, 3000 | x |\n"),
		"SECURITY.md: does not say who may ask internal/a, where internal/a/a.go listens",
		"SECURITY.md: does not say who may ask 4317, where",
		"SECURITY.md: names port 43170, at which nothing")
	red(t, findSecurity, files("| `internal/a` | 4317 | x |\n"),
		"SECURITY.md: does not say who may ask 3100, where deploy/x.yaml",
		"SECURITY.md: does not say who may ask 3000, where")
	red(t, findSecurity, tree{}, "SECURITY.md: missing")
}
