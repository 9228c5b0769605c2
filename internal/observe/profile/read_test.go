package profile

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestReadingIsBounded checks that arbitrary files are read within bounds and without blocking.
func TestReadingIsBounded(t *testing.T) {
	dir := t.TempDir()
	var sound bytes.Buffer
	s := NewStacks(CPU)
	s.Add([]string{"main"}, 1, 1)
	if err := s.Profile().Write(&sound); err != nil {
		t.Fatal(err)
	}
	put := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pack := func(piece string, n int) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(bytes.Repeat([]byte(piece), n)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	check := func(name, want string) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Open(os.DirFS(dir), name)
		runtime.ReadMemStats(&after)
		const most = 160 << 20 // bytes allocated in total
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s took %d MiB", name, took>>20)
		}
		if want == "" && err != nil || want != "" && (err == nil ||
			!strings.Contains(err.Error(), name+": ") || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	put("sound", sound.Bytes())
	check("sound", "")
	put("large", make([]byte, maxPacked+1))
	check("large", "the profile has more than the allowed 16 MiB")
	put("zeros", pack("\x00", maxUnpacked+1))
	check("zeros", "the unpacked profile has more than the allowed 16 MiB")
	put("samples", pack("\x12\x00", maxMessages+1))
	check("samples", "the profile has more than the allowed 1048576 parts")
	put("labels", pack("\x12\x04\x1a\x00\x1a\x00", maxMessages/3+1))
	check("labels", "the profile has more than the allowed 1048576 parts")
	// A number beyond 64 bits, of an unknown field: pprof's decoder continues after it.
	long := pack("\x78"+strings.Repeat("\xff", 9)+"\x02", 1)
	put("overlong", append(long, pack("\x12\x00", maxMessages+1)...))
	check("overlong", "variable length integer overflow")
	// It also continues after a tag beyond 64 bits, here of an empty sample.
	long = pack("\x92"+strings.Repeat("\x80", 8)+"\x02\x00", 1)
	put("overlong-tag", append(long, pack("\x12\x00", maxMessages+1)...))
	check("overlong-tag", "variable length integer overflow")
	put("torn", sound.Bytes()[:sound.Len()-9])
	check("torn", "unexpected EOF")
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "device")); err != nil {
		t.Fatal(err)
	}
	check("device", "it is not a regular file")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	check("pipe", "it is not a regular file")
}

// FuzzParse checks that any data is an error or a valid profile.
func FuzzParse(f *testing.F) {
	f.Add([]byte("\x12\x04\x1a\x00\x1a\x00"))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := Parse(data); err == nil && p.CheckValid() != nil {
			t.Errorf("%q is no profile", data)
		}
	})
}
