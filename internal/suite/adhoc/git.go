package adhoc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"prony.example/internal/base/cmdlog"
)

// Clone puts a source's revision below kept, in a folder of its own, and has the source start
// there: in the same folder of the repository as the one that is worked in. It says what a reader
// of the result should know, if anything. A source of no revision stays as it is.
func (s *Source) Clone(ctx context.Context, kept string) (note string, err error) {
	if s.Revision == "" {
		return "", nil
	}
	git := func(dir string, args ...string) (string, error) { return git(ctx, dir, args...) }
	id, err := git(s.Dir, "rev-parse", "--verify", "--quiet", s.Revision+"^{commit}")
	if err != nil {
		return "", s.wrong("--git "+s.Revision, fmt.Errorf("%s is no repository that has the "+
			"revision %s (%w)", s.Dir, s.Revision, err))
	}
	top, err := git(s.Dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	inside, err := git(s.Dir, "rev-parse", "--show-prefix")
	if err != nil {
		return "", err
	}
	if head, err := git(s.Dir, "rev-parse", "HEAD"); err == nil && head == id {
		if changes, err := git(s.Dir, "status", "--porcelain"); err == nil && changes != "" {
			note = "--git " + s.Revision + " is what was committed: changes that are not stay out"
		}
	}
	to := filepath.Join(kept, id[:12])
	s.Dir = filepath.Join(to, inside)
	if at, err := git(to, "--git-dir=.git", "rev-parse", "HEAD"); err == nil && at == id {
		return note, nil // an earlier run's
	}
	// One that is killed on its way has the head already and few files: it gets its name last.
	half := to + ".new"
	if err := errors.Join(os.RemoveAll(to), os.RemoveAll(half),
		os.MkdirAll(kept, 0o755)); err != nil {
		return "", err
	}
	// It borrows the repository's objects and leaves nothing in it, as a work tree would.
	_, err = git(kept, "clone", "--quiet", "--shared", "--no-checkout", top, half)
	if err == nil {
		_, err = git(half, "checkout", "--quiet", "--detach", id)
	}
	if err == nil {
		err = os.Rename(half, to)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(half))
	}
	return note, nil
}

// git gives what a command of git's prints, without the end of its last line.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmdlog.Command(cmd)
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w", args[0], err)
		if text := strings.TrimSpace(said.String()); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
	}
	return strings.TrimRight(string(out), "\n"), err
}
