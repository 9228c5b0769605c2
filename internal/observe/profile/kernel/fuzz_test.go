package kernel

import (
	"bytes"
	"os"
	"slices"
	"testing"
)

// ordered checks that symbols are sorted, as find needs.
func ordered(t *testing.T, s *symbols, err error) {
	t.Helper()
	if err != nil {
		return
	}
	if !slices.IsSortedFunc(s.all, func(a, b symbol) int {
		if a.start < b.start {
			return -1
		}
		return 1 // no duplicates
	}) {
		t.Errorf("out of order: %+v", s.all)
	}
	for _, at := range []uint64{0, 1, 1 << 63, 1<<64 - 1} {
		s.find(at)
	}
}

// FuzzSymbols checks that no list of symbols crashes the parsers.
func FuzzSymbols(f *testing.F) {
	f.Add([]byte("ffffffff81000000 T _text\nffffffff81000010 t x [module]\n"))
	f.Add([]byte("7f2140 3c0 Lcom/A;::b\n7f2140 0 a\nffffffffffffffff ffffffffffffffff x\n"))
	f.Add([]byte("zz T x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := readKallsyms(bytes.NewReader(b))
		ordered(t, s, err)
		s, err = readPerfMap(bytes.NewReader(b))
		ordered(t, s, err)
		demangle(string(b))
	})
}

// FuzzMappings checks memory maps and perf's text.
func FuzzMappings(f *testing.F) {
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		f.Skip(err)
	}
	f.Add(b)
	f.Add([]byte("1\n\t1750ce __strpbrk_sse42 (/usr/lib/libc.so.6)\n\t0 [unknown] ([heap])\n\n"))
	f.Add([]byte("-1\n\tf (x)\n\t (\n\t0  ()\n7f21-7f23 r-xp 0002a000 fe:00 1 /x (deleted)\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := parseMappings(bytes.NewReader(b))
		if err != nil && all != nil {
			t.Errorf("%v beside %v", all, err)
		}
		out, lost := (&perf{names: newNames(nil)}).read(bytes.NewReader(b))
		if err := out.CheckValid(); err != nil || lost < 0 {
			t.Errorf("%d lost, %v", lost, err)
		}
	})
}

// FuzzELF checks that no program file crashes the parser.
func FuzzELF(f *testing.F) {
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		f.Skip(err)
	}
	f.Add(b[:4096])
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := readELF(bytes.NewReader(b))
		ordered(t, s, err)
	})
}
