package agents

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"prony.example/internal/base/cache"
	"prony.example/internal/base/files"
	"prony.example/record"
)

// Fetcher fetches agents into a cache. Several programs may share the cache.
type Fetcher struct {
	Root string // of the checkout; agents are stored in .prony/agents below it

	progress func(line string)
	look     func(program string) (string, error)
	lookup   func(variable string) (string, bool)
	run      func(context.Context, order) error
	version  func(ctx context.Context, program string) string
}

// New returns a Fetcher for a checkout. progress receives its messages.
func New(root string, progress func(line string)) *Fetcher {
	return &Fetcher{Root: root, progress: progress, look: exec.LookPath, lookup: os.LookupEnv,
		run: execute, version: toolVersion}
}

// Fetched is an agent that is ready to be attached.
type Fetched struct {
	Path    string // of the file or folder, absolute; empty: there was nothing to fetch
	Files   string // the folder agents/NAME of the checkout, absolute; {files}
	Version string // empty: unknown
	SHA256  string // of the file, or over the sorted names and contents of the folder; hex
	Source  string // such as "maven:GROUP:ARTIFACT:VERSION"
	Cached  bool   // it was already in the cache
}

// Record returns the agent's entry in the records of a run.
func (f Fetched) Record(name string) record.Agent {
	return record.Agent{Name: name, Source: f.Source, Version: f.Version, SHA256: f.SHA256}
}

// ErrMissing is the error of Fetch for an agent that lacks a tool or a variable here. Callers with
// many targets skip such agents.
var ErrMissing = errors.New("the agent cannot be fetched on this machine")

// markFile is written last and marks a complete fetch.
const markFile = "fetched.json"

// hashDigits is the number of the hash's digits in a folder's name, as for builds.
const hashDigits = 12

type mark struct {
	Hash   string `json:"hash"`
	SHA256 string `json:"sha256"`
}

// Fetch fetches an agent, or returns the cached one if it is unchanged. A second fetcher of the
// same agent waits for the first.
func (f *Fetcher) Fetch(ctx context.Context, a Agent) (Fetched, error) {
	out, err := f.fetch(ctx, a, true)
	if err != nil {
		return Fetched{}, fmt.Errorf("fetch agent %s: %w", a.Name, err)
	}
	return out, nil
}

// Have returns an agent that an earlier Fetch stored, without fetching; false: there is none.
func (f *Fetcher) Have(ctx context.Context, a Agent) (Fetched, bool) {
	out, err := f.fetch(ctx, a, false)
	return out, err == nil
}

// errNotFetched is the error of fetch if get is false and nothing is cached.
var errNotFetched = errors.New("not fetched yet")

func (f *Fetcher) fetch(ctx context.Context, a Agent, get bool) (Fetched, error) {
	if missing := f.Missing(a); get && len(missing) > 0 {
		return Fetched{}, fmt.Errorf("%w: %s", ErrMissing, strings.Join(missing, "; "))
	}
	version, err := a.Version(f.Root)
	if err != nil {
		return Fetched{}, err
	}
	out := Fetched{Files: filepath.Join(f.Root, "agents", a.Name), Source: a.Source(),
		Version: version}
	switch {
	case a.Fetch.Path != "":
		err := f.local(a, &out)
		return out, err
	case a.Tool() == "":
		return out, nil
	}
	hash, err := f.hash(ctx, a)
	if err != nil {
		return out, err
	}
	dir, err := cache.Folder(f.Root, "agents")
	if err != nil {
		return out, err
	}
	folder := filepath.Join(dir, a.Name+"-"+hash[:hashDigits])
	if get {
		unlock, err := cache.Lock(ctx, filepath.Join(dir, a.Name+".lock"), "fetch", func() {
			f.say("fetch agent %s: waiting for another prony that fetches this agent", a.Name)
		})
		if err != nil {
			return out, err
		}
		defer unlock()
	}
	switch {
	case f.take(a, folder, hash, &out):
		return out, nil
	case !get:
		return out, errNotFetched
	}
	err = f.make(ctx, a, folder, hash, &out)
	return out, err
}

// local returns a file of the user.
func (f *Fetcher) local(a Agent, out *Fetched) error {
	path, ok := f.lookup(variable.FindStringSubmatch(a.Fetch.Path)[1])
	if !ok || path == "" {
		return fmt.Errorf("%w: set the environment variable %s to the path of the agent's "+
			"file", ErrMissing, a.Fetch.Path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // reading a device or a pipe may never end
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return fmt.Errorf("%w; set the environment variable %s to the path of the agent's "+
			"file", err, a.Fetch.Path)
	}
	// Only the file's name, because its folder on this machine does not belong in a record.
	out.Path, out.Source = path, "path:"+filepath.Base(path)
	out.SHA256, err = files.Digest(path)
	out.Version = manifestVersion(path)
	return err
}

// hash identifies the content of a fetch: the requested packages, and for npm and pip the version
// of the tool, which selects binaries by it.
func (f *Fetcher) hash(ctx context.Context, a Agent) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s unpack %v %s/%s\n", a.Source(), a.SHA256, a.Fetch.Unpack, runtime.GOOS,
		runtime.GOARCH)
	if folder := a.folder(); folder != "" {
		sum, err := sumTree(filepath.Join(f.Root, filepath.FromSlash(folder)))
		if err != nil {
			return "", fmt.Errorf("read pinned versions: %w", err)
		}
		fmt.Fprintf(h, "pinned %s by %s\n", sum, f.version(ctx, f.program(a.Tool())))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// contentDir is the folder of the fetched files, below the folder of the hash.
const contentDir = "agent"

// take fills in an earlier fetch, and reports whether it is complete and unchanged.
func (f *Fetcher) take(a Agent, folder, hash string, out *Fetched) bool {
	data, err := os.ReadFile(filepath.Join(folder, markFile))
	if err != nil {
		return false
	}
	var m mark
	if err := json.Unmarshal(data, &m); err != nil || m.Hash != hash {
		return false
	}
	sum, err := sumTree(filepath.Join(folder, contentDir))
	if err != nil || sum != m.SHA256 {
		f.say("fetch agent %s: the agent's files in the cache have changed since the "+
			"download", a.Name)
		return false
	}
	out.Cached = true
	out.finish(a, folder, sum)
	return true
}

// finish sets path and digest. Maven's single file has the declared digest.
func (f *Fetched) finish(a Agent, folder, sum string) {
	f.Path, f.SHA256 = filepath.Join(folder, contentDir), cmp.Or(a.SHA256, sum)
	if a.Fetch.Maven != "" && !a.Fetch.Unpack {
		f.Path = filepath.Join(f.Path, a.fileName())
	}
}

func (f *Fetcher) make(ctx context.Context, a Agent, folder, hash string, out *Fetched) error {
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("remove files of an earlier download: %w", err)
	}
	content := filepath.Join(folder, contentDir)
	if err := os.MkdirAll(content, 0o755); err != nil {
		return err
	}
	if err := f.get(ctx, a, folder, content); err != nil {
		return err
	}
	sum, err := sumTree(content)
	if err != nil {
		return fmt.Errorf("read downloaded files: %w", err)
	}
	data, err := json.Marshal(mark{hash, sum})
	if err != nil {
		return err
	}
	if err := files.Put(filepath.Join(folder, markFile), append(data, '\n')); err != nil {
		return err
	}
	out.finish(a, folder, sum)
	return nil
}

func (f *Fetcher) say(format string, args ...any) {
	f.progress(fmt.Sprintf(format, args...))
}

// bytecode is excluded from digests, because Python writes it at any time, with timestamps.
const bytecode = "__pycache__"

// sumTree returns the SHA-256, in hex, over the sorted names and contents of the files below root.
// Links count by their targets.
func sumTree(root string) (string, error) {
	skip := func(name string) bool { return path.Base(name) == bytecode }
	_, h, err := files.Hash(root, skip, false)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
