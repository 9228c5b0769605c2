package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func read(t *testing.T, name string) (all []string, cut int64) {
	t.Helper()
	cut, err := Read(name, func(kind byte, data []byte) error {
		all = append(all, fmt.Sprintf("%c%s", kind, data))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, cut
}

// filled returns the name of a journal with a state and three records.
func filled(t *testing.T) string {
	t.Helper()
	j := New(filepath.Join(t.TempDir(), "journal"))
	if err := j.Append('a', nil); err == nil {
		t.Error("a journal without a file accepts records")
	}
	for _, state := range []string{"first", "second"} {
		if err := j.Renew(func(put func(byte, []byte) error) error {
			return put('s', []byte(state))
		}); err != nil {
			t.Fatal(err)
		}
		for _, data := range []string{"", "one", "three"} {
			if err := j.Append('r', []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := j.Sync(); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(j.name)
	if n, broken := j.Size(); err != nil || n != info.Size() || broken != nil {
		t.Errorf("%d bytes, %v; the file has %d, %v", n, broken, info.Size(), err)
	}
	if err := j.Close(false); err != nil {
		t.Error(err)
	}
	return j.name
}

// A journal that is cut anywhere, or has a wrong byte anywhere, has its records up to there.
func TestIncomplete(t *testing.T) {
	name := filled(t)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want, cut := read(t, name)
	if !slices.Equal(want, []string{"ssecond", "r", "rone", "rthree"}) || cut != 0 {
		t.Fatalf("%q, %d bytes cut", want, cut)
	}
	ends := []int{0, 9 + 6, 9 + 6 + 9, 9 + 6 + 9 + 9 + 3, len(whole)}
	complete := func(at int) (n int) {
		for n+1 < len(ends) && ends[n+1] <= at {
			n++
		}
		return n
	}
	for at := range whole {
		n := complete(at)
		if err := os.WriteFile(name, whole[:at], 0o644); err != nil {
			t.Fatal(err)
		}
		if got, cut := read(t, name); !slices.Equal(got, want[:n]) || cut != int64(at-ends[n]) {
			t.Errorf("cut at %d: %q and %d bytes left out", at, got, cut)
		}
		damaged := slices.Clone(whole)
		damaged[at] ^= 0x10
		if err := os.WriteFile(name, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		if got, cut := read(t, name); !slices.Equal(got, want[:n]) ||
			cut != int64(len(whole)-ends[n]) {
			t.Errorf("damaged at %d: %q and %d bytes left out", at, got, cut)
		}
	}
}

// After a failed write nothing is accepted until the journal is renewed.
func TestFullDisk(t *testing.T) {
	const full = "/dev/full"
	file, err := os.OpenFile(full, os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	j := New(filepath.Join(t.TempDir(), "journal"))
	j.file, j.broken = file, nil
	for range 2 {
		if err := j.Append('r', []byte("lost")); err == nil {
			t.Error("a full disk accepts a record")
		}
	}
	if err := j.Renew(func(func(byte, []byte) error) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := j.Append('r', []byte("kept")); err != nil {
		t.Error(err)
	}
	if all, cut := read(t, j.name); !slices.Equal(all, []string{"rkept"}) || cut != 0 {
		t.Errorf("%q, %d", all, cut)
	}
	if err := j.Close(true); err != nil {
		t.Error(err)
	}
	if all, _ := read(t, j.name); len(all) > 0 {
		t.Errorf("%q are left", all)
	}
}
