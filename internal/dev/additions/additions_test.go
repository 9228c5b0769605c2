package additions

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/dev/testsets"
)

const checkout = "../../.."

// addition is a kind of contribution: a section of CONTRIBUTING.md.
type addition struct {
	section string
	steps   []step
	checks  []check
	// asked are files without whose step a check fails.
	asked []string
}

// step changes a file directly or by a command.
type step struct {
	file   string
	change func(t *testing.T, text string) string
	update check // if a test writes the file
}

// check is a package with a pattern of its tests, or vet.
type check struct{ pkg, run string }

const vet = "vet" // because its tests would link the whole program

// put replaces a text that occurs once.
func put(old, with string) func(*testing.T, string) string {
	return func(t *testing.T, text string) string {
		t.Helper()
		if n := strings.Count(text, old); n != 1 {
			t.Fatalf("%q is there %d times, want once", old, n)
		}
		return strings.Replace(text, old, with, 1)
	}
}

// end appends a text to a file.
func end(with string) func(*testing.T, string) string {
	return func(_ *testing.T, text string) string { return text + with }
}

var additions = []addition{
	{
		section: "Add a verdict rule",
		steps: []step{
			{file: "internal/analysis/verdict/rules.go", change: put("var loadRules = []Rule{\n",
				"var loadRules = []Rule{\n\t{\"brand\", \"it has fewer than 99 threads\", \"\", "+
					"\"SUSPECT\", \"nobody\", brand},\n")},
			{file: "internal/analysis/verdict/answers.go", change: end(`
func brand(_ *record.Record, l *load) *record.Finding {
	if l.Threads < 99 {
		return nil
	}
	return suspect(record.Finding{Value: float64(l.Threads), Limit: 98, Unit: record.UnitCount,
		Side: record.Above})
}
`)},
			{file: "internal/analysis/wording/findings.go", change: put("	\"failed\": failed,",
				"	\"brand\": func(f record.Finding) record.Words {\n"+
					"		return words(\"use fewer threads\", \"98\", "+
					"\"%.0f threads\", f.Value)\n"+
					"	},\n	\"failed\": failed,")},
			{file: "internal/analysis/verdict/rows_test.go", change: put("var trialRows = []row{\n",
				"var trialRows = []row{\n"+
					"\t{\"brand\", peak, valid, func(_ rec, l ld) { l.Threads = 98 }},\n"+
					"\t{\"brand\", peak, suspect, func(_ rec, l ld) { l.Threads = 99 }},\n")},
			{file: "docs/checks.md", change: put("**backend calls** |",
				"**backend calls**, **brand** |")},
			{file: "docs/formats/verdict-rules.md",
				update: check{"./internal/analysis/verdict", "Lists"}},
		},
		checks: []check{{"./internal/analysis/verdict", "Rule|Rows|Healthy|Unknown|Lists|Checks"}},
		asked: []string{
			"internal/analysis/verdict/rows_test.go",
			"docs/checks.md",
			"docs/formats/verdict-rules.md",
		},
	},
	{
		section: "Add a load shape",
		steps: []step{
			{file: "load/pace/pace.go", change: func(t *testing.T, text string) string {
				text = put("	Replay   = \"replay\"\n",
					"	Replay   = \"replay\"\n	Paired   = \"paired\"\n")(t, text)
				text = put("s.Arrivals != Constant && s.Arrivals != Poisson {",
					"s.Arrivals != Constant && s.Arrivals != Poisson && s.Arrivals != Paired {")(t,
					text)
				text = put("	return &poisson{gapNs: gapNs, seed: seed}, nil\n",
					"	if s.Arrivals == Paired {\n"+
						"		return &paired{gapNs: gapNs}, nil\n	}\n"+
						"	return &poisson{gapNs: gapNs, seed: seed}, nil\n")(t, text)
				return text + `
type paired struct{ gapNs, k float64 }

func (p *paired) Next() int64 {
	p.k++
	return int64(math.Floor((p.k-1)/2) * 2 * p.gapNs)
}
`
			}},
			{file: "load/pace/pace_test.go", change: end(`
func TestPaired(t *testing.T) {
	p, err := Schedule{Arrivals: Paired, Rate: Flat(1000)}.Process(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{0, 0, 2e6, 2e6} {
		if got := p.Next(); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}
`)},
			{file: "internal/suite/suite.go", change: put("	Replay   = \"replay\"   // from a",
				"	Paired   = \"paired\"\n	Replay   = \"replay\"   // from a")},
			{file: "internal/suite/parameters.go", change: put("{Poisson, Constant, Replay}",
				"{Poisson, Constant, Replay, Paired}")},
			{file: "docs/formats/suite.md", update: check{"./internal/suite", "Published"}},
		},
		checks: []check{{"./load/pace", "Paired"}, {"./internal/suite", "Published|Schema"}},
		asked:  []string{"load/pace/pace.go", "docs/formats/suite.md"},
	},
	{
		section: "Add a column",
		steps: []step{
			{file: "record/metric/list.go", change: put("	{Name: \"max\", Unit: unit.Ns,",
				`	{Name: "window", Unit: unit.Ns, Asked: true,
		Label: "window", Better: "shorter", Worse: "longer",
		Load:    func(l *result.Load) float64 { return Positive(float64(l.WindowNs)) },
		Missing: "it has no window", Column: &Column{"window", "window", OfLoad, 6, nil},
		Doc: "how long it was"},
	{Name: "max", Unit: unit.Ns,`)},
			{file: "docs/formats/report-csv.md", update: check{"./record/metric", "Documen"}},
			{file: "docs/formats/suite.md", update: check{"./internal/suite", "Published"}},
			{file: "internal/report/testdata/long.csv", update: check{"./internal/report",
				"TestCSV|TestJSON"}},
		},
		checks: []check{{"./record/metric", "."}, {"./internal/suite", "Published"},
			{"./internal/analysis/table", "Column"}, {"./internal/report", "TestCSV|TestJSON"}},
		asked: []string{"docs/formats/report-csv.md", "docs/formats/suite.md",
			"internal/report/testdata/long.csv"},
	},
	{
		section: "Add an output format",
		steps: []step{
			{file: "docs/formats/report-toml.md", change: end("# The report as TOML\n")},
			{file: "ARCHITECTURE.md", change: put("- [the report as CSV]",
				"- [the report as TOML](docs/formats/report-toml.md)\n- [the report as CSV]")},
			{file: "internal/report/toml.go", change: end(`package report

import (
	"fmt"
	"io"

	"prony.example/internal/analysis/table"
)

// TOML writes how many scenarios there are.
func TOML(w io.Writer, s table.Study) error {
	_, err := fmt.Fprintf(w, "scenarios = %d\n", len(s.Scenarios))
	return err
}
`)},
			{file: "internal/report/toml_test.go", change: end(`package report

import (
	"strings"
	"testing"

	"prony.example/internal/analysis/table"
)

func TestTOML(t *testing.T) {
	var b strings.Builder
	if err := TOML(&b, table.Study{}); err != nil || b.String() != "scenarios = 0\n" {
		t.Errorf("%q, %v", &b, err)
	}
}
`)},
			{file: "internal/base/format/format.go", change: put("	{\"parquet\",",
				"	{\"toml\", []string{\"toml\"}},\n	{\"parquet\",")},
			{file: "internal/base/format/print_test.go", change: put(
				"	same(t, FormatOf(\"xml\"), \"\")\n",
				"	same(t, FormatOf(\"xml\"), \"\")\n	same(t, Ending(\"toml\"), \"toml\")\n")},
			{file: "cmd/prony/report.go", change: put("	{Format: \"parquet\", Write:",
				"	{Format: \"toml\", Write: func(w io.Writer, p printing) error {\n"+
					"		return report.TOML(w, p.study)\n	}},\n"+
					"	{Format: \"parquet\", Write:")},
		},
		checks: []check{{"./internal/report", "TOML"}, {"./internal/base/format", "Formats"},
			{"./internal/dev/tidy", "TestTidy/(formats|links|imports|map)"}, {"./cmd/prony", vet}},
		asked: []string{
			"ARCHITECTURE.md",
			"internal/base/format/format.go",
			"internal/report/toml.go",
		},
	},
}

// repository makes a copy of the files that git has or would add.
func repository(t *testing.T) string {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "-co", "--exclude-standard")
	list.Dir = checkout
	out, err := list.Output()
	if err != nil {
		t.Skipf("no repository to copy: %v", err)
	}
	root := t.TempDir()
	for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(checkout, file), filepath.Join(root, file)); err != nil &&
			!os.IsNotExist(err) { // removed, but not committed
			t.Fatal(err)
		}
	}
	return root
}

// copyFile copies a file with its mode, and creates its folder.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

// goTest runs tests in a copy of the repository. With the flags of all tests, it compiles only what
// a step has changed.
func goTest(root string, c check, flags ...string) (string, error) {
	pkg, dir := c.pkg, root
	if below, ok := strings.CutPrefix(pkg, "./home/"); ok { // home is a separate module
		pkg, dir = "./"+below, filepath.Join(root, "home")
	}
	args := slices.Concat([]string{"test", "-vet=off", "-count=1"}, buildflags.Flags,
		[]string{buildflags.Link, "-run", c.run, pkg}, flags)
	if c.run == vet {
		args = slices.Concat([]string{"vet"}, buildflags.Flags, []string{pkg})
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// passes reports whether all checks of an addition pass, with their output.
func (a addition) passes(root string) (said string, ok bool) {
	for _, c := range a.checks {
		out, err := goTest(root, c)
		said += out
		if err != nil {
			return said, false
		}
	}
	return said, true
}

// do applies a step and returns a function that undoes it.
func (s step) do(t *testing.T, root string) (undo func()) {
	t.Helper()
	at := filepath.Join(root, s.file)
	old, err := os.ReadFile(at)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if s.update.pkg != "" {
		if out, err := goTest(root, s.update, "-update"); err != nil {
			t.Fatalf("%s: %v\n%s", s.file, err, out)
		}
	} else if err := os.WriteFile(at, []byte(s.change(t, string(old))), 0o644); err != nil {
		t.Fatal(err)
	}
	was := err
	return func() {
		err := os.Remove(at)
		if was == nil {
			err = os.WriteFile(at, old, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// section returns the text of CONTRIBUTING.md below a heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(checkout, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("CONTRIBUTING.md has no section %q", heading)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// names reports whether a section mentions a file, or its new folder.
func names(text, file string) bool {
	return strings.Contains(text, "`"+file+"`") ||
		strings.Contains(text, "`"+filepath.Dir(file)+"/`")
}

func TestAdditions(t *testing.T) {
	needs := testsets.Needs{
		Files: []string{
			"internal",
			"load",
			"record",
			"stats",
			"docs",
			"cmd",
			"suites",
			"CONTRIBUTING.md",
			"ARCHITECTURE.md",
		}}
	testsets.Once(t, "an addition to a copy of the repository", needs)
	more := testsets.More(t, needs)
	for i, a := range additions {
		if !more && i > 0 {
			break
		}
		t.Run(a.section, func(t *testing.T) {
			root, text := repository(t), section(t, a.section)
			var undo []func()
			for _, s := range a.steps {
				if !names(text, s.file) {
					t.Errorf("CONTRIBUTING.md, %s, does not name %s", a.section, s.file)
				}
				undo = append(undo, s.do(t, root))
			}
			if said, ok := a.passes(root); !ok {
				t.Fatalf("with all steps:\n%s", said)
			}
			for _, file := range a.asked {
				i := slices.IndexFunc(a.steps, func(s step) bool { return s.file == file })
				with, err := os.ReadFile(filepath.Join(root, file))
				if err != nil {
					t.Fatal(err)
				}
				undo[i]()
				if said, ok := a.passes(root); ok {
					t.Errorf("without %s nothing fails:\n%s", file, said)
				}
				if err := os.WriteFile(filepath.Join(root, file), with, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// listed are the lists of services, each with the entries of one service.
var listed = map[string]string{
	"services/pom.xml":     `(?m)^ +<module>java-jdk</module>\n`,
	"docs/fairness.md":     `(?m)^\| java-jdk(?:/[^ |]+)? \|.*\n`,
	"deploy/services.yaml": `\n(?:  #.*\n)+(?:  java-jdk-[a-z0-9-]+:\n(?:    .*\n)+)+`,
	"deploy/rain.yaml":     `(?m)^ +- http://java-jdk-.*\n`,
}

// Each list of services must have all of them, and each service all of its files.
func TestListedServices(t *testing.T) {
	testsets.Once(t, "lists of services in a copy of the repository", testsets.Needs{
		Files: []string{"services", "docs", "deploy", "internal/dev/tidy", "CONTRIBUTING.md"}})
	root, text := repository(t), section(t, "Add a service")
	a := addition{checks: []check{
		{"./internal/dev/tidy", "TestTidy/(services|listed|modules|versions|links|places)"},
		{"./home/deploytest", "TestCatalog"}}}
	if said, ok := a.passes(root); !ok {
		t.Fatalf("with all services:\n%s", said)
	}
	for file, entries := range listed {
		if !names(text, file) {
			t.Errorf("CONTRIBUTING.md does not name %s", file)
		}
		remove := step{file: file, change: func(t *testing.T, text string) string {
			t.Helper()
			less := regexp.MustCompile(entries).ReplaceAllString(text, "")
			if less == text {
				t.Errorf("%s has no entry that matches %s", file, entries)
			}
			return less
		}}
		undo := remove.do(t, root)
		if said, ok := a.passes(root); ok {
			t.Errorf("without an entry of %s nothing fails:\n%s", file, said)
		}
		undo()
	}
	for _, part := range []string{"service.yaml", "pom.xml", "Dockerfile", "README.md"} {
		at := filepath.Join(root, "services", "java-jdk", part)
		if err := os.Rename(at, at+".gone"); err != nil {
			t.Fatal(err)
		}
		if said, ok := a.passes(root); ok {
			t.Errorf("without %s nothing fails:\n%s", part, said)
		}
		if err := os.Rename(at+".gone", at); err != nil {
			t.Fatal(err)
		}
	}
}
