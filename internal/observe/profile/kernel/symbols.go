package kernel

import (
	"bufio"
	"bytes"
	"cmp"
	"debug/elf"
	"debug/gosym"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	mangled "github.com/ianlancetaylor/demangle"

	"prony.example/internal/base/files"
)

// symbols are functions, sorted by address.
type symbols struct {
	all   []symbol     // by start, without duplicates
	loads []elf.Prog   // of a file: how it is mapped into memory
	table *gosym.Table // of a Go binary without symbols; nil for others
}

type symbol struct {
	start, size uint64 // size 0: up to the next
	name        string
}

// find returns the function that contains an address.
func (s *symbols) find(offset uint64) (string, bool) {
	if s == nil {
		return "", false
	}
	i, ok := slices.BinarySearchFunc(s.all, offset, func(sym symbol, position uint64) int {
		return cmp.Compare(sym.start, position)
	})
	if !ok {
		i--
	}
	if i >= 0 && (s.all[i].size == 0 || offset < s.all[i].start+s.all[i].size) {
		return s.all[i].name, true
	}
	if s.table != nil {
		if f := s.table.PCToFunc(offset); f != nil {
			return f.Name, true
		}
	}
	return "", false
}

// address converts an offset in the file to the file's virtual address. A process's addresses
// differ from it by the load address.
func (s *symbols) address(offset uint64) uint64 {
	for _, l := range s.loads {
		if offset >= l.Off && offset < l.Off+l.Filesz {
			return offset - l.Off + l.Vaddr
		}
	}
	return offset
}

// sorted orders symbols. Of several at one address the last counts, because a process may put
// generated code in the place of code that it dropped.
func sorted(all []symbol) []symbol {
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b symbol) int { return cmp.Compare(a.start, b.start) })
	return slices.CompactFunc(all, func(a, b symbol) bool { return a.start == b.start })
}

func openELF(path string) (*symbols, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read symbols: %w", err)
	}
	s, err := readELF(f)
	return s, errors.Join(err, f.Close())
}

// readVDSO reads the vdso from the process's memory, because no file contains it.
func readVDSO(pid int, m mapping) (*symbols, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", vdso, err)
	}
	data := make([]byte, m.end-m.start)
	_, err = f.ReadAt(data, int64(m.start))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", vdso, err)
	}
	return readELF(bytes.NewReader(data))
}

// readELF reads the functions of a program or library: from the symbol table if it was not
// stripped, otherwise from the dynamic symbols, otherwise from Go's own table.
func readELF(r io.ReaderAt) (*symbols, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, fmt.Errorf("read symbols: %w", err)
	}
	s := &symbols{}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			s.loads = append(s.loads, *p)
		}
	}
	table, err := f.Symbols()
	if err != nil || len(table) == 0 {
		// Stripped programs lack the table, which is also reported as an error.
		table, err = f.DynamicSymbols()
	}
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, fmt.Errorf("read symbols: %w", err)
	}
	for _, sym := range table {
		if elf.ST_TYPE(sym.Info) == elf.STT_FUNC && sym.Value != 0 && sym.Section != elf.SHN_UNDEF {
			s.all = append(s.all, symbol{sym.Value, sym.Size, sym.Name})
		}
	}
	s.all = sorted(s.all)
	if lines := f.Section(".gopclntab"); lines != nil && len(s.all) == 0 {
		return s, s.readGo(f, lines)
	}
	return s, nil
}

func (s *symbols) readGo(f *elf.File, lines *elf.Section) error {
	text := f.Section(".text")
	data, err := lines.Data()
	if err != nil || text == nil {
		return errors.Join(err, errors.New("read Go's table of functions: the binary has no text "+
			"section"))
	}
	s.table, err = gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	if err != nil {
		return fmt.Errorf("read Go's table of functions: %w", err)
	}
	return nil
}

// readKallsyms reads the functions of /proc/kallsyms, "ffffffff81000000 T _text [module]". If the
// kernel hides addresses, all are 0 and none are returned.
func readKallsyms(r io.Reader) (*symbols, error) {
	s := &symbols{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 3 || !strings.Contains("tTwW", f[1]) {
			continue
		}
		start, err := strconv.ParseUint(f[0], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("read the kernel's symbols, %q: %w", lines.Text(), err)
		}
		if start != 0 {
			s.all = append(s.all, symbol{start, 0, f[2]})
		}
	}
	s.all = sorted(s.all)
	return s, lines.Err()
}

// readPerfMap reads a process's description of its generated code: "7f2140 3c0 name", start and
// size in hexadecimal (tools/perf/Documentation/jit-interface.txt of the kernel). It skips
// incomplete lines, because the process may be writing.
func readPerfMap(r io.Reader) (*symbols, error) {
	s := &symbols{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxName)
	for lines.Scan() {
		f := strings.SplitN(lines.Text(), " ", 3)
		if len(f) < 3 {
			continue
		}
		start, err1 := strconv.ParseUint(strings.TrimPrefix(f[0], "0x"), 16, 64)
		size, err2 := strconv.ParseUint(strings.TrimPrefix(f[1], "0x"), 16, 64)
		if err1 == nil && err2 == nil && size > 0 {
			s.all = append(s.all, symbol{start, size, jitName(f[2])})
		}
	}
	s.all = sorted(s.all)
	return s, lines.Err()
}

const maxName = 1 << 20 // bytes of a line; Java's signatures are long

// demangle makes names of C++ and Rust readable, without parameter types and Rust's hashes:
// "_ZN4core3ptr4drop17h0…E" becomes core::ptr::drop. Other names stay unchanged. The limit is for
// malicious names that expand.
func demangle(name string) string {
	return mangled.Filter(name, mangled.NoParams, mangled.MaxLength(12))
}
