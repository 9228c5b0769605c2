package adhoc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"prony.example/internal/base/cache"
	"prony.example/internal/service"
)

// Clone clones a source's revision into a folder of its own below dir, and makes the source start
// there, in the same folder of the repository as the working directory. note is a remark for
// readers of the result, if there is one. Without a revision, the source stays as it is.
func (s *Source) Clone(ctx context.Context, dir string) (note string, err error) {
	way, is := s.Way.(Revision)
	if !is {
		return "", nil
	}
	// The first call finds a revision such as :/text, to which nothing can be appended.
	id, err := service.Git(ctx, s.Dir, "rev-parse", "--verify", "--quiet", way.Git)
	if err == nil {
		id, err = service.Git(ctx, s.Dir, "rev-parse", "--verify", "--quiet", id+"^{commit}")
	}
	if err != nil {
		return "", s.wrong("--git "+way.Git, s.absent(ctx, way.Git, err))
	}
	if isBare, _ := service.Git(ctx, s.Dir, "rev-parse", "--is-bare-repository"); isBare == "true" {
		return "", s.wrong("--git "+way.Git, fmt.Errorf("folder %s is a bare repository; run "+
			"prony in a clone of it", s.Dir))
	}
	top, err := service.Git(ctx, s.Dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	inside, err := service.Git(ctx, s.Dir, "rev-parse", "--show-prefix")
	if err != nil {
		return "", err
	}
	if _, err := service.Git(ctx, s.Dir, "cat-file", "-e", id+":"+inside); err != nil {
		return "", s.wrong("--git "+way.Git, fmt.Errorf("the revision has no folder %s; run prony "+
			"in a folder that it has", inside))
	}
	to := filepath.Join(dir, id[:12])
	from := &service.Checkout{Repo: top, Commit: id, Inside: strings.Trim(inside, "/"), At: to}
	notes := s.changed(ctx, way.Git, id)
	s.checkout, s.Dir = from, filepath.Join(to, from.Inside)
	missing, err := cloned(ctx, from)
	if err != nil {
		return "", err
	}
	if len(missing) > 0 {
		notes = append(notes, fmt.Sprintf("--git %s: these submodule folders are empty, because "+
			"your repository does not have their commits: %s; fetch the submodules in --build, "+
			"or first run git submodule update --init --recursive in your repository", way.Git,
			strings.Join(missing, ", ")))
	}
	if paths := from.Pointers(ctx); len(paths) > 0 {
		more := ""
		if n := len(paths) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		notes = append(notes, fmt.Sprintf("--git %s: %s%s: only a pointer of Git LFS instead of "+
			"the content; install git-lfs, then type git lfs install", way.Git, paths[0], more))
	}
	return strings.Join(notes, "; "), nil
}

// Differ returns an error if two of the cloned sources are the same commit and start alike: their
// comparison would show noise.
func Differ(sources []Source) error {
	for i, s := range sources {
		for _, earlier := range sources[:i] {
			if s.checkout == nil || earlier.checkout == nil || !equal(earlier, s) {
				continue
			}
			from, to := earlier.Way.(Revision).Git, s.Way.(Revision).Git
			if from == to {
				continue // it was meant so: each has a name of its own
			}
			return s.wrong("--git "+to, fmt.Errorf("it is the same commit as %s, %s, so there is "+
				"nothing to compare; name two commits, and commit your changes first if you have "+
				"any. To measure noise, name one revision only", from, s.checkout.Commit[:12]))
		}
	}
	return nil
}

// equal reports whether two sources differ in nothing but names.
func equal(a, b Source) bool {
	if a.Again || b.Again {
		return false
	}
	for _, s := range []*Source{&a, &b} {
		s.Name, s.Built, s.Way = "", "", s.Way.(Revision).Start
	}
	return reflect.DeepEqual(a, b)
}

// absent explains why git does not find a revision, with the next step if a clone lacks it.
func (s *Source) absent(ctx context.Context, revision string, err error) error {
	hint := ""
	remote := "origin/" + revision
	if _, failed := service.Git(ctx, s.Dir, "rev-parse", "--verify", "--quiet",
		remote+"^{commit}"); failed == nil {
		hint = "; did you mean " + remote + "?"
	} else if is, _ := service.Git(ctx, s.Dir, "rev-parse",
		"--is-shallow-repository"); is == "true" {
		hint = "; the repository is a shallow clone: get its history with git fetch " +
			"--unshallow, or with fetch-depth: 0 of actions/checkout"
	}
	return fmt.Errorf("folder %s is not in a Git repository with the revision %s (%w)%s", s.Dir,
		revision, err, hint)
}

// changed returns a note if the source's revision is the checked-out one and the work tree has
// changes, which are not measured.
func (s *Source) changed(ctx context.Context, revision, id string) (notes []string) {
	head, err := service.Git(ctx, s.Dir, "rev-parse", "HEAD")
	if err != nil || head != id {
		return nil
	}
	changes, err := service.Git(ctx, s.Dir, "status", "--porcelain")
	if err == nil && changes != "" {
		notes = append(notes, "--git "+revision+" uses the commit, without your uncommitted "+
			"changes")
	}
	return notes
}

// cloned makes the clone of a revision, unless an earlier run has made it.
func cloned(ctx context.Context, from *service.Checkout) (missing []string, err error) {
	if err := os.MkdirAll(filepath.Dir(from.At), 0o755); err != nil {
		return nil, err
	}
	unlock, err := cache.Lock(ctx, from.At+".lock", "the clone", func() {})
	if err != nil {
		return nil, err
	}
	defer unlock()
	keyPath, err := service.Git(ctx, from.At, "--git-dir=.git", "rev-parse", "HEAD")
	// Pointers get their content only in a new clone.
	if err == nil && keyPath == from.Commit &&
		(!from.HasLFS(ctx) || len(from.Pointers(ctx)) == 0) {
		return from.Refill(ctx)
	}
	// The clone gets its name last, because an interrupted clone already has its head, but few
	// files.
	half := from.At + ".new"
	if err := errors.Join(os.RemoveAll(from.At), os.RemoveAll(half)); err != nil {
		return nil, err
	}
	if missing, err = from.Clone(ctx, half); err != nil {
		return nil, err
	}
	return missing, os.Rename(half, from.At)
}
