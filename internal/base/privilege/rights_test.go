package privilege

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// TestReaches checks access by modes, on the named path and after resolving links.
func TestReaches(t *testing.T) {
	stranger := User{UID: 12345, GID: 12345}
	owner := User{UID: os.Getuid(), GID: 12345}
	member := User{UID: 12345, GID: 12345, Groups: []int{os.Getgid()}}
	top := t.TempDir()
	dir, file := filepath.Join(top, "dir"), filepath.Join(top, "dir", "file")
	link := filepath.Join(top, "link")
	if err := errors.Join(os.Chmod(filepath.Dir(top), 0o755), os.Chmod(top, 0o755),
		os.Mkdir(dir, 0o755), os.WriteFile(file, nil, 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	check := func(dirMode, fileMode os.FileMode, want ...bool) {
		t.Helper()
		if err := errors.Join(os.Chmod(dir, dirMode), os.Chmod(file, fileMode)); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(dir, 0o755) //nolint:errcheck // the next check would fail
		for _, path := range []string{file, link} {
			var got []bool
			for _, u := range []User{owner, member, stranger} {
				got = append(got, u.reaches([]string{path}))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%o/%o by %s: owner, member, stranger %v, want %v", dirMode, fileMode,
					path, got, want)
			}
		}
	}
	check(0o755, 0o644, true, true, true)
	check(0o755, 0o640, true, true, false)
	check(0o711, 0o644, true, true, true)
	check(0o750, 0o644, true, true, false)
	check(0o700, 0o644, true, false, false)
	check(0o755, 0o044, false, true, true) // other users' bits don't apply to the owner
	if owner.reaches([]string{filepath.Join(dir, "none")}) {
		t.Error("what is not there is reached")
	}
}

func TestHome(t *testing.T) {
	env := []string{"PATH=/bin", "HOME=/root", "X=HOME=1"}
	for home, u := range map[string]User{"/root": Itself(), "/var/a": {UID: -2, Home: "/var/a"},
		os.TempDir(): {UID: -2}} {
		want := []string{"PATH=/bin", "HOME=" + home, "X=HOME=1"}
		if got := u.Env(env); !slices.Equal(got, want) {
			t.Errorf("%+v: %q, want %q", u, got, want)
		}
	}
}

// TestGiveChangesNothingOutside replaces a folder by a link while its owner changes.
func TestGiveChangesNothingOutside(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change owners")
	}
	folder, victims := t.TempDir(), t.TempDir()
	dir, victim := filepath.Join(folder, "dir"), filepath.Join(victims, "file")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(victim, nil, 0o600),
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	owner := func(path string) int {
		var s syscall.Stat_t
		if err := syscall.Lstat(path, &s); err != nil {
			t.Fatal(err)
		}
		return int(s.Uid)
	}
	u := User{UID: 12345, GID: 12345}
	if err := u.Give(folder); err != nil || owner(folder) != u.UID ||
		owner(filepath.Join(dir, "file")) != u.UID {
		t.Errorf("the folder's owner is %d, error %v", owner(folder), err)
	}
	was := lchown
	defer func() { lchown = was }()
	lchown = func(root *os.Root, name string, uid, gid int) error {
		if name == "dir/file" {
			if err := errors.Join(os.Rename(dir, filepath.Join(folder, "moved")),
				os.Symlink(victims, dir)); err != nil {
				t.Fatal(err)
			}
		}
		return was(root, name, uid, gid)
	}
	if err := u.Give(folder); err == nil || owner(victim) != 0 {
		t.Errorf("the owner of a file outside is %d, error %v", owner(victim), err)
	}
}
