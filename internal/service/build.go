package service

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/cache"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/files"
	"prony.example/internal/base/runtimes"
)

// Builder builds services into a cache. Several, in one program or in many, may share the cache.
type Builder struct {
	Root     string            // of the checkout
	Cache    string            // folder that copies are built in; empty: .prony below Root
	Tools    *Tools            // what FindTools found
	Progress func(line string) // one line per step; nil: silence
	// Note remembers the process group of a step, which writes into a log, until it is forgotten,
	// so that what outlives the lab can be ended; nil: nobody does.
	Note  func(pid int, log string) (forget func() error, err error)
	Bound time.Duration // of a step; 0: stepBound
}

// Built is a service that is ready to run. What has a name in JSON is in the file that says, last
// of all, that a build is whole.
type Built struct {
	// Hash is over sources, steps, tool versions and build environment, SHA256 over the sorted
	// names and contents of the artifact; both in hex.
	Hash       string `json:"hash"`
	SHA256     string `json:"sha256"`
	SizeBytes  int64  `json:"sizeBytes"`            // the sum of the artifact's regular files
	DurationNs int64  `json:"durationNs"`           // of the build, also of an earlier one
	ImageBytes int64  `json:"imageBytes,omitempty"` // of these sources' image; 0: none was made

	Dir    string `json:"-"` // where its targets work, in the built copy; absolute
	folder string // of the build: the copy, and beside it the log and the mark
	// original is the Dir of the build that this is a copy of; empty: it is none.
	original string
	Cached   bool            `json:"-"` // whether an earlier build was taken
	Log      string          `json:"-"` // path of what the steps printed
	Tools    map[string]Tool `json:"-"` // what the service needs, by name
	// Images are those that its containers are started from, by process; "" where there is one.
	// Without any it is started as a process.
	Images  map[string]string `json:"-"`
	Front   string            `json:"-"` // that of the process which takes the requests
	Port    int               `json:"-"` // where its container listens; 0: where it is told
	Compose *Compose          `json:"-"` // brought up instead of an image; nil: nothing
	// Attached is where it runs already; the zero value: nowhere.
	Attached netip.AddrPort `json:"-"`
	// Host is the name that it is asked by there; empty: its address.
	Host string `json:"-"`
}

// values are the placeholders that the build decides.
func (b *Built) values() map[string]string {
	values := map[string]string{"dir": b.Dir}
	for _, name := range []string{"java", "python", "node", "postgres"} {
		if tool, ok := b.Tools[name]; ok {
			values[name] = tool.Path
		}
	}
	return values
}

// The names in a build's folder. A virtual environment of Python knows its own path and cannot be
// moved, so a build happens where it will stay, and the mark, not a rename, says that it is whole.
const (
	markFile = "built.json"
	logFile  = "build.log"
	copyDir  = "service"
)

// hashDigits is how much of the hash is in a folder's name: 48 bits, enough for builds of one
// service.
const hashDigits = 12

// hashedEnv are the variables that change what the tools make without being seen in sources or
// versions, so that they are part of a build's identity.
var hashedEnv = []string{
	"CFLAGS", "CGO_ENABLED", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFLAGS", "LDFLAGS",
	"CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "MAVEN_ARGS", mavenEnv, "NODE_ENV", "NODE_OPTIONS",
}

// profileEnv begins the variables that override a profile of Cargo, a key each.
const profileEnv = "CARGO_PROFILE_"

// droppedEnv are those that would send a build's output, or its imports, elsewhere, or have native
// images that the lab does not know of.
var droppedEnv = []string{
	nativeEnv,
	"CARGO_BUILD_TARGET_DIR", "CARGO_TARGET_DIR", "GOBIN", "GOWORK", "PYTHONHOME", "PYTHONPATH",
}

// Build makes the service's artifact, or takes an earlier build with the same hash whose artifact
// still has the same digest. A second builder of the same service waits for the first. The copy is
// held until the program ends; earlier ones that were not used for a week are removed. The error
// names the step that failed, its status and the end of its log. When ctx ends, so do all processes
// of the step under way.
func (b *Builder) Build(ctx context.Context, s *Service) (*Built, error) {
	built, err := b.build(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", s.Label(), err)
	}
	// What only running takes is no part of the build: without it the target is skipped.
	for _, t := range s.Targets {
		for _, need := range t.Needs {
			if tool, err := b.Tools.resolve(need); err == nil {
				built.Tools[need.Tool] = tool
			}
		}
	}
	for _, want := range s.Wants {
		if tool, err := b.Tools.ask(want); err == nil {
			built.Tools[want.Tool] = tool
		}
	}
	return built, nil
}

func (b *Builder) build(ctx context.Context, s *Service) (*Built, error) {
	if s.Made != nil {
		created := *s.Made
		created.Tools = map[string]Tool{}
		return &created, nil
	}
	tools := map[string]Tool{}
	for _, need := range s.Needs {
		tool, err := b.Tools.resolve(need)
		if err != nil {
			return nil, err
		}
		tools[need.Tool] = tool
	}
	sources, h, err := s.sources()
	if err != nil {
		return nil, fmt.Errorf("read the sources: %w", err)
	}
	hash := s.hash(h, tools)
	dir, err := b.kept()
	if err != nil {
		return nil, err
	}
	name := s.buildName()
	unlock, err := cache.Lock(ctx, filepath.Join(dir, name+".lock"), "build", func() {
		b.say("build %s: waiting for another build of the same service", s.Label())
	})
	if err != nil {
		return nil, err
	}
	defer unlock()
	folder := filepath.Join(dir, name+"-"+hash[:hashDigits])
	built := &Built{Dir: filepath.Join(folder, copyDir), folder: folder, Hash: hash, Tools: tools,
		Log: filepath.Join(folder, logFile)}
	if s.Checkout != nil {
		built.Dir = filepath.Join(built.Dir, s.Checkout.Inside)
	}
	if !b.take(s, built) {
		if err := b.make(ctx, s, built, sources); err != nil {
			return nil, err
		}
	}
	return built, b.keepCopy(s, name, folder)
}

// kept is the folder of the builds.
func (b *Builder) kept() (string, error) { return b.cached("build") }

// Copies is the folder for the copies that starts have (Built.Copy), on the disk of the builds.
func (b *Builder) Copies() (string, error) { return b.cached("starts") }

func (b *Builder) cached(kind string) (string, error) {
	if b.Cache == "" {
		return cache.Folder(b.Root, kind)
	}
	folder := filepath.Join(b.Cache, kind)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("create the cache folder: %w", err)
	}
	return folder, nil
}

// sources are what a build is made of, with their hash. Of a revision they are all that its clone
// has, since a build may read beside its folder; .git counts by the commit alone, as git writes
// there whenever somebody looks.
func (s *Service) sources() ([]files.Entry, hash.Hash, error) {
	if s.Checkout == nil {
		return files.Hash(s.Dir, s.ignored, true)
	}
	sources, h, err := files.Hash(s.Checkout.At, isGit, true)
	if err == nil {
		fmt.Fprintf(h, "commit %q inside %q\n", s.Checkout.Commit, s.Checkout.Inside)
	}
	return sources, h, err
}

// isGit says whether a name is git's own, of a repository or of a submodule.
func isGit(name string) bool { return name[strings.LastIndexByte(name, '/')+1:] == ".git" }

// hash is the identity of a build: what goes in, rather than what comes out, which few tools make
// the same twice. h has the sources.
func (s *Service) hash(h hash.Hash, tools map[string]Tool) string {
	fmt.Fprintf(h, "steps %q artifact %q\n", s.Build.Steps, s.Build.Artifact)
	for _, name := range sortedKeys(tools) {
		fmt.Fprintf(h, "tool %q %q\n", name, tools[name].Version)
	}
	if native, ok := tools["native-image"]; ok {
		fmt.Fprintf(h, "native %q\n", nativeOptions(native, runtime.GOOS, runtime.GOARCH))
	}
	for _, pair := range slices.Sorted(slices.Values(os.Environ())) {
		name, value, _ := strings.Cut(pair, "=")
		if slices.Contains(hashedEnv, name) || strings.HasPrefix(name, profileEnv) {
			fmt.Fprintf(h, "env %q %q\n", name, value)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// take fills in an earlier build, and says whether there is one that is whole and unchanged.
func (b *Builder) take(s *Service, built *Built) bool {
	data, err := os.ReadFile(filepath.Join(built.folder, markFile))
	if err != nil {
		return false
	}
	earlier := *built
	if err := json.Unmarshal(data, &earlier); err != nil || earlier.Hash != built.Hash {
		return false
	}
	sum, size, err := digest(filepath.Join(built.Dir, s.Build.Artifact))
	if err != nil || sum != earlier.SHA256 || size != earlier.SizeBytes {
		// A record names the artifact by its digest: one that was written to since is not it.
		b.say("build %s: the artifact in the cache has changed since it was built", s.Label())
		return false
	}
	*built = earlier
	built.Cached = true
	b.say("build %s: cached", s.Label())
	return true
}

func (b *Builder) make(ctx context.Context, s *Service, built *Built, sources []files.Entry) error {
	began := clock.Mono()
	if err := discard(built.folder); err != nil {
		return fmt.Errorf("remove an earlier build: %w", err)
	}
	if s.Checkout != nil {
		if _, err := s.Checkout.Clone(ctx, built.copy()); err != nil {
			return fmt.Errorf("clone the revision: %w", err)
		}
	} else if err := copyTree(s.Dir, built.Dir, sources); err != nil {
		return fmt.Errorf("copy the sources: %w", err)
	}
	if err := b.steps(ctx, s, built); err != nil {
		return err
	}
	artifact := filepath.Join(built.Dir, s.Build.Artifact)
	sum, size, err := digest(artifact)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the build steps created no %s; log: %s", s.Build.Artifact, built.Log)
	} else if err != nil {
		return fmt.Errorf("read the artifact: %w", err)
	}
	built.SHA256, built.SizeBytes, built.DurationNs = sum, size, clock.Mono()-began
	if err := built.mark(); err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	return nil
}

// mark puts the file there that says that the build is whole, as a whole or not at all.
func (b *Built) mark() error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return files.Put(filepath.Join(b.folder, markFile), append(data, '\n'))
}

// copy is the copy of all sources, in which Dir is.
func (b *Built) copy() string { return filepath.Join(b.folder, copyDir) }

func (b *Builder) say(format string, args ...any) {
	if b.Progress != nil {
		b.Progress(fmt.Sprintf(format, args...))
	}
}

// briefJVM are options of a JVM that ends within seconds, as Maven's does: what the better compiler
// and a collector on all cores take, it does not live to get back. A build takes half the processor
// time with them; what it makes is the same.
const (
	lightly  = "-XX:TieredStopAtLevel=1"
	briefJVM = lightly + " -XX:+UseSerialGC"
	mavenEnv = "MAVEN_OPTS"
)

// Brief is for Values.Append of a target of the catalog that is looked at and not measured: its JVM
// compiles lightly, too, and is up in half of the processor time. What it answers is the same.
func (s *Service) Brief(t Target) map[string]string {
	if s.Environ != nil || !runtimes.Of(t.Runtime).HotSpot {
		return nil
	}
	return map[string]string{jdkOptions: lightly}
}

// buildEnv is the lab's own environment, because proxies and mirrors are in it, with the JDK and
// the GraalVM that were found.
func buildEnv(tools map[string]Tool) []string {
	var env []string
	for _, pair := range WithoutGit(os.Environ()) {
		name, _, _ := strings.Cut(pair, "=")
		if !slices.Contains(droppedEnv, name) {
			env = append(env, pair)
		}
	}
	if java, ok := tools["java"]; ok {
		home := homeOf(java.Path)
		env = append(env, "JAVA_HOME="+home, "PATH="+filepath.Join(home, "bin")+
			string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	if _, ok := os.LookupEnv(mavenEnv); tools["mvn"].Path != "" && !ok {
		env = append(env, mavenEnv+"="+briefJVM)
	}
	if native, ok := tools["native-image"]; ok {
		// The JDK that was found may be another one; Maven's plugins ask this variable first.
		env = append(env, "GRAALVM_HOME="+homeOf(native.Path),
			nativeEnv+"="+strings.Join(nativeOptions(native, runtime.GOOS, runtime.GOARCH), " "))
	}
	return env
}

// nativeEnv is what native-image reads options from, whoever starts it; later ones come first.
const nativeEnv = "NATIVE_IMAGE_OPTIONS"

// nativeOptions are those that all native images are built with: for throughput, as JVMs are
// measured; with the flight recorder, which records nothing unless asked; and with G1, JVMs'
// collector, where the edition has it: Oracle's on Linux (GraalVM's manual, Memory Management).
func nativeOptions(native Tool, system, arch string) []string {
	out := []string{"--enable-monitoring=jfr", "-O3"}
	if native.Oracle && system == "linux" && (arch == "amd64" || arch == "arm64") {
		out = append(out, "--gc=G1")
	}
	return out
}

// leftOut are the names that builds by hand leave in a service's folder and git ignores: anywhere
// in it, or only at its top, where src/bin may be somebody's source.
var (
	leftOut      = []string{"node_modules", "target", "__pycache__"}
	leftOutAtTop = []string{"bin", "venv", ".venv"}
)

// ignored says whether a name in a service's folder is not source.
func ignored(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	last := name[strings.LastIndexByte(name, '/')+1:]
	return slices.Contains(leftOutAtTop, top) || slices.Contains(leftOut, last)
}

func (s *Service) ignored(name string) bool {
	if s.Only != nil {
		return !s.Only(name)
	}
	return ignored(name)
}

// Sources names the files of the service's folder that are its source, sorted, with slashes: all
// but what builds by hand leave there.
func (s *Service) Sources() (names []string, err error) {
	entries, err := files.Walk(s.Dir, s.ignored)
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names, err
}

// digest is the SHA-256, in hex, over the sorted names and contents of the files at root (a folder
// or one file), and the sum of their sizes in bytes. Links count by where they point, and nothing
// in the size. What is git's own does not count.
func digest(root string) (sum string, sizeBytes int64, err error) {
	entries, h, err := files.Hash(root, isGit, true)
	if err != nil {
		return "", 0, err
	}
	for _, e := range entries {
		if e.Info.Mode().IsRegular() {
			sizeBytes += e.Info.Size()
		}
	}
	return hex.EncodeToString(h.Sum(nil)), sizeBytes, nil
}

// copyTree copies entries from one folder to another, which may not exist yet. Files become
// writable for their owner, whatever they were: a build may want to change its copy.
func copyTree(from, to string, entries []files.Entry) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		source := filepath.Join(from, filepath.FromSlash(e.Name))
		target := filepath.Join(to, filepath.FromSlash(e.Name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if e.Info.Mode().Type() == fs.ModeSymlink {
			link, err := os.Readlink(source)
			if err == nil {
				err = os.Symlink(link, target)
			}
			if err != nil {
				return err
			}
			continue
		}
		data, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, data, e.Info.Mode().Perm()|0o600); err != nil {
			return err
		}
	}
	return nil
}
