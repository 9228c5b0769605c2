package kernel

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/observe/profile"
)

func TestParseMappings(t *testing.T) {
	got, err := parseMappings(strings.NewReader(
		"55d0a000-55d0b000 r--p 00000000 fe:00 17 /opt/app\n" +
			"55d0b000-55d0d000 r-xp 00001000 fe:00 17                 /opt/my app (deleted)\n" +
			"7f000000-7f001000 rwxp 00000000 00:00 0\n" +
			"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]\n"))
	want := []mapping{{0x55d0b000, 0x55d0d000, 0x1000, "/opt/my app"},
		{0x7f000000, 0x7f001000, 0, ""},
		{0xffffffffff600000, 0xffffffffff601000, 0, "[vsyscall]"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %+v", err, got)
	}
	if _, err := parseMappings(strings.NewReader("zz-55 r-xp 0 fe:00 17 /opt/app\n")); err == nil {
		t.Error("reads zz as an address")
	}
}

func TestFind(t *testing.T) {
	// The second symbol at 0x10 was generated later; 0x30 has no size and extends to 0x40.
	s := &symbols{all: sorted([]symbol{{0x40, 0x10, "last"}, {0x10, 0x10, "dropped"},
		{0x10, 8, "first"}, {0x30, 0, "open"}})}
	for at, want := range map[uint64]string{0xf: "", 0x10: "first", 0x17: "first", 0x18: "",
		0x30: "open", 0x3f: "open", 0x40: "last", 0x4f: "last", 0x50: ""} {
		if got, ok := s.find(at); got != want || ok != (want != "") {
			t.Errorf("%#x: %q, %v, want %q", at, got, ok, want)
		}
	}
	if got, ok := (*symbols)(nil).find(1); ok {
		t.Errorf("without symbols: %q", got)
	}
}

func TestReadPerfMap(t *testing.T) {
	s, err := readPerfMap(strings.NewReader("0x1000 0x10 void java.lang.A.run(int, long)\n" +
		"2000 20 JS:*next /srv/app/index.js:3:7\n" + "garbage\n" + "zz 10 name\n" +
		"3000 0 empty\n" +
		"4000 8"))
	if err != nil || len(s.all) != 2 {
		t.Errorf("%v, %+v", err, s)
	}
	for at, want := range map[uint64]string{0x100f: "java.lang.A.run",
		0x201f: "next (index.js:3:7)"} {
		if got, _ := s.find(at); got != want {
			t.Errorf("%#x: %q, want %q", at, got, want)
		}
	}
}

func TestJITName(t *testing.T) {
	for from, want := range map[string]string{
		"java.lang.Object jdk.internal.misc.Unsafe.get(java.lang.Object, long)": "" +
			"jdk.internal.misc.Unsafe.get",
		"void java.lang.Thread.<init>()":               "java.lang.Thread.<init>",
		"Interpreter":                                  "Interpreter",
		"StubRoutines (initialstubs)":                  "StubRoutines (initialstubs)",
		"I2C/C2I adapters":                             "I2C/C2I adapters",
		"JS:~ok /srv/app.js:18:14":                     "ok (app.js:18:14)",
		"JS:^ file:///srv/app.js:1:1":                  "(anonymous) (app.js:1:1)",
		"LazyCompile:*end node:_http_outgoing:1034:45": "end (node:_http_outgoing:1034:45)",
		"Builtin:JSEntry":                              "Builtin:JSEntry",
	} {
		if got := jitName(from); got != want {
			t.Errorf("%q: %q, want %q", from, got, want)
		}
	}
}

func TestDemangle(t *testing.T) {
	for from, want := range map[string]string{
		"main.main":                             "main.main",
		"_ZN4core3ptr4drop17h0123456789abcdefE": "core::ptr::drop",
		"_ZN60_$LT$a..B$u20$as$u20$c..D$GT$4poll17h0123456789abcdefE": "" +
			"_ZN60_$LT$a..B$u20$as$u20$c..D$GT$4poll17h0123456789abcdefE", // 60 is too long
		"_ZN29_$LT$a..B$u20$as$u20$c..D$GT$4poll17h0123456789abcdefE": "<a::B as c::D>::poll",
		"_ZNK2v88Function4CallEv":                                     "v8::Function::Call",
		"_ZN2v88internal14LookupIteratorILb0EE4NextEv": "" +
			"v8::internal::LookupIterator<false>::Next",
		"_ZN":                                 "_ZN",
		"_ZNE":                                "_ZNE",
		"_ZN4co":                              "_ZN4co",
		"_ZL19thread_native_entryP6Thread":    "thread_native_entry",
		"_RNvNtCsj4CZ6flxxfE_4core3fmt5write": "core::fmt::write",
		"_RNCNvCs1_3app4main0B3_":             "app::main::{closure#0}",
		"_RINvNtC3std3mem8align_ofjdE":        "std::mem::align_of::<usize, f64>",
		"_RNvC3app99main":                     "_RNvC3app99main",
		"_R":                                  "_R",
	} {
		if got := demangle(from); got != want {
			t.Errorf("%s: %q, want %q", from, got, want)
		}
	}
}

func TestReadKallsyms(t *testing.T) {
	s, err := readKallsyms(strings.NewReader("ffffffff81000000 T _text\nffffffff81000100 D data\n" +
		"ffffffff81000200 t tcp_ack\t[tcp]\n"))
	if err != nil || len(s.all) != 2 {
		t.Errorf("%v, %+v", err, s)
	}
	if got, _ := s.find(0xffffffff81000203); got != "tcp_ack" {
		t.Errorf("%q", got)
	}
	hidden, err := readKallsyms(strings.NewReader(
		"0000000000000000 T _text\n0000000000000000 T a\n"))
	if err != nil || len(hidden.all) != 0 {
		t.Errorf("hidden: %v, %+v", err, hidden)
	}
	if _, err := readKallsyms(strings.NewReader("zz T _text\n")); err == nil {
		t.Error("reads zz as an address")
	}
}

// TestNamesOfAStack checks that a caller's address is a return address: the first byte of the next
// function if the call was its last instruction.
func TestNamesOfAStack(t *testing.T) {
	n := &names{files: map[string]*symbols{"/opt/app": {all: []symbol{{0x1000, 0x10, "main"},
		{0x1010, 0x10, "next"}}, loads: nil}},
		kernel: &symbols{all: []symbol{{0xffff0000, 0, "read"}, {0xffff1000, 0, "__schedule"},
			{0xffff2000, 0, "bpf_prog"}}},
		processes: map[int]*process{7: {pid: 7, mappings: []mapping{
			{0x50000, 0x52000, 0, "/opt/app"},
			{0x60000, 0x61000, 0, ""}, {0x70000, 0x71000, 0, "/lib/libc.so.6"},
			{0x80000, 0x81000, 0, "[heap]"}}}}}
	n.files["/lib/libc.so.6"] = nil
	for _, tt := range []struct {
		pid          int
		user, kernel []uint64
		want         string
	}{
		{7, []uint64{0x51010, 0x51010}, nil, "main next"},
		{7, []uint64{0x60004}, nil, "[anon]"},
		{7, []uint64{0x70004, 0x80004, 0x90004}, nil, "[libc.so.6] [heap] [unknown]"},
		{7, []uint64{0x51010}, []uint64{0xffff0008}, "next read_[k]"},
		{7, nil, []uint64{0xffff0008, 0xffff1001, 0xffff2001}, "read_[k]"},
		{7, nil, []uint64{0x1}, "[kernel]"},
		{8, []uint64{0x51010}, nil, "[unknown]"},
	} {
		if got := strings.Join(n.of(tt.pid, tt.user, tt.kernel), " "); got != tt.want {
			t.Errorf("%x %x: %q, want %q", tt.user, tt.kernel, got, tt.want)
		}
	}
}

// TestVDSO checks that the vdso of this process has a clock function.
func TestVDSO(t *testing.T) {
	maps, err := readMappings(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(maps, func(m mapping) bool { return m.path == vdso })
	if i < 0 {
		t.Skip("no vdso in this process")
	}
	s, err := readVDSO(os.Getpid(), maps[i])
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(s.all, func(s symbol) bool {
		return strings.Contains(s.name, "clock_gettime")
	}) {
		t.Errorf("%+v", s.all)
	}
}

func TestReadPerf(t *testing.T) {
	p := &perf{names: &names{files: map[string]*symbols{"/opt/go": {all: []symbol{
		{0x1000, 0x10, "main.spin"}}}}, processes: map[int]*process{}}}
	out, lost := p.read(strings.NewReader("  7 \n" +
		"\t ffffffff81 do_nanosleep ([kernel.kallsyms])\n" +
		"\t 1750ce clock_nanosleep (/usr/lib/libc.so.6)\n" +
		"\t 1010 [unknown] (/opt/go)\n" +
		"\t 55cc99 [unknown] ([unknown])\n\n" +
		"  7 \n\t 7f01 void a.b.C.run(int) (/tmp/perf-7.map)\n\n" +
		"LOST 12 events\n" +
		"  7 \n\t zz main (/opt/go)\n\t 12 broken\n"))
	want := fmt.Sprintf("[unknown];main.spin;clock_nanosleep;do_nanosleep_[k] %d\na.b.C.run %d\n",
		tick, tick)
	if got := string(profile.Folded(out)); got != want || lost != 3 {
		t.Errorf("%d lost,\n%swant\n%s", lost, got, want)
	}
}
