package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// reopened opens a journal, and returns its records and the length of its incomplete end.
func reopened(t *testing.T, name string) (j *Journal, all []string, cut int64) {
	t.Helper()
	j, cut, err := Open(name, func(kind byte, data []byte) error {
		all = append(all, fmt.Sprintf("%c%s", kind, data))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return j, all, cut
}

// filled returns the name of a journal with a state and three records.
func filled(t *testing.T) string {
	t.Helper()
	j, all, _ := reopened(t, filepath.Join(t.TempDir(), "journal"))
	if err := j.Append('a', nil); err == nil || len(all) > 0 {
		t.Errorf("a journal without a file accepts records, and has %q", all)
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
	j, want, cut := reopened(t, name)
	if err := j.Close(false); err != nil {
		t.Error(err)
	}
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
		checkEnd(t, name, want[:n], int64(at-ends[n]))
		damaged := slices.Clone(whole)
		damaged[at] ^= 0x10
		if err := os.WriteFile(name, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		checkEnd(t, name, want[:n], int64(len(whole)-ends[n]))
	}
}

// checkEnd checks the records and the cut-off end of a journal, and that it goes on.
func checkEnd(t *testing.T, name string, want []string, wantCut int64) {
	t.Helper()
	j, got, cut := reopened(t, name)
	if !slices.Equal(got, want) || cut != wantCut {
		t.Errorf("%q and %d bytes left out, want %q and %d", got, cut, want, wantCut)
	}
	if err := errors.Join(j.Append('n', []byte("ew")), j.Close(false)); err != nil {
		t.Error(err)
	}
	j, got, cut = reopened(t, name)
	if !slices.Equal(got, append(slices.Clone(want), "new")) || cut != 0 {
		t.Errorf("%q and %d bytes left out after another record", got, cut)
	}
	if err := j.Close(false); err != nil {
		t.Error(err)
	}
}

// A record that the disk refuses is not in the file, and later ones are.
func TestFullDisk(t *testing.T) {
	name := filled(t)
	j, _, _ := reopened(t, name)
	limit := &unix.Rlimit{}
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, limit); err != nil {
		t.Fatal(err)
	}
	before, _ := j.Size()
	small := unix.Rlimit{Cur: uint64(before) + 20, Max: limit.Max}
	signal.Ignore(unix.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	refused := j.Append('r', make([]byte, 30))
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, limit); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); refused == nil || err != nil || info.Size() != before {
		t.Errorf("%v, %v bytes, want an error and %d bytes", refused, info.Size(), before)
	}
	if err := errors.Join(j.Append('r', []byte("kept")), j.Close(false)); err != nil {
		t.Error(err)
	}
	j, all, cut := reopened(t, name)
	if want := []string{"ssecond", "r", "rone", "rthree", "rkept"}; !slices.Equal(all, want) ||
		cut != 0 {
		t.Errorf("%q, %d", all, cut)
	}
	if err := j.Close(true); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want that everything is stored elsewhere", err)
	}
}
