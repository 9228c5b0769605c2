package suite_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/service"
	"prony.example/internal/suite"
)

const riding = `name: riding
contract: hello
targets: [%s]
blocks: 1
scenarios:
  - name: hello
    requests: [{request: GET /hello}]
loads:
  - {name: peak, model: closed}
variants:
  - {name: agent, env: {JAVA_TOOL_OPTIONS: -javaagent:a.jar}, runtimes: [jvm]}
  - {name: verbose, env: {LOG: "1"}}
`

func planned(t *testing.T, targets string, catalog ...suite.Target) (*suite.Plan, error) {
	t.Helper()
	s, err := suite.Read("riding.yaml", fmt.Appendf(nil, riding, targets))
	if err != nil {
		t.Fatal(err)
	}
	return s.Plan(catalog)
}

func target(name, runtime, aside string) suite.Target {
	service, _, _ := strings.Cut(name, "/")
	return suite.Target{Name: name, Service: service, Runtime: runtime, Aside: aside,
		Contracts: []string{"hello"}}
}

// Every target runs bare and with each variant that its runtime can have, once per block, and a
// trial's name shows it.
func TestVariantsOfAPlan(t *testing.T) {
	p, err := planned(t, "all", target("java", "jvm", ""), target("node", "node", ""))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, x := range p.Trials {
		got[x.Target+" "+x.Variant]++
		if marked := strings.HasSuffix(x.ID, "-"+x.Variant); marked == (x.Variant == "none") {
			t.Errorf("trial of %s is called %s", x.Variant, x.ID)
		}
	}
	want := "map[java agent:1 java none:1 java verbose:1 node none:1 node verbose:1]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if env := p.Suite.Variant("agent").Env["JAVA_TOOL_OPTIONS"]; env != "-javaagent:a.jar" {
		t.Errorf("the agent's environment is %q", env)
	}
	if bare := p.Suite.Variant("none"); bare.Name != "none" || len(bare.Env) > 0 {
		t.Errorf("the bare variant is %+v", bare)
	}
}

// A target that is kept aside runs only if it is named.
func TestTargetsKeptAside(t *testing.T) {
	bare, otel := target("go/bare", "jvm", ""), target("go/otel", "jvm", "instrumented")
	check := func(targets, want, aside string) {
		t.Helper()
		p, err := planned(t, targets, bare, otel)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		var names, left []string
		for _, x := range p.Trials {
			if !seen[x.Target] {
				names = append(names, x.Target)
			}
			seen[x.Target] = true
		}
		for _, x := range p.Aside {
			left = append(left, x.Name)
		}
		if got := strings.Join(names, " "); got != want || strings.Join(left, " ") != aside {
			t.Errorf("%s: %s, aside %v, want %s and %s", targets, got, left, want, aside)
		}
	}
	check("all", "go/bare", "go/otel")
	check("go", "go/bare", "go/otel")
	check("go/*", "go/bare", "go/otel")
	check("go/otel", "go/otel", "")
	if _, err := planned(t, "all", otel); err == nil ||
		!strings.Contains(err.Error(), "target go/otel is excluded by default: instrumented") {
		t.Errorf("error %v", err)
	}
}

// A variant that would change nothing is an error: no target of its runtime, or no such process.
func TestVariantsThatFitNothing(t *testing.T) {
	clinic := target("clinic", "jvm", "")
	clinic.Processes = []string{"customers", "gateway"}
	check := func(old, new, want string, catalog ...suite.Target) {
		t.Helper()
		text := strings.Replace(fmt.Sprintf(riding, "all"), old, new, 1)
		s, err := suite.Read("riding.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Plan(catalog)
		if want == "" && err == nil {
			if got := len(p.Trials); got != 3*len(catalog) { // bare and two variants each
				t.Errorf("%s: %d trials of %d targets", new, got, len(catalog))
			}
			return
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", new, err, want)
		}
	}
	check("[jvm]", "[jvm]", `no target supports variant "agent"`, target("node", "node", ""))
	check("[jvm]", "[jvm], processes: [custmers]",
		`riding.yaml:11: no target has the process "custmers"`, clinic, target("java", "jvm", ""))
	check("[jvm]", "[jvm], processes: [custmers]", `did you mean "customers"?`, clinic,
		target("java", "jvm", ""))
	check("[jvm]", "[jvm], processes: [customers]", "", clinic)
}

// A named target, or one that remains without the missing tools, runs bare if a variant does not
// fit it, which is no error of the suite.
func TestVariantsOfWhatIsLeft(t *testing.T) {
	s, err := suite.Read("riding.yaml", fmt.Appendf(nil, riding, "all"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Override(suite.Override{Targets: []string{"node"}}); err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan([]suite.Target{target("java", "jvm", ""), target("node", "node", "")})
	if err != nil || len(p.Trials) != 2 { // bare and verbose
		t.Errorf("plan %+v, error %v", p, err)
	}
}

// Columns change the table, not the measurement.
func TestColumnsLeaveThePlan(t *testing.T) {
	hash := func(more string) string {
		s, err := suite.Read("riding.yaml", append(fmt.Appendf(nil, riding, "all"), more...))
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Plan([]suite.Target{target("java", "jvm", "")})
		if err != nil {
			t.Fatal(err)
		}
		return p.Hash
	}
	if a, b := hash(""), hash("columns: [mean]\n"); a != b {
		t.Errorf("hash %s with columns, %s without", b, a)
	}
	if a, b := hash(""), hash("seed: 7\n"); a == b {
		t.Error("the seed leaves the hash alone: this test proves nothing")
	}
}

// The variables of the lab, and the placeholders, are the same in suites and in manifests.
func TestEnvironmentOfVariants(t *testing.T) {
	bare := &service.Service{Name: "a", Run: service.Run{Command: []string{"a"}},
		Targets: []service.Target{{}}}
	at := service.Values{Host: "h", Ports: []int{1}, CPUs: 1, MemoryBytes: 1 << 30}
	start := func(env map[string]string) []string {
		at.Env = env
		starts, err := bare.Starts(&service.Built{}, bare.Targets[0], at)
		if err != nil {
			t.Fatal(err)
		}
		return starts[0].Env
	}
	for _, word := range suite.RideWords {
		start(map[string]string{"X": "{" + word + "}"})
	}
	own := map[string]string{}
	for _, name := range suite.OwnEnv {
		own[name] = "theirs"
	}
	for _, pair := range start(own) {
		if strings.HasSuffix(pair, "=theirs") {
			t.Errorf("%s was not set by the lab", pair)
		}
	}
	if known := slices.Concat(suite.OwnEnv, suite.SpokenEnv); !slices.Equal(known,
		service.Reserved) {
		t.Errorf("suites know %v, services %v", known, service.Reserved)
	}
	told := service.Certificate{Dir: "d"}.Env("h2")
	if names := slices.Sorted(maps.Keys(told)); !slices.Equal(names, suite.SpokenEnv) {
		t.Errorf("suites know %v, a target is told %v", suite.SpokenEnv, names)
	}
	for _, name := range service.Protocols {
		if !slices.Contains(suite.Protocols, name) {
			t.Errorf("a service may speak %s, and no suite can ask for it", name)
		}
	}
}

func TestBrokenVariants(t *testing.T) {
	check := func(old, new, want string) {
		t.Helper()
		text := strings.Replace(fmt.Sprintf(riding, "all"), old, new, 1)
		_, err := suite.Read("riding.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", new, err, want)
		}
	}
	check("name: agent", "name: none", `"none" cannot be the name of a variant: it means a `+
		`target without variants`)
	check("name: agent", "name: verbose", "verbose")
	check("name: agent", "name: An Agent", `"An Agent"`)
	check(`env: {LOG: "1"}`, "env: {}", `variant "verbose" has no effect: it has no env, `+
		`agent, protocol or observe`)
	check("LOG:", "LO-G:", `"LO-G"`)
	check("LOG:", "PORT:", "Prony itself sets the variable PORT, so a variant cannot set it")
	check(`LOG: "1"`, `LOG: "{prot}"`, "{prot} is not a placeholder that a variant can use")
	check("[jvm]", "[jwm]", `did you mean "jvm"?`)
	check("runtimes: [jvm]", "processes: [a, a]", `the list contains process "a" twice`)
}
