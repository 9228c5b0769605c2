package tidy

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	recipes   = "Cargo.toml go.mod package.json pom.xml requirements.txt"
	languages = ".go .java .js .kt .mjs .py .rs .scala .ts"
)

// five are the mandatory parts of every service's folder. The source may be anywhere in it, the
// rest at its top.
var five = []struct {
	what string
	is   func(name string) bool
}{
	{"service.yaml", func(name string) bool { return name == "service.yaml" }},
	{"build recipe (one of " + recipes + ")", func(name string) bool {
		return matches(recipes, name)
	}},
	{"source file", func(name string) bool { return matches(languages, path.Ext(name)) }},
	{"Dockerfile", func(name string) bool { return name == "Dockerfile" }},
	{"README.md", func(name string) bool { return name == "README.md" }},
}

func findServices(t tree) []problem {
	folders := map[string][]string{}
	for _, name := range t.names() {
		inside, below := strings.CutPrefix(name, "services/")
		if service, file, ok := strings.Cut(inside, "/"); below && ok {
			folders[service] = append(folders[service], file)
		}
	}
	var problems []problem
	for service, files := range folders {
		for _, thing := range five {
			if !slices.ContainsFunc(files, thing.is) {
				folder := "services/" + service
				problems = append(problems, problem{folder, 0, "has no " + thing.what})
			}
		}
	}
	return problems
}

// lists are the files that name each service of the catalog, and the form of its name there;
// home/deploytest checks those of Compose in more detail, if Compose is installed.
var lists = []struct{ files, after, name string }{
	{"docs/fairness.md", "\n## Deviations\n", "\n| %s | "},
	{"deploy/*.yaml", "", "\n  %s-"},
	{"deploy/rain.yaml", "", "- http://%s-"},
}

func findListed(t tree) []problem {
	var problems []problem
	for _, manifest := range t.glob("services/*/service.yaml") {
		service := path.Base(path.Dir(manifest))
		for _, list := range lists {
			name := strings.ReplaceAll(list.name, "%s", service)
			if !slices.ContainsFunc(t.glob(list.files), func(file string) bool {
				_, text, ok := strings.Cut(t[file], list.after)
				return ok && strings.Contains(text, name)
			}) {
				problems = append(problems, problem{list.files, 0, "does not list " + service +
					", as " + strings.TrimSpace(name)})
			}
		}
	}
	return problems
}

// counting are calls that return or use the number of the machine's cores. A service has its own
// number of cores in CPUS; in a JVM, its own is also what availableProcessors returns.
var counting = regexp.MustCompile(`ThreadPoolExecutor\(\)|cpu_count\(|os\.cpus\(|` +
	`available_?[pP]arallelism\(|NumCPU\(`)

func findSizes(t tree) []problem {
	var problems []problem
	for _, name := range t.names() {
		if !strings.HasPrefix(name, "services/") || !matches(languages, path.Ext(name)) {
			continue
		}
		line := 0
		for text := range strings.Lines(t[name]) {
			line++
			if call := counting.FindString(text); call != "" {
				problems = append(problems, problem{name, line,
					call + " counts the machine's cores: use CPUS"})
			}
		}
	}
	return problems
}

func TestSizes(t *testing.T) {
	red(t, findSizes, tree{
		"services/a/server.py":   "pool = ThreadPoolExecutor(5)\npool = ThreadPoolExecutor()\n",
		"services/b/src/main.rs": "available_parallelism()\n",
		"services/c/README.md":   "os.cpus()\n", "cmd/x.go": "runtime.NumCPU()\n",
	}, "services/a/server.py:2: ThreadPoolExecutor() counts",
		"services/b/src/main.rs:1: available_parallelism( counts")
}

func TestListed(t *testing.T) {
	const deviations = "| go-x | 1 |\n\n## Deviations\n\n|---|---|\n"
	files := func(row, service, rain string) tree {
		return tree{"services/go-x/service.yaml": "", "services/go-xy/README.md": "",
			"docs/fairness.md": deviations + row, "deploy/services.yaml": "services:\n" + service,
			"deploy/rain.yaml": rain}
	}
	const row, service, rain = "| go-x | none |\n", "  go-x-a:\n", "  - http://go-x-a:8080\n"
	red(t, findListed, files(row, service, rain))
	red(t, findListed, files("", service, rain),
		"docs/fairness.md: does not list go-x, as | go-x |")
	red(t, findListed, files(row, "  go-xy-a:\n", rain),
		"deploy/*.yaml: does not list go-x, as go-x-")
	red(t, findListed, files(row, service, ""), "deploy/rain.yaml: does not list go-x, as - http")
}

func TestServices(t *testing.T) {
	whole := func(without string) tree {
		files := tree{"services/README.md": "", "suites/a.yaml": ""}
		for _, file := range []string{
			"service.yaml", "pom.xml", "src/main/java/App.java", "Dockerfile", "README.md",
		} {
			if file != without {
				files["services/java-x/"+file] = ""
			}
		}
		return files
	}
	red(t, findServices, whole(""))
	for _, row := range []struct{ without, want string }{
		{"service.yaml", "service.yaml"},
		{"pom.xml", "build recipe (one of Cargo.toml go.mod"},
		{"src/main/java/App.java", "source file"},
		{"Dockerfile", "Dockerfile"},
		{"README.md", "README.md"},
	} {
		red(t, findServices, whole(row.without), "services/java-x: has no "+row.want)
	}
	nested := whole("README.md")
	nested["services/java-x/src/README.md"] = ""
	red(t, findServices, nested, "services/java-x: has no README.md")
}
