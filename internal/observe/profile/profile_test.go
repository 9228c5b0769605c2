package profile

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"
)

// read makes a profile of folded stacks, which has no number of samples.
func read(kind, text string) (*pprof.Profile, error) {
	s := NewStacks(kind)
	err := EachFolded(strings.NewReader(text), func(frames []string, n int64) {
		s.Add(frames, 1, n)
	})
	p := s.Profile()
	p.SampleType[0].Type = "objects"
	return p, err
}

func folded(t *testing.T, kind, text string) *pprof.Profile {
	t.Helper()
	p, err := read(kind, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFolded(t *testing.T) {
	check := func(text, want, fails string) {
		t.Helper()
		p, err := read(CPU, text)
		if fails != "" {
			if err == nil || !strings.Contains(err.Error(), fails) {
				t.Errorf("%q: error %v, want %q", text, err, fails)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := string(Folded(p)); got != want {
			t.Errorf("%q comes back as %q, want %q", text, got, want)
		}
	}
	check("", "", "")
	check("a;b 2\na 1\n", "a 1\na;b 2\n", "") // sorted
	check("a;b 2\n\n a;b 3 \n", "a;b 5\n", "")
	check("f (x.py);g h 7\n", "f (x.py);g h 7\n", "") // names have spaces
	check("a;b 0\n", "", "")
	check(" 4\n", "[unknown] 4\n", "") // a stack that could not be read
	check("a;b\n", "", `line 1: no number after "a;b"`)
	check("a 1\nb x\n", "", "line 2:")
	// A lambda's number differs between processes; both are one function.
	check("A$$Lambda/0x00007f01.run 1\nA$$Lambda.0x00007f02.run 2\n", "A$$Lambda.run 3\n", "")
	check("java.lang.Thread.run;X.carry;java.lang.VirtualThread.run;Y.z 1\n",
		"(virtual thread);Y.z 1\n", "")
}

func TestNames(t *testing.T) {
	check := func(name, clean, short string) {
		t.Helper()
		got := Clean(name)
		if got != clean || Clean(got) != got || Short(got) != short {
			t.Errorf("%s is %s, in short %s; want %s, %s", name, got, Short(got), clean, short)
		}
	}
	check("org.springframework.web.servlet.DispatcherServlet.doDispatch",
		"org.springframework.web.servlet.DispatcherServlet.doDispatch",
		"DispatcherServlet.doDispatch")
	check("a.b.C$$Lambda$14/0x0000000800c03000.run", "a.b.C$$Lambda.run", "C$$Lambda.run")
	check("a.b.C$$Lambda.694316372.run", "a.b.C$$Lambda.run", "C$$Lambda.run") // JDK 17
	check("a.b.C$$Lambda.0x7f.run", "a.b.C$$Lambda.run", "C$$Lambda.run")
	check("java.lang.invoke.LambdaForm$DMH.0x01.invokeStatic",
		"java.lang.invoke.LambdaForm$DMH.invokeStatic", "LambdaForm$DMH.invokeStatic")
	check("jdk.internal.reflect.GeneratedMethodAccessor12.invoke",
		"jdk.internal.reflect.GeneratedMethodAccessor.invoke", "GeneratedMethodAccessor.invoke")
	check("jdk.proxy2.$Proxy31.get", "jdk.proxy2.$Proxy.get", "jdk.proxy2.$Proxy.get")
	check("a.b.C$1.run", "a.b.C$1.run", "C$1.run") // the first anonymous class always is
	check("github.com/gin-gonic/gin.(*Context).Next", "github.com/gin-gonic/gin.(*Context).Next",
		"gin.(*Context).Next")
	check("slices.SortFunc[go.shape.[]a/b.T]", "slices.SortFunc[go.shape.[]a/b.T]",
		"slices.SortFunc[go.shape.[]a/b.T]")
	check("main.Server.Serve", "main.Server.Serve", "main.Server.Serve") // Go: one package
	check("view (flask/app.py)", "view (flask/app.py)", "view (flask/app.py)")
	check("core::ops::FnOnce::call_once", "core::ops::FnOnce::call_once",
		"core::ops::FnOnce::call_once")
	check("do_syscall_64_[k]", "do_syscall_64_[k]", "do_syscall_64_[k]")
	check("", "", "")
}

// TestTop checks that recursion counts once per stack: a calls itself below b.
func TestTop(t *testing.T) {
	p := folded(t, CPU, "a;b;a 30\na;b 50\nc 20\n")
	got := Top(p, 2)
	want := []Row{{"b", 50, 80, 0.5, 0.8}, {"a", 30, 80, 0.3, 0.8}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v, want %+v", got, want)
	}
	if all := Top(p, 0); len(all) != 3 || all[2].Name != "c" {
		t.Errorf("all: %+v", all)
	}
	if none := Top(folded(t, CPU, ""), 0); len(none) != 0 {
		t.Errorf("of nothing: %+v", none)
	}
}

// TestDiff compares runs of different length: a has 60 % in the ten times longer second run, and 40
// % before.
func TestDiff(t *testing.T) {
	stacks := func(a, b int64) *pprof.Profile {
		s := NewStacks(CPU)
		s.Add([]string{"m", "a"}, a, a*10)
		s.Add([]string{"m", "b"}, b, b*10)
		return s.Profile()
	}
	got, err := Diff(stacks(40, 60), stacks(600, 400))
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	a := got[0]
	// sqrt(0.4 x 0.6 / 100 + 0.6 x 0.4 / 1000) = sqrt(0.0024 + 0.00024) = 0.05138
	if a.Name != "a" || math.Abs(a.Flat()-0.2) > 1e-12 || math.Abs(a.Error-0.05138) > 1e-5 {
		t.Errorf("the first is %+v", a)
	}
	if b := got[1]; b.Name != "b" || math.Abs(b.Flat()+0.2) > 1e-12 {
		t.Errorf("the second is %+v", b)
	}
	if m := got[2]; m.Name != "m" || m.Flat() != 0 || m.Cum() != 0 {
		t.Errorf("the third is %+v", m)
	}
	if got, err = Diff(folded(t, CPU, "a 1\n"), folded(t, CPU, "b 1\n")); err != nil ||
		got[0].Error != -1 {
		t.Errorf("without numbers of samples: %+v, error %v", got, err)
	}
	if _, err := Diff(stacks(1, 1), folded(t, Alloc, "a 1\n")); err == nil ||
		!strings.Contains(err.Error(),
			"cpu in nanoseconds, but the other measures alloc in bytes") {
		t.Errorf("time against bytes: error %v", err)
	}
}

// TestFlame checks the limit: a thousandth of 10,000 is 10. w has exactly 10 and is drawn; y and z
// have 9 + 1 = 10 together and are merged.
func TestFlame(t *testing.T) {
	f := Flame(folded(t, CPU, "m;a;x 5990\nm;a 2000\nm;b.c.D.e 1990\nm;w 10\nm;y 9\nm;z 1\n"))
	m := f.Children[0]
	if f.Name != "all" || f.Value != 10000 || len(f.Children) != 1 || m.Value != 10000 {
		t.Fatalf("the root is %+v", f)
	}
	check := func(i int, name, full string, value, self int64, below int) {
		t.Helper()
		c := m.Children[i]
		if c.Name != name || c.Full != full || c.Value != value || c.Self != self ||
			len(c.Children) != below {
			t.Errorf("child %d is %+v", i, c)
		}
	}
	if len(m.Children) != 4 {
		t.Fatalf("%d children", len(m.Children))
	}
	check(0, "a", "", 7990, 2000, 1)
	check(1, "D.e", "b.c.D.e", 1990, 1990, 0)
	check(2, "w", "", 10, 10, 0)
	check(3, Small, "", 10, 10, 0)
}

// TestFlameDiff checks a graph in which a has 60 % before and 20 % after: its width is 40 % and its
// delta -0.4. Frames that vanished are drawn.
func TestFlameDiff(t *testing.T) {
	f, err := FlameDiff(folded(t, CPU, "m;a 60\nm;gone 40\n"), folded(t, CPU, "m;a 2\nm;new 8\n"))
	if err != nil {
		t.Fatal(err)
	}
	m := f.Children[0]
	for i, want := range []Frame{{Name: "a", Value: 400e6, Delta: -0.4},
		{Name: "gone", Value: 200e6, Delta: -0.4}, {Name: "new", Value: 400e6, Delta: 0.8}} {
		if c := m.Children[i]; c.Name != want.Name || math.Abs(float64(c.Value-want.Value)) > 1 ||
			math.Abs(c.Delta-want.Delta) > 1e-9 {
			t.Errorf("child %d is %+v, want %+v", i, c, want)
		}
	}
	if _, err := FlameDiff(folded(t, CPU, "a 1\n"), folded(t, Alloc, "a 1\n")); err == nil {
		t.Error("time against bytes: no error")
	}
}

func TestMerge(t *testing.T) {
	one, two := NewStacks(CPU), NewStacks(CPU)
	one.Add([]string{"a", "b"}, 1, 10)
	two.Add([]string{"a", "b"}, 2, 20)
	p, err := Merge(one.Profile(), two.Profile())
	if err != nil || string(Folded(p)) != "a;b 30\n" || Samples(p) != 3 {
		t.Errorf("%s, %d samples, error %v", Folded(p), Samples(p), err)
	}
	if _, err := Merge(); err == nil {
		t.Error("of none: no error")
	}
	if _, err := Merge(one.Profile(), folded(t, Alloc, "a 1\n")); err == nil {
		t.Error("time and bytes: no error")
	}
	// Descriptions from before a file was written are read from it.
	p = one.Profile()
	Describe(p, "x 1", "n")
	var file bytes.Buffer
	if err := p.Write(&file); err != nil {
		t.Fatal(err)
	}
	if p, err = pprof.Parse(&file); err != nil || Tool(p) != "x 1" || len(Notes(p)) != 1 {
		t.Errorf("%q, %q, error %v", Tool(p), Notes(p), err)
	}
	if Tool(two.Profile()) != "unknown" {
		t.Error("nobody's tool is known")
	}
}

// TestForeignProfiles checks that places without symbols are named by their file, and that inlined
// functions are frames.
func TestForeignProfiles(t *testing.T) {
	f := func(id uint64, name string) *pprof.Function { return &pprof.Function{ID: id, Name: name} }
	lib := &pprof.Mapping{ID: 1, File: "/usr/lib/libx.so.1"}
	p := &pprof.Profile{SampleType: []*pprof.ValueType{{Type: "objects", Unit: Count},
		{Type: "cpu", Unit: Nanoseconds}},
		Sample: []*pprof.Sample{{Value: []int64{1, 5}, Location: []*pprof.Location{
			{ID: 1, Mapping: lib},
			{ID: 2, Line: []pprof.Line{{Function: f(1, "inlined")}, {Function: f(2, "outer")}}},
			{ID: 3}}}}}
	if got := string(Folded(p)); got != "[unknown];outer;inlined;[libx.so.1] 5\n" {
		t.Errorf("the stack is %q", got)
	}
	if n := Samples(p); n != -1 {
		t.Errorf("objects are taken for %d samples", n)
	}
}

func TestAmount(t *testing.T) {
	for want, v := range map[string]struct {
		n    float64
		unit string
	}{
		"1.25 s": {1.25e9, Nanoseconds}, "3.00 ms": {3e6, Nanoseconds}, "0 s": {0, Nanoseconds},
		"1.5 KiB": {1536, Bytes}, "12": {12, Count}, "-2.00 µs": {-2000, Nanoseconds},
	} {
		if got := Amount(v.n, v.unit); got != want {
			t.Errorf("%v %s is %q, want %q", v.n, v.unit, got, want)
		}
	}
}

// stub is a collector that fits unless it has a reason.
type stub struct {
	name  string
	kinds []string
	fails string
}

func (s stub) Name() string    { return s.name }
func (s stub) Kinds() []string { return s.kinds }

func (s stub) Fits(Subject) error {
	if s.fails != "" {
		return errors.New(s.fails)
	}
	return nil
}

func (s stub) Start(context.Context, Subject, string) (Session, error) { return nil, nil }

func TestChoose(t *testing.T) {
	both := []string{CPU, Alloc}
	perf, jfr := stub{"perf", []string{CPU}, ""}, stub{"jfr", both, ""}
	async, broken := stub{"async-profiler", both, ""}, stub{"async-profiler", both, "not fetched"}
	check := func(runtime, kind, want, refused string, all ...Collector) {
		t.Helper()
		c, err := Choose(all, Subject{Runtime: runtime}, kind)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), refused) {
				t.Errorf("%s of %s: error %v, want %q", kind, runtime, err, refused)
			}
			return
		}
		if err != nil || c.Name() != want {
			t.Errorf("%s of %s: %+v, error %v; want %s", kind, runtime, c, err, want)
		}
	}
	check("jvm", CPU, "async-profiler", "", perf, jfr, async)
	check("aot", CPU, "jfr", "", perf, jfr, broken)
	check("native", CPU, "perf", "", perf)
	check("jvm", Alloc, "jfr", "", perf, broken, jfr)
	check("native", Alloc, "", "perf: does not support alloc profiles", perf)
	check("jvm", Alloc, "", "async-profiler: not fetched\nperf: does not support alloc profiles",
		perf,
		broken)
	check("node", CPU, "", "there is no profiler for this runtime")
	check("node", "heat", "", `for "heat": the kinds of profiles are cpu, alloc, lock, offcpu`,
		perf)
}
