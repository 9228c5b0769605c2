package deploytest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/service"
)

// privileged are the services with more rights than the others, with reasons.
var privileged = map[string]string{
	"ebpf":    "the kernel lets nobody else attach to all processes",
	"control": "it starts containers and reads their cgroups",
}

// capabilities are those that a service keeps.
var capabilities = map[string][]string{
	"ebpf":      {"DAC_READ_SEARCH", "SYS_ADMIN", "SYS_PTRACE", "SYSLOG"},
	"rain-fire": {"DAC_OVERRIDE"}, // to write into a results folder of any owner
}

// Every container is limited in rights, cores, memory, processes and log size.
func TestHeld(t *testing.T) {
	for name, c := range everything(t).Services {
		_, free := privileged[name]
		switch {
		case c.Privileged:
			t.Errorf("%s is privileged", name)
		case !c.ReadOnly:
			t.Errorf("%s can write to its root", name)
		case !slices.Equal(c.CapAdd, capabilities[name]),
			name != "control" && !slices.Equal(c.CapDrop, []string{"ALL"}):
			t.Errorf("%s keeps capabilities: %v", name, c.CapAdd)
		case !slices.Contains(c.SecurityOpt, "no-new-privileges:true"):
			t.Errorf("%s could gain privileges", name)
		case c.CPUs <= 0 != (name == "control") || c.MemLimit == "" || c.PidsLimit <= 0:
			t.Errorf("%s lacks a limit: cpus %v, memory %q, processes %d",
				name, c.CPUs, c.MemLimit, c.PidsLimit)
		case c.Cpuset == "" && name != "control":
			t.Errorf("%s may run on any core", name)
		case c.Logging.Options["max-size"] == "":
			t.Errorf("%s's log has no end", name)
		case c.User == "":
			t.Errorf("%s does not say who it runs as", name)
		case !free && (c.PID != "" || c.NetworkMode == "host"):
			t.Errorf("%s shares the host's processes or network", name)
		}
	}
}

// Docker's socket is root on the host, so its users are listed explicitly.
func TestSocket(t *testing.T) {
	var got []string
	for name, c := range everything(t).Services {
		for _, m := range c.Volumes {
			if strings.HasSuffix(m.Target, "docker.sock") {
				got = append(got, name)
			}
		}
	}
	slices.Sort(got)
	if want := []string{"alloy", "control", "ebpf"}; !slices.Equal(got, want) {
		t.Errorf("Docker's socket is in %v, want %v", got, want)
	}
}

// oneShots end by themselves and have no health check.
var oneShots = []string{"agents", "control", "rain-fire"}

// Every long-running service has a health check, its own or that of the service in its label, and
// dependent services wait for health, not for the start.
func TestHealth(t *testing.T) {
	p := everything(t)
	for name, c := range p.Services {
		if slices.Contains(oneShots, name) {
			continue
		}
		if by := c.Labels["prony.health"]; by != "" {
			asked := p.Services[by].Health
			if asked == nil || !strings.Contains(strings.Join(asked.Test, " "), name+":") {
				t.Errorf("%s leaves its health to %s, which does not ask it", name, by)
			}
			continue
		}
		own := c.Health != nil && len(c.Health.Test) > 0
		if !own && !builtWithHealth(t, c) {
			t.Errorf("%s has no health check", name)
		}
	}
	for name, c := range p.Services {
		for other, how := range c.DependsOn {
			want := "service_healthy"
			if slices.Contains(oneShots, other) {
				want = "service_completed_successfully"
			} else if p.Services[other].Labels["prony.health"] == name {
				want = "service_started" // it checks the others' health
			}
			if how.Condition != want {
				t.Errorf("%s waits until %s is %s, want %s", name, other, how.Condition, want)
			}
		}
	}
}

func builtWithHealth(t *testing.T, c container) bool {
	t.Helper()
	if c.Build == nil {
		return false
	}
	text, err := os.ReadFile(filepath.Join(c.Build.Context, c.Build.Dockerfile))
	if err != nil {
		t.Error(err)
	}
	return strings.Contains(string(text), "\nHEALTHCHECK ")
}

// Docker would create a missing path as an empty folder.
func TestMounts(t *testing.T) {
	made := []string{"results"} // created on first use
	for name, c := range everything(t).Services {
		for _, m := range c.Volumes {
			rest := filepath.Base(m.Source)
			if m.Type != "bind" || slices.Contains(made, rest) || rest == "docker.sock" ||
				strings.HasPrefix(m.Source, "/sys/") {
				continue
			}
			if _, err := os.Stat(m.Source); err != nil {
				t.Errorf("%s mounts what is not there: %v", name, err)
			}
		}
	}
}

// Every target of the catalog can be started, is built as in the lab, gets the environment of its
// manifest, and is known to the load.
func TestCatalog(t *testing.T) {
	p := everything(t)
	catalog, err := service.Catalog(root)
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, s := range catalog {
		for _, target := range s.Targets {
			name := s.Name + "-" + target.Name
			url := "http://" + name + ":8080/hello/" + target.Mode + "?key=1"
			if len(s.Run.Processes) > 0 {
				known += checkSystem(t, p, s, target)
				url = "http://" + name + "-gateway:8080/api/gateway/owners/2"
			} else {
				known += checkTarget(t, p, s, target)
			}
			host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
			if rain := p.Services["rain-fire"]; !slices.Contains(rain.Command, url) ||
				!slices.Contains(rain.Command, "--remote="+host) {
				t.Errorf("rain-fire does not know %s", url)
			}
		}
	}
	// Removing a target leaves no service behind.
	for name, c := range p.Services {
		if slices.Contains(c.Profiles, "ALL") && name != "agents" {
			known--
		}
	}
	if known != 0 {
		t.Errorf("deploy/ has %d targets more than the catalog", -known)
	}
}

func checkTarget(t *testing.T, p project, s *service.Service, target service.Target) int {
	t.Helper()
	name := s.Name + "-" + target.Name
	c, ok := p.Services[name]
	if !ok {
		t.Errorf("deploy/services.yaml has no %s", name)
		return 0
	}
	if !slices.Contains(c.Profiles, name) {
		t.Errorf("%s has no profile of its name: %v", name, c.Profiles)
	}
	checkEnv(t, name, c, target.Env)
	wantFile, wantArg := "Dockerfile", ""
	switch word, _, _ := strings.Cut(s.Other, "-"); word {
	case "":
	case "otel":
		wantArg = "BUILD=otel"
	default:
		wantFile, wantArg = "Dockerfile."+word, "MODE="+target.Mode
	}
	arg := ""
	for key, value := range c.Build.Args {
		arg = key + "=" + *value
	}
	if c.Build.Dockerfile != wantFile || arg != wantArg {
		t.Errorf("%s is built from %s with %q, want %s with %q",
			name, c.Build.Dockerfile, arg, wantFile, wantArg)
	}
	if got := filepath.Base(c.Build.Context); got != s.Name {
		t.Errorf("%s is built from the folder %s", name, got)
	}
	checkAgent(t, name, c, target.Runtime == "jvm")
	return 1
}

func checkSystem(t *testing.T, p project, s *service.Service, target service.Target) int {
	t.Helper()
	found := 0
	for _, process := range s.Run.Processes {
		if len(process.Targets) > 0 && !slices.Contains(process.Targets, target.Name) {
			continue
		}
		name := s.Name + "-" + target.Name + "-" + process.Name
		c, ok := p.Services[name]
		if !ok {
			t.Errorf("deploy/petclinic.yaml has no %s", name)
			continue
		}
		found++
		if c.Build == nil {
			continue // the database, which has no file here
		}
		if got := c.Build.Args["SERVICE"]; got == nil || *got != process.Name {
			t.Errorf("%s is not built as %s", name, process.Name)
		}
		if _, wants := target.Env["DATABASE_URL"]; !wants {
			checkEnv(t, name, c, target.Env)
		}
		checkAgent(t, name, c, true)
	}
	return found
}

func checkEnv(t *testing.T, name string, c container, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got := c.Environment[key]; got == nil || *got != value {
			t.Errorf("%s does not get %s=%s", name, key, value)
		}
	}
}

// checkAgent checks OpenTelemetry's agent in JVMs that can have one, and its volume.
func checkAgent(t *testing.T, name string, c container, want bool) {
	t.Helper()
	options := c.Environment["JAVA_TOOL_OPTIONS"]
	if got := options != nil && strings.Contains(*options, "opentelemetry"); got != want {
		t.Errorf("%s has an agent: %v, want %v", name, got, want)
	}
	_, waits := c.DependsOn["agents"]
	if waits != want {
		t.Errorf("%s waits for agents: %v, want %v", name, waits, want)
	}
}
