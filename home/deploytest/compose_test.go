package deploytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"prony.example/internal/dev/testsets"
)

const root = "../.."

// project has the fields of the resolved Compose files that these tests read.
type project struct {
	Name     string
	Services map[string]container
	Volumes  map[string]any
}

type container struct {
	Profiles    []string
	Image       string
	Build       *build
	User        string
	Command     []string
	Environment map[string]*string
	Labels      map[string]string
	Restart     string
	Privileged  bool
	ReadOnly    bool     `json:"read_only"`
	CapAdd      []string `json:"cap_add"`
	CapDrop     []string `json:"cap_drop"`
	SecurityOpt []string `json:"security_opt"`
	CPUs        float64
	Cpuset      string
	MemLimit    string `json:"mem_limit"`
	PidsLimit   int    `json:"pids_limit"`
	PID         string `json:"pid"`
	NetworkMode string `json:"network_mode"`
	Networks    map[string]any
	Ports       []port
	Volumes     []mount
	Tmpfs       []string
	Logging     struct{ Options map[string]string }
	Health      *struct{ Test []string } `json:"healthcheck"`
	DependsOn   map[string]struct {
		Condition string
		Required  bool
	} `json:"depends_on"`
}

type build struct {
	Context    string
	Dockerfile string
	Args       map[string]*string
}

type port struct {
	HostIP    string `json:"host_ip"`
	Target    int
	Published string
}

type mount struct {
	Type, Source, Target string
	ReadOnly             bool `json:"read_only"`
}

// compose runs docker compose on deploy/ with the given flags before its verb config. Its
// environment has only env and what it needs to be found, so that .env determines the rest.
func compose(t *testing.T, env []string, flags ...string) ([]byte, error) {
	t.Helper()
	return composeIn(t, "deploy", env, flags...)
}

// composeIn runs docker compose on a folder.
func composeIn(t *testing.T, folder string, env []string, flags ...string) ([]byte, error) {
	t.Helper()
	composed(t)
	if err := havePlugin(); err != nil {
		t.Skipf("no Docker Compose here: %v", err)
	}
	args := append([]string{"compose", "--project-directory", folder}, flags...)
	cmd := exec.Command("docker", append(args, "config", "--format", "json")...)
	cmd.Dir = root
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	if stderr.Len() > 0 { // such as a warning about a variable that is not set
		return nil, fmt.Errorf("docker %s: %s", strings.Join(args, " "), stderr.String())
	}
	return out, nil
}

var havePlugin = sync.OnceValue(func() error {
	return exec.Command("docker", "compose", "version").Run()
})

// composed marks tests that use Compose.
func composed(t *testing.T) {
	t.Helper()
	testsets.Once(t, "systems that Compose starts", testsets.Needs{
		Files: []string{"agents.yaml", "compose", "deploy", "docs", "examples", "services",
			"suites"},
		Facts: []string{testsets.Version("docker", "compose", "version")},
	})
}

func parse(t *testing.T, env []string, profiles ...string) project {
	t.Helper()
	var flags []string
	for _, p := range profiles {
		flags = append(flags, "--profile="+p)
	}
	out, err := compose(t, env, flags...)
	if err != nil {
		t.Fatal(err)
	}
	var p project
	if err := json.Unmarshal(out, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// names returns the services, sorted.
func (p project) names() []string {
	var all []string
	for name := range p.Services {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// everything returns the project with all services. It is read once.
func everything(t *testing.T) project {
	t.Helper()
	composed(t)
	all.once.Do(func() { all.project = parse(t, nil, "*") })
	if all.project.Name == "" {
		t.Skip("Compose did not answer the test before this one")
	}
	return all.project
}

var all struct {
	once    sync.Once
	project project
}

// parts are the services that each profile starts.
var parts = map[string]string{
	"OBS":       "alloy grafana loki mimir pyroscope tempo",
	"SERVICES":  "agents go-nethttp-virtual java-quarkus-virtual java-spring-virtual",
	"RAIN_FIRE": "rain-fire",
	"CONTROL":   "control",
	"EBPF":      "ebpf",
	"TESTER": "agent-config agent-customers agent-discovery agent-gateway agent-vets " +
		"agent-visits agents baseline-config baseline-customers baseline-discovery " +
		"baseline-gateway baseline-vets baseline-visits grafana jmeter prometheus tempo",
}

// Compose resolves the combinations of profiles in docs/compose.md.
func TestProfiles(t *testing.T) {
	for _, combination := range []string{
		"OBS", "OBS SERVICES", "OBS SERVICES RAIN_FIRE", "RAIN_FIRE", "TESTER",
		"OBS SERVICES RAIN_FIRE CONTROL EBPF TESTER",
	} {
		var want []string
		for _, profile := range strings.Fields(combination) {
			want = append(want, strings.Fields(parts[profile])...)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		got := parse(t, nil, strings.Fields(combination)...).names()
		if !slices.Equal(got, want) {
			t.Errorf("%s starts\n%v, want\n%v", combination, got, want)
		}
	}
}

// The folder compose/ is the same project as deploy/, with its paths, its .env and the variables of
// the shell.
func TestComposeFolder(t *testing.T) {
	resolved := func(folder string, env []string, flags []string) (all map[string]any) {
		out, err := composeIn(t, folder, env, flags...)
		if err == nil {
			err = json.Unmarshal(out, &all)
		}
		if err != nil {
			t.Fatal(err)
		}
		// Extensions are fragments for YAML's anchors, without effect of their own.
		maps.DeleteFunc(all, func(key string, _ any) bool { return strings.HasPrefix(key, "x-") })
		return all
	}
	for _, row := range []struct{ env, profiles string }{
		{"", "OBS SERVICES RAIN_FIRE"},
		{"RATE=77 JAVA_SPRING_VIRTUAL=OTHERS PWD=/elsewhere OTEL=", "*"},
	} {
		var flags []string
		for _, p := range strings.Fields(row.profiles) {
			flags = append(flags, "--profile="+p)
		}
		env := strings.Fields(row.env)
		got, want := resolved("compose", env, flags), resolved("deploy", env, flags)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s %s: compose/ resolves to\n%v\ndeploy/ to\n%v", row.env, row.profiles, got,
				want)
		}
	}
}

// Compose refuses a project in which a service waits for one that no given profile starts. This
// test computes each combination of profiles itself, because Compose takes a second each time.
func TestCombinations(t *testing.T) {
	p := everything(t)
	var profiles []string
	for _, c := range p.Services {
		profiles = append(profiles, c.Profiles...)
	}
	slices.Sort(profiles)
	profiles = slices.Compact(profiles)
	// A service is in every combination with one of its profiles, and the services that it waits
	// for must be in each of these.
	for name, c := range p.Services {
		if len(c.Profiles) == 0 {
			t.Errorf("%s has no profile, and so comes up with every other", name)
		}
		for other, how := range c.DependsOn {
			if _, ok := p.Services[other]; !ok {
				t.Errorf("%s waits for %s, which there is not", name, other)
			}
			for _, profile := range c.Profiles {
				if how.Required && !slices.Contains(p.Services[other].Profiles, profile) {
					t.Errorf("%s waits for %s, which --profile=%s does not start",
						name, other, profile)
				}
			}
		}
	}
	for want := range parts {
		if !slices.Contains(profiles, want) {
			t.Errorf("no service has the profile %s", want)
		}
	}
}

// A target is selected by its name, as a profile or as a variable.
func TestChoosing(t *testing.T) {
	for _, row := range []struct{ env, profile, want string }{
		{"", "rust-ntex-reactive", "rust-ntex-reactive"},
		{"JAVA_QUARKUS_VIRTUAL= JAVA_SPRING_VIRTUAL=OTHERS GO_GIN_VIRTUAL=SERVICES", "SERVICES",
			"go-gin-virtual go-nethttp-virtual"},
	} {
		names := parse(t, strings.Fields(row.env), row.profile).names()
		names = slices.DeleteFunc(names, func(name string) bool { return name == "agents" })
		if got := strings.Join(names, " "); got != row.want {
			t.Errorf("%s --profile=%s starts %s, want %s", row.env, row.profile, got, row.want)
		}
	}
}

// Ports are published only on this machine. BIND affects only Grafana, SERVICE_AT only services.
func TestPublished(t *testing.T) {
	for _, row := range []struct{ bind, grafana string }{
		{"", "127.0.0.1"}, {"0.0.0.0", "0.0.0.0"},
	} {
		p := everything(t)
		if row.bind != "" {
			p = parse(t, []string{"BIND=" + row.bind}, "*")
		}
		for name, c := range p.Services {
			want := "127.0.0.1"
			if name == "grafana" {
				want = row.grafana
			}
			for _, port := range c.Ports {
				if port.HostIP != want {
					t.Errorf("BIND=%s: %s publishes %d at %q, want %s",
						row.bind, name, port.Target, port.HostIP, want)
				}
			}
		}
	}
	for profile, name := range map[string]string{"go-gin-virtual": "go-gin-virtual",
		"java-petclinic-h2": "java-petclinic-h2-gateway"} {
		p := parse(t, []string{"SERVICE_AT=172.20.2.138:8080"}, profile)
		want := []port{{Target: 8080, Published: "8080", HostIP: "172.20.2.138"}}
		if got := p.Services[name].Ports; !slices.Equal(got, want) {
			t.Errorf("%s publishes %+v, want %+v", name, got, want)
		}
	}
	wantPorts(t)
}

// wantPorts compares the ports with docs/compose.md.
func wantPorts(t *testing.T) {
	t.Helper()
	want := map[string]string{
		"alloy": "12345 4317 4318", "grafana": "3000", "loki": "3100", "mimir": "9009",
		"prometheus": "9090", "pyroscope": "4040", "tempo": "3200",
	}
	for name, c := range everything(t).Services {
		var got []string
		for _, port := range c.Ports {
			if port.Published != "" {
				got = append(got, port.Published)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want[name] {
			t.Errorf("%s publishes %v, want %s", name, got, want[name])
		}
	}
}

// A user's machine must build the stack that was tested.
func TestPinned(t *testing.T) {
	for name, c := range everything(t).Services {
		_, tag, _ := strings.Cut(filepath.Base(c.Image), ":")
		switch {
		case tag == "" || tag == "latest":
			t.Errorf("%s: the image %q is not pinned", name, c.Image)
		case (tag == "local") != (c.Build != nil):
			t.Errorf("%s: %s is built here, or it is pulled: not both", name, c.Image)
		}
	}
}
