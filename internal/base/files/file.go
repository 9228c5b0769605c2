// Package files reads files within a bound and writes them whole. What somebody names as an input
// may be endless, a pipe or a device; what is written may meet a full disk. So whatever the program
// reads at once, it reads here, and so it writes whatever somebody will want to have whole: beside
// its place, and renamed when all of it is on the disk.
//
// Beside that it walks trees for digests of them, and shows the ends of logs.
//
// Non-goals: it knows no format, and journals and logs, which grow, are their owners'.
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

// Bounds of what is read at once, in bytes. They are far above what people and programs write, and
// far below what would hurt the machine that is measured on.
const (
	Settings = 4 << 20   // what people write: suites, manifests, scenarios
	Body     = 64 << 20  // of a request
	Page     = 64 << 20  // a document, a run's head
	Results  = 256 << 20 // of other tools: a line a request
)

// mark is what some editors begin a text with (RFC 3629, section 6).
var mark = []byte("\ufeff")

// Open opens a file for reading and waits for nobody: a pipe that no one writes to is empty.
func Open(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: name,
			Err: errors.New("it is a folder, and a file is wanted")}, f.Close())
	}
	return f, nil
}

// Read gives what a file, a pipe or a device holds, if that is no more than bound bytes.
func Read(name string, bound int64) ([]byte, error) {
	return read(name, bound, false, false)
}

// Text is Read for text, without a byte order mark. What holds a NUL is none, and is not read on.
func Text(name string, bound int64) ([]byte, error) {
	data, err := read(name, bound, true, false)
	return bytes.TrimPrefix(data, mark), err
}

// String is Text in a string; large ones are not held twice for it.
func String(name string, bound int64) (string, error) {
	data, err := Text(name, bound)
	return unsafe.String(unsafe.SliceData(data), len(data)), err // nobody else has the bytes
}

// Kept is Text of a file that will have to be there again, when what came of it is looked into or
// repeated. A pipe would be gone then, and is refused.
func Kept(name string, bound int64) ([]byte, error) {
	data, err := read(name, bound, true, true)
	return bytes.TrimPrefix(data, mark), err
}

const (
	// further is how many bytes there is room for where no size is told. What grows beyond it has
	// room for its bound: the kernel gives memory as it is filled, and nothing is held twice.
	further = 1 << 20
	// spare is the memory beside a large text, in bytes. By itself Go's collector lets as much
	// garbage gather as there is text, and a small machine has no room for both.
	spare = 128 << 20
)

// lean bounds the program's memory beside a text that is larger than any but Results.
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
	case err != nil: // its end will tell how long it is
	case regular && !info.Mode().IsRegular():
		return fail("it is not a regular file; what comes by a pipe or a device cannot be read " +
			"again: save it to a file")
	case info.Size() > bound:
		return fail("it has %d bytes, and the bound is %d MiB", info.Size(), bound>>20)
	case info.Size() > 0:
		room = info.Size() + 1 // for the end to be seen in
	}
	lean(room)
	piece := make([]byte, 0, room)
	for size := int64(0); ; {
		n, err := f.Read(piece[len(piece):cap(piece)])
		read := piece[len(piece) : len(piece)+n]
		piece = piece[:len(piece)+n]
		switch size += int64(n); {
		case text && (bytes.IndexByte(read, 0) >= 0 || packed(piece) != ""):
			return fail("%s", cmp.Or(packed(piece), "it is not text: it holds NUL bytes"))
		case size > bound:
			return fail("it has more than %d MiB, the bound", bound>>20)
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

// Write has print write a file's content beside its place, and puts it there when all of it is on
// the disk. Whatever fails, what was there before stays as it was. What is no regular file, such as
// /dev/stdout, is written to as it is; a link stays one.
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
		err = draft.Chmod(mode) // the umask is for new ones
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

// SyncFolder has a folder's names on the disk: without it a power cut takes a rename back, and with
// it a new file (fsync(2)).
func SyncFolder(dir string) error {
	if runtime.GOOS == "windows" { // which syncs no folder: NTFS has a journal of names
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// create makes the file beside. Its name is this process's, so that two that write the same file do
// not meet, and nothing that lies there already, such as a link to elsewhere, is written to.
func create(name string, mode fs.FileMode) (*os.File, error) {
	sibling := fmt.Sprintf("%s.%d.new", name, os.Getpid())
	if err := os.Remove(sibling); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(sibling, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
}

func straight(name string, print func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(print(f), f.Close())
}

// Put is Write of what is there already.
func Put(name string, data []byte) error {
	return Write(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// tailBytes is how much of the end of a log Tail looks at.
const tailBytes = 64 << 10

// Tail returns up to n last lines of a log, of at most its last 64 KiB; none where there is no log.
func Tail(name string, n int) []string {
	f, err := os.Open(name)
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

// endBytes is how much of it End keeps.
const endBytes = 4 << 10

// End keeps the end of what is written to it. It may be read at any time.
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

// String is what is kept, without blanks around it.
func (e *End) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return string(bytes.TrimSpace(e.retained))
}

// Entry is a file or symbolic link of a tree, its name relative and with slashes.
type Entry struct {
	Name string
	Info fs.FileInfo
}

// Walk lists what is below root, or root itself if it is a file, sorted by name. Anything but
// folders, regular files and symbolic links is an error: a build must not depend on it.
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
		if d.IsDir() {
			return nil
		}
		if !d.Type().IsRegular() && d.Type() != fs.ModeSymlink {
			return fmt.Errorf("%s is neither a file nor a link", path)
		}
		info, err := d.Info()
		entries = append(entries, Entry{name, info})
		return err
	})
	return entries, err
}

// Hash walks, and feeds what it finds to a digest, SHA-256.
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

// addTo feeds an entry to a digest: its kind, name, length and content, so that no two trees give
// the same bytes. Of the mode, where modes count, only the right to execute does, as in git; of a
// link, where it points.
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

// Feed copies what a file holds, however much that is.
func Feed(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return errors.Join(err, f.Close())
}

// Digest is the SHA-256 of what a file holds, in hex.
func Digest(path string) (string, error) {
	h := sha256.New()
	err := Feed(h, path)
	return hex.EncodeToString(h.Sum(nil)), err
}
