package kernel

import (
	"debug/elf"
	"testing"
)

// TestSymbols checks names and addresses at the first and last byte of functions and segments.
func TestSymbols(t *testing.T) {
	s := &symbols{
		all: sorted([]symbol{{start: 0x30, name: "open"}, {start: 0x10, size: 8, name: "old"},
			{start: 0x10, size: 16, name: "work"}}),
		loads: []elf.Prog{{ProgHeader: elf.ProgHeader{Off: 0x1000, Filesz: 0x100,
			Vaddr: 0x401000}}},
	}
	for offset, want := range map[uint64]string{0xf: "", 0x10: "work", 0x1f: "work", 0x20: "",
		0x2f: "", 0x30: "open", 0xffff: "open"} {
		if got, ok := s.find(offset); got != want || ok != (want != "") {
			t.Errorf("%#x is in %q, %v, want %q", offset, got, ok, want)
		}
	}
	for offset, want := range map[uint64]uint64{0xfff: 0xfff, 0x1000: 0x401000, 0x10ff: 0x4010ff,
		0x1100: 0x1100} {
		if got := s.address(offset); got != want {
			t.Errorf("%#x is at %#x, want %#x", offset, got, want)
		}
	}
}
