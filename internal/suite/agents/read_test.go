package agents_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/strictyaml"
	"prony.example/internal/suite/agents"
)

// whole is a file without errors, in which rows replace a line.
const whole = `agents:
  - name: a
    about: An agent.
    runtimes: [jvm]
    fetch: {maven: "org.x:agent:1.2"}
    sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    env: {JAVA_TOOL_OPTIONS: "-javaagent:{agent}", TO: "http://{otlpGrpc}"}
    needsTelemetry: true
    levels:
      - {name: low, about: Little., env: {RATE: "0.1"}}
      - {name: high, about: Much.}
  - name: b
    about: Nothing.
    runtimes: [node]
`

func TestMistakesAreTold(t *testing.T) {
	if _, err := agents.Read("a.yaml", []byte(whole)); err != nil {
		t.Fatal(err)
	}
	check := func(old, with string, want ...string) {
		t.Helper()
		text := strings.Replace(whole, old, with, 1)
		if text == whole {
			t.Fatalf("%q is not in the file", old)
		}
		_, err := agents.Read("a.yaml", []byte(text))
		got := "no error"
		if err != nil {
			got = err.Error()
		}
		for _, line := range want {
			if !slices.Contains(strings.Split(got, "\n"), line) {
				t.Errorf("%s → %s: got\n%s\nwant the line\n%s", old, with, got, line)
			}
		}
	}
	check("about: An", "abuot: An", `a.yaml:3: unknown key "abuot" in "abuot: An agent."; `+
		`did you mean "about"?`)
	check("    about: An agent.\n", "", `a.yaml:2: about is missing in "- name: a"; describe `+
		`the agent in one sentence`)
	check("name: a", "name: A b", `a.yaml:2: agent "A b" is not a valid name in "- name: A b"; `+
		`use lower-case letters, digits and dashes`)
	check("name: b", "name: a", `a.yaml:12: the file lists agent "a" twice in "- name: a"`)
	check("name: high", "name: low",
		`a.yaml:11: the file lists level "low" twice in "- {name: low, about: Much.}"`)
	check("[jvm]", "[jwm]", `a.yaml:4: unknown runtime "jwm" in "runtimes: [jwm]"; `+
		`did you mean "jvm"?`)
	check(":1.2", "", `a.yaml:5: "org.x:agent" is not a Maven artifact in "fetch: {maven: `+
		`\"org.x:agent\"}"; write group:artifact:version or group:artifact:version:classifier`)
	check("{maven", `{path: "${X}", maven`, `a.yaml:5: the agent has several sources in fetch `+
		`in "fetch: {path: \"${X}\", maven: \"org.x:agent:1.2\"}"; keep only one of maven, `+
		`npm, pip, path and build`)
	check("sha256: 0", "sha256: x",
		`a.yaml:6: sha256 "x`+strings.Repeat("123456789abcdef0", 4)[:63]+
			`" is not a SHA-256 digest in "sha256: x`+strings.Repeat("123456789abcdef0", 4)[:63]+
			`"; write 64 hexadecimal digits`)
	check(`{maven: "org.x:agent:1.2"}`, `{npm: ../x, package: x}`, `a.yaml:5: folder "../x" is `+
		`outside of the checkout in "fetch: {npm: ../x, package: x}"; write a relative path `+
		`without ..`)
	check(`{maven: "org.x:agent:1.2"}`, `{pip: x}`, `a.yaml:5: npm and pip need the key `+
		`package, and other sources cannot have it in "fetch: {pip: x}"; set package to the `+
		`package whose version is the agent's version`)
	check(`{maven: "org.x:agent:1.2"}`, `{path: /x.jar}`, `a.yaml:5: path "/x.jar" is not an `+
		`environment variable in "fetch: {path: /x.jar}"; write ${NAME}, because the file's `+
		`path differs between machines`)
	check(`{maven: "org.x:agent:1.2"}`, `{build: otel}`,
		`a.yaml:5: a variable uses {agent}, but the agent has no files to fetch in "fetch: `+
			`{build: otel}"`)
	check("{otlpGrpc}", "{otlpGrp}", `a.yaml:7: {otlpGrp} is not a placeholder that an agent `+
		`can use in "env: {JAVA_TOOL_OPTIONS: \"-javaagent:{agent}\", TO: `+
		`\"http://{otlpGrp}\"}"; did you mean {otlpGrpc}?`)
	check("TO:", "PORT:", `a.yaml:7: Prony itself sets the variable PORT, so an agent cannot `+
		`set it in "env: {JAVA_TOOL_OPTIONS: \"-javaagent:{agent}\", PORT: `+
		`\"http://{otlpGrpc}\"}"`)
	check("needsTelemetry: true", "needsTelemetry: false",
		`a.yaml:2: needsTelemetry is false in "- name: a"; set needsTelemetry to true if and `+
			`only if env uses {otlpGrpc}, {otlpHttp} or {zipkin}`)
	check("needsTelemetry: true", "needsTelemetry: true\n    scrape: metrics",
		`a.yaml:9: scrape "metrics" is not a path that begins with / in "scrape: metrics"; as `+
			`/metrics`,
		`a.yaml:9: scrape needs a port, but no variable of the agent uses {metricsPort} in `+
			`"scrape: metrics"; use {metricsPort} in env`)
}

func TestAgentsAreFound(t *testing.T) {
	c, err := agents.Read("a.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if names := c.Names(); !slices.Equal(names, []string{"a/low", "a/high", "b"}) {
		t.Errorf("names %q", names)
	}
	check := func(name, want string) {
		t.Helper()
		a, l, err := c.Find(name)
		got := a.Full(l)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("find %s: got %s, want %s", name, got, want)
		}
	}
	check("a/low", "a/low")
	check("b", "b")
	check("a/lwo", `agent "a/lwo" does not exist; did you mean "a/low"?`)
	check("a", `agent "a" does not exist; there are a/low, a/high`)
	check("b/high", `agent "b/high" does not exist; there are b`)
	check("zebra", `agent "zebra" does not exist; there are a/low, a/high, b`)
}

// A level's variables override the agent's; values of the user's environment and the machine are
// filled in at once, the rest when a process starts.
func TestVariants(t *testing.T) {
	a := agents.Agent{Name: "a", Runtimes: []string{"jvm"}, Languages: []string{"Java"},
		Env: map[string]string{"LIB": "{agent}/{platform}/x.so", "RATE": "1", "TO": "${TO}"}}
	r := a.Variant(
		agents.Level{Name: "low", Env: map[string]string{"RATE": "0.1", "J": `{"a": 1}`}},
	)
	if r.Name != "a/low" || a.Env["RATE"] != "1" {
		t.Errorf("the ride is %q, and the agent's rate became %q", r.Name, a.Env["RATE"])
	}
	lookup := func(name string) (string, bool) { return "home:{agent}", name == "TO" }
	written, resolved, err := r.Own(lookup)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{
		"LIB": "{agent}/" + agents.Platform() + "/x.so", "RATE": "0.1", "J": `{"a": 1}`,
		"TO": "${TO}",
	}; !maps.Equal(written, want) {
		t.Errorf("the record contains %q, want %q", written, want)
	}
	if want := map[string]string{"TO": "home:{agent}"}; !maps.Equal(resolved, want) {
		t.Errorf("values of the user's environment are %q, want %q", resolved, want)
	}
	_, _, err = r.Own(func(string) (string, bool) { return "", false })
	const missing = "agent a/low: the agent cannot be fetched on this machine: needs the " +
		"environment variable TO, which is not set"
	if err == nil || err.Error() != missing {
		t.Errorf("got %v, want %s", err, missing)
	}
}

// The page of the format describes every key and every placeholder, and no other.
func TestThePageTellsAll(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(checkout, "docs", "formats", "agents.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	rows := func(of string) (out []string) {
		_, section, _ := strings.Cut(page, "## "+of+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
		for _, match := range row.FindAllStringSubmatch(section, -1) {
			out = append(out, match[1])
		}
		return out
	}
	var told []string
	for _, key := range rows("Keys") {
		last := key[strings.LastIndexByte(key, '.')+1:]
		if !slices.Contains(told, last) { // in the form of strictyaml.Keys
			told = append(told, last)
		}
	}
	keys := strictyaml.Keys(&agents.Catalog{})[1:] // the first is the list of all
	slices.Sort(told)
	slices.Sort(keys)
	if !slices.Equal(told, keys) {
		t.Errorf("the page tells of the keys %q, want %q", told, keys)
	}
	words := rows("Placeholders")
	for i := range words {
		words[i] = strings.Trim(words[i], "{}")
	}
	want := append(slices.Clone(agents.Words), "$"+"{NAME")
	slices.Sort(words)
	slices.Sort(want)
	if !slices.Equal(words, want) {
		t.Errorf("the page tells of the placeholders %q, want %q", words, want)
	}
}

// Packages that are put into Python's path before a service's own have the same versions, because
// the agent would otherwise change more than intended. FastAPI needs an API of OpenTelemetry for
// which no exporter exists yet.
func TestPinnedPackagesAreTheServicesOwn(t *testing.T) {
	pins := func(path string) map[string]string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for line := range strings.Lines(string(data)) {
			if name, version, ok := strings.Cut(strings.TrimSpace(line), "=="); ok {
				out[strings.ReplaceAll(name, "_", "-")] = version
			}
		}
		return out
	}
	ours := pins(filepath.Join(checkout, "agents", "otel-python", "requirements.txt"))
	files, err := filepath.Glob(filepath.Join(checkout, "services", "python-*", "requirements.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d services, %v", len(files), err)
	}
	for _, file := range files {
		for name, version := range pins(file) {
			if ours[name] != "" && ours[name] != version && name != "opentelemetry-api" {
				t.Errorf("%s has %s %s, the agent %s", file, name, version, ours[name])
			}
		}
	}
}

// No lock file names the host of its packages, which npm's own configuration selects.
func TestLockFilesNameNoHost(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(checkout, "agents", "*", "package-lock.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d lock files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), `"resolved"`) {
			t.Errorf("%s says where packages are: set npm's omit-lockfile-registry-resolved", file)
		}
	}
}

// A file without agents gets an error with or without the key.
func TestReadNone(t *testing.T) {
	for _, text := range []string{"agents: []\n", "{}\n"} {
		_, err := agents.Read("a.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), "the file lists no agent") ||
			!strings.Contains(err.Error(),
				"add an agent with name, about and runtimes, or remove") {
			t.Errorf("%q: it says %v", text, err)
		}
	}
}
