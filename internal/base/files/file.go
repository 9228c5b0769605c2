// Package files reads files within a bound and writes files atomically. An input that a user names
// may be endless, a pipe or a device; a write may meet a full disk. The program therefore reads all
// complete inputs here. It also writes here all files that must be complete: beside their place,
// and renamed when all bytes are on the disk.
//
// The package also walks trees, computes digests of them, and returns the ends of logs.
//
// Non-goals: it is independent of formats. Journals and logs, which grow, belong to other packages.
package files

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"unsafe"
)

// Bounds of complete reads, in bytes. They are far above what people and programs write, and far
// below what would disturb the measured machine.
const (
	Settings = 4 << 20   // files that people write: suites, manifests, scenarios
	Body     = 64 << 20  // bodies of requests
	Page     = 64 << 20  // a document, or a run's head
	Results  = 256 << 20 // of other tools, which write a line per request
)

// mark is the byte order mark that some editors write (RFC 3629, section 6).
var mark = []byte("\ufeff")

// Open opens a file for reading without blocking: a pipe without a writer is empty. A folder is an
// error.
func Open(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: name,
			Err: errors.New("it is a folder, but a file is required")}, f.Close())
	}
	return f, nil
}

// Plain opens a regular file, not through a link. It is for folders in which a service may write: a
// link could name a file that only this program may read.
func Plain(name string) (*os.File, error) {
	named, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	var f *os.File
	if named.Mode().IsRegular() {
		if f, err = Open(name); err != nil {
			return nil, err
		}
		if opened, err := f.Stat(); err == nil && os.SameFile(named, opened) {
			return f, nil
		}
		_ = f.Close() // it was replaced meanwhile
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("it is not a regular file")}
}

// Read returns the content of a file, a pipe or a device; more than bound bytes are an error.
func Read(name string, bound int64) ([]byte, error) {
	return read(name, bound, false, false)
}

// Text reads text as Read does, and removes a byte order mark. It stops with an error at a NUL
// byte.
func Text(name string, bound int64) ([]byte, error) {
	data, err := read(name, bound, true, false)
	return bytes.TrimPrefix(data, mark), err
}

// String returns the result of Text as a string, without a second copy.
func String(name string, bound int64) (string, error) {
	data, err := Text(name, bound)
	return unsafe.String(unsafe.SliceData(data), len(data)), err // the slice has no other reference
}

// Kept reads a regular file as Text does. It refuses pipes because the content must still be
// available when results are examined or repeated.
func Kept(name string, bound int64) ([]byte, error) {
	data, err := read(name, bound, true, true)
	return bytes.TrimPrefix(data, mark), err
}

const (
	// further is the buffer's size in bytes if the file's size is unknown. Longer content gets a
	// buffer of the bound's size: the kernel provides memory as the buffer fills, and no content is
	// copied twice.
	further = 1 << 20
	// spare is the memory limit above a large text, in bytes. By default Go's collector lets as
	// much garbage gather as there is text, and a small machine lacks memory for both.
	spare = 128 << 20
)

// lean limits the program's memory if a text is larger than all bounds but Results allow.
func lean(room int64) {
	if limit := room + spare; room > Page+1 && limit < debug.SetMemoryLimit(-1) {
		debug.SetMemoryLimit(limit)
	}
}

// forms are what files begin with that hold a text in another form.
var forms = []struct{ start, hint string }{
	{"\xff\xfe", "it is UTF-16; save it as UTF-8"},
	{"\xfe\xff", "it is UTF-16; save it as UTF-8"},
	{"\x1f\x8b", "it is compressed by gzip; unpack it first, as gunzip does"},
	{"\x28\xb5\x2f\xfd", "it is compressed by zstd; unpack it first, as unzstd does"},
	{"BZh91AY&SY", "it is compressed by bzip2; unpack it first, as bunzip2 does"},
	{"\xfd7zXZ", "it is compressed by xz; unpack it first, as unxz does"},
	{"PK\x03\x04", "it is a ZIP archive; unpack it first, as unzip does"},
}

// packed names the form of a file that holds a text in another one; "": none is known.
func packed(data []byte) string {
	for _, f := range forms {
		if bytes.HasPrefix(data, []byte(f.start)) {
			return f.hint
		}
	}
	if len(data) >= 4 && (data[0] == 0) != (data[1] == 0) && (data[0] == 0) == (data[2] == 0) &&
		(data[1] == 0) == (data[3] == 0) {
		return forms[0].hint // without a mark: a NUL in each character of ASCII
	}
	return ""
}

// read reads to the end, or to the bound.
func read(name string, bound int64, text, regular bool) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	fail := func(format string, args ...any) ([]byte, error) {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf(format, args...)}
	}
	room := int64(further)
	info, err := f.Stat()
	switch {
	case err != nil: // reading to the end finds the size
	case regular && !info.Mode().IsRegular():
		return fail("it is not a regular file; data from a pipe or a device cannot be read " +
			"twice: save it to a file")
	case info.Size() > bound:
		return fail("the file has %d bytes, but at most %d MiB are allowed", info.Size(), bound>>20)
	case info.Size() > 0:
		room = info.Size() + 1 // one more byte detects the end
	}
	lean(room)
	piece := make([]byte, 0, room)
	for size := int64(0); ; {
		n, err := f.Read(piece[len(piece):cap(piece)])
		read := piece[len(piece) : len(piece)+n]
		piece = piece[:len(piece)+n]
		switch size += int64(n); {
		case text && (bytes.IndexByte(read, 0) >= 0 || packed(piece) != ""):
			return fail("%s", cmp.Or(packed(piece), "the file is not text: it contains NUL bytes"))
		case size > bound:
			return fail("the file has more than the allowed %d MiB", bound>>20)
		case errors.Is(err, io.EOF):
			return piece, nil
		case err != nil:
			return nil, err
		}
		if len(piece) == cap(piece) {
			lean(bound + 1)
			piece = append(make([]byte, 0, bound+1), piece...)
		}
	}
}

// Write writes a file's content by print to a file beside its place, and renames it when all bytes
// are on the disk. If a step fails, the former file is unchanged. Write follows symbolic links, and
// writes directly to files that are not regular, such as /dev/stdout.
func Write(name string, print func(io.Writer) error) (err error) {
	info, err := os.Stat(name)
	mode, existed := fs.FileMode(0o644), err == nil
	switch {
	case err == nil && !info.Mode().IsRegular():
		return straight(name, print)
	case err == nil:
		mode = info.Mode().Perm()
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	draft, err := create(name, mode)
	if err != nil {
		return err
	}
	err = print(draft)
	if err == nil && existed {
		err = draft.Chmod(mode) // the umask applies only to new files
	}
	if err == nil {
		err = draft.Sync()
	}
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return SyncFolder(filepath.Dir(name))
}

// SyncFolder writes a folder's names to the disk. Otherwise a power cut may undo a rename or lose a
// new file (fsync(2)).
func SyncFolder(dir string) error {
	if runtime.GOOS == "windows" { // Windows cannot sync folders: NTFS has a journal of names
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// create creates the temporary file. Its name includes the process id, so that two processes that
// write one file don't collide, and it never writes to an existing file, such as a link to
// elsewhere.
func create(name string, mode fs.FileMode) (*os.File, error) {
	sibling := fmt.Sprintf("%s.%d.new", name, os.Getpid())
	if err := os.Remove(sibling); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(sibling, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		failed.Path = name // as the user knows it
	}
	return f, err
}

// CanWrite returns the error with which Write would begin, such as for a missing folder. It is for
// verbs that take long until they write.
func CanWrite(name string) error {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("open %s: it is a folder, but a file is required", name)
	case err == nil && !info.Mode().IsRegular():
		return nil
	case err == nil:
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
	}
	draft, err := create(name, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(draft.Close(), os.Remove(draft.Name()))
}

func straight(name string, print func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(print(f), f.Close())
}

// Print writes by print into a file, or to usual if the name is empty.
func Print(usual io.Writer, name string, print func(io.Writer) error) error {
	if name == "" {
		return print(usual)
	}
	if err := Write(name, print); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Glob returns the sorted paths of files below a folder that match a pattern of fs.Glob. Characters
// of the folder's name have no meaning in it.
func Glob(dir, pattern string) []string {
	names, _ := fs.Glob(os.DirFS(dir), pattern) // callers have well-formed patterns
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names
}

// IsDir reports whether a path, or the target of a link there, is a folder.
func IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// IsFile reports whether a path, or the target of a link there, is a regular file.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// IsLink reports whether a path is a symbolic link.
func IsLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

// Put writes data as Write does.
func Put(name string, data []byte) error {
	return Write(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// tailBytes is the number of bytes at a log's end that Tail reads.
const tailBytes = 64 << 10

// Tail returns up to n last lines of a log's last 64 KiB; none if the log cannot be
// read, or is a link or a pipe.
func Tail(name string, n int) []string {
	f, err := Plain(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := f.Seek(-tailBytes, io.SeekEnd); err != nil {
			return nil
		}
	}
	var lines []string
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, tailBytes)
	for scan.Scan() {
		lines = append(lines, scan.Text())
	}
	return lines[max(0, len(lines)-n):]
}

// endBytes is the number of bytes that End keeps.
const endBytes = 4 << 10

// End keeps the last 4 KiB that are written to it. String may run concurrently with Write.
type End struct {
	mu       sync.Mutex
	retained []byte
}

// Write implements io.Writer.
func (e *End) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := append(e.retained, b...)
	e.retained = bytes.Clone(all[max(0, len(all)-endBytes):])
	return len(b), nil
}

// String returns the kept bytes without surrounding blanks.
func (e *End) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return string(bytes.TrimSpace(e.retained))
}

// Entry is a file or symbolic link of a tree. Its name is relative and has slashes.
type Entry struct {
	Name string
	Info fs.FileInfo
}

// Walk lists the files and symbolic links below root, or root itself if it is a file, sorted by
// name. It leaves out other kinds of files, such as sockets of a running service, because a build
// cannot depend on their content.
func Walk(root string, skip func(name string) bool) ([]Entry, error) {
	var entries []Entry
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if name != "." && skip(name) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() && d.Type() != fs.ModeSymlink {
			return nil
		}
		info, err := d.Info()
		entries = append(entries, Entry{name, info})
		return err
	})
	return entries, err
}

// Hash walks a tree as Walk does and writes the entries to a SHA-256 digest; modes includes the
// right to execute.
func Hash(root string, skip func(name string) bool, modes bool) ([]Entry, hash.Hash, error) {
	entries, err := Walk(root, skip)
	if err != nil {
		return nil, nil, err
	}
	h := sha256.New()
	for _, e := range entries {
		if err := e.addTo(h, root, modes); err != nil {
			return nil, nil, err
		}
	}
	return entries, h, nil
}

// addTo writes an entry's kind, name, length and content to a digest, so that different trees give
// different bytes. If modes count, only the right to execute does, as in git. Links count by their
// targets.
func (e Entry) addTo(h hash.Hash, root string, modes bool) error {
	path := filepath.Join(root, filepath.FromSlash(e.Name))
	if e.Info.Mode().Type() == fs.ModeSymlink {
		link, err := os.Readlink(path)
		fmt.Fprintf(h, "link %q %q\n", e.Name, link)
		return err
	}
	kind := "file"
	if modes && e.Info.Mode()&0o111 != 0 {
		kind = "program"
	}
	fmt.Fprintf(h, "%s %q %d\n", kind, e.Name, e.Info.Size())
	return Feed(h, path)
}

// Feed copies a file's content to w, without a bound.
func Feed(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return errors.Join(err, f.Close())
}

// Digest returns the SHA-256 of a file's content in hex.
func Digest(path string) (string, error) {
	h := sha256.New()
	err := Feed(h, path)
	return hex.EncodeToString(h.Sum(nil)), err
}
