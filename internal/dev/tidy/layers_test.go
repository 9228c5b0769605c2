package tidy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers are the module's packages, lowest first. A package imports from rows above its own (lower
// layers), within its own family (/...), and what neighbours grants. Tests may import anything.
var layers = []string{
	"contract internal/cache internal/cert internal/cli internal/clock internal/compiler " +
		"internal/config internal/door internal/file internal/flat internal/pattern " +
		"internal/print internal/result internal/rights internal/runtimes internal/sched " +
		"internal/shell internal/unit internal/web",
	"internal/asks internal/flat/parquet internal/gc internal/host internal/launch/... " +
		"internal/load/... internal/metric internal/pace internal/probe internal/profile/... " +
		"internal/service internal/slo internal/stats internal/suite internal/telemetry/... " +
		"internal/tests/... internal/truth/...",
	"internal/agent internal/doctor internal/draft internal/driver internal/own " +
		"internal/scaffold internal/system internal/table internal/verdict",
	"internal/audit internal/comparison internal/generators/... internal/shelf internal/trend",
	"internal/bucket internal/capacity internal/live internal/report internal/selftest " +
		"internal/summary internal/trial",
	"internal/lab/... internal/site",
	"internal/serve",
	"bench/... cmd/prony cmd/prony-home internal/dashboard internal/deploy internal/faults " +
		"internal/first internal/pin internal/release internal/tidy",
}

// neighbours are the imports inside one layer: who, what, why.
var neighbours = []neighbour{
	{"internal/load/...", "internal/pace", "arrivals are drawn as they fall due"},
	{"internal/cert", "internal/clock", "a certificate is valid from now on"},
	{"internal/config", "internal/pattern", "the form of a size"},
	{"internal/result", "internal/file", "a run's folder is read within bounds"},
	{"internal/cli", "internal/print", "the end of a file's name asks for a format"},
	{"internal/profile/...", "internal/host", "what /proc says of a process is read in one way"},
	{"internal/launch/kubernetes", "internal/probe", "a reader on another node samples there"},
	{"internal/launch/attached", "internal/host", "whose a port is, the kernel says"},
	{"internal/metric", "internal/stats", "a start that was never steady has its word there"},
	{"internal/suite", "internal/metric", "a column is checked where it is asked for"},
	{"internal/suite", "internal/asks", "a counter is checked where it is written"},
	{"internal/service", "internal/asks", "likewise in a manifest"},
	{"internal/suite", "internal/pace", "a shape is read where it is written, with its line"},
	{"internal/suite", "internal/load/...", "so are texts and what looks into answers"},
	{"internal/suite", "internal/slo", "so are the objectives of a search"},
	{"internal/slo", "internal/stats", "how many answers a percentile takes"},
	{"internal/telemetry/...", "internal/service", "the home's program is built as services are"},
	{"internal/comparison", "internal/audit", "published results are read in one place"},
	{"internal/trial", "internal/capacity", "a load of a trial may be a search"},
	{"internal/trial", "internal/summary", "a load's log has one form, in a trial or alone"},
	{"internal/truth/...", "internal/pace", "service times are drawn as arrivals are"},
}

type neighbour struct{ from, to, why string }

// rules forbid what the layers alone would allow.
var rules = []rule{
	{from: "internal/stats", to: "contract internal/...", butTo: "internal/result",
		why: "statistics are functions of records"},
	{from: "internal/report internal/stats internal/table internal/verdict",
		to:  "net net/http os/exec",
		why: "what it says must follow from the records, anywhere, at any time"},
	{from: "internal/load/...", to: "internal/launch/... internal/trial",
		why: "a generator knows an address, not what listens there"},
	{from: "...", butFrom: "internal/lab/... internal/trial cmd/...",
		to:  "internal/launch/process",
		why: "the others start targets through the interface of internal/launch"},
	{from: "...", butFrom: "internal/telemetry/... internal/lab/machine cmd/... bench/...",
		to: "internal/telemetry/...", butTo: "internal/telemetry",
		why: "the home of telemetry is another process: what measures knows only how to tell it"},
	{from: "...", butFrom: "internal/truth/... internal/selftest bench/... cmd/...",
		to:  "internal/truth/...",
		why: "a server made for tests is no part of a measurement"},
	{from: "...", butFrom: "internal/tests/...", to: "internal/tidy internal/tests",
		why: "it is for tests alone"},
	{from: "...", to: "cmd/...", why: "commands are wired, not used"},
}

// rule says that no package of from, except butFrom, imports one of to, except butTo.
type rule struct{ from, butFrom, to, butTo, why string }

// edge is one import. Packages of this module are named by their folder.
type edge struct {
	from, to string
	at       problem // where; its text is empty
}

// edges are the imports of this module's code outside its tests.
func edges(t tree) []edge {
	var all []edge
	for _, s := range t.sources() {
		if s.test || !s.module {
			continue
		}
		for _, spec := range s.file.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue // cannot be: it parsed
			}
			to = strings.TrimPrefix(to, Module+"/")
			all = append(all, edge{s.dir, to, problem{s.name, s.line(spec.Pos()), ""}})
		}
	}
	return all
}

// packages are the folders of this module that hold Go code outside tests.
func packages(t tree) []string {
	var all []string
	for _, s := range t.sources() {
		if !s.test && s.module && !slices.Contains(all, s.dir) {
			all = append(all, s.dir)
		}
	}
	return all
}

func layerOf(layers []string, dir string) int {
	return slices.IndexFunc(layers, func(layer string) bool { return matches(layer, dir) })
}

// family is the pattern of a layer that stands for a package.
func family(layers []string, dir string) string {
	for pattern := range strings.FieldsSeq(strings.Join(layers, " ")) {
		if matches(pattern, dir) {
			return pattern
		}
	}
	return ""
}

// findImports wants every package in a layer, every layer's name in use, and imports downwards.
func findImports(t tree, layers []string, neighbours []neighbour) []problem {
	var problems []problem
	known := packages(t)
	for _, dir := range known {
		if layerOf(layers, dir) < 0 {
			problems = append(problems, problem{dir, 0, "in no layer: add it to layers in " +
				"internal/tidy/layers_test.go, above all that it imports"})
		}
	}
	for pattern := range strings.FieldsSeq(strings.Join(layers, " ")) {
		if !slices.ContainsFunc(known, func(dir string) bool { return matches(pattern, dir) }) {
			problems = append(problems, problem{"internal/tidy/layers_test.go", 0,
				"layers names " + pattern + ", which holds no package"})
		}
	}
	for _, e := range edges(t) {
		from, to := layerOf(layers, e.from), layerOf(layers, e.to)
		granted := slices.ContainsFunc(neighbours, func(n neighbour) bool {
			return matches(n.from, e.from) && matches(n.to, e.to)
		})
		switch {
		case from < 0 || to < 0 || to < from:
			// downwards, or the standard library's, or reported above
		case to > from:
			e.at.text = fmt.Sprintf("%s imports %s, which is %d layers up", e.from, e.to,
				to-from)
			problems = append(problems, e.at)
		case !granted && family(layers, e.from) != family(layers, e.to):
			e.at.text = fmt.Sprintf("%s imports %s of its own layer: let what is above bring them "+
				"together, or argue it in neighbours in internal/tidy/layers_test.go", e.from, e.to)
			problems = append(problems, e.at)
		}
	}
	return problems
}

func findRules(t tree) []problem {
	var problems []problem
	for _, e := range edges(t) {
		for _, r := range rules {
			if matches(r.from, e.from) && !matches(r.butFrom, e.from) &&
				matches(r.to, e.to) && !matches(r.butTo, e.to) {
				e.at.text = fmt.Sprintf("%s may not import %s: %s", e.from, e.to, r.why)
				problems = append(problems, e.at)
			}
		}
	}
	return problems
}

// goFile is a Go file of a package with these imports, one a line from line 3.
func goFile(imports ...string) string {
	text := "package p\n\n"
	for _, path := range imports {
		text += fmt.Sprintf("import _ %q\n", path)
	}
	return text
}

func TestImports(t *testing.T) {
	layers := []string{"internal/low internal/beside", "internal/high/..."}
	granted := []neighbour{{"internal/beside", "internal/low", "a test"}}
	find := func(t tree) []problem { return findImports(t, layers, granted) }
	const low, beside, high = "internal/low/a.go", "internal/beside/a.go", "internal/high/a.go"
	const below = "internal/high/below/a.go"
	for _, row := range []struct {
		files tree
		want  []string
	}{
		{files: tree{low: goFile("fmt"), high: goFile("prony/internal/low"), beside: goFile()}},
		{files: tree{low: goFile("prony/internal/high"), beside: goFile(), high: goFile()},
			want: []string{"internal/low/a.go:3: internal/low imports internal/high, which is 1"}},
		{files: tree{low: goFile(), beside: goFile("prony/internal/low"), high: goFile()}},
		{files: tree{low: goFile("os", "prony/internal/beside"), beside: goFile(), high: goFile()},
			want: []string{"internal/low/a.go:4: internal/low imports internal/beside of its own"}},
		{files: tree{low: goFile(), beside: goFile(), high: goFile("prony/internal/high/below"),
			below: goFile()}},
		{files: tree{low: goFile(), beside: goFile(), high: goFile(), "internal/x/x.go": goFile()},
			want: []string{"internal/x: in no layer: add it to layers in"}},
		{files: tree{low: goFile(), beside: goFile()},
			want: []string{"internal/tidy/layers_test.go: layers names internal/high/..., which"}},
		{files: tree{low: goFile(), beside: goFile(), high: goFile(), // not ours to judge
			"internal/low/a_test.go": goFile("prony/internal/high"),
			"services/go-x/go.mod":   "module x\n", "services/go-x/main.go": goFile()}},
	} {
		red(t, find, row.files, row.want...)
	}
}

func TestRules(t *testing.T) {
	for _, row := range []struct{ from, to, want string }{
		{"internal/stats", "prony/record", ""},
		{"internal/stats", "math", ""},
		{"internal/stats", "prony/internal/base/clock", "statistics are functions"},
		{"internal/verdict", "net/http", "must follow from the records"},
		{"internal/report", "os/exec", "must follow from the records"},
		{"internal/table", "net", "must follow from the records"},
		{"internal/table", "net/url", ""},
		{"internal/web", "net/http", ""},
		{"internal/load/h1", "prony/internal/launch", "a generator knows an address"},
		{"internal/load", "prony/internal/trial", "a generator knows an address"},
		{"internal/trial", "prony/internal/launch/process", ""},
		{"cmd/prony", "prony/internal/launch/process", ""},
		{"internal/web", "prony/internal/launch/process", "through the interface"},
		{"internal/web", "prony/internal/launch/docker", ""},
		{"internal/trial", "prony/internal/generator/truth", "made for tests"},
		{"bench", "prony/internal/generator/truth", ""},
		{"cmd/prony", "prony/internal/dev/tidy", "for tests alone"},
		{"bench/peers", "prony/cmd/prony", "commands are wired"},
	} {
		var want []string
		if row.want != "" {
			to := strings.TrimPrefix(row.to, "prony/")
			want = []string{row.from + "/a.go:3: " + row.from + " may not import " + to + ": "}
		}
		files := tree{row.from + "/a.go": goFile(row.to)}
		red(t, findRules, files, want...)
		for _, p := range findRules(files) {
			if !strings.Contains(p.text, row.want) {
				t.Errorf("%s: want the reason %q", p, row.want)
			}
		}
	}
}
