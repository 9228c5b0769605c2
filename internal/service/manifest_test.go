package service

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/strictyaml"
)

func readGood(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/java-good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// root makes a checkout with services of these manifests.
func root(t *testing.T, manifests map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range manifests {
		put(t, filepath.Join(dir, "services", name, "service.yaml"), text)
	}
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGoodManifest(t *testing.T) {
	dir := root(t, map[string]string{"java-good": readGood(t)})
	services, err := Catalog(dir)
	if err != nil || len(services) != 1 {
		t.Fatalf("got %d services, %v", len(services), err)
	}
	s := services[0]
	if got, want := s.Dir, filepath.Join(dir, "services", "java-good"); got != want {
		t.Errorf("folder %s, want %s", got, want)
	}
	if got := s.Full(s.Targets[1]); got != "java-good/virtual" {
		t.Errorf("full name %s", got)
	}
	s.several = false
	if got := s.Full(s.Targets[0]); got != "java-good" {
		t.Errorf("full name of an only target %s", got)
	}
}

// A target with explicitOnly does not change the names of others, and always has its full name.
func TestNamesBesideTargetsKeptAside(t *testing.T) {
	check := func(want string, targets ...Target) {
		t.Helper()
		var got []string
		for _, s := range (&Service{Name: "x", Targets: targets}).split() {
			for _, target := range s.Targets {
				got = append(got, s.Full(target))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("called %q, want %s", got, want)
		}
	}
	bare, more := Target{Name: "bare"}, Target{Name: "two"}
	otel := Target{Name: "otel", ExplicitOnly: "why"}
	check("x", bare)
	check("x x/otel", bare, otel)
	check("x/bare x/otel x/two", bare, otel, more)
	check("x/otel", otel)
}

// checkBroken expects exactly these problems, one a line, for the good manifest with a change.
func checkBroken(t *testing.T, name, old, new string, want ...string) {
	t.Run(name, func(t *testing.T) {
		good := readGood(t)
		if strings.Count(good, old) != 1 {
			t.Fatalf("%q is not once in the good manifest", old)
		}
		dir := root(t, map[string]string{"java-good": strings.Replace(good, old, new, 1)})
		services, err := Catalog(dir)
		if len(services) != 0 || err == nil {
			t.Fatalf("got %d services, %v", len(services), err)
		}
		file := filepath.Join(dir, "services", "java-good", "service.yaml")
		got := strings.Split(strings.ReplaceAll(err.Error(), file, "service.yaml"), "\n")
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		var place *strictyaml.Error
		if !errors.As(err, &place) || place.File != file {
			t.Errorf("%v is not a config.Error of the file", err)
		}
	})
}

func TestBrokenHeads(t *testing.T) {
	checkBroken(t, "unknown key", "framework: Good", "framwork: Good",
		`service.yaml:3: unknown key "framwork" in "framwork: Good"; did you mean "framework"?`)
	checkBroken(t, "missing key", "language: Java\n", "",
		`service.yaml: language is missing`)
	checkBroken(t, "empty key", "language: Java", "language:",
		`service.yaml:2: language is missing in "language:"`)
	checkBroken(t, "another folder's name", "name: java-good", "name: java-bad",
		`service.yaml:1: name "java-bad" differs from the folder's name, "java-good" in "name: `+
			`java-bad"`)
	checkBroken(t, "unknown contract", "[hello, http]", "[helo, http]",
		`service.yaml:6: unknown contract "helo" in "contracts: [helo, http]"; `+
			`did you mean "hello"?`)
	checkBroken(t, "contract twice", "[hello, http]", "[http, http]",
		`service.yaml:6: contract "http" is listed twice in "contracts: [http, http]"`)
	checkBroken(t, "no contract", "contracts: [hello, http]\n", "",
		`service.yaml: contracts is missing; one of compute, hello, http, petclinic`)
}

func TestBrokenNeedsAndBuilds(t *testing.T) {
	checkBroken(t, "unknown tool", "tool: mvn", "tool: gradle",
		`service.yaml:9: unknown tool "gradle" in "- {tool: gradle}"; one of go, java, mvn, node, `+
			`npm, python, cargo, native-image, postgres`,
		`service.yaml:12: the step runs mvn, which is missing in needs in "- [mvn, -q, package]"`)
	checkBroken(t, "tool twice", "tool: mvn", "tool: java",
		`service.yaml:9: tool "java" is listed twice in "- {tool: java}"`,
		`service.yaml:12: the step runs mvn, which is missing in needs in "- [mvn, -q, package]"`)
	checkBroken(t, "tool's version", `version: "25"}`, `version: "25+"}`,
		`service.yaml:8: version "25+" must be numbers with dots in `+
			`"- {tool: java, version: \"25+\"}"; as 25 or 3.11`)
	checkBroken(t, "step as a line", "[mvn, -q, package]", "mvn -q package",
		`service.yaml:12: a list is required, but this is a text in "- mvn -q package"`)
	checkBroken(t, "empty step", "[mvn, -q, package]", "[]",
		`service.yaml:12: the build step is empty in "- []"; write a program and its `+
			`arguments, such as `+
			`[mvn, -q, package]`)
	checkBroken(t, "trial's value in a build", "{dir}/target/done", "{port}",
		`service.yaml:13: {port} has no value here in "- [touch, \"{port}\"]"; builds do not `+
			`run in `+
			`trials, so their placeholders are dir, java, python, node`)
	checkBroken(t, "artifact outside", "artifact: target", "artifact: ../x",
		`service.yaml:14: artifact "../x" is outside the folder in "artifact: ../x"; use a `+
			`relative `+
			`path without ..`)
	checkBroken(t, "no artifact", "  artifact: target\n", "",
		`service.yaml:11: build.artifact is missing in "steps:"`)
}

func TestBrokenRunsAndTargets(t *testing.T) {
	good := readGood(t)
	checkBroken(t, "placeholder misspelt", "{heapMiB}", "{heapMib}",
		`service.yaml:16: {heapMib} has no value here in "command: [\"{java}\", `+
			`\"-Xmx{heapMib}m\", -jar, target/app.jar]"; did you mean {heapMiB}?`)
	checkBroken(t, "placeholder of no need", "{java}", "{node}",
		`service.yaml:16: {node} is used, and node is not among needs in "command: [\"{node}\", `+
			`\"-Xmx{heapMiB}m\", -jar, target/app.jar]"`)
	checkBroken(t, "the lab's variable", "{BUDGET:", "{PORT:",
		`service.yaml:17: Prony itself sets the variable PORT in "env: {PORT: \"{memoryMiB}\", `+
			`WHERE: `+
			`\"http://{host}:{port}\", JSON: '{\"a\": 1}'}"`)
	checkBroken(t, "no variable", "{BUDGET:", "{A-B:",
		`service.yaml:17: "A-B" is not a valid name of an environment variable in "env: {A-B: `+
			`\"{memoryMiB}\", WHERE: \"http://{host}:{port}\", JSON: '{\"a\": 1}'}"`)
	checkBroken(t, "startup for ever", "ready: /ready", "ready: /ready\n  startup: 2h",
		`service.yaml:20: run.startup is 2h0m0s, but must be from 1s to 1h0m0s in "startup: `+
			`2h"; as 6m`)
	checkBroken(t, "no path", "ready: /ready", "ready: ready",
		`service.yaml:19: run.ready "ready" is not a URL path in "ready: ready"; as /health`)
	checkBroken(t, "no command", `["{java}", "-Xmx{heapMiB}m", -jar, target/app.jar]`, "[]",
		`service.yaml:16: run.command is missing in "command: []"; write a program and its `+
			`arguments`)
	checkBroken(t, "target twice", "name: virtual", "name: platform",
		`service.yaml:22: target "platform" is listed twice in "- {name: platform, runtime: jvm, `+
			`mode: virtual, env: {MODE: virtual, WHERE: here}, args: [\"-c{cpus}\"]}"`)
	checkBroken(t, "mode", "mode: platform", "mode: threads",
		`service.yaml:21: unknown mode "threads" in "- {name: platform, runtime: jvm, mode: `+
			`threads, env: {MODE: platform}}"; one of platform, virtual, reactive`)
	checkBroken(t, "runtime", "platform, runtime: jvm", "platform, runtime: jvn",
		`service.yaml:21: unknown runtime "jvn" in "- {name: platform, runtime: jvn, mode: `+
			`platform, env: {MODE: platform}}"; did you mean "jvm"?`)
	checkBroken(t, "target's name", "name: platform", "name: Platform/1",
		`service.yaml:21: target "Platform/1" `+
			`is not a valid name in "- {name: Platform/1, runtime: jvm, `+
			`mode: platform, env: {MODE: platform}}"; use small letters, digits and dashes`)
	checkBroken(t, "no targets", good[strings.Index(good, "targets:"):], "",
		`service.yaml: targets is missing; add at least one target with name, runtime and mode`)
	checkBroken(t, "nothing at all", good, "",
		`service.yaml: name is missing`, `service.yaml: language is missing`,
		`service.yaml: framework is missing`, `service.yaml: version is missing`,
		`service.yaml: about is missing`,
		`service.yaml: contracts is missing; one of compute, hello, http, petclinic`,
		`service.yaml: build.artifact is missing`,
		`service.yaml: run.command is missing; write a program and its arguments`,
		`service.yaml: run.health is missing`, `service.yaml: run.ready is missing`,
		`service.yaml: targets is missing; add at least one target with name, runtime and mode`)
}

func TestCatalogKeepsTheGoodOnes(t *testing.T) {
	good := readGood(t)
	named := func(name string) string { return strings.Replace(good, "java-good", name, 1) }
	dir := root(t, map[string]string{"java-b": named("java-b"), "java-a": named("java-a"),
		"java-c": named("java-x")})
	put(t, filepath.Join(dir, "services", "README.md"), "not a service")
	if err := os.MkdirAll(filepath.Join(dir, "services", "java-begun"), 0o755); err != nil {
		t.Fatal(err)
	}
	services, err := Catalog(dir)
	if len(services) != 2 || services[0].Name != "java-a" || services[1].Name != "java-b" {
		t.Errorf("got %v", services)
	}
	want := `service.yaml:1: name "java-x" differs from the folder's name, "java-c" in "name: ` +
		`java-x"`
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestCatalogWithoutServices(t *testing.T) {
	empty := t.TempDir()
	if err := os.Mkdir(filepath.Join(empty, "services"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{empty, t.TempDir()} {
		if services, err := Catalog(dir); len(services) != 0 || err == nil {
			t.Errorf("got %v, %v", services, err)
		}
	}
}
