package service

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"prony.example/record"
)

// Limits of a copy: copying a larger folder would take longer than the warm-up of its service.
const (
	copyBytes = 2 << 30
	copyFiles = 300_000
	// largeFile is the size from which a file is written to disk at once. For smaller files the
	// request costs more than the kernel's later write.
	largeFile = 1 << 20
	// shebangBytes is the length of a script's first line that the kernel reads (BINPRM_BUF_SIZE).
	shebangBytes = 256
)

// CopyPrefix is the prefix of the name of a folder with a start's copy, and CopyMark a file in it.
// RemoveCopy needs both.
const (
	CopyPrefix = "prony-start-"
	CopyMark   = ".prony-copy"
)

// NoCopy is an error that says why no copy was made.
type NoCopy struct {
	Reason string // one of record's NoCopy names
	Detail string // such as an error of the system; may be empty
}

// Error implements error.
func (n *NoCopy) Error() string {
	text := "copy the service's folder: " + n.Reason
	if n.Detail != "" {
		text += ": " + n.Detail
	}
	return text
}

// InUserFolder reports whether the service runs in a folder of the user, which nothing built or
// copied.
func (b *Built) InUserFolder() bool {
	return len(b.Images) == 0 && b.Compose == nil && !b.Attached.IsValid() && b.folder == ""
}

// Copy copies the folder of a build for one start, and returns the service in the copy. Its pages
// are in newly allocated memory, and the next start is not affected by its writes. Contents, modes,
// owners and modification times stay. Links into the folder point into the copy, as do first lines
// of scripts that name a program in it, such as those of a virtual environment of Python. The name
// of dir must begin with CopyPrefix, and dir must not exist. The caller removes it with RemoveCopy,
// also after an error, which is a *NoCopy or that of the context.
func (b *Built) Copy(ctx context.Context, dir string) (*Built, error) {
	switch {
	case len(b.Images) > 0 || b.Compose != nil:
		return nil, &NoCopy{Reason: record.NoCopyContainer}
	case b.Attached.IsValid():
		return nil, &NoCopy{Reason: record.NoCopyAttached}
	case b.InUserFolder():
		return nil, &NoCopy{Reason: record.NoCopyGiven}
	}
	inside, err := filepath.Rel(b.copy(), b.Dir)
	if err != nil {
		return nil, &NoCopy{record.NoCopyFailed, err.Error()}
	}
	fresh := *b
	fresh.folder = dir
	fresh.Dir = filepath.Join(fresh.copy(), inside)
	fresh.original = cmp.Or(b.original, b.Dir)
	root, err := os.OpenRoot(b.copy())
	if err != nil {
		return nil, &NoCopy{record.NoCopyFailed, err.Error()}
	}
	defer root.Close()
	c := &copier{ctx: ctx, root: root, from: b.copy(), to: fresh.copy(),
		chunk: make([]byte, 1<<18)}
	err = os.MkdirAll(filepath.Dir(dir), 0o755)
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, CopyMark), nil, 0o600)
	}
	if err == nil {
		err = fs.WalkDir(root.FS(), ".", c.entry)
	}
	if err == nil {
		err = c.finish()
	}
	if err == nil {
		return &fresh, nil
	}
	remaining := RemoveCopy(dir)
	if ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), remaining)
	}
	var known *NoCopy
	if !errors.As(err, &known) || remaining != nil {
		known = &NoCopy{record.NoCopyFailed, errors.Join(err, remaining).Error()}
	}
	return nil, known
}

// RemoveCopy removes a folder made by Copy. It ignores a folder that does not exist or has no
// CopyMark.
func RemoveCopy(dir string) error {
	if !strings.HasPrefix(filepath.Base(dir), CopyPrefix) {
		return fmt.Errorf("remove the copy %s: the name is not that of a copy", dir)
	}
	switch _, err := os.Lstat(filepath.Join(dir, CopyMark)); {
	case errors.Is(err, fs.ErrNotExist):
		_ = os.Remove(dir) // it was made and not filled yet
		return nil
	case err != nil:
		return fmt.Errorf("remove a copy: %w", err)
	}
	err := os.RemoveAll(dir)
	if errors.Is(err, fs.ErrPermission) { // a folder in it is read-only
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("remove a copy: %w", err)
	}
	return nil
}

// copier copies a tree. It reads nothing outside of root: other processes of the service's user may
// replace parts of the tree by links to files that only this program may read.
type copier struct {
	ctx      context.Context
	root     *os.Root
	from, to string
	bytes    int64
	files    int
	chunk    []byte
	folders  []folder // whose modes and times are set last
}

type folder struct {
	path string
	info fs.FileInfo
}

func (c *copier) entry(name string, d fs.DirEntry, err error) error {
	if err = cmp.Or(err, c.ctx.Err()); err != nil {
		return err
	}
	info, err := c.root.Lstat(name)
	if err != nil || info.Mode().Type() != d.Type() {
		return cmp.Or(err, replaced(name))
	}
	c.files++
	if d.Type().IsRegular() {
		c.bytes += info.Size()
	}
	if c.files > copyFiles || c.bytes > copyBytes {
		return &NoCopy{record.NoCopyLarge, fmt.Sprintf("the folder has more than %d GiB or %d "+
			"files",
			copyBytes>>30, copyFiles)}
	}
	target := filepath.Join(c.to, name)
	switch {
	case d.IsDir() && d.Name() == ".git":
		return fs.SkipDir // services do not need the history
	case d.IsDir():
		c.folders = append(c.folders, folder{target, info})
		return os.Mkdir(target, 0o700)
	case d.Type() == fs.ModeSymlink:
		return c.link(name, target, info)
	case d.Type().IsRegular():
		return c.file(name, target, info)
	}
	return nil // a socket or pipe is created by the process that listens
}

func replaced(name string) error { return fmt.Errorf("%s was replaced while it was copied", name) }

// link copies a symbolic link. A relative link out of the folder, which a build should not contain,
// gets the original's destination.
func (c *copier) link(name, target string, info fs.FileInfo) error {
	points, err := c.root.Readlink(name)
	if err != nil {
		return err
	}
	absolute := points
	if !filepath.IsAbs(points) {
		absolute = filepath.Join(c.from, filepath.Dir(name), points)
	}
	below, err := filepath.Rel(c.from, absolute)
	inside := err == nil && filepath.IsLocal(below)
	switch {
	case inside && filepath.IsAbs(points):
		points = filepath.Join(c.to, below)
	case !inside:
		points = absolute
	}
	if err := os.Symlink(points, target); err != nil {
		return err
	}
	return give(target, info)
}

// file copies a regular file byte by byte: copy_file_range(2) might share the extent on disk,
// without new pages in memory.
func (c *copier) file(name, target string, info fs.FileInfo) (err error) {
	in, err := c.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if opened, err := in.Stat(); err != nil || !os.SameFile(info, opened) {
		return cmp.Or(err, replaced(name))
	}
	out, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for first := true; ; first = false {
		n, err := in.Read(c.chunk)
		chunk := c.chunk[:n]
		if first {
			chunk = c.shebang(chunk)
		}
		if _, err := out.Write(chunk); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if info.Size() >= largeFile {
		writeBack(out)
	}
	if err := give(target, info); err != nil {
		return err
	}
	if err := out.Chmod(info.Mode()); err != nil {
		return err
	}
	return os.Chtimes(target, info.ModTime(), info.ModTime())
}

// shebang replaces the program in the first line of a script by the copy's. If the line would
// become too long for the kernel, the script keeps the build's program.
func (c *copier) shebang(text []byte) []byte {
	line, tail, ok := bytes.Cut(text, []byte("\n"))
	if !ok || !bytes.HasPrefix(line, []byte("#!")) || len(line) > shebangBytes {
		return text
	}
	separator := string(filepath.Separator)
	moved := bytes.ReplaceAll(line, []byte(c.from+separator), []byte(c.to+separator))
	if len(moved) >= shebangBytes || bytes.Equal(moved, line) {
		return text
	}
	return bytes.Join([][]byte{moved, tail}, []byte("\n"))
}

// finish sets modes and times of folders, the deepest first.
func (c *copier) finish() error {
	for i := len(c.folders) - 1; i >= 0; i-- {
		f := c.folders[i]
		err := give(f.path, f.info)
		if err == nil {
			err = os.Chmod(f.path, f.info.Mode())
		}
		if err == nil {
			err = os.Chtimes(f.path, f.info.ModTime(), f.info.ModTime())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// give sets the owner of the original, if that is not root.
func give(path string, info fs.FileInfo) error {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 || s.Uid == 0 && s.Gid == 0 {
		return nil
	}
	return os.Lchown(path, int(s.Uid), int(s.Gid))
}
