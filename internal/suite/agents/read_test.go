package agents_test

import (
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
	check("    about: An agent.\n", "", `a.yaml:2: about is missing in "- name: a"; what it is, `+
		`in one sentence`)
	check("name: a", "name: A b", `a.yaml:2: agent "A b" is not a name in "- name: A b"; `+
		`small letters, digits and dashes`)
	check("name: b", "name: a", `a.yaml:12: agent "a" is there twice in "- name: a"`)
	check("name: high", "name: low",
		`a.yaml:11: level "low" is there twice in "- {name: low, about: Much.}"`)
	check("[jvm]", "[jwm]", `a.yaml:4: unknown runtime "jwm" in "runtimes: [jwm]"; `+
		`did you mean "jvm"?`)
	check(":1.2", "", `a.yaml:5: "org.x:agent" is not an artifact of Maven in `+
		`"fetch: {maven: \"org.x:agent\"}"; group:artifact:version, or with :classifier`)
	check("{maven", `{path: "${X}", maven`, `a.yaml:5: several ways to fetch one agent in `+
		`"fetch: {path: \"${X}\", maven: \"org.x:agent:1.2\"}"; at most one of maven, npm, pip, `+
		`path and build`)
	check("sha256: 0", "sha256: x", `a.yaml:6: "x`+strings.Repeat("123456789abcdef0", 4)[:63]+
		`" is not a SHA-256 in "sha256: x`+strings.Repeat("123456789abcdef0", 4)[:63]+
		`"; 64 digits in hex`)
	check(`{maven: "org.x:agent:1.2"}`, `{npm: ../x, package: x}`, `a.yaml:5: folder "../x" is `+
		`outside the checkout in "fetch: {npm: ../x, package: x}"; a relative path without ..`)
	check(`{maven: "org.x:agent:1.2"}`, `{pip: x}`, `a.yaml:5: package belongs to npm and pip, `+
		`and both need it in "fetch: {pip: x}"; whose version is the agent's`)
	check(`{maven: "org.x:agent:1.2"}`, `{path: /x.jar}`, `a.yaml:5: path "/x.jar" is not a `+
		`variable in "fetch: {path: /x.jar}"; ${NAME}: where a file is differs between machines`)
	check(`{maven: "org.x:agent:1.2"}`, `{build: otel}`,
		`a.yaml:5: {agent} is used, and nothing is fetched in "fetch: {build: otel}"`)
	check("{otlpGrpc}", "{otlpGrp}", `a.yaml:7: {otlpGrp} has no value here in `+
		`"env: {JAVA_TOOL_OPTIONS: \"-javaagent:{agent}\", TO: \"http://{otlpGrp}\"}"; `+
		`did you mean {otlpGrpc}?`)
	check("TO:", "PORT:", `a.yaml:7: the lab itself sets PORT in `+
		`"env: {JAVA_TOOL_OPTIONS: \"-javaagent:{agent}\", PORT: \"http://{otlpGrpc}\"}"`)
	check("needsTelemetry: true", "needsTelemetry: false",
		`a.yaml:2: needsTelemetry is false in "- name: a"; `+
			`true where env names {otlpGrpc}, {otlpHttp} or {zipkin}, and only there`)
	check("needsTelemetry: true", "needsTelemetry: true\n    scrape: metrics",
		`a.yaml:9: scrape "metrics" is not a path in "scrape: metrics"; as /metrics`,
		`a.yaml:9: nothing serves that page in "scrape: metrics"; name {metricsPort} in env`)
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
	check("a/lwo", `find agent "a/lwo": there is none; did you mean "a/low"?`)
	check("a", `find agent "a": there is none; there are a/low, a/high`)
	check("b/high", `find agent "b/high": there is none; there are b`)
	check("zebra", `find agent "zebra": there is none; there are a/low, a/high, b`)
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
	env, err := r.Own(lookup)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"LIB": "{agent}/" + agents.Platform() + "/x.so", "RATE": "0.1", "J": `{"a": 1}`,
		"TO": "home:{agent}",
	} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
	_, err = r.Own(func(string) (string, bool) { return "", false })
	const missing = "agent a/low: cannot be had here: needs the variable TO: not set"
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
		if err == nil || !strings.Contains(err.Error(), "it names no agent") ||
			!strings.Contains(err.Error(), "list one, with name, about and runtimes, or remove") {
			t.Errorf("%q: it says %v", text, err)
		}
	}
}
