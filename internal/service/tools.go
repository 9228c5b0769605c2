package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"prony.example/internal/base/files"
	"prony.example/internal/base/lazyregexp"
)

// versionLimit limits how long a tool may take to print its version. Maven starts a JVM for it,
// which can take longer than 10 s on a busy machine.
const versionLimit = time.Minute

// toolKinds are the tools that a manifest may need, in the order of messages.
var toolKinds = []struct {
	name     string
	programs []string // candidates: the first that is found
	request  []string // arguments for printing the version
	install  string   // hint; the version is appended
}{
	{"go", []string{"go"}, []string{"version"}, "install Go"},
	{"java", []string{"java"}, []string{"-version"}, "set JAVA_HOME or install a JDK"},
	{"mvn", []string{"mvn"}, []string{"--version"}, "install Apache Maven"},
	{"node", []string{"node", "nodejs"}, []string{"--version"}, "install Node.js"},
	{"npm", []string{"npm"}, []string{"--version"}, "install npm"},
	{"python", []string{"python3", "python"}, []string{"--version"}, "install CPython"},
	{"cargo", []string{"cargo"}, []string{"--version"}, "install Rust"},
	{"native-image", []string{"native-image"}, []string{"--version"}, "install a GraalVM JDK"},
	{"postgres", []string{"postgres"}, []string{"--version"}, "install PostgreSQL"},
}

func toolNames() []string {
	names := make([]string, len(toolKinds))
	for i, kind := range toolKinds {
		names[i] = kind.name
	}
	return names
}

// Tool is a program that was found.
type Tool struct {
	Path    string // absolute
	Version string // dotted numbers, as the tool prints them
	Edition string // of native-image, such as "GraalVM CE"; empty: other tools
}

// String returns the version, and the edition in parentheses if there is one.
func (t Tool) String() string {
	if t.Edition == "" {
		return t.Version
	}
	return t.Version + " (" + t.Edition + ")"
}

// Tools are the programs of this machine that services can need. It is safe for concurrent use.
type Tools struct {
	ctx    context.Context // bounds the version queries, which run on first use
	run    func(ctx context.Context, env []string, program string, args ...string) (string, error)
	byTool map[string][]*candidate // by tool; several only for java, JAVA_HOME's first
	home   bool                    // java's first candidate is JAVA_HOME's
	venvOf func() error            // checks python's modules, once

	mu        sync.Mutex
	requested map[string]Tool // tools outside of the catalog, by name
}

// candidate is a program whose version is read once, on first use.
type candidate struct {
	path    string
	version func() (string, error)
	edition string // valid after version
}

// places are the locations of programs; tests replace them.
type places struct {
	look     func(program string) (string, error)
	javaHome string
	jvms     []string // patterns of the homes of JVMs
	servers  []string // patterns of PostgreSQL's server, which distributions keep out of PATH
}

// FindTools looks for all tools: in PATH, for Java also in JAVA_HOME and in the folders in which
// Debian, Fedora, SDKMAN and macOS install JVMs. It runs none of them: each version is read once,
// on first use, with a limit of a minute, while ctx lasts.
func FindTools(ctx context.Context) *Tools {
	home, _ := os.UserHomeDir() // without one there is no SDKMAN
	return findTools(ctx, places{
		look:     exec.LookPath,
		javaHome: os.Getenv("JAVA_HOME"),
		jvms: []string{
			"/usr/lib/jvm/*", "/usr/java/*", "/opt/java/*",
			filepath.Join(home, ".sdkman/candidates/java/*"),
			"/Library/Java/JavaVirtualMachines/*/Contents/Home",
			"/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
		},
		servers: []string{
			"/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres",
			"/opt/homebrew/opt/postgresql*/bin/postgres",
		},
	}, askTool)
}

// askTool runs a program outside of any project: Go, Python and Node choose their version by files
// in the working directory.
func askTool(ctx context.Context, env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	output, err := Command(ctx, os.TempDir(), env, program, args...).CombinedOutput()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no response within %v", versionLimit)
	}
	if line := lastLine(string(output)); err != nil && line != "" {
		err = fmt.Errorf("%w: %s", err, line)
	}
	return string(output), err
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

func findTools(ctx context.Context, p places, run func(context.Context, []string, string,
	...string) (string, error)) *Tools {
	t := &Tools{ctx: ctx, run: run, byTool: map[string][]*candidate{}}
	javas, home := p.javas()
	t.home = home
	for _, kind := range toolKinds {
		var paths []string
		if kind.name == "java" {
			paths = javas
		} else if path := p.first(kind.programs); path != "" {
			paths = []string{path}
		} else if kind.name == "native-image" {
			paths = p.besideJava(javas)
		} else if kind.name == "postgres" {
			paths = p.postgres()
		}
		for _, path := range paths {
			t.byTool[kind.name] = append(
				t.byTool[kind.name],
				t.candidate(kind.name, path, kind.request),
			)
		}
	}
	t.venvOf = sync.OnceValue(func() error {
		_, err := t.run(t.ctx, os.Environ(), t.byTool["python"][0].path, "-c",
			"import venv, ensurepip")
		return err
	})
	return t
}

func (t *Tools) candidate(name, path string, request []string) *candidate {
	c := &candidate{path: path}
	c.version = sync.OnceValues(func() (string, error) {
		env := os.Environ()
		if name == "mvn" {
			// Maven needs a JVM to print its version, and may not find the one that was found here.
			env = append(env, t.javaEnv()...)
		}
		output, err := t.run(t.ctx, env, path, request...)
		if err != nil {
			return "", fmt.Errorf("read the version of %s: %w", path, err)
		}
		version := versionIn(output)
		if version == "" {
			return "", fmt.Errorf("read the version of %s: no number in %q", path, output)
		}
		if c.edition = editionIn(name, output); c.edition != "" && !hasStaticJDK(path) {
			c.edition = "assembled " + c.edition + " with shared JDK libraries"
		}
		return version, nil
	})
	return c
}

func (t *Tools) javaEnv() []string {
	java, err := t.resolve(Need{Tool: "java"})
	if err != nil {
		return nil
	}
	return []string{"JAVA_HOME=" + homeOf(java.Path)}
}

// Missing describes the unmet needs of a service, and of its targets if given: "needs java >= 25:
// found 17.0.15 (set JAVA_HOME or install a JDK 25)". If nobody can build it, the first says why.
// For Python it includes the modules venv and ensurepip, which some systems package separately.
func (t *Tools) Missing(s *Service, targets ...Target) []string {
	needs := slices.Clone(s.Needs)
	for _, target := range targets {
		needs = append(needs, target.Needs...)
	}
	var missing []string
	if s.Unavailable != "" {
		missing = append(missing, "cannot be built: "+s.Unavailable)
	}
	for _, need := range needs {
		if _, err := t.resolve(need); err != nil {
			missing = append(missing, err.Error())
		}
	}
	if s.Made != nil && s.Made.Compose != nil {
		if _, err := composer(t.ctx); err != nil {
			missing = append(missing, err.Error())
		}
	}
	for _, want := range s.Wants {
		if _, err := t.ask(want); err != nil {
			missing = append(missing, err.Error())
		}
	}
	return missing
}

// Versions returns the version of each tool of the catalog that was found and answers. It queries
// all at once, which takes about a second the first time. Java's is the one for a need without a
// version; Built.Tools has those that a build used.
func (t *Tools) Versions() map[string]string {
	versions := map[string]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, name := range toolNames() {
		all.Go(func() {
			if tool, err := t.resolve(Need{Tool: name}); err == nil {
				mu.Lock()
				versions[name] = tool.String()
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return versions
}

// resolve returns the tool for a need: JAVA_HOME's JDK if it satisfies the need, because the user
// chose it, otherwise the newest. The error is the message of Missing.
func (t *Tools) resolve(need Need) (Tool, error) {
	var best Tool
	var cause error
	for i, c := range t.byTool[need.Tool] {
		home := homeOf(c.path)
		if need.Tool == "java" && !files.IsFile(filepath.Join(home, "bin", "javac")) {
			cause = fmt.Errorf("%s is a JRE without javac: a JDK is required", home)
			continue
		}
		version, err := c.version()
		if err != nil {
			cause = err
			continue
		}
		if best.Path == "" || compareVersions(version, best.Version) > 0 {
			best = Tool{c.path, version, c.edition}
		}
		if i == 0 && t.home && compareVersions(version, need.Version) >= 0 {
			break
		}
	}
	if err := need.judge(best, cause); err != nil {
		return Tool{}, err
	}
	if need.Tool == "python" {
		if err := t.venvOf(); err != nil {
			return Tool{}, fmt.Errorf("needs python with venv and ensurepip: %w (install "+
				"Python's venv package, such as python3-venv)", err)
		}
	}
	return best, nil
}

// ask finds a tool outside of the catalog, and reads its version once.
func (t *Tools) ask(need Want) (Tool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tool, ok := t.requested[need.Tool]; ok {
		return tool, nil
	}
	path, err := exec.LookPath(need.Tool)
	if err != nil {
		return Tool{}, fmt.Errorf("needs %s: not found (install the tool, or add its folder to "+
			"PATH)",
			need.Tool)
	}
	tool := Tool{Path: path}
	text, err := t.run(t.ctx, os.Environ(), need.Ask[0], need.Ask[1:]...)
	if tool.Version = versionIn(text); err == nil && tool.Version == "" {
		err = fmt.Errorf("no number in %q", lastLine(text))
	}
	if err != nil {
		return Tool{}, fmt.Errorf("needs %s: reading its version with %q failed: %w (set version "+
			"to a command that prints it)", need.Tool, strings.Join(need.Ask, " "), err)
	}
	if t.requested == nil {
		t.requested = map[string]Tool{}
	}
	t.requested[need.Tool] = tool
	return tool, nil
}

// judge describes what the best candidate lacks; cause is why another candidate was rejected.
func (n Need) judge(best Tool, cause error) error {
	kind := toolKinds[slices.Index(toolNames(), n.Tool)]
	subject, hint := "needs "+n.Tool, kind.install
	if n.Version != "" {
		subject, hint = subject+" >= "+n.Version, hint+" "+n.Version
	}
	switch {
	case best.Path == "" && cause != nil:
		return fmt.Errorf("%s: %w (%s)", subject, cause, hint)
	case best.Path == "":
		return fmt.Errorf("%s: not found (%s)", subject, hint)
	case compareVersions(best.Version, n.Version) < 0:
		return fmt.Errorf("%s: found %s (%s)", subject, best.Version, hint)
	}
	return nil
}

func (p places) first(programs []string) string {
	for _, program := range programs {
		path, err := p.look(program)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err == nil {
			return path
		}
	}
	return ""
}

// javas returns the launchers of all JVMs without duplicates, JAVA_HOME's first if there is one.
func (p places) javas() (launchers []string, home bool) {
	add := func(path string) bool {
		// Distributions link a JVM under several names; query each only once.
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !files.IsFile(real) {
			return false
		}
		if !slices.Contains(launchers, real) {
			launchers = append(launchers, real)
		}
		return true
	}
	if p.javaHome != "" {
		home = add(filepath.Join(p.javaHome, "bin", "java"))
	}
	if path := p.first([]string{"java"}); path != "" {
		add(path)
	}
	for _, pattern := range p.jvms {
		homes, _ := filepath.Glob(pattern) // the constant patterns are well-formed
		for _, home := range homes {
			add(filepath.Join(home, "bin", "java"))
		}
	}
	return launchers, home
}

// besideJava returns GraalVM's native-image, which is in the folder of its JDK's java.
func (p places) besideJava(javas []string) []string {
	for _, java := range javas {
		if path := filepath.Join(filepath.Dir(java), "native-image"); files.IsFile(path) {
			return []string{path}
		}
	}
	return nil
}

// postgres returns the newest server, by the name of its folder.
func (p places) postgres() []string {
	var matches []string
	for _, pattern := range p.servers {
		paths, _ := filepath.Glob(pattern) // the constant patterns are well-formed
		matches = append(matches, paths...)
	}
	value := func(path string) string { return versionIn(filepath.Base(homeOf(path))) }
	slices.SortFunc(matches, func(a, b string) int {
		return compareVersions(value(a), value(b))
	})
	return matches[max(0, len(matches)-1):]
}

// oracleGraalVM is the edition that has G1.
const oracleGraalVM = "Oracle GraalVM"

// editionIn returns the edition of GraalVM in the version text of a native-image; empty: unknown,
// or another tool.
func editionIn(tool, output string) string {
	for _, edition := range []string{oracleGraalVM, "GraalVM CE", "Mandrel"} {
		if tool == "native-image" && strings.Contains(output, edition) {
			return edition
		}
	}
	return ""
}

// hasStaticJDK reports whether the JDK of a native-image has its libraries also for static linking,
// as each vendor's distribution does. Executables of other builders need the shared ones.
func hasStaticJDK(path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	// GraalVM's bin/native-image is a link to lib/svm/bin/native-image.
	for _, home := range []string{homeOf(path), homeOf(homeOf(path))} {
		if folders, _ := filepath.Glob(filepath.Join(home, "lib/static/*")); len(folders) > 0 {
			return true
		}
	}
	return false
}

// homeOf returns the folder above a program's bin: for a JVM's launcher, JAVA_HOME.
func homeOf(program string) string { return filepath.Dir(filepath.Dir(program)) }

var (
	// versionWord matches the first version in a tool's output: "go1.26.8", "v20.20.2", "17.0.15".
	versionWord = lazyregexp.New(`\b(?:go|v)?(\d+(?:\.\d+)*)`)
	// colour matches an escape sequence of ECMA-48 8.3.117: Maven prints its name in bold even into
	// a pipe, and the 1 of ESC[1m would count as its version.
	colour = lazyregexp.New(`\x1b\[[0-9;]*m`)
)

// versionIn returns the version in a tool's output, or "".
func versionIn(output string) string {
	match := versionWord.FindStringSubmatch(colour.ReplaceAllString(output, ""))
	if match == nil {
		return ""
	}
	return match[1]
}

// parseVersion parses dotted numbers.
func parseVersion(text string) ([]int, bool) {
	var parts []int
	for word := range strings.SplitSeq(text, ".") {
		n, err := strconv.ParseUint(word, 10, 31)
		if err != nil {
			return nil, false
		}
		parts = append(parts, int(n))
	}
	return parts, true
}

// compareVersions orders dotted numbers. A missing part counts as 0: 25 equals 25.0 and comes
// before 25.0.1. Other texts come before all versions.
func compareVersions(a, b string) int {
	remaining, _ := parseVersion(a)
	right, _ := parseVersion(b)
	n := max(len(remaining), len(right))
	return slices.Compare(padded(remaining, n), padded(right, n))
}

func padded(parts []int, n int) []int {
	return append(slices.Clone(parts), make([]int, n-len(parts))...)
}
