package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"prony.example/internal/base/cmdlog"
)

// Checkout is a revision of a user's repository from which a service is built. Its builds use a
// clone with a .git and submodules of its own, so that git commands of a build cannot change the
// user's repository or work tree.
type Checkout struct {
	Repo   string // top of the user's work tree, absolute
	Commit string // full id
	Inside string // folder of the service in the repository; empty: its top
	At     string // a clone in which nothing is built
}

// Clone clones the revision to a path that does not exist yet. It borrows the objects of the user's
// repository without writing there, and takes submodules from it. Submodules that it does not have
// stay empty folders, as after git clone, and are returned.
func (c Checkout) Clone(ctx context.Context, to string) (missing []string, err error) {
	dirs, err := c.gitDirs(ctx)
	if err != nil {
		return nil, err
	}
	err = borrow(ctx, c.Repo, c.Commit, to)
	if err == nil {
		err = nameRemote(ctx, to, remoteOf(ctx, dirs[0], c.Repo))
	}
	if err == nil {
		missing, err = fillSubmodules(ctx, to, c.Repo, dirs)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(to))
	}
	return missing, nil
}

// Refill fills submodules of the clone that the user's repository lacked before, and returns the
// paths of those that are still missing.
func (c Checkout) Refill(ctx context.Context) (missing []string, err error) {
	dirs, err := c.gitDirs(ctx)
	if err != nil {
		return nil, err
	}
	return fillSubmodules(ctx, c.At, c.Repo, dirs)
}

// pointer begins a file of Git LFS that stands for another one.
// https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
const pointer = "version https://git-lfs.github.com/spec/v1\n"

// Pointers returns the files of the clone that are pointers of Git LFS, because git-lfs was missing
// or not set up. It does not search submodules.
func (c Checkout) Pointers(ctx context.Context) (paths []string) {
	listed, err := Git(ctx, c.At, "ls-files", "-z", "--", ":(attr:filter=lfs)")
	if err != nil {
		return nil // git is too old for this search
	}
	for path := range strings.SplitSeq(listed, "\x00") {
		f, err := os.Open(filepath.Join(c.At, path))
		if path == "" || err != nil {
			continue
		}
		begin := make([]byte, len(pointer))
		if _, err := io.ReadFull(f, begin); err == nil && string(begin) == pointer {
			paths = append(paths, path)
		}
		_ = f.Close() // it was only read
	}
	return paths
}

// HasLFS reports whether git has a filter that fetches the content of pointers.
func (c Checkout) HasLFS(ctx context.Context) bool {
	_, err := Git(ctx, c.Repo, "config", "--get-regexp", `^filter\.lfs\.(smudge|process)$`)
	return err == nil
}

// gitDirs returns the git directories of the user's repository: that of a linked work tree, then
// the common one.
func (c Checkout) gitDirs(ctx context.Context) (dirs []string, err error) {
	for _, kind := range []string{"--absolute-git-dir", "--git-common-dir"} {
		dir, err := Git(ctx, c.Repo, "rev-parse", kind)
		if err != nil {
			return nil, err
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(c.Repo, dir)
		}
		dirs = append(dirs, dir)
	}
	return slices.Compact(dirs), nil
}

// borrow clones a repository and checks a commit out. It shares objects instead of linking their
// files: the build's user would become the owner of linked files of the user.
func borrow(ctx context.Context, from, commit, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	// The user's hooks and the name of the user's remotes are not for this clone, and its source is
	// this repository, whatever protocols the user allows.
	_, err := Git(ctx, filepath.Dir(to), "-c", "protocol.file.allow=always", "clone", "--quiet",
		"--shared", "--no-checkout", "--origin", "origin", "--", from, to)
	if err == nil {
		_, err = Git(ctx, to, "-c", "core.hooksPath="+os.DevNull, "checkout", "--quiet", "--detach",
			commit)
	}
	if err == nil {
		err = complete(ctx, to)
	}
	if err != nil && strings.Contains(err.Error(), "git-lfs: ") {
		return fmt.Errorf("%w; install git-lfs, by which git is set up to fetch large files", err)
	}
	return err
}

// complete returns an error if files of a new clone are missing: git checkout ignores objects that
// the user's repository lacks.
func complete(ctx context.Context, clone string) error {
	gone, err := Git(ctx, clone, "ls-files", "--deleted")
	if err != nil || gone == "" {
		return err
	}
	first, _, _ := strings.Cut(gone, "\n")
	return fmt.Errorf("the repository lacks %s of this revision; if it is a partial clone, fetch "+
		"all files with git fetch --refetch --no-filter", first)
}

// nameRemote gives a clone the remote of the user's repository, to which relative URLs of
// submodules refer. Without a URL the clone reads from the repository's path, and cannot push to
// it.
func nameRemote(ctx context.Context, clone, url string) error {
	args := []string{"remote", "set-url", "origin", url}
	if url == "" {
		args = []string{"config", "remote.origin.pushurl", "no-push-from-a-build"}
	}
	_, err := Git(ctx, clone, args...)
	return err
}

// remoteOf returns the URL of a git directory's remote: of origin, or of the first one; empty:
// there is none. A relative URL is resolved against the work tree.
func remoteOf(ctx context.Context, dir, work string) string {
	name := "origin"
	names, err := inDir(ctx, dir, "remote")
	if err == nil && names != "" && !slices.Contains(strings.Fields(names), name) {
		name, _, _ = strings.Cut(names, "\n")
	}
	url, err := inDir(ctx, dir, "config", "--get", "remote."+name+".url")
	if err != nil {
		return "" // it is not set
	}
	if strings.HasPrefix(url, "./") || strings.HasPrefix(url, "../") {
		return filepath.Join(work, url)
	}
	return url
}

// fillSubmodules fills the submodules of a clone and returns those that are missing. work is the
// work tree of the original; dirs have the repositories of its submodules.
func fillSubmodules(ctx context.Context, clone, work string, dirs []string) (missing []string,
	err error) {
	if _, err := os.Stat(filepath.Join(clone, ".gitmodules")); err != nil {
		return nil, nil
	}
	listed, err := Git(ctx, clone, "config", "-z", "--file", ".gitmodules", "--get-regexp",
		`^submodule\..*\.path$`)
	if err != nil {
		return nil, nil // it names none
	}
	for entry := range strings.SplitSeq(strings.TrimRight(listed, "\x00"), "\x00") {
		key, path, _ := strings.Cut(entry, "\n")
		name := strings.TrimSuffix(strings.TrimPrefix(key, "submodule."), ".path")
		commit := gitlink(ctx, clone, path)
		if commit == "" || !filepath.IsLocal(path) || !filepath.IsLocal(name) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(clone, path, ".git")); err == nil {
			continue // an earlier run filled it
		}
		ownText := filepath.Join(work, path)
		var places []string
		if dir, err := Git(ctx, ownText, "rev-parse", "--absolute-git-dir"); err == nil {
			places = append(places, dir)
		}
		for _, dir := range dirs {
			places = append(places, filepath.Join(dir, "modules", name))
		}
		from := holder(ctx, places, commit)
		if from == "" {
			missing = append(missing, path)
			continue
		}
		nested, err := submodule(ctx, clone, path, from, ownText, commit)
		if err != nil {
			return missing, fmt.Errorf("submodule %s: %w", path, err)
		}
		for _, sub := range nested {
			missing = append(missing, filepath.Join(path, sub))
		}
	}
	return missing, nil
}

// submodule clones one submodule, with its own submodules, from a git directory that has its
// commit.
func submodule(ctx context.Context, clone, path, from, work, commit string) (missing []string,
	err error) {
	location := filepath.Join(clone, path)
	if err := borrow(ctx, from, commit, location); err != nil {
		return nil, err
	}
	if err := nameRemote(ctx, location, remoteOf(ctx, from, work)); err != nil {
		return nil, err
	}
	if missing, err = fillSubmodules(ctx, location, work, []string{from}); err != nil {
		return nil, err
	}
	// The files are complete even if git cannot resolve the submodule's URL.
	_, _ = Git(ctx, clone, "submodule", "--quiet", "init", "--", path)
	_, err = Git(ctx, clone, "submodule", "--quiet", "absorbgitdirs", "--", path)
	return missing, err
}

// gitlink returns the commit of a submodule in a clone's index; empty: the path is not a submodule.
func gitlink(ctx context.Context, clone, path string) string {
	entry, err := Git(ctx, clone, "ls-files", "--stage", "--", path)
	fields := strings.Fields(entry)
	if err != nil || len(fields) < 2 || fields[0] != "160000" {
		return ""
	}
	return fields[1]
}

// holder returns the first git directory that has a commit; empty: none has it.
func holder(ctx context.Context, dirs []string, commit string) string {
	for _, dir := range dirs {
		if _, err := inDir(ctx, dir, "cat-file", "-e", commit+"^{commit}"); err == nil {
			return dir
		}
	}
	return ""
}

// inDir runs git in a git directory, whose work tree may be missing.
func inDir(ctx context.Context, dir string, args ...string) (string, error) {
	return Git(ctx, dir, append([]string{"--git-dir=.", "--work-tree=."}, args...)...)
}

// Git returns the output of a git command in a folder, without the final line break. It removes
// variables that name another repository, such as git sets for hooks.
func Git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = WithoutGit(os.Environ())
	cmd.WaitDelay = killGrace
	var output bytes.Buffer
	cmd.Stderr = &output
	cmdlog.Command(cmd)
	out, err := cmd.Output()
	if err != nil {
		verb := 0
		for verb < len(args)-1 && args[verb][0] == '-' {
			if args[verb] == "-c" {
				verb++ // its value
			}
			verb++
		}
		err = fmt.Errorf("git %s: %w", args[verb], err)
		if text := strings.TrimSpace(output.String()); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
	}
	return strings.TrimRight(string(out), "\n"), err
}

// gitEnv are the variables that bind git to one repository: those that git rev-parse
// --local-env-vars prints, without configuration.
var gitEnv = []string{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_GRAFT_FILE",
	"GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_NAMESPACE",
	"GIT_NO_REPLACE_OBJECTS", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_REPLACE_REF_BASE",
	"GIT_SHALLOW_FILE", "GIT_WORK_TREE",
}

// WithoutGit returns an environment without the variables that bind git to one repository.
func WithoutGit(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(gitEnv, name)
	})
}

// ceilingEnv lists folders in which, and above which, git looks for no repository (git(1)).
const ceilingEnv = "GIT_CEILING_DIRECTORIES"

// below keeps git from looking for repositories above the copies in a folder.
func below(env []string, folder string) []string {
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	return append(env, ceilingEnv+"="+folder)
}
