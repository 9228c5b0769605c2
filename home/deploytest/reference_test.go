package deploytest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// documented has the types of the documented keys of a program's configuration: by block, then by
// key. A block is named by its keys from the root: "ingester.ring", or "" for the root.
type documented map[string]map[string]string

// readReference reads a file of testdata/reference. Its first lines name the public page from which
// the keys come. No such program was started, so these lists are the only check of the keys.
func readReference(t *testing.T, name string) documented {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/reference", name))
	if err != nil {
		t.Fatal(err)
	}
	known := documented{}
	var block map[string]string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch key, kind, ok := strings.Cut(line, " "); {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			block = map[string]string{}
			known[strings.Trim(line, "[]")] = block
		case ok && block != nil:
			block[key] = kind
		default:
			t.Fatalf("%s: cannot read %q", name, line)
		}
	}
	return known
}

// yamlFiles are the files in YAML that a program reads which no test can start, and their lists of
// keys.
var yamlFiles = map[string]string{
	"grafana/provisioning/dashboards/prony.yaml":  "dashboards.txt",
	"grafana/provisioning/datasources/prony.yaml": "datasources.txt",
	"loki/loki.yaml":           "loki.txt",
	"mimir/mimir.yaml":         "mimir.txt",
	"pyroscope/pyroscope.yaml": "pyroscope.txt",
	"tempo/tempo.yaml":         "tempo.txt",
}

// Each key of a configuration in YAML is in the reference of its program, and its value has the
// documented type.
func TestReference(t *testing.T) {
	for name, list := range yamlFiles {
		var have any
		if err := yaml.Unmarshal([]byte(file(t, name)), &have); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, problem := range readReference(t, list).check("", have) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// check returns the keys below a block that are not documented or have values of another type.
func (r documented) check(block string, value any) (problems []string) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			problems = append(problems, r.check(block, item)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			path := strings.TrimPrefix(block+"."+key, ".")
			kind, ok := r[block][key]
			if !ok {
				problems = append(problems, "the reference has no "+path)
				continue
			}
			if !matches(kind, value[key]) {
				problems = append(problems, fmt.Sprintf("%s is %v, want a value of type %s", path,
					value[key], kind))
			}
			_, nested := r[path]
			if kind == "block" || nested {
				problems = append(problems, r.check(path, value[key])...)
			}
		}
	}
	return problems
}

// aDuration matches 1h30m, and 7d, which Loki, Mimir and Pyroscope also read.
var aDuration = regexp.MustCompile(`^-?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h|d|w|y))+$`)

// matches tells whether a value of a YAML file has a documented type.
func matches(kind string, value any) bool {
	text, isText := value.(string)
	switch kind {
	case "boolean":
		_, ok := value.(bool)
		return ok
	case "int":
		_, ok := value.(uint64)
		return ok
	case "float":
		_, whole := value.(uint64)
		_, ok := value.(float64)
		return ok || whole
	case "string":
		return isText
	case "duration":
		return isText && aDuration.MatchString(text)
	case "list":
		_, ok := value.([]any)
		return ok
	case "block":
		_, ok := value.(map[string]any)
		return ok
	}
	return kind == "any"
}

// The check also finds mistakes.
func TestReferenceRefuses(t *testing.T) {
	known := readReference(t, "loki.txt")
	check := func(text, want string) {
		t.Helper()
		var have any
		if err := yaml.Unmarshal([]byte(text), &have); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(known.check("", have), "; "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	check("auth_enabled: false", "")
	check("auth_enabld: false", "the reference has no auth_enabld")
	check("auth_enabled: no way", "auth_enabled is no way, want a value of type boolean")
	check("server: {http_listen_port: 80a}",
		"server.http_listen_port is 80a, want a value of type int")
	check("limits_config: {retention_period: 72}",
		"limits_config.retention_period is 72, want a value of type duration")
	check("limits_config: {retention: 72h}", "the reference has no limits_config.retention")
	check("schema_config: {configs: [{form: 2025-01-01}]}",
		"the reference has no schema_config.configs.form")
	check("server: 3100", "server is 3100, want a value of type block")
}
