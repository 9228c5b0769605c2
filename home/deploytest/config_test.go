package deploytest

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"

	"prony.example/internal/suite/agents"
)

// file reads a file of deploy/.
func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// configured are the configuration files of the containers.
var configured = []string{
	"alloy/config.alloy", "alloy/ebpf.alloy", "grafana/provisioning/dashboards/prony.yaml",
	"grafana/provisioning/datasources/prony.yaml", "loki/loki.yaml", "mimir/mimir.yaml",
	"pyroscope/pyroscope.yaml", "tempo/tempo.yaml", "tester/jmx/rules.yaml",
	"tester/prometheus.yaml",
}

// assignment matches a line of .env, reference the use of a variable in a Compose file.
var (
	assignment = regexp.MustCompile(`(?m)^([A-Z][A-Z0-9_]*)=(.*)$`)
	reference  = regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]*)([:}?+-])-?`)
	// A host and its port, with or without a scheme.
	address = regexp.MustCompile(`(?:^|["/\s\[])([a-z][a-z0-9-]*):([0-9]{2,5})\b`)
)

// All variables in .env are used, and all used variables are set there or have a default.
func TestEnv(t *testing.T) {
	set := map[string]bool{}
	for _, m := range assignment.FindAllStringSubmatch(file(t, ".env"), -1) {
		if set[m[1]] {
			t.Errorf(".env sets %s twice", m[1])
		}
		set[m[1]] = true
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy", "*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d Compose files: %v", len(files), err)
	}
	used := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reference.FindAllStringSubmatch(string(text), -1) {
			used[m[1]] = true
			if !set[m[1]] && m[2] != ":" {
				t.Errorf("%s uses %s, which .env does not set", filepath.Base(name), m[1])
			}
		}
	}
	for name := range set {
		if !used[name] {
			t.Errorf(".env sets %s, which nothing uses", name)
		}
	}
}

// Each file is valid YAML, and each host in it is a service of Compose.
func TestConfigured(t *testing.T) {
	known := everything(t).names()
	for _, name := range configured {
		text := file(t, name)
		if strings.HasSuffix(name, ".yaml") {
			var any map[string]any
			if err := yaml.Unmarshal([]byte(text), &any); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, m := range address.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(known, m[1]) {
				t.Errorf("%s speaks of %s:%s, and no service is called so", name, m[1], m[2])
			}
		}
	}
	for _, m := range assignment.FindAllStringSubmatch(file(t, ".env"), -1) {
		for _, at := range address.FindAllStringSubmatch(m[2], -1) {
			if strings.HasPrefix(m[2], "http") && !slices.Contains(known, at[1]) {
				t.Errorf(".env: %s speaks of %s, and no service is called so", m[1], at[1])
			}
		}
	}
}

// Prometheus' own parser reads the tester's file.
func TestPrometheusReads(t *testing.T) {
	c, err := config.Load(file(t, "tester/prometheus.yaml"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, job := range c.ScrapeConfigs {
		for _, d := range job.ServiceDiscoveryConfigs {
			for _, group := range d.(discovery.StaticConfig) {
				roles = append(roles, string(group.Labels["role"]))
			}
		}
	}
	if want := []string{"baseline", "agent", ""}; !slices.Equal(roles, want) {
		t.Errorf("Prometheus scrapes the roles %q, want %q", roles, want)
	}
}

// provisioned has the fields of Grafana's file of data sources that these tests read.
type provisioned struct {
	Datasources []struct {
		Name, UID, Type, URL string
		IsDefault            bool `yaml:"isDefault"`
		JSONData             struct {
			Exemplars     []target `yaml:"exemplarTraceIdDestinations"`
			DerivedFields []target `yaml:"derivedFields"`
			Logs          target   `yaml:"tracesToLogsV2"`
			Metrics       target   `yaml:"tracesToMetrics"`
			Profiles      target   `yaml:"tracesToProfiles"`
			Map           target   `yaml:"serviceMap"`
		} `yaml:"jsonData"`
	}
}

type target struct {
	UID string `yaml:"datasourceUid"`
}

// Points link to traces; traces to logs, metrics and profiles; log lines to traces.
func TestCorrelated(t *testing.T) {
	var p provisioned
	name := "grafana/provisioning/datasources/prony.yaml"
	if err := yaml.Unmarshal([]byte(file(t, name)), &p); err != nil {
		t.Fatal(err)
	}
	leads := map[string][]string{}
	for _, d := range p.Datasources {
		j := d.JSONData
		for _, to := range slices.Concat(j.Exemplars, j.DerivedFields,
			[]target{j.Logs, j.Metrics, j.Profiles, j.Map}) {
			if to.UID != "" {
				leads[d.UID] = append(leads[d.UID], to.UID)
			}
		}
		leads[d.UID] = append(leads[d.UID], "")
	}
	for from, want := range map[string][]string{
		"mimir": {"tempo"}, "prometheus": {"tempo"}, "loki": {"tempo"},
		"tempo": {"loki", "mimir", "pyroscope"}, "pyroscope": {""},
	} {
		for _, to := range want {
			if !slices.Contains(leads[from], to) {
				t.Errorf("nothing leads from %s to %q: %v", from, to, leads[from])
			}
		}
	}
	for from, all := range leads {
		for _, to := range all {
			if _, ok := leads[to]; !ok && to != "" {
				t.Errorf("%s leads to %s, which is not provisioned", from, to)
			}
		}
	}
	checkDashboards(t, leads)
}

// checkDashboards checks the data sources of each dashboard, and the home dashboard.
func checkDashboards(t *testing.T, sources map[string][]string) {
	t.Helper()
	var uids []string
	for _, folder := range []string{"helm/prony/dashboards", "tester/dashboards"} {
		files, err := filepath.Glob(filepath.Join(root, "deploy", folder, "*.json"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no dashboards: %v", folder, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var board any
			if err := json.Unmarshal(text, &board); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, uid := range sourcesOf(board) {
				_, ok := sources[uid]
				if !ok && !strings.HasPrefix(uid, "$") && !strings.HasPrefix(uid, "-- ") {
					t.Errorf("%s asks the data source %s, which is not provisioned", name, uid)
				}
			}
			uids = append(uids, filepath.Base(name))
		}
	}
	grafana := everything(t).Services["grafana"]
	home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	if home == nil || !slices.Contains(uids, filepath.Base(*home)) {
		t.Errorf("Grafana's home is no dashboard of ours: %v", uids)
	}
}

// sourcesOf returns the uids in all objects named datasource.
func sourcesOf(v any) []string {
	var out []string
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = append(out, sourcesOf(e)...)
		}
	case map[string]any:
		if d, ok := v["datasource"].(map[string]any); ok {
			if uid, ok := d["uid"].(string); ok {
				out = append(out, uid)
			}
		}
		for _, e := range v {
			out = append(out, sourcesOf(e)...)
		}
	}
	return out
}

// Versions and digests of agents in containers are those of agents.yaml.
func TestAgents(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "agents.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := agents.Read("agents.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	pom, sums := file(t, "agents/pom.xml"), file(t, "agents/SHA256SUMS")
	for _, name := range []string{"otel-java", "jmx-exporter", "pyroscope-java"} {
		a, err := catalog.Pick(name)
		if err != nil {
			t.Fatal(err)
		}
		at := strings.Split(a.Fetch.Maven, ":")
		want := "<artifactId>" + at[1] + "</artifactId>\n      <version>" + at[2] + "</version>"
		if !strings.Contains(pom, want) {
			t.Errorf("deploy/agents/pom.xml has not the %s of agents.yaml", a.Fetch.Maven)
		}
		if !strings.Contains(sums, a.SHA256+"  "+at[1]+".jar\n") {
			t.Errorf("deploy/agents/SHA256SUMS has not the digest of %s in agents.yaml", name)
		}
	}
}

// The plan sends the requests of the published benchmark, equally to both sides.
func TestPlan(t *testing.T) {
	plan := file(t, "tester/jmeter/petclinic.jmx")
	for _, want := range []string{
		`testname="Owner Details"`, ">/api/gateway/owners/2<", `testname="All Vets"`,
		">/api/vet/vets<",
	} {
		if n := strings.Count(plan, want); n != 2 {
			t.Errorf("the plan has %s %d times, want it for each side", want, n)
		}
	}
	// Without this jar JMeter resolves ${__P(...)} to no users, and ends successfully.
	if !strings.Contains(file(t, "tester/jmeter/pom.xml"), ">ApacheJMeter_functions<") {
		t.Error("deploy/tester/jmeter/pom.xml has not the functions that the plan calls")
	}
	for _, name := range everything(t).Services["jmeter"].Command {
		property, _, _ := strings.Cut(strings.TrimPrefix(name, "-J"), "=")
		if !strings.Contains(plan, "${__P("+property+",") {
			t.Errorf("jmeter is given %s, which the plan does not ask for", property)
		}
	}
}
