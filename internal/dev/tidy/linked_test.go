package tidy

import (
	"fmt"
	"os/exec"
	"path"
	"strings"
	"testing"
)

// maxLinked limits the packages that the measuring program may link, including the standard
// library's. Building them is the first minute of everybody's first run.
const maxLinked = 570

// mayLink are the modules that the program may link, with reasons. Indirect modules are listed with
// the direct one.
var mayLink = []struct{ modules, why string }{
	{"github.com/spf13/...", "verbs and flags"},
	{"golang.org/x/...", "the kernel's interface, HTTP/2, statistics of benchmarks"},
	{"google.golang.org/...", "gRPC, which is load, and OTLP, which is pushed"},
	{"go.opentelemetry.io/proto/otlp", "likewise"},
	{"github.com/HdrHistogram/hdrhistogram-go", "latencies"},
	{"gonum.org/v1/gonum github.com/aclements/go-moremath", "special functions, statistics"},
	{"github.com/cilium/ebpf", "profiles by the kernel"},
	{"github.com/coder/websocket", "WebSocket, as load and to that inspector"},
	{"github.com/quic-go/...", "HTTP/3, as load"},
	{"github.com/google/pprof github.com/ianlancetaylor/demangle", "profiles, and their names"},
	{"github.com/goccy/go-yaml github.com/tidwall/...", "suites, manifests and answers are read"},
	{"charm.land/... github.com/charmbracelet/... github.com/clipperhouse/... " +
		"github.com/lucasb-eyer/go-colorful github.com/mattn/go-runewidth " +
		"github.com/muesli/cancelreader github.com/rivo/uniseg github.com/xo/terminfo",
		"the page of a load under way"},
	{"mvdan.cc/sh/v3", "commands of targets and curl lines are parsed"},
	{"github.com/moby/... github.com/docker/go-units github.com/opencontainers/...",
		"containers, in the types of Docker's API"},
}

// mayNotLink are modules that are excluded on purpose, with reasons.
var mayNotLink = []struct{ modules, why string }{
	{"github.com/prometheus/...", "a database is the home's: home/cmd/prony-home"},
	{"go.opentelemetry.io/collector/... github.com/open-telemetry/...",
		"OTLP is taken in by the home: home/cmd/prony-home; what was kept has formats of its own"},
	{"go.opentelemetry.io/otel/sdk/... go.opentelemetry.io/otel/exporters/...",
		"what is pushed is protobuf messages of go.opentelemetry.io/proto/otlp"},
	{"github.com/parquet-go/...", "what writes Parquet is the home's: home/parquet"},
	{"github.com/minio/...", "what speaks to buckets is the home's: home/bucket"},
	{"github.com/moby/moby/client go.opentelemetry.io/otel",
		"Docker's own client traces itself: internal/launch/docker speaks the API"},
	{
		"github.com/chromedp/...",
		"of Node's inspector two answers are read: internal/observe/profile/node",
	},
}

// findLinked checks the packages that a program links: lines of a package and its module, which is
// empty for the standard library.
func findLinked(lines []string, most int) (problems []string) {
	first := map[string]string{} // package of each module
	var modules []string
	for _, line := range lines {
		name, module, ok := strings.Cut(line, " ")
		if ok && module != Module && first[module] == "" {
			first[module] = name
			modules = append(modules, module)
		}
	}
	for _, m := range modules {
		why := "argue it in docs/decisions and in mayLink in internal/dev/tidy/linked_test.go"
		for _, may := range mayLink {
			if matches(may.modules, m) {
				why = ""
			}
		}
		for _, not := range mayNotLink {
			if matches(not.modules, m) {
				why = not.why
			}
		}
		if why != "" {
			problems = append(problems, fmt.Sprintf("cmd/prony links %s of %s: %s", first[m], m,
				why))
		}
	}
	if len(lines) > most {
		problems = append(problems, fmt.Sprintf("cmd/prony links %d packages, limit %d: everybody "+
			"builds them before the first run", len(lines), most))
	}
	for _, may := range mayLink {
		for pattern := range strings.FieldsSeq(may.modules) {
			used := false
			for _, m := range modules {
				used = used || matches(pattern, m)
			}
			if !used {
				problems = append(problems, "mayLink has "+pattern+", which is not linked")
			}
		}
	}
	return problems
}

func TestLinked(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-deps", "-f",
		"{{.ImportPath}}{{with .Module}} {{.Path}}{{end}}", "./cmd/prony")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, p := range findLinked(lines, maxLinked) {
		t.Error(p)
	}
	check := func(line, want string) {
		t.Helper()
		var got []string
		for _, p := range findLinked(append(lines, line), len(lines)+1) {
			if strings.HasPrefix(p, "cmd/prony links") {
				got = append(got, p)
			}
		}
		if text := strings.Join(got, "\n"); (text == "") != (want == "") ||
			!strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", line, text, want)
		}
	}
	check("example.org/new/x example.org/new", "links example.org/new/x of example.org/new: argue")
	check("github.com/prometheus/prometheus/tsdb github.com/prometheus/prometheus", "the home's")
	check("go.opentelemetry.io/otel/sdk/metric go.opentelemetry.io/otel/sdk/metric", "protobuf")
	check("go.opentelemetry.io/collector/pdata/ptrace go.opentelemetry.io/collector/pdata",
		"formats of its own")
	check(path.Join(Module, "internal/x")+" "+Module, "")
	if got := findLinked(lines, len(lines)-1); len(got) != 1 || !strings.Contains(got[0], "limit") {
		t.Errorf("one package too many: %q", got)
	}
}
