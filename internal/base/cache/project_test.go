package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestProject checks that a project's cache is outside of the project, and that unused caches are
// removed.
func TestProject(t *testing.T) {
	all, root := filepath.Join(t.TempDir(), "all"), t.TempDir()
	t.Setenv(Env, all)
	now := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	own, err := Project(t.Context(), root, now)
	if err != nil || filepath.Dir(own) != all ||
		!strings.HasPrefix(filepath.Base(own), filepath.Base(root)+"-") {
		t.Fatalf("folder %s, error %v", own, err)
	}
	for name, used := range map[string]time.Time{"idle-0": now.Add(-31 * 24 * time.Hour),
		"recent-0": now.Add(-29 * 24 * time.Hour)} {
		other := filepath.Join(all, name)
		if err := os.MkdirAll(filepath.Join(other, "build"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(other+usedEnd, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(other+usedEnd, used, used); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), filepath.Base(root))
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	again, err := Project(t.Context(), link, now)
	if err != nil || again != own {
		t.Errorf("by a link the folder is %s, error %v; want %s", again, err, own)
	}
	left, err := filepath.Glob(filepath.Join(all, "*"))
	var names []string
	for _, path := range left {
		names = append(names, strings.ReplaceAll(filepath.Base(path), filepath.Base(own), "own"))
	}
	slices.Sort(names)
	want := []string{"lock", "own", "own.used", "recent-0", "recent-0.used"}
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("left are %q, error %v; want %q", names, err, want)
	}
}

// TestProjectStaysPrivate checks that a cache has the permissions of the project's folder.
func TestProjectStaysPrivate(t *testing.T) {
	top := t.TempDir()
	t.Setenv(Env, filepath.Join(top, "all"))
	root := filepath.Join(top, "home", "app")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := root; dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []os.FileMode{0o755, 0o700, 0o711} {
		if err := os.Chmod(filepath.Dir(root), mode); err != nil {
			t.Fatal(err)
		}
		own, err := Project(t.Context(), root, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		want := os.FileMode(0o755)
		if mode == 0o700 {
			want = mode
		}
		if info, err := os.Stat(own); err != nil || info.Mode().Perm() != want {
			t.Errorf("below a folder of mode %o the cache has %v, error %v; want %o", mode,
				info.Mode(), err, want)
		}
	}
}

// TestProjects checks that root's caches are in a folder that users who serve for root can enter,
// and other users' caches in their home.
func TestProjects(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	want := filepath.Join(home, ".cache", "prony")
	if os.Geteuid() == 0 {
		want = systemCache
	}
	check := func(want string) {
		t.Helper()
		if got, err := projects(); err != nil || got != want {
			t.Errorf("folder %s, error %v; want %s", got, err, want)
		}
	}
	check(want)
	t.Setenv("XDG_CACHE_HOME", "/x")
	check("/x/prony")
	t.Setenv(Env, "/y")
	check("/y")
}

// TestNoProject checks that without a folder for caches there is no project, in whatever folder the
// program runs.
func TestNoProject(t *testing.T) {
	t.Setenv(Env, "")
	t.Setenv("XDG_CACHE_HOME", "relative")
	folder, err := Project(t.Context(), t.TempDir(), time.Unix(2e9, 0))
	if err == nil || folder != "" || !strings.Contains(err.Error(), "set "+Env+" to a folder") {
		t.Errorf("folder %q, error %v", folder, err)
	}
}

// A cache that root makes belongs to the owner of the project.
func TestOwnerOfProject(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	project, folder := t.TempDir(), t.TempDir()
	if err := os.Chown(project, 1234, 4321); err != nil {
		t.Fatal(err)
	}
	if err := likeProject(folder, project); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(folder)
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || s.Uid != 1234 || s.Gid != 4321 {
		t.Errorf("the cache belongs to %+v", info.Sys())
	}
	if err := likeProject(folder, filepath.Join(project, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a project that does not exist: %v", err)
	}
}
