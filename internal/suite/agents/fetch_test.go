package agents

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"prony.example/internal/base/cache"
	"prony.example/internal/dev/testsets"
)

// bench is a fetcher whose tools are functions of the test.
type bench struct {
	*Fetcher
	t     *testing.T
	mu    sync.Mutex
	calls []order
	lines []string
	bring func(o order) error
}

func newBench(t *testing.T, bring func(o order) error) *bench {
	b := &bench{t: t, bring: bring}
	b.Fetcher = &Fetcher{Root: t.TempDir(),
		look:    func(program string) (string, error) { return "/bin/" + program, nil },
		lookup:  func(string) (string, bool) { return "", false },
		version: func(context.Context, string) string { return "tool 1" },
		progress: func(line string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.lines = append(b.lines, line)
		},
		run: func(_ context.Context, o order) error {
			b.mu.Lock()
			b.calls = append(b.calls, o)
			b.mu.Unlock()
			return b.bring(o)
		},
	}
	return b
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func sha(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// jar is an agent from Maven with this content.
func jar(content string) Agent {
	return Agent{Name: "jar", Fetch: Fetch{Maven: "org.x:agent:1.2"}, SHA256: sha(content)}
}

// copies writes Maven's file with this content.
func copies(t *testing.T, content string) func(order) error {
	return func(o order) error {
		put(t, filepath.Join(o.dir, "agent-1.2.jar"), content)
		return nil
	}
}

func (b *bench) fetch1(a Agent) Fetched {
	b.t.Helper()
	got, err := b.Fetch(b.t.Context(), a)
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

func TestMavenBringsAFile(t *testing.T) {
	b := newBench(t, copies(t, "a jar"))
	got := b.fetch1(jar("a jar"))
	want := Fetched{Path: got.Path, Files: filepath.Join(b.Root, "agents", "jar"), Version: "1.2",
		SHA256: sha("a jar"), Source: "maven:org.x:agent:1.2"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	dir, file := filepath.Split(got.Path)
	if text, err := os.ReadFile(got.Path); file != "agent-1.2.jar" || string(text) != "a jar" {
		t.Errorf("%s holds %q, %v", got.Path, text, err)
	}
	args := []string{"-B", "-q", mavenCopy, "-Dartifact=org.x:agent:1.2:jar",
		"-DoutputDirectory=" + filepath.Clean(dir)}
	if o := b.calls[0]; o.program != "/bin/mvn" || !slices.Equal(o.args, args) {
		t.Errorf("called %s %q, want mvn %q", o.program, o.args, args)
	}
	r := got.Record("jar")
	if r.Name != "jar" || r.Source != want.Source || r.Version != "1.2" || r.SHA256 != want.SHA256 {
		t.Errorf("the record says %+v", r)
	}
}

func TestAnotherFileIsRefused(t *testing.T) {
	b := newBench(t, copies(t, "another jar"))
	_, err := b.Fetch(t.Context(), jar("a jar"))
	want := "fetch agent jar: agent-1.2.jar has the SHA-256 digest " + sha("another jar") +
		", but agents.yaml requires " + sha("a jar") + ": the file was not used; check the " +
		"repository from which your Maven downloads it"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, have := b.Have(t.Context(), jar("a jar")); have {
		t.Error("a file that was refused is in the cache")
	}
}

func TestFetchesAreReused(t *testing.T) {
	b := newBench(t, copies(t, "a jar"))
	a := jar("a jar")
	if _, have := b.Have(t.Context(), a); have {
		t.Error("it is there before it was fetched")
	}
	first := b.fetch1(a)
	check := func(name string, cached bool, change func()) {
		t.Helper()
		change()
		got, calls := b.fetch1(a), len(b.calls)
		if got.Cached != cached || got.SHA256 != first.SHA256 {
			t.Errorf("%s: got %+v after %d calls, want cached %v", name, got, calls, cached)
		}
		if again, have := b.Have(t.Context(), a); !have || again.Path != got.Path {
			t.Errorf("%s: afterwards there is %+v, %v", name, again, have)
		}
	}
	check("nothing", true, func() {})
	check("bytecode", true, func() {
		put(t, filepath.Join(filepath.Dir(first.Path), "__pycache__", "x.pyc"), "x")
	})
	check("a file that was written to", false, func() { put(t, first.Path, "changed") })
	if !slices.Contains(b.lines,
		"fetch agent jar: the agent's files in the cache have changed since the download") {
		t.Errorf("said %q", b.lines)
	}
	check("half a fetch", false, func() {
		if err := os.Remove(filepath.Join(first.Path, "..", "..", markFile)); err != nil {
			t.Fatal(err)
		}
	})
	check("another group", false, func() { a.Fetch.Maven = "org.y:agent:1.2" })
}

// The second caller waits, and uses the result of the first.
func TestFetchesOfOneAgentWaitForEachOther(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	b := newBench(t, func(o order) error {
		close(entered) // a second call panics
		<-leave
		return copies(t, "a jar")(o)
	})
	results := make([]Fetched, 2)
	errs := make([]error, 2)
	var both sync.WaitGroup
	both.Go(func() { results[0], errs[0] = b.Fetch(t.Context(), jar("a jar")) })
	<-entered
	waits := make(chan struct{})
	say := b.progress
	second := *b.Fetcher
	second.progress = func(line string) {
		say(line)
		close(waits)
	}
	both.Go(func() { results[1], errs[1] = second.Fetch(t.Context(), jar("a jar")) })
	<-waits
	close(leave)
	both.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if results[0].Cached || !results[1].Cached || results[0].Path != results[1].Path {
		t.Errorf("got %+v", results)
	}
	if !slices.Contains(b.lines, "fetch agent jar: waiting for another prony that fetches this "+
		"agent") {
		t.Errorf("said %q", b.lines)
	}
}

func TestWaitingCanBeEnded(t *testing.T) {
	b := newBench(t, copies(t, "a jar"))
	kept, err := cache.Folder(b.Root, "agents")
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := cache.Lock(t.Context(), filepath.Join(kept, "jar.lock"), "fetch", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	b.progress = func(string) { cancel() }
	if _, err := b.Fetch(ctx, jar("a jar")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
}

func TestJarsAreUnpacked(t *testing.T) {
	check := func(name, want string) {
		t.Helper()
		var text bytes.Buffer
		w := zip.NewWriter(&text)
		file, err := w.Create(name)
		if err == nil {
			_, err = file.Write([]byte("library"))
		}
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		b := newBench(t, copies(t, text.String()))
		a := jar(text.String())
		a.Fetch.Unpack = true
		got, err := b.Fetch(t.Context(), a)
		if err != nil {
			if err.Error() != want {
				t.Errorf("%s: got %v, want %s", name, err, want)
			}
			return
		}
		data, err := os.ReadFile(filepath.Join(got.Path, name))
		if string(data) != want || got.SHA256 != sha(text.String()) {
			t.Errorf("%s: got %q, %v of %+v", name, data, err, got)
		}
		if _, err := os.Stat(filepath.Join(got.Path, "agent-1.2.jar")); err == nil {
			t.Errorf("%s: the jar is still there", name)
		}
	}
	check("linux-x64/lib.so", "library")
	check("../lib.so", `fetch agent jar: unpack agent-1.2.jar: "../lib.so" is outside of the `+
		`target folder`)
}

// npm and pip install the pinned packages, and no others.
func TestPinnedPackages(t *testing.T) {
	b := newBench(t, func(o order) error {
		put(t, filepath.Join(o.dir, "made.txt"), "made")
		put(t, filepath.Join(o.dir, "bin", "script"), "#!/somewhere/python\n")
		put(t, filepath.Join(o.dir, "bin", "program"), "\x7fELF")
		return nil
	})
	pip := Agent{Name: "pip", Fetch: Fetch{Pip: "agents/pip", Package: "one"}}
	pins := filepath.Join(b.Root, "agents", "pip", requirements)
	put(t, pins, "# why\none==1.5\ntwo==2.5\n")
	first := b.fetch1(pip)
	if want := []string{"-m", "pip", "install", "-q", "--no-deps", "--target", first.Path, "-r",
		pins}; !slices.Equal(b.calls[0].args, want) || first.Version != "1.5" {
		t.Errorf("version %s by %q, want %q", first.Version, b.calls[0].args, want)
	}
	entries, err := os.ReadDir(filepath.Join(first.Path, "bin"))
	if err != nil || len(entries) != 1 || entries[0].Name() != "program" {
		t.Errorf("bin holds %v, %v; want the program alone", entries, err)
	}
	b.version = func(context.Context, string) string { return "tool 2" }
	if again := b.fetch1(pip); again.Cached || again.Path == first.Path {
		t.Errorf("another Python took what is for the first: %+v", again)
	}
	put(t, pins, "one==1.5\ntwo\n")
	const loose = `fetch agent pip: read pinned versions: %s:2: "two" has no version; write ` +
		`name==1.2`
	if _, err := b.Fetch(t.Context(), pip); err == nil || err.Error() != fmt.Sprintf(loose, pins) {
		t.Errorf("got %v, want %s", err, fmt.Sprintf(loose, pins))
	}

	npm := Agent{Name: "npm", Fetch: Fetch{Npm: "agents/npm", Package: "@x/one"}}
	folder := filepath.Join(b.Root, "agents", "npm")
	put(t, filepath.Join(folder, "package.json"), `{}`)
	put(t, filepath.Join(folder, "package-lock.json"),
		`{"packages": {"node_modules/@x/one": {"version": "3.5"}}}`)
	got := b.fetch1(npm)
	last := b.calls[len(b.calls)-1]
	if got.Version != "3.5" || last.program != "/bin/npm" || last.args[0] != "ci" ||
		!slices.Contains(last.args, "--ignore-scripts") {
		t.Errorf("version %s by %s %q", got.Version, last.program, last.args)
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		if _, err := os.Stat(filepath.Join(got.Path, name)); err != nil {
			t.Error(err)
		}
	}
	npm.Fetch.Package = "@x/two"
	if _, err := b.Fetch(t.Context(), npm); err == nil ||
		!strings.HasSuffix(err.Error(), "package-lock.json does not contain package @x/two") {
		t.Errorf("got %v, want that there is no such package", err)
	}
}

func TestWhatIsMissingIsTold(t *testing.T) {
	b := newBench(t, copies(t, "a jar"))
	b.look = func(string) (string, error) { return "", errors.New("nowhere") }
	own := Agent{Name: "own", Fetch: Fetch{Path: "${JAR}"}}
	check := func(a Agent, want string) {
		t.Helper()
		_, err := b.Fetch(t.Context(), a)
		if err == nil || err.Error() != want || !errors.Is(err, ErrMissing) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	check(jar("a jar"), "fetch agent jar: the agent cannot be fetched on this machine: needs "+
		"mvn, which was not found (install Apache Maven)")
	check(own, "fetch agent own: the agent cannot be fetched on this machine: needs the "+
		"environment variable JAR, which is not set")

	path := filepath.Join(t.TempDir(), "own.jar")
	put(t, path, "own")
	b.lookup = func(name string) (string, bool) { return path, name == "JAR" }
	got := b.fetch1(own)
	if got.Path != path || got.Source != "path:own.jar" || got.SHA256 != sha("own") {
		t.Errorf("got %+v", got)
	}
	nothing := b.fetch1(Agent{Name: "again"})
	if nothing.Path != "" || nothing.Source != "" {
		t.Errorf("nothing to fetch, and got %+v", nothing)
	}
}

// The error of a failing tool contains the end of its output.
func TestAToolThatFails(t *testing.T) {
	log := filepath.Join(t.TempDir(), "fetch.log")
	err := execute(t.Context(), order{program: "/bin/sh", dir: t.TempDir(), log: log,
		args: []string{"-c", "echo no such thing >&2; exit 3"}})
	want := "sh: exit status 3; last lines of " + log + ":\n  no such thing"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Every agent in agents.yaml can be fetched if its tool is installed, and a second time without the
// tool.
func TestEveryAgentIsFetched(t *testing.T) {
	testsets.Long(
		t,
		"every agent, fetched",
		testsets.Needs{Files: []string{"agents.yaml", "agents"}},
	)
	data, err := os.ReadFile("../../../agents.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Read("agents.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	f := New(root, func(string) {})
	for _, a := range c.Agents {
		got, err := f.Fetch(t.Context(), a)
		switch {
		case errors.Is(err, ErrMissing):
			t.Logf("skipped: %v", err)
		case err != nil:
			t.Error(err)
		case a.Tool() != "" && (got.SHA256 == "" || got.Version == ""):
			t.Errorf("%s: got %+v", a.Name, got)
		}
		if again, err := f.Fetch(t.Context(), a); err == nil && a.Tool() != "" && !again.Cached {
			t.Errorf("%s was fetched twice", a.Name)
		}
	}
}
