package service

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// workshop is a service of two files with a builder.
type workshop struct {
	*Builder
	t     *testing.T
	s     *Service
	mu    sync.Mutex
	lines []string
}

func newWorkshop(t *testing.T, artifact string, steps ...[]string) *workshop {
	dir := t.TempDir()
	s := &Service{Name: "sh-none", Dir: filepath.Join(dir, "services", "sh-none"),
		Build: Build{Steps: steps, Artifact: artifact}}
	put(t, filepath.Join(s.Dir, "main.txt"), "source")
	put(t, filepath.Join(s.Dir, "src/bin/part.txt"), "part")
	m := newMachine(t)
	m.jdk("25", "25.0.3")
	w := &workshop{t: t, s: s, Builder: &Builder{Root: dir, Tools: m.tools()}}
	w.Progress = func(line string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lines = append(w.lines, line)
	}
	return w
}

func (w *workshop) said(line string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.lines, line)
}

func (w *workshop) build() *Built {
	w.t.Helper()
	built, err := w.Build(w.t.Context(), w.s)
	if err != nil {
		w.t.Fatal(err)
	}
	return built
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// await polls until another goroutine or process has done something. Its limit matters only if the
// test is broken.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 3000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: not within 30 s", what)
}

func TestBuild(t *testing.T) {
	w := newWorkshop(t, "out", []string{"mkdir", "out"}, []string{"cp", "main.txt", "out/b"},
		[]string{"sh", "-c", `echo said; pwd -P > "{dir}/where"; ln -s b out/a`})
	chmod(t, 0o555, w.s.Dir, "src/bin/part.txt")
	built := w.build()
	// Sorted: a link a -> b, then a file b of 6 bytes.
	want := fmt.Sprintf("%x", sha256.Sum256([]byte("link \"a\" \"b\"\nfile \"b\" 6\nsource")))
	if built.SHA256 != want || built.SizeBytes != 6 || built.Cached || built.DurationNs <= 0 {
		t.Errorf("got %+v, want digest %s of 6 bytes", built, want)
	}
	folder := filepath.Join(w.Root, ".prony/build/sh-none-"+built.Hash[:12])
	if built.Dir != filepath.Join(folder, "service") || built.Log != filepath.Join(folder,
		"build.log") {
		t.Errorf("built in %s with log %s, want below %s", built.Dir, built.Log, folder)
	}
	info, err := os.Stat(filepath.Join(built.Dir, "src/bin/part.txt"))
	if err != nil || info.Mode()&0o700 != 0o700 ||
		read(t, built.Dir, "src/bin/part.txt") != "part" {
		t.Errorf("a program was copied as %v, %v", info, err)
	}
	if got := read(t, built.Log); got != "$ mkdir out\n$ cp main.txt out/b\n$ sh -c echo said; "+
		"pwd -P > \""+built.Dir+"/where\"; ln -s b out/a\nsaid\n" {
		t.Errorf("log %q", got)
	}
	where, err := filepath.EvalSymlinks(built.Dir)
	if got := strings.TrimSpace(read(t, built.Dir, "where")); err != nil || got != where {
		t.Errorf("a step ran in %s, want %s", got, where)
	}
	if _, err := os.Stat(filepath.Join(w.s.Dir, "out")); err == nil {
		t.Error("the source was written to")
	}
	if !w.said("build sh-none: mkdir out") {
		t.Errorf("progress %q", w.lines)
	}
}

func TestBuildsAreReused(t *testing.T) {
	t.Setenv("GOFLAGS", "")
	w := newWorkshop(t, ".", []string{"cp", "main.txt", "made.txt"})
	first := w.build()
	check := func(name string, cached bool, change func()) {
		t.Helper()
		change()
		built := w.build()
		if built.Cached != cached {
			t.Errorf("%s: cached %v, want %v", name, built.Cached, cached)
		}
		if cached && (built.Hash != first.Hash || built.SHA256 != first.SHA256 ||
			built.SizeBytes != first.SizeBytes || built.DurationNs != first.DurationNs) {
			t.Errorf("%s: got %+v, want %+v", name, built, first)
		}
	}
	inSource := func(name, text string) func() {
		return func() { put(t, filepath.Join(w.s.Dir, name), text) }
	}
	check("nothing", true, func() {})
	check("left by hand, at the top", true, inSource("venv/x", "x"))
	check("left by hand, bin", true, inSource("bin/x", "x"))
	check("left by hand, below", true, inSource("src/target/x", "x"))
	check("left by Node", true, inSource("node_modules/x/x.js", "x"))
	check("left by Python", true, inSource("src/__pycache__/x", "x"))

	check("a source", false, inSource("main.txt", "another"))
	check("the source as it was", true, inSource("main.txt", "source"))
	check("a source in a bin folder", false, inSource("src/bin/part.txt", "another"))
	check("and back", true, inSource("src/bin/part.txt", "part"))
	check("a new file", false, inSource("src/new.txt", ""))
	check("and without", true, func() { remove(t, w.s.Dir, "src/new.txt") })
	check("a program", false, func() { chmod(t, 0o755, w.s.Dir, "main.txt") })
	check("and a text", true, func() { chmod(t, 0o644, w.s.Dir, "main.txt") })
	check("a step", false, func() { w.s.Build.Steps[0][2] = "other.txt" })
	check("the step as it was", true, func() { w.s.Build.Steps[0][2] = "made.txt" })
	check("a tool", false, func() { w.s.Needs = []Need{{"java", "25"}} })
	check("no tool", true, func() { w.s.Needs = nil })
	check("a flag", false, func() { t.Setenv("GOFLAGS", "-race") })
	check("no flag", true, func() { t.Setenv("GOFLAGS", "") })
	profile := "CARGO_PROFILE_RELEASE_CODEGEN_UNITS"
	check("a key of a profile", false, func() { t.Setenv(profile, "16") })
	check("none", true, func() { os.Unsetenv(profile) })

	check("an artifact that was written to", false, func() { put(t, first.Dir+"/main.txt", "!") })
	if !w.said("build sh-none: the artifact in the cache has changed since it was built") {
		t.Errorf("progress %q", w.lines)
	}
	check("an incomplete build", false, func() {
		remove(t, filepath.Dir(first.Dir), "built.json")
		put(t, first.Dir+"/half.txt", "half")
	})
	check("another's build under the same digits", false, func() {
		path := filepath.Join(filepath.Dir(first.Dir), "built.json")
		put(t, path, strings.Replace(read(t, path), first.Hash[12:], first.SHA256[12:], 1))
	})
	if _, err := os.Stat(first.Dir + "/half.txt"); err == nil {
		t.Error("an incomplete build was built upon")
	}
}

func remove(t *testing.T, path ...string) {
	t.Helper()
	if err := os.Remove(filepath.Join(path...)); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, mode os.FileMode, path ...string) {
	t.Helper()
	if err := os.Chmod(filepath.Join(path...), mode); err != nil {
		t.Fatal(err)
	}
}

func TestToolsOfABuild(t *testing.T) {
	w := newWorkshop(t, "seen", []string{"sh", "-c",
		`echo "$JAVA_HOME $PYTHONPATH $CARGO_TARGET_DIR ${PATH%%:*} $KEPT {java}" > seen`})
	t.Setenv("PYTHONPATH", "a")
	t.Setenv("CARGO_TARGET_DIR", "b")
	t.Setenv("KEPT", "kept")
	w.s.Needs = []Need{{"java", "25"}}
	w.s.Build.Steps = append(w.s.Build.Steps, []string{"java", "-jar"})
	found, err := w.Tools.resolve(w.s.Needs[0])
	if err != nil {
		t.Fatal(err)
	}
	put(t, found.Path, "#!/bin/sh\necho $0 $1 >> seen\n")
	chmod(t, 0o755, found.Path)
	built := w.build()
	java := built.Tools["java"]
	home := homeOf(java.Path)
	// JAVA_HOME, two variables that a build does not get, the first entry of PATH, and a variable
	// that it gets.
	want := home + "   " + home + "/bin kept " + java.Path + "\n" + java.Path + " -jar\n"
	if got := read(t, built.Dir, "seen"); got != want || java.Version != "25.0.3" {
		t.Errorf("got %q and %v, want %q", got, java, want)
	}
}

func TestFailedBuilds(t *testing.T) {
	check := func(name string, set func(*workshop), want string) {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t, "out", []string{"true"})
			set(w)
			_, err := w.Build(t.Context(), w.s)
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.ReplaceAll(err.Error(), w.Root, "")
			got = regexp.MustCompile(`-[0-9a-f]{12}\b`).ReplaceAllString(got, "-HASH")
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			// A failed build is not taken for a successful one later.
			if _, err := w.Build(t.Context(), w.s); err == nil {
				t.Error("the second try succeeded")
			}
		})
	}
	const log = "/.prony/build/sh-none-HASH/build.log"
	steps := func(steps ...[]string) func(*workshop) {
		return func(w *workshop) { w.s.Build.Steps = steps }
	}
	var tail strings.Builder // 30 lines and the command's own exceed 20
	for i := 11; i <= 30; i++ {
		fmt.Fprintf(&tail, "\n  %d", i)
	}
	check("a status", steps([]string{"true"}, []string{"sh", "-c", "seq 30; exit 7"}),
		"build sh-none: step 2 of 2 (sh -c seq 30; exit 7): exit status 7; the end of "+log+":"+
			tail.String())
	check("a signal", steps([]string{"sh", "-c", "kill -TERM $$"}),
		"build sh-none: step 1 of 1 (sh -c kill -TERM $$): signal: terminated; the end of "+log+
			":\n  $ sh -c kill -TERM $$")
	check("no such program", steps([]string{"no-such-program"}),
		"build sh-none: step 1 of 1 (no-such-program): exec: \"no-such-program\": executable "+
			"file not found in $PATH; the end of "+log+":\n  $ no-such-program")
	check("no artifact", steps([]string{"true"}),
		"build sh-none: the build steps created no out; log: "+log)
	check("no tool", func(w *workshop) { w.s.Needs = []Need{{"java", "99"}} },
		"build sh-none: needs java >= 99: found 25.0.3 (set JAVA_HOME or install a JDK 99)")
	check("no source", func(w *workshop) { w.s.Dir += "-gone" },
		"build sh-none: read the sources: lstat /services/sh-none-gone: no such file or directory")
}

func TestCancelEndsAllOfAStep(t *testing.T) {
	w := newWorkshop(t, ".", []string{"sh", "-c", "sleep 1000 & echo $! > ../child; wait"})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := w.Build(ctx, w.s)
		failed <- err
	}()
	var child int
	await(t, "the step starts its child", func() bool {
		files, _ := filepath.Glob(filepath.Join(w.Root, ".prony/build/*/child"))
		if len(files) == 0 {
			return false
		}
		var err error
		child, err = strconv.Atoi(strings.TrimSpace(read(t, files[0])))
		return err == nil
	})
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	await(t, "the child ends", func() bool { return ended(child) })
}

// A child that a step leaves behind would use processor time during the measurement.
func TestStepsLeaveNoChild(t *testing.T) {
	w := newWorkshop(t, "out", []string{"sh", "-c", "sleep 1000 & echo $! > out"})
	built := w.build()
	child, err := strconv.Atoi(strings.TrimSpace(read(t, built.Dir, "out")))
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the child ends", func() bool { return ended(child) })
}

func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ") // dead, perhaps still a zombie
}

func TestTwoBuildersAtOnce(t *testing.T) {
	w := newWorkshop(t, ".", []string{"sh", "-c",
		"echo x >> ../../runs; while [ ! -e ../../go ]; do sleep 0.01; done"})
	cache := filepath.Join(w.Root, ".prony/build")
	builds := make(chan *Built, 2)
	for range 2 {
		go func() {
			built, err := (&Builder{Root: w.Root, Tools: w.Tools, Progress: w.Progress}).Build(
				t.Context(), w.s)
			if err != nil {
				t.Error(err)
			}
			builds <- built
		}()
	}
	await(t, "one waits", func() bool {
		return w.said("build sh-none: waiting for another build of the same service")
	})
	// A third builder gives up with its context, and does not affect the others.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Build(ctx, w.s); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	put(t, filepath.Join(cache, "go"), "")
	a, b := <-builds, <-builds
	if a == nil || b == nil || a.Cached == b.Cached || a.SHA256 != b.SHA256 {
		t.Errorf("got %+v and %+v, want one built and one taken", a, b)
	}
	if got := read(t, cache, "runs"); got != "x\n" {
		t.Errorf("the steps ran %d times", strings.Count(got, "x"))
	}
}

// If GraalVM is another JDK than the one found, Maven's plugins get its path.
func TestGraalVMHome(t *testing.T) {
	env := buildEnv(map[string]Tool{"java": {Path: "/jdk/bin/java"},
		"native-image": {Path: "/graal/bin/native-image"}})
	for _, want := range []string{"JAVA_HOME=/jdk", "GRAALVM_HOME=/graal"} {
		if !slices.Contains(env, want) {
			t.Errorf("no %s", want)
		}
	}
}

// All native images have the same options, as far as the edition supports them.
func TestNativeOptions(t *testing.T) {
	check := func(want, said, system, arch string) {
		t.Helper()
		run := func(context.Context, []string, string, ...string) (string, error) {
			return said, nil
		}
		tools := &Tools{ctx: t.Context(), run: run, byTool: map[string][]*candidate{}}
		tools.byTool["native-image"] = []*candidate{tools.candidate("native-image", "/bin/x", nil)}
		native, err := tools.resolve(Need{Tool: "native-image", Version: "25"})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(nativeOptions(native, system, arch), " "); got != want {
			t.Errorf("%q on %s %s: %s, want %s", said, system, arch, got, want)
		}
	}
	const (
		oracle = "native-image 25.0.1 2025-10-21\nGraalVM Runtime Environment Oracle GraalVM " +
			"25.0.1+8.1 (build 25.0.1+8-LTS-jvmci-b01)\nSubstrate VM Oracle GraalVM 25.0.1+8.1 " +
			"(build 25.0.1+8-LTS, serial gc, compressed references)"
		community = "native-image 25.0.2 2026-01-20\nGraalVM Runtime Environment GraalVM CE " +
			"25.0.2+10.1 (build 25.0.2+10-jvmci-b01)"
		mandrel = "native-image 25.0.3 2026-04-21\nGraalVM Runtime Environment Mandrel-25.0.3"
		usual   = "--enable-monitoring=jfr,heapdump -O3"
	)
	check(usual+" --gc=G1", oracle, "linux", "amd64")
	check(usual+" --gc=G1", oracle, "linux", "arm64")
	check(usual, oracle, "darwin", "arm64")
	check(usual, community, "linux", "amd64")
	check(usual, mandrel, "linux", "amd64")

	// The build gets these options and not the shell's; another edition makes another build.
	t.Setenv(nativeEnv, "-Ob")
	of := func(edition string) map[string]Tool {
		return map[string]Tool{"native-image": {Path: "/graal/bin/native-image", Edition: edition}}
	}
	var got []string
	for _, pair := range buildEnv(of("Mandrel")) {
		if strings.HasPrefix(pair, nativeEnv+"=") {
			got = append(got, pair)
		}
	}
	if !slices.Equal(got, []string{nativeEnv + "=" + usual}) {
		t.Errorf("the build gets %q", got)
	}
	s := &Service{}
	if s.hash(sha256.New(), of("GraalVM CE")) == s.hash(sha256.New(), of("Mandrel")) {
		t.Error("both editions have one build")
	}
}

// Every native target of the catalog is built by native-image directly, so that it gets the
// options, and has it as a need, so that a missing one is reported.
func TestNativeTargetsOfTheCatalog(t *testing.T) {
	services, err := Catalog("../..")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, s := range services {
		for _, target := range s.Targets {
			if target.Runtime != "native" || s.Language != "Java" {
				continue
			}
			found++
			missing := (&Tools{ctx: t.Context()}).Missing(s, target)
			const want = "needs native-image >= 25: not found"
			if !slices.ContainsFunc(missing, func(m string) bool {
				return strings.HasPrefix(m, want)
			}) {
				t.Errorf("%s is not left out for want of native-image: %q", s.Full(target), missing)
			}
			for _, step := range s.Build.Steps {
				if line := strings.Join(step, " "); strings.Contains(line, "--gc=") ||
					strings.Contains(line, "native.additional-build-args") {
					t.Errorf("%s has options of its own: %s", s.Full(target), line)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("%d native targets: are they found?", found)
	}
	images, err := filepath.Glob("../../services/*/Dockerfile.native")
	if err != nil || len(images) < 6 {
		t.Fatalf("%q, error %v", images, err)
	}
	for _, name := range images {
		// The Dockerfile's builder is the community edition.
		want := "ENV " + nativeEnv + "=\"" +
			strings.Join(nativeOptions(Tool{}, "linux", "amd64"), " ") + "\"\n"
		if !strings.Contains(read(t, ".", name), want) {
			t.Errorf("%s lacks %s", name, want)
		}
	}
}

// Maven's JVM gets the options of short-lived JVMs, unless the user sets others.
func TestMavenIsBrief(t *testing.T) {
	maven := map[string]Tool{"mvn": {Path: "/bin/mvn"}}
	check := func(tools map[string]Tool, want ...string) {
		t.Helper()
		var got []string
		for _, pair := range buildEnv(tools) {
			if strings.HasPrefix(pair, mavenEnv+"=") {
				got = append(got, pair)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", tools, got, want)
		}
	}
	t.Setenv(mavenEnv, "-Xmx1g")
	check(maven, mavenEnv+"=-Xmx1g")
	if err := os.Unsetenv(mavenEnv); err != nil {
		t.Fatal(err)
	}
	check(maven, mavenEnv+"="+briefJVM)
	check(nil)
}

// A JVM of the catalog that is only checked uses the fast compiler. A user's own target starts as
// it is measured.
func TestBrief(t *testing.T) {
	jvm, native := Target{Runtime: "jvm"}, Target{Runtime: "native"}
	if got := (&Service{}).Brief(jvm)[jdkOptions]; got != lightly {
		t.Errorf("a JVM gets %q", got)
	}
	if got := (&Service{Environ: []string{}}).Brief(jvm); got != nil {
		t.Errorf("a user's JVM gets %v", got)
	}
	if got := (&Service{}).Brief(native); got != nil {
		t.Errorf("what is not a JVM gets %v", got)
	}
}

// A step that hangs is ended, with its children.
func TestStepsHaveABound(t *testing.T) {
	w := newWorkshop(t, "out", []string{"sh", "-c", "sleep 1000 & echo $! > pid; wait"})
	w.Bound = 300 * time.Millisecond
	_, err := w.Build(t.Context(), w.s)
	if err == nil || !strings.Contains(err.Error(), "the step was ended after 300ms") {
		t.Errorf("error %v", err)
	}
}
