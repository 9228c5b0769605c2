package tidy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms are the folders of packages, highest first: the list of the design. A package imports only
// from its own room and the rooms below. Tests may import anything.
var rooms = []string{
	"cmd", "home", "bench", "internal/dev", "internal/server", "internal/trial", "internal/report",
	"internal/generator", "internal/launch", "internal/suite", "internal/telemetry",
	"internal/analysis", "internal/observe", "internal/service", "load", "record", "stats",
	"internal/base", "contract",
}

// maxArrows limits how many pairs of rooms import each other's packages.
const maxArrows = 80

// maxInternal limits the rooms below internal/.
const maxInternal = 13

// rules forbid imports that the layers alone would permit.
var rules = []rule{
	{from: "stats", to: "contract internal/...", butTo: "record",
		why: "statistics are functions of records"},
	{from: "internal/report stats internal/analysis/table internal/analysis/verdict",
		to:  "net net/http os/exec",
		why: "what it says must follow from the records, anywhere, at any time"},
	{from: "load/...", to: "internal/launch/... internal/trial",
		why: "a generator knows an address, not what listens there"},
	{from: "...", butFrom: "internal/trial/lab/... internal/trial/machine internal/trial cmd/...",
		to:  "internal/launch/process",
		why: "the others start targets through the interface of internal/launch"},
	{from: "...", butFrom: "home/...", to: "home/...",
		why: "prony-home is another process and another module"},
	{
		from:    "...",
		butFrom: "internal/generator/truth/... internal/generator/selftest bench/... cmd/...",
		to:      "internal/generator/truth/...",
		why:     "a server made for tests is no part of a measurement",
	},
	{
		from:    "...",
		butFrom: "internal/dev/testsets/...",
		to:      "internal/dev/tidy internal/dev/testsets",
		why:     "it is for tests alone",
	},
	{from: "...", to: "cmd/... home/cmd/...", why: "commands are wired, not used"},
}

// rule forbids that a package of from, except butFrom, imports one of to, except butTo.
type rule struct{ from, butFrom, to, butTo, why string }

// edge is one import. Packages of this module are named by their folder.
type edge struct {
	from, to string
	at       problem // place; its text is empty
}

// edges returns the imports of this module's code outside its tests.
func edges(t tree) []edge {
	var all []edge
	for _, s := range t.sources() {
		if s.test || !s.module {
			continue
		}
		for _, spec := range s.file.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue // impossible, because the file parsed
			}
			to = strings.TrimPrefix(to, Module+"/")
			all = append(all, edge{s.dir, to, problem{s.name, s.line(spec.Pos()), ""}})
		}
	}
	return all
}

// packages returns the folders of this module that contain Go code outside tests.
func packages(t tree) []string {
	var all []string
	for _, s := range t.sources() {
		if !s.test && s.module && !slices.Contains(all, s.dir) {
			all = append(all, s.dir)
		}
	}
	return all
}

// roomOf returns the index of the room that contains a package, or -1.
func roomOf(rooms []string, dir string) int {
	return slices.IndexFunc(rooms, func(room string) bool { return matches(room+"/...", dir) })
}

// findImports reports packages outside of all rooms, rooms without a package, and imports upwards.
func findImports(t tree, rooms []string) []problem {
	const here = "internal/dev/tidy/layers_test.go"
	var problems []problem
	known := packages(t)
	for _, dir := range known {
		if roomOf(rooms, dir) < 0 {
			problems = append(
				problems,
				problem{dir, 0, "in no room: move it into one of rooms in " + here},
			)
		}
	}
	for i, room := range rooms {
		if !slices.ContainsFunc(known, func(dir string) bool { return roomOf(rooms, dir) == i }) {
			problems = append(
				problems,
				problem{here, 0, "rooms names " + room + ", which holds no package"},
			)
		}
	}
	for _, e := range edges(t) {
		from, to := roomOf(rooms, e.from), roomOf(rooms, e.to)
		if from >= 0 && to >= 0 && to < from {
			e.at.text = fmt.Sprintf("%s imports %s, which is in a room above", e.from, e.to)
			problems = append(problems, e.at)
		}
	}
	return problems
}

// arrows counts the pairs of rooms of which the first imports packages of the second.
func arrows(t tree, rooms []string) int {
	pairs := map[[2]int]bool{}
	for _, e := range edges(t) {
		if from, to := roomOf(rooms, e.from), roomOf(rooms, e.to); from >= 0 && to >= 0 &&
			from != to {
			pairs[[2]int{from, to}] = true
		}
	}
	return len(pairs)
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

// goFile returns a Go file of a package with these imports, one per line from line 3.
func goFile(imports ...string) string {
	text := "package p\n\n"
	for _, path := range imports {
		text += fmt.Sprintf("import _ %q\n", path)
	}
	return text
}

func TestImports(t *testing.T) {
	rooms := []string{"internal/high", "internal/low"}
	find := func(t tree) []problem { return findImports(t, rooms) }
	const low, high, below = "internal/low/a.go", "internal/high/a.go", "internal/high/below/a.go"
	for _, row := range []struct {
		files tree
		want  []string
	}{
		{files: tree{low: goFile("fmt"), high: goFile(Module + "/internal/low")}},
		{files: tree{low: goFile(Module + "/internal/high"), high: goFile()},
			want: []string{"internal/low/a.go:3: internal/low imports internal/high, which is in"}},
		{files: tree{low: goFile(), below: goFile(),
			high: goFile(Module + "/internal/high/below")}},
		{files: tree{low: goFile(), high: goFile(), "internal/x/x.go": goFile()},
			want: []string{"internal/x: in no room: move it"}},
		{files: tree{low: goFile()},
			want: []string{"internal/dev/tidy/layers_test.go: rooms names internal/high, which"}},
		{files: tree{low: goFile(), high: goFile(), // not part of this module
			"internal/low/a_test.go": goFile(Module + "/internal/high"),
			"services/go-x/go.mod":   "module x\n", "services/go-x/main.go": goFile()}},
	} {
		red(t, find, row.files, row.want...)
	}
	two := tree{
		low:   goFile("fmt"),
		high:  goFile(Module+"/internal/low", Module+"/internal/high/below"),
		below: goFile(Module + "/internal/low"),
	}
	if n := arrows(two, rooms); n != 1 {
		t.Errorf("%d arrows, want 1: packages of a room count once, and its own packages never", n)
	}
}

// The number of rooms and of their dependencies stays small enough for newcomers.
func TestRooms(t *testing.T) {
	tree, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if n := arrows(tree, rooms); n > maxArrows {
		t.Errorf(
			"%d pairs of rooms import each other's packages, at most %d are allowed",
			n,
			maxArrows,
		)
	}
	internal := 0
	for _, room := range rooms {
		if strings.HasPrefix(room, "internal/") {
			internal++
		}
	}
	if internal > maxInternal {
		t.Errorf("%d rooms below internal/, at most %d are allowed", internal, maxInternal)
	}
}

func TestRules(t *testing.T) {
	for _, row := range []struct{ from, to, want string }{
		{"stats", Module + "/record", ""},
		{"stats", "math", ""},
		{"stats", Module + "/internal/base/clock", "statistics are functions"},
		{"internal/analysis/verdict", "net/http", "must follow from the records"},
		{"internal/report", "os/exec", "must follow from the records"},
		{"internal/analysis/table", "net", "must follow from the records"},
		{"internal/analysis/table", "net/url", ""},
		{"internal/server/app", "net/http", ""},
		{"load/engine/http1", Module + "/internal/launch", "a generator knows an address"},
		{"load", Module + "/internal/trial", "a generator knows an address"},
		{"internal/trial", Module + "/internal/launch/process", ""},
		{"cmd/prony", Module + "/internal/launch/process", ""},
		{"internal/server/app", Module + "/internal/launch/process", "through the interface"},
		{"internal/server/app", Module + "/internal/launch/docker", ""},
		{"internal/trial", Module + "/internal/generator/truth", "made for tests"},
		{"bench", Module + "/internal/generator/truth", ""},
		{"cmd/prony", Module + "/internal/dev/tidy", "for tests alone"},
		{"bench/peers", Module + "/cmd/prony", "commands are wired"},
	} {
		var want []string
		if row.want != "" {
			to := strings.TrimPrefix(row.to, Module+"/")
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
