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

// Builder builds services into a cache. Several Builders, also of other processes, may share a
// cache.
type Builder struct {
	Root     string            // of the checkout
	Cache    string            // folder of builds; empty: .prony below Root
	Tools    *Tools            // result of FindTools
	Progress func(line string) // receives a line for each step; nil: none does
	// Note records the process group of a step and its log, until forget is called, so that a later
	// lab can end leftovers; nil: no record.
	Note  func(pid int, log string) (forget func() error, err error)
	Bound time.Duration // of a step; 0: stepBound
	// Again says that this program has built the services before: it does not report that a build
	// is cached.
	Again bool
}

// Built is a service that is ready to run. Its fields with JSON names are stored in the file that
// marks a complete build.
type Built struct {
	// Hash covers sources, steps, tool versions and build environment, SHA256 the sorted names and
	// contents of the artifact; both in hex.
	Hash       string `json:"hash"`
	SHA256     string `json:"sha256"`
	SizeBytes  int64  `json:"sizeBytes"`            // the sum of the artifact's regular files
	DurationNs int64  `json:"durationNs"`           // of the build, also if it was an earlier one
	ImageBytes int64  `json:"imageBytes,omitempty"` // of the same sources' image; 0: none
	// Environ has a hash of each variable that was set when a user's service was built, by name.
	Environ map[string]string `json:"environ,omitempty"`

	Dir    string `json:"-"` // working directory of targets, in the built copy; absolute
	folder string // of the build: holds the copy, the log and the mark
	// original is the Dir of the build that this is a copy of; empty: not a copy.
	original string
	Cached   bool            `json:"-"` // an earlier build was taken
	Log      string          `json:"-"` // path of the output of the steps
	Tools    map[string]Tool `json:"-"` // needed by the service, by name
	// Images are the images of its containers, by process; the key is "" for a single process.
	// Without images the service starts as a process.
	Images  map[string]string `json:"-"`
	Front   string            `json:"-"` // image of the process that receives the requests
	Port    int               `json:"-"` // port of its container; 0: assigned
	Compose *Compose          `json:"-"` // started instead of an image; nil: nothing
	// Launcher starts the images, by its name in suites; empty: docker.
	Launcher string `json:"-"`
	// Attached is the address of a service that runs already; zero value: none.
	Attached netip.AddrPort `json:"-"`
	// Host is the Host header for Attached; empty: its address.
	Host string `json:"-"`
	// Note names the addresses of Attached's host that stay unused; empty: there are none.
	Note string `json:"-"`
}

// values returns the placeholders that the build determines.
func (b *Built) values() map[string]string {
	values := map[string]string{"dir": b.Dir}
	for _, name := range []string{"java", "python", "node", "postgres"} {
		if tool, ok := b.Tools[name]; ok {
			values[name] = tool.Path
		}
	}
	return values
}

// Names in a build's folder. A virtual environment of Python contains its own path and cannot be
// moved, so a build is made in its final place. The mark, not a rename, shows that it is complete.
const (
	markFile = "built.json"
	logFile  = "build.log"
	copyDir  = "service"
)

// hashDigits is the length of the hash in a folder's name: 48 bits, enough for the builds of one
// service.
const hashDigits = 12

// hashedEnv are the variables that change the tools' output without a change of sources or
// versions, and are therefore part of the hash.
var hashedEnv = []string{
	"CFLAGS", "CGO_ENABLED", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFLAGS", "LDFLAGS",
	"CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "MAVEN_ARGS", mavenEnv, "NODE_ENV", "NODE_OPTIONS",
}

// profileEnv is the prefix of variables that override keys of a Cargo profile.
const profileEnv = "CARGO_PROFILE_"

// droppedEnv are variables that would redirect a build's output or imports, or add options to
// native images.
var droppedEnv = []string{
	nativeEnv,
	"CARGO_BUILD_TARGET_DIR", "CARGO_TARGET_DIR", "GOBIN", "GOWORK", "PYTHONHOME", "PYTHONPATH",
}

// Build makes the service's artifact, or takes an earlier build with the same hash whose artifact
// has an unchanged digest. A second builder of the same service waits for the first. The copy is
// locked until the program ends; earlier copies that were unused for a week are removed. The error
// names the failed step, its status and the end of its log. If ctx ends, all processes of the step
// are killed.
func (b *Builder) Build(ctx context.Context, s *Service) (*Built, error) {
	built, err := b.build(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", s.Label(), err)
	}
	// Tools needed only at run time are not part of the build: without them the target is skipped.
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
	if s.Unavailable != "" {
		return nil, errors.New(s.Unavailable)
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

// kept returns the folder of the builds.
func (b *Builder) kept() (string, error) { return b.cached("build") }

// Copies returns the folder for the copies of starts (Built.Copy), on the disk of the builds.
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

// sources returns the inputs of a build with their hash. For a revision these are all files of its
// clone, since a build may read outside of its folder. Of .git only the commit counts, because git
// commands that only read also write there.
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

// isGit reports whether a name is the .git of a repository or of a submodule.
func isGit(name string) bool { return name[strings.LastIndexByte(name, '/')+1:] == ".git" }

// hash returns the identity of a build. It covers inputs and not outputs, because few tools produce
// the same bytes twice. h contains the sources.
func (s *Service) hash(h hash.Hash, tools map[string]Tool) string {
	fmt.Fprintf(h, "steps %q artifact %q\n", s.Build.Steps, s.Build.Artifact)
	for _, name := range sortedKeys(tools) {
		fmt.Fprintf(h, "tool %q %q\n", name, tools[name].Version)
	}
	if native, ok := tools["native-image"]; ok {
		fmt.Fprintf(h, "native %q %q with its libraries\n", native.Edition,
			nativeOptions(native, runtime.GOOS, runtime.GOARCH))
	}
	for _, pair := range slices.Sorted(slices.Values(os.Environ())) {
		name, value, _ := strings.Cut(pair, "=")
		if slices.Contains(hashedEnv, name) || strings.HasPrefix(name, profileEnv) {
			fmt.Fprintf(h, "env %q %q\n", name, value)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// take fills in an earlier build, and reports whether a complete and unchanged one exists.
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
		// Records identify the artifact by its digest, so a changed artifact cannot be used.
		b.say("build %s: the artifact in the cache has changed since it was built", s.Label())
		return false
	}
	*built = earlier
	built.Cached = true
	if !b.Again {
		b.say("build %s: cached%s", s.Label(), otherwise(earlier.Environ, s.environ()))
	}
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
	built.Environ = s.environ()
	if err := built.mark(); err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	return nil
}

// mark atomically writes the file that marks a complete build.
func (b *Built) mark() error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return files.Put(filepath.Join(b.folder, markFile), append(data, '\n'))
}

// copy returns the folder with the copy of all sources, which contains Dir.
func (b *Built) copy() string { return filepath.Join(b.folder, copyDir) }

func (b *Builder) say(format string, args ...any) {
	if b.Progress != nil {
		b.Progress(fmt.Sprintf(format, args...))
	}
}

// briefJVM are options for a JVM that ends within seconds, such as Maven's: it ends before the
// optimizing compiler and a collector on all cores pay off. With them a build takes half of the
// processor time and makes the same artifact.
const (
	lightly  = "-XX:TieredStopAtLevel=1"
	briefJVM = lightly + " -XX:+UseSerialGC"
	mavenEnv = "MAVEN_OPTS"
)

// Brief returns a value of Values.Append for a target of the catalog that is checked and not
// measured. Its JVM then uses only the fast compiler and starts in half of the processor time. Its
// answers are the same.
func (s *Service) Brief(t Target) map[string]string {
	if s.Environ != nil || !runtimes.Of(t.Runtime).HotSpot {
		return nil
	}
	return map[string]string{jdkOptions: lightly}
}

// buildEnv returns this program's environment, which has settings of proxies and mirrors, with the
// JDK and the GraalVM that were found.
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
		// Another JDK may have been found; Maven's plugins read this variable first.
		env = append(env, "GRAALVM_HOME="+homeOf(native.Path),
			nativeEnv+"="+strings.Join(nativeOptions(native, runtime.GOOS, runtime.GOARCH), " "))
	}
	return env
}

// nativeEnv is the variable from which native-image reads options; later ones take precedence.
const nativeEnv = "NATIVE_IMAGE_OPTIONS"

// nativeOptions returns the options of all native images: optimized for throughput, as JVMs are
// measured; with the flight recorder and heap dumps, which are off by default; and with G1, the
// collector of JVMs, in the edition that has it: Oracle's on Linux (GraalVM's manual, Memory
// Management).
func nativeOptions(native Tool, system, arch string) []string {
	out := []string{"--enable-monitoring=jfr,heapdump", "-O3"}
	oracle := strings.Contains(native.Edition, oracleGraalVM)
	if oracle && system == "linux" && (arch == "amd64" || arch == "arm64") {
		out = append(out, "--gc=G1")
	}
	return out
}

// leftOut are names that manual builds leave in a service's folder and git ignores: anywhere in it,
// or only at its top, since src/bin may be source.
var (
	leftOut      = []string{"node_modules", "target", "__pycache__"}
	leftOutAtTop = []string{"bin", "venv", ".venv"}
)

// ignored reports whether a name in a service's folder is not source.
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

// Sources returns the names of the source files in the service's folder, sorted, with slashes. It
// leaves out the results of manual builds.
func (s *Service) Sources() (names []string, err error) {
	entries, err := files.Walk(s.Dir, s.ignored)
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names, err
}

// digest returns the SHA-256, in hex, over the sorted names and contents of the files at root (a
// folder or one file), and the sum of their sizes in bytes. Links count by their destination, and
// not in the size. It ignores git's own files.
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

// copyTree copies entries from one folder to another, and creates that if it is missing. Files
// become writable for their owner, because a build may change its copy.
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
