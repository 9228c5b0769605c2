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
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

// A test is of the other set by its own call, by that of a function that it calls, or of a subtest.
func TestCalling(t *testing.T) {
	const head = "package p\n\nimport \"prony.example/internal/dev/testsets\"\n"
	check := func(name string, want []string, texts ...string) {
		t.Helper()
		var files []*ast.File
		for _, text := range texts {
			file, err := parser.ParseFile(token.NewFileSet(), "a_test.go", text, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		if got := calling(files, leave); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	const whole = "func TestA(t *testing.T) { tests.Whole(t, \"\") }\n"
	check("its own", []string{"TestA"}, head+whole)
	check(
		"by another name",
		[]string{"TestA"},
		"package p\nimport x \"prony.example/internal/dev/testsets\"\n"+
			"func TestA(t *testing.T) { x.Once(t, \"\", x.Needs{}) }",
	)
	check("a subtest's", []string{"TestA"}, head+
		"func TestA(t *testing.T) { t.Run(\"\", func(t *testing.T) { tests.Once(t) }) }")
	check("a function's of a function's", []string{"TestA", "TestB"}, head+whole+
		"func f(t *testing.T) { g(t) }\nfunc TestC(t *testing.T) {}", head+
		"func g(t *testing.T) { tests.Once(t) }\nfunc TestB(t *testing.T) { f(t) }")
	check("a method's", []string{"TestB"}, head+"func (w w) ride() { tests.Once(w.t) }\n"+
		"func TestB(t *testing.T) { w{t}.ride() }")
	check("the cores alone", nil, head+"func TestA(t *testing.T) { tests.Cores(t) }")
	check("another package's", nil, "package p\nimport \"x/tests\"\n"+whole)
	check("none", nil, head+"func f(t *testing.T) { tests.Whole(t) }\n"+
		"func TestMain(m *testing.M) { f(nil) }")
}

// What is left out by a statement of its own measures nothing in the small set; what leaves out a
// part of itself may.
func TestWholeOnes(t *testing.T) {
	const head = "package p\n\nimport \"prony.example/internal/dev/testsets\"\n"
	check := func(body string, want bool) {
		t.Helper()
		file, err := parser.ParseFile(token.NewFileSet(), "a_test.go",
			head+"func TestA(t *testing.T) {\n"+body+"\n}\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(whole([]*ast.File{file})) == 1; got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
	check(`tests.Whole(t, "x")`+"\ntests.Cores(t)", true)
	check("n := 1\ntests.Once(t, n, tests.Needs{})", true)
	check("tests.Cores(t)", false)
	check(`t.Run("x", func(t *testing.T) { tests.Whole(t, "x") })`, false)
	check(`if n > 1 { tests.Whole(t, "x") }`, false)
	check(`defer tests.Whole(t, "x")`, false)
	check(`Whole(t, "x")`, false)
}

// No test is lost where two packages have one of a name, and one of them measures.
func TestNamed(t *testing.T) {
	suites := []suite{
		{path: "a", all: []string{"TestX", "TestY"}, measuring: []string{"TestX"}},
		{path: "b", all: []string{"TestX"}},
		{path: "c", all: []string{"TestZ"}},
	}
	packages, names := named(suites, func(s suite) []string { return s.measuring })
	if !slices.Equal(packages, []string{"a", "b"}) || pattern(names) != "^(TestX)$" {
		t.Errorf("%q of %q", names, packages)
	}
	found, err := scan(
		t.Context(),
		[]string{"prony.example/internal/dev/testsets/...", "prony.example/load"},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range found {
		measures, left := slices.Contains(s.measuring, "TestAhead"), len(s.left) > 0
		if loads := s.path == "prony.example/load"; measures != loads || left != loads ||
			len(s.all) == 0 {
			t.Errorf("%+v", s)
		}
	}
}

// What runs apart is run once, and all that the small set leaves out is run.
func TestRest(t *testing.T) {
	steps, err := rest([]suite{
		{path: "a", all: []string{"TestX", "TestY", "TestZ"}, left: []string{"TestX", "TestY"},
			apart: []string{"TestX"}},
		{path: "b", all: []string{"TestV"}, left: []string{"TestV"}},
		{path: "c", heavy: true, all: []string{"TestX", "TestV"}, left: []string{"TestV"}},
	})
	if err != nil || len(steps) != 1 {
		t.Fatal(steps, err)
	}
	var got []string
	for _, o := range steps[0] {
		at := slices.Index(o.args, "-timeout=60m")
		got = append(got, strings.Join(o.args[at+1:], " "))
	}
	want := []string{"-count=1 -run=^(TestX)$ a", "-count=1 -run=^(TestV|TestY)$ a b", "c"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// A measured service is not to have what its compiler had.
	for _, o := range steps[0] {
		if !slices.Contains(o.env, "GOGC=400") || !slices.Contains(o.args, "-exec=env -u GOGC") {
			t.Errorf("in %q it runs %q", o.env, o.args)
		}
	}
}

// What only the home of telemetry links is compiled for the other set alone.
func TestSmall(t *testing.T) {
	found, err := scan(
		t.Context(),
		[]string{"prony.example/home/dashboardtest", "prony.example/load/pace",
			"prony.example/home/collector", "prony.example/load"},
	)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range slices.Concat(small(found)...) {
		var in []string
		for _, arg := range o.args {
			if strings.HasPrefix(arg, "prony/") {
				in = append(in, arg)
			}
		}
		slices.Sort(in)
		want := []string{"prony.example/load", "prony.example/load/pace"}[:2-i]
		if !slices.Equal(in, want) {
			t.Errorf("%q, want %q", in, want)
		}
	}
}

const stream = `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: fine\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":2.5}
{"Action":"output","Package":"p","Test":"TestB","Output":"    a_test.go:9: so it fails\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"--- FAIL: TestB (3.00s)\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":3}
{"Action":"output","Package":"p","Test":"TestC","Output":"    a_test.go:5: needs Node: not found\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"--- SKIP: TestC (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestC","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestC/x","Output":"    b.go:7: needs Node: not found\n"}
{"Action":"skip","Package":"p","Test":"TestC/x","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestD/x","Output":"    a_test.go:6: %sthen (FRESH)\n"}
{"Action":"skip","Package":"p","Test":"TestD/x","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestE","Output":"    a_test.go:6: %sall\n"}
{"Action":"skip","Package":"p","Test":"TestE","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestF","Output":"panic: it never ends\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t5.6s\n"}
{"Action":"fail","Package":"p","Elapsed":5.6}
# no event
{"Action":"pass","Package":"q","Test":"TestZ","Elapsed":99}
{"Action":"output","Package":"q","Output":"PASS\n"}
{"Action":"output","Package":"q","Output":"ok  \tq\t(cached)\n"}
{"Action":"pass","Package":"q","Elapsed":0}
{"Action":"build-output","ImportPath":"r","Output":"r.go:1: no\n"}
`

// What failed is printed whole, what passed is not; the rest is told in the end.
func TestTold(t *testing.T) {
	var out bytes.Buffer
	told := newTold(&out)
	said := fmt.Sprintf(stream, testsets.Before+", ", testsets.Elsewhere)
	// Beside it another one of the same package begins and ends.
	in, say := io.Pipe()
	go func() {
		lines := strings.SplitAfter(said, "\n")
		for i, line := range lines {
			if i == len(lines)/4 {
				other := strings.NewReader(`{"Action":"fail","Package":"p"}`)
				if err := told.read(other); err != nil {
					t.Error(err)
				}
			}
			io.WriteString(say, line) //nolint:errcheck // the reader says so
		}
		say.Close()
	}()
	if err := told.read(in); err != nil {
		t.Fatal(err)
	}
	told.close()
	const want = `    a_test.go:9: so it fails
--- FAIL: TestB (3.00s)
panic: it never ends
FAIL	p	5.6s
# no event
ok  	q	(cached)
r.go:1: no
took longest: 4
      3.0 s  p TestB
      2.5 s  p TestA
      0.0 s  p TestC
      0.0 s  p TestE
left out here, by reasons: 1
  p TestC and 1 more: needs Node: not found
not run again: 1
  p TestD/x: passed before for these very bytes, then (FRESH)
1 tests, and what is below them, are make test-all's
`
	if got := out.String(); got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
}

// A few tests that failed are run once more, unless a package ended before its other tests.
func TestAgain(t *testing.T) {
	const (
		failed = `{"Action":"fail","Package":"p","Test":"%s","Elapsed":1}` + "\n"
		ended  = `{"Action":"fail","Package":"p"}` + "\n"
		said   = `{"Action":"output","Package":"p","Output":"%s\n"}` + "\n"
	)
	check := func(name, want string, lines ...string) {
		t.Helper()
		told := newTold(io.Discard)
		if err := told.read(strings.NewReader(strings.Join(lines, ""))); err != nil {
			t.Fatal(err)
		}
		again, ok := told.again()
		got := strings.Join(again.args, " ")
		if ok != (want != "") || !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
	a, b := fmt.Sprintf(failed, "TestA"), fmt.Sprintf(failed, "TestB")
	check("nothing failed", "", strings.ReplaceAll(a+ended, "fail", "pass"))
	check("one of two", "-p=1 -count=1 -run=^(TestA)$ p", fmt.Sprintf(failed, "TestA/x"), a,
		strings.ReplaceAll(b, "fail", "pass"), ended)
	check("in two packages", "-run=^(TestA|TestB)$ p q", a, ended,
		strings.ReplaceAll(b+ended, `"p"`, `"q"`))
	check("it did not build", "", a, ended, strings.ReplaceAll(ended, `"p"`, `"q"`))
	check("it panicked", "", a, fmt.Sprintf(said, "exit status 2"), ended)
	check("it was killed", "", a, fmt.Sprintf(said, "signal: killed"), ended)
	check("one never ended", "", a,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"late\n"}`+"\n", ended)
	check("many", "", strings.Repeat(a, few+1), ended)
}

// What fails beside others and passes alone is named, and is not red.
func TestAlone(t *testing.T) {
	dir := t.TempDir()
	const text = `package m

import (
	"os"
	"testing"
	"prony.example/internal/dev/testsets"
)

func TestA(t *testing.T) { tests.Whole(t, ""); if os.Mkdir(%q, 0o700) == nil { t.Error("x") } }
func TestB(t *testing.T) { tests.Whole(t, ""); if %v { t.Error("always") } }
`
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
	// What leaves tests out is known by its path.
	write("go.mod", "module prony\n\ngo 1.26\n")
	write("internal/dev/testsets/tests.go",
		"package tests\n\nimport \"testing\"\n\nfunc Whole(*testing.T, string) {}\n")
	t.Chdir(dir)
	check := func(always bool, want string) {
		t.Helper()
		write("a_test.go", fmt.Sprintf(text, fmt.Sprint("ran ", always), always))
		var out, errs bytes.Buffer
		err := run(context.Background(), []string{"-all", "."}, &out, &errs)
		if (err != nil) != always || !strings.Contains(out.String(), want) {
			t.Errorf("error %v\n%s%s\nwant %q", err, &out, &errs, want)
		}
	}
	check(false, "failed beside others, passed alone: 1\n  prony TestA\n")
	check(true, "once more, alone: TestA, TestB\n")
}

// A module whose one test fails, or is left out, goes through all of it.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module m\n\ngo 1.26\n",
		"a_test.go": "package m\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Error(\"\") }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	check := func(want, failure string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		err := run(context.Background(), args, &out, &errs)
		if (err == nil) != (failure == "") || !strings.Contains(fmt.Sprint(err), failure) {
			t.Errorf("%q: error %v, want %q\n%s", args, err, failure, &errs)
		}
		said := out.String()
		if !strings.Contains(said, want) || strings.Contains(said, "once more") {
			t.Errorf("%q says\n%s\nwant %q, tried once", args, said, want)
		}
	}
	check("--- FAIL: TestA", "exit status 1")
	check("FAIL\tm", "exit status 1", ".")
	check("", "leaves out none", "-all")
	check("", "flag provided but not defined", "-no-such-flag")
	if err := os.WriteFile("a_test.go", []byte("package m\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	check("ok  \tm\t", "")
}
