package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
)

const head = "package p\n\nimport \"prony.example/internal/dev/testsets\"\n"

func parse(t *testing.T, texts ...string) (files []*ast.File) {
	t.Helper()
	for _, text := range texts {
		file, err := parser.ParseFile(token.NewFileSet(), "a_test.go", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// A call in the test, in a function that it calls, or in a subtest moves the test into the second
// set.
func TestCalling(t *testing.T) {
	check := func(name string, want []string, texts ...string) {
		t.Helper()
		if got := calling(parse(t, texts...), second); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	const whole = "func TestA(t *testing.T) { testsets.Whole(t, \"\") }\n"
	check("its own", []string{"TestA"}, head+whole)
	check("by another name", []string{"TestA"}, "package p\n"+
		"import x \"prony.example/internal/dev/testsets\"\n"+
		"func TestA(t *testing.T) { x.Once(t, \"\", x.Needs{}) }")
	check("a subtest's", []string{"TestA"}, head+
		"func TestA(t *testing.T) { t.Run(\"\", func(t *testing.T) { testsets.Once(t) }) }")
	check("a function's of a function's", []string{"TestA", "TestB"}, head+whole+
		"func f(t *testing.T) { g(t) }\nfunc TestC(t *testing.T) {}", head+
		"func g(t *testing.T) { testsets.Once(t) }\nfunc TestB(t *testing.T) { f(t) }")
	check("a method's", []string{"TestB"}, head+"func (w w) ride() { testsets.Once(w.t) }\n"+
		"func TestB(t *testing.T) { w{t}.ride() }")
	check("it only measures", nil, head+"func TestA(t *testing.T) { testsets.Measured(t) }")
	check("another package's", nil, "package p\nimport \"x/testsets\"\n"+whole)
	check("none", nil, head+"func f(t *testing.T) { testsets.Whole(t) }\n"+
		"func TestMain(m *testing.M) { f(nil) }")
}

func TestFirst(t *testing.T) {
	check := func(body string, want bool) {
		t.Helper()
		files := parse(t, head+"func TestA(t *testing.T) {\n"+body+"\n}\n")
		if got := len(first(files, second)) == 1; got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
	check(`testsets.Whole(t, "x")`+"\ntestsets.Measured(t)", true)
	check("n := 1\ntestsets.Once(t, n, testsets.Needs{})", true)
	check("testsets.Live(t)", false)
	check(`t.Run("x", func(t *testing.T) { testsets.Whole(t, "x") })`, false)
	check(`if n > 1 { testsets.Whole(t, "x") }`, false)
	check(`defer testsets.Whole(t, "x")`, false)
	check(`Whole(t, "x")`, false)
}

func TestKinds(t *testing.T) {
	s := read("p", parse(t, `package p
import (
	"net"
	"os/exec"
	tests "prony.example/internal/dev/testsets"
)
func listen() { net.Listen("tcp", "") }
func TestExact(t *testing.T) { exec.LookPath("x"); net.ParseIP("") }
func TestProcess(t *testing.T) { exec.Command("x") }
func TestSocket(t *testing.T) { listen() }
func TestDeclared(t *testing.T) { tests.Live(t) }
func TestSecond(t *testing.T) { tests.Whole(t, "") }
func TestThird(t *testing.T) { tests.Long(t, "", tests.Needs{}) }
func TestMeasured(t *testing.T) { listen(); tests.Measured(t) }
`))
	for test, want := range map[string]kind{"TestExact": exact, "TestProcess": live,
		"TestSocket":   live,
		"TestDeclared": live, "TestSecond": live, "TestThird": live, "TestMeasured": measured} {
		if got := s.kindOf(test); got != want {
			t.Errorf("%s is %s, want %s", test, got, want)
		}
	}
}

var suites = []suite{
	{path: "a", module: ".", all: []string{"TestM", "TestN", "TestO", "TestQ"},
		measuring: []string{"TestM", "TestN"}, second: []string{"TestN", "TestO"}},
	{path: "b", module: ".", all: []string{"TestM", "TestL", "TestV"},
		long: []string{"TestL", "TestV"}, measuring: []string{"TestV"},
		later: []string{"TestL", "TestV"}},
	{path: "c", module: ".", all: []string{"TestX"}},
	{path: "h", module: "home", all: []string{"TestH", "TestM"}, measuring: []string{"TestM"},
		second: []string{"TestH"}},
}

// Each test of a set runs in exactly one order, and measured ones run after all others.
func TestPlan(t *testing.T) {
	check := func(set string, want ...string) {
		t.Helper()
		var got []string
		for i, step := range plan(suites, set) {
			for _, o := range step {
				args := strings.Join(without(o.args, []string{"-p=1", "-count=1"}), " ")
				got = append(got, fmt.Sprint(i, " ", o.module, " ", args, " ", o.tests))
			}
		}
		for i := range want {
			want[i] = strings.ReplaceAll(want[i], "WIDE", plan(suites, "")[0][0].args[0])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q:\n%s\nwant\n%s", set, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	check("", "0 . WIDE map[a:[TestM TestN TestO TestQ] b:[TestM TestL TestV]]",
		"0 . WIDE map[c:[TestX]]", "0 home WIDE map[h:[TestH TestM]]")
	check(testsets.All,
		"0 . WIDE -skip=^(TestM|TestN)$ map[a:[TestO TestQ] b:[TestL TestV]]",
		"0 . WIDE map[c:[TestX]]", "0 home WIDE -skip=^(TestM)$ map[h:[TestH]]",
		"1 . -run=^(TestM|TestN)$ map[a:[TestM TestN] b:[TestM]]",
		"2 home -run=^(TestM)$ map[h:[TestM]]")
	check(testsets.Later, "0 . -run=^(TestL)$ map[b:[TestL]]", "1 . -run=^(TestV)$ map[b:[TestV]]")
	more := append(slices.Clone(suites), suite{path: "i", module: "home", all: []string{"TestI"},
		second: []string{"TestI"}})
	if wide := plan(more, testsets.All)[0]; len(wide[1].tests) != 2 {
		t.Errorf("an order of two packages is not among the first: %v", wide)
	}
	if steps := plan(suites[2:], testsets.Later); len(steps) > 0 {
		t.Errorf("without tests of the set: %v", steps)
	}
}

// Many measured tests, and those of a divided package, run in several orders, each test in one,
// also those whose names have another kind in another package.
func TestPortions(t *testing.T) {
	other := suite{path: "n", module: ".", all: []string{"Test7", "TestA"},
		measuring: []string{"TestA"}}
	check := func(set string, want, size int, many suite) {
		t.Helper()
		runs, filled := map[string]int{}, 0
		for _, step := range plan([]suite{many, other}, set) {
			for _, o := range step {
				for path, names := range o.tests {
					for _, n := range names {
						runs[path+n]++
					}
				}
				n := len(intersection(o.tests[many.path], slices.Concat(many.measuring,
					many.second)))
				if n > size {
					t.Errorf("%q: an order has %d tests", set, n)
				}
				filled += min(n, 1)
			}
		}
		if filled != want || len(runs) != len(many.all)+len(other.all) {
			t.Errorf("%q: %d orders run %d tests", set, filled, len(runs))
		}
		for test, n := range runs {
			if n != 1 {
				t.Errorf("%q: %s runs %d times", set, test, n)
			}
		}
	}
	names := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint("Test", i))
		}
		return all
	}
	all := names(2*portion + 1)
	check(testsets.All, 3, portion, suite{path: "m", module: ".", all: all, measuring: all})
	many := suite{path: "prony.example/cmd/prony", module: ".", all: names(18)}
	many.second, many.measuring = many.all[:12], many.all[17:]
	check(testsets.All, 7, 2, many)
	check("", 3, 5, many)
}

func TestPatterns(t *testing.T) {
	all := []string{"./load", "./home/bucket", "./home/...", "./homely",
		"prony.example/home/otlp", "."}
	for module, want := range map[string][]string{".": {"./load", "./homely", "."},
		"home": {"./bucket", "./...", "prony.example/home/otlp"}} {
		if got := patternsIn(module, all); !slices.Equal(got, want) {
			t.Errorf("in %s: %q, want %q", module, got, want)
		}
	}
}

// tell returns events of go test: a line each for a package, a test and an action, or an output.
func tell(lines ...string) string {
	var out strings.Builder
	for _, line := range lines {
		f := strings.SplitN(line, " ", 4)
		for len(f) < 4 {
			f = append(f, "")
		}
		fmt.Fprintf(&out, `{"Action":%q,"Package":%q,"Test":%q,"Output":%q,"Elapsed":1}`+"\n",
			f[0], f[1], strings.Trim(f[2], "-"), f[3])
	}
	return out.String()
}

const (
	at    = "    x.go:1: " + testsets.Figures
	quiet = at + `{"failed":true,"seconds":2,"load":0.1,"others":0.05}` + "\n"
	noisy = at + `{"failed":true,"seconds":2,"load":4,"others":1.2}` + "\n"
	calm  = at + `{"seconds":98,"load":0.1}` + "\n"
)

// kept is the output for a package whose result go test reused.
const kept = "ok  \tp\t(cached)\n"

// conclude feeds a ledger the events of the first run and of each repetition, and returns its
// output and the number of repetitions.
func conclude(t *testing.T, tests []string, runs ...string) (said string, repeats int, err error) {
	t.Helper()
	first := order{tests: map[string][]string{"p": tests}}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var out bytes.Buffer
	l := newLedger(&out, []suite{{path: "p", all: tests, measuring: []string{"TestM"},
		live: []string{"TestL"}}})
	l.read(first, strings.NewReader(runs[0]))
	l.repeat(func(o order) {
		repeats++
		if repeats >= len(runs) {
			t.Fatalf("repetition %d: %v", repeats, o)
		}
		l.read(o, strings.NewReader(runs[repeats]))
	}, "")
	err = l.close("")
	return out.String(), repeats, err
}

// Each row has the events of the first run and of each repetition, and the counts in the last
// lines.
func TestVerdict(t *testing.T) {
	counts := func(exact, live, measured, flaky, inconclusive int, line string) string {
		return fmt.Sprintf("exact        %d\nlive         %d\nmeasured     %d\nflaky        %d\n"+
			"inconclusive %d\n%s\n", exact, live, measured, flaky, inconclusive, line)
	}
	check := func(name, want, failure string, runs ...string) {
		t.Helper()
		tests := slices.DeleteFunc([]string{"TestE", "TestL", "TestM"}, func(test string) bool {
			return !strings.Contains(runs[0], test)
		})
		said, repeats, err := conclude(t, tests, runs...)
		if !strings.HasSuffix(said, want) || repeats != len(runs)-1 ||
			(err == nil) != (failure == "") || !strings.Contains(fmt.Sprint(err), failure) {
			t.Errorf("%s: %d repetitions, error %v, want %q\n%s\nwant\n%s", name, repeats, err,
				failure, said, want)
		}
	}
	const fine, over = "pass p -", "fail p -"
	check("all pass", counts(1, 1, 1, 0, 0, "3 passed, 0 failed, 0 skipped"), "",
		tell("pass p TestE", "pass p TestL", "pass p TestM", fine))
	check("skipped", counts(1, 0, 0, 0, 0, "1 passed, 0 failed, 1 skipped"), "",
		tell("pass p TestE", "output p TestL     a.go:1: no tool\n", "skip p TestL", fine))
	check("flaky", counts(1, 1, 0, 1, 0, "2 passed, 0 failed, 0 skipped"), "",
		tell("pass p TestE", "fail p TestL", over), tell("pass p TestL", fine))
	check("flaky at the second", counts(0, 1, 0, 1, 0, "1 passed, 0 failed, 0 skipped"), "",
		tell("fail p TestL", over), tell("fail p TestL", over), tell("pass p TestL", fine))
	check("red", counts(1, 0, 0, 0, 0, "0 passed, 1 failed, 0 skipped"), "1 tests failed",
		tell("fail p TestE", over), tell("fail p TestE", over), tell("fail p TestE", over))
	failing := func(host string) string {
		return tell("output p TestM "+host, "fail p TestM", over)
	}
	living := strings.ReplaceAll(failing(noisy), "TestM", "TestL")
	check("measured on a fit host", counts(0, 0, 1, 0, 0, "0 passed, 1 failed, 0 skipped"),
		"1 tests failed", failing(quiet), failing(quiet), failing(quiet))
	check("measured, once on a fit host", counts(0, 0, 1, 0, 0, "0 passed, 1 failed, 0 skipped"),
		"1 tests failed", failing(noisy), failing(quiet), failing(noisy))
	check("measured without figures", counts(0, 0, 1, 0, 0, "0 passed, 1 failed, 0 skipped"),
		"1 tests failed", failing(noisy), failing(noisy), tell("fail p TestM", over))
	check("measured on an unfit host", counts(0, 0, 1, 0, 1, "0 passed, 0 failed, 1 skipped"), "",
		failing(noisy), failing(noisy), failing(noisy))
	check("live on an unfit host", counts(0, 1, 0, 0, 0, "0 passed, 1 failed, 0 skipped"),
		"1 tests failed", living, living, living)
	check("measured, in a quiet phase", counts(0, 0, 1, 0, 1, "0 passed, 1 failed, 1 skipped"),
		"1 of 1 measured tests are inconclusive, although", tell("output p TestM "+calm,
			"output p TestM "+noisy, "fail p TestM", over), failing(noisy), failing(noisy))
	check("measured, kept by go test", counts(0, 0, 1, 0, 0, "1 passed, 0 failed, 0 skipped"), "",
		tell("output p TestM "+calm, "pass p TestM", "output p - "+kept, fine))
}

// Tests that ended with their package run once more, together.
func TestLost(t *testing.T) {
	check := func(name, want string, runs ...string) {
		t.Helper()
		said, repeats, err := conclude(t, []string{"TestE", "TestL", "TestM"}, runs...)
		if !strings.HasSuffix(said, want+" skipped\n") || repeats != len(runs)-1 ||
			(err == nil) != strings.Contains(want, " 0 failed") {
			t.Errorf("%s: %d repetitions, error %v\n%s\nwant %q", name, repeats, err, said, want)
		}
	}
	panics := tell("run p TestE", "pass p TestE", "run p TestL", "output p TestL panic: x\n",
		"fail p -")
	one := tell("run p TestL", "pass p TestL", "pass p -")
	check("it panicked once", "3 passed, 0 failed, 0", panics,
		strings.ReplaceAll(one, "TestL", "TestM"), one)
	check("it panics always", "2 passed, 1 failed, 0", panics,
		strings.ReplaceAll(one, "TestL", "TestM"), tell("run p TestL", "fail p -"),
		tell("run p TestL", "fail p -"))
	check("go test ended", "3 passed, 0 failed, 0", tell("run p TestE", "pass p TestE"),
		tell("pass p TestL", "pass p TestM", "pass p -"))
	check("the lost one fails", "2 passed, 1 failed, 0", panics,
		tell("fail p TestM", "fail p -"), one)
	check("it does not build", "0 passed, 3 failed, 0", tell("fail p -"), tell("fail p -"))
	all := tell("pass p TestE", "pass p TestL", "pass p TestM")
	check("only the package failed", "4 passed, 0 failed, 0", all+tell("fail p -"),
		all+tell("pass p -"))
	check("the package fails always", "3 passed, 1 failed, 0", all+tell("fail p -"),
		all+tell("fail p -"), all+tell("fail p -"))

	// Another order of the package that passes does not stand for the whole package.
	l := newLedger(io.Discard, []suite{{path: "p", all: []string{"TestE", "TestL"}}})
	for _, row := range [][2]string{{"TestE", "fail"}, {"TestL", "pass"}} {
		l.read(order{tests: map[string][]string{"p": {row[0]}}},
			strings.NewReader(tell("pass p "+row[0], row[1]+" p -")))
	}
	if end := l.last(name{"p", ""}).end; end != failed {
		t.Errorf("one of its orders passed, and the package is recorded as %s", end)
	}
}

// Many failures make the run fail at once, except those on an unfit host.
func TestMany(t *testing.T) {
	check := func(fails int, text string, want int) {
		t.Helper()
		in := order{tests: map[string][]string{"p": {"TestM"}}}
		l := newLedger(io.Discard, []suite{{path: "p", measuring: []string{"TestM"}}})
		for i := range fails {
			of := fmt.Sprintf("Test%d", i)
			in.tests["p"] = []string{of}
			l.suites["p"] = suite{path: "p", measuring: append(l.suites["p"].measuring, of)}
			said := strings.ReplaceAll(text, "TestM", of) + tell("fail p -")
			l.read(in, strings.NewReader(said))
		}
		repeats := 0
		l.repeat(func(order) { repeats++ }, "")
		if repeats != want || (len(l.errs) == 0) != (want > 0) {
			t.Errorf("%d failed: %d repetitions, want %d: %v", fails, repeats, want, l.errs)
		}
	}
	check(most, tell("fail p TestM"), again*most)
	check(most+1, tell("fail p TestM"), 0)
	check(most+1, tell("output p TestM "+noisy, "fail p TestM"), again*(most+1))
}

// The output of failed tests is printed completely, that of passed tests is not.
func TestPrinted(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var out bytes.Buffer
	l := newLedger(&out, []suite{{path: "p", all: []string{"TestA", "TestB"}}})
	l.read(order{}, strings.NewReader(tell("start p -", "output p TestA === RUN TestA\n",
		"output p TestA     a_test.go:3: fine\n", "pass p TestA",
		"output p TestB     a_test.go:9: so it fails\n", "fail p TestB",
		"output p TestC     a_test.go:5: needs Node: not found\n",
		"output p TestC --- SKIP: TestC (0.00s)\n", "skip p TestC",
		"output p TestC/x     b.go:7: needs Node: not found\n", "skip p TestC/x",
		"output p TestD/x     a_test.go:6: "+testsets.Before+", then (FRESH)\n", "skip p TestD/x",
		"output p TestE     a_test.go:6: "+testsets.Elsewhere+"all\n", "skip p TestE",
		"output p TestF     a_test.go:6: "+testsets.Longer+"all\n", "skip p TestF",
		"output p - FAIL p 5.6s\n", "fail p -")+"# no event\n"+
		`{"Action":"build-output","ImportPath":"r","Output":"r.go:1: no\n"}`+"\n"))
	l.lists()
	const want = `    a_test.go:9: so it fails
FAIL p 5.6s
# no event
r.go:1: no
took longest: 5
      1.0 s  p TestA
      1.0 s  p TestB
      1.0 s  p TestC
      1.0 s  p TestE
      1.0 s  p TestF
skipped here, by reasons: 1
  p TestC and 1 more: needs Node: not found
not run again: 1
  p TestD/x: passed before for these very bytes, then (FRESH)
make test-all runs 1 more
make test-long runs 1 more
`
	if got := out.String(); got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
}

// A test is broken if it was flaky in three of the last ten runs of its set.
func TestBroken(t *testing.T) {
	line := func(set string, tests ...string) string {
		for i := range tests {
			tests[i] = fmt.Sprintf(`{"test":%q}`, tests[i])
		}
		return fmt.Sprintf(`{"set":%q,"flaky":[%s]}`+"\n", set, strings.Join(tests, ","))
	}
	check := func(want []string, lines ...string) {
		t.Helper()
		if got := brokenIn([]byte(strings.Join(lines, "")), "all"); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", lines, got, want)
		}
	}
	two := line("all", "p TestA") + line("all", "p TestA", "p TestB")
	check(nil, two, line("", "p TestA"), line("all", "p TestB"), "no line\n")
	check([]string{"p TestA"}, two, line("all", "p TestA"))
	check([]string{"p TestA"}, two, strings.Repeat(line("all"), 7), line("all", "p TestA"))
	check(nil, two, strings.Repeat(line("all"), 8), line("all", "p TestA"))
}

// After three flaky runs the test is reported as broken, which is an error only on demand.
func TestStrict(t *testing.T) {
	cache := t.TempDir()
	once := func() (string, error) {
		t.Setenv("XDG_CACHE_HOME", cache)
		var out bytes.Buffer
		l := newLedger(&out, []suite{{path: "p", all: []string{"TestE"}}})
		o := order{tests: map[string][]string{"p": {"TestE"}}}
		l.read(o, strings.NewReader(tell("fail p TestE", "fail p -")))
		l.read(o, strings.NewReader(tell("pass p TestE", "pass p -")))
		err := l.close("")
		return out.String(), err
	}
	for i := range 3 {
		said, err := once()
		if broken := strings.Contains(said, "broken: "); broken != (i == 2) || err != nil {
			t.Errorf("run %d: %v\n%s", i, err, said)
		}
	}
	t.Setenv(testsets.Strict, "1")
	if said, err := once(); err == nil {
		t.Errorf("it is green:\n%s", said)
	}
}

// The results of the third set are stored by test; a test that was not run again keeps its line.
func TestNote(t *testing.T) {
	file := filepath.Join(t.TempDir(), "long.ndjson")
	const before = `{"test":"p TestB","result":"passed","date":"2026-01-02","seconds":3}` + "\n"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLedger(io.Discard, []suite{{path: "p", all: []string{"TestA", "TestB"}}})
	l.read(order{}, strings.NewReader(tell("pass p TestA", "skip p TestB", "pass p -")))
	if err := note(file, l); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	const begin = `{"test":"p TestA","result":"passed","date":"`
	if err != nil || !strings.HasPrefix(string(text), begin) ||
		!strings.HasSuffix(string(text), `"seconds":1}`+"\n"+before) {
		t.Errorf("%v: %s", err, text)
	}
}

// A module goes through all of it: a test that fails once, one that always fails, a later set.
func TestRun(t *testing.T) {
	testsets.Whole(t, "a run of tests")
	testsets.Live(t)
	dir := t.TempDir()
	built, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(built)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	write := func(name, text string) {
		t.Helper()
		err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module prony.example\n\ngo 1.26\n")
	write("internal/dev/testsets/tests.go", `package testsets
import ("os"; "testing")
func Whole(t *testing.T, _ string) {
	if os.Getenv("PRONY_TEST") == "" { t.Skip("make test-all runs this: x") }
}
`)
	t.Chdir(dir)
	check := func(name, body, want, failure string, args ...string) {
		t.Helper()
		write("a_test.go", `package m
import ("os"; "testing"; "prony.example/internal/dev/testsets")
var _ = os.Mkdir
func TestA(t *testing.T) { `+body+` }
func TestB(t *testing.T) { testsets.Whole(t, "") }
`)
		var out, errs bytes.Buffer
		err := run(context.Background(), args, &out, &errs)
		if (err == nil) != (failure == "") || !strings.Contains(fmt.Sprint(err), failure) ||
			!strings.Contains(out.String(), want) {
			t.Errorf("%s: error %v, want %q\n%s%s\nwant %q", name, err, failure, &out, &errs, want)
		}
	}
	once := fmt.Sprintf("if os.Mkdir(%q, 0o700) == nil { t.Error() }", filepath.Join(dir, "ran"))
	check("flaky", once, "1 passed, 0 failed, 1 skipped\n", "")
	check("always", "t.Error()", "again, alone: prony.example TestA\n", "1 tests failed", ".")
	check("of both sets", "", "2 passed, 0 failed, 0 skipped\n", "", "-all")
	check("does not build", "x", "0 passed, 2 failed, 0 skipped\n", "2 tests failed")
	check("no test of the set", "", "", "no tests of this set", "-long")
	check("no such flag", "", "", "flag provided but not defined", "-no-such-flag")
	check("compiled only", "t.Error()", "", "", "-compile")
}

// The third set has hours; the other sets have minutes, which end a test that hangs.
func TestLimit(t *testing.T) {
	for set, want := range map[string]time.Duration{"": 20 * time.Minute,
		testsets.All: 20 * time.Minute, testsets.Later: 2 * time.Hour} {
		if got, err := time.ParseDuration(limit(set)); err != nil || got != want {
			t.Errorf("set %q: %v, %v, want %v", set, got, err, want)
		}
	}
}
