package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cache"
	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
	"prony.example/internal/generator/truth"
	"prony.example/internal/launch/docker"
	"prony.example/internal/launch/kubernetes"
	"prony.example/internal/launch/process"
)

func TestMain(m *testing.M) {
	// Labs of other programs' tests run at the same time; tests that measure take turns by
	// testsets.Measured.
	if err := os.Setenv(process.Beside, "1"); err != nil {
		panic(err)
	}
	docker.Guard()
	kubernetes.Guard()
	if text := os.Getenv("PRONY_TEST_SERVE"); text != "" {
		standIn(text)
	}
	// This binary is prony itself if a test starts it as such, or if the program starts itself.
	if os.Getenv("PRONY_TEST_MAIN") != "" || len(os.Args) > 1 &&
		slices.Contains([]string{"null", "truth", "generate"}, os.Args[1]) {
		main()
	}
	var err error
	if os.Stdin, err = os.Open(os.DevNull); err != nil { // no terminal
		panic(err)
	}
	// Clones and builds of tests are removed with them. Each is as private as its test's folder.
	// The journal is this process's own, because another one may run other tests of this package.
	cached, err := os.MkdirTemp("", "prony-cache-")
	journal, err1 := os.MkdirTemp("", "prony-journal-")
	if err := errors.Join(err, err1, os.Chmod(cached, 0o755), os.Setenv(cache.Env, cached),
		os.Setenv("XDG_RUNTIME_DIR", journal)); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := errors.Join(os.RemoveAll(cached), os.RemoveAll(journal)); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// checkout is a root folder with this repository's catalog and suites, and its own results.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	// If tests run as root, services run as other users.
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	furnish(t, dir)
	return dir
}

// furnish makes such a root of a folder.
func furnish(t *testing.T, dir string) {
	t.Helper()
	root, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"services", "suites", "agents", "agents.yaml", "deploy",
		".prony"} {
		if err := os.MkdirAll(filepath.Join(root, ".prony"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if name != ".prony" { // the links are gone when go test looks at what was read by them
			testsets.Reads(t, filepath.Join(root, name))
		}
	}
}

// say runs the program in a mock world, in virtual time.
func say(t *testing.T, m mock, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out, errs bytes.Buffer
		ctx, interrupt := context.WithCancel(context.Background())
		defer interrupt()
		if m.interrupt > 0 {
			defer time.AfterFunc(m.interrupt, interrupt).Stop()
		}
		exit = cli.Code(run(ctx, m, args, &out, &errs))
		stdout, stderr = out.String(), errs.String()
	})
	return stdout, stderr, exit
}

func has(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(text, w) {
			t.Errorf("%s lacks %q:\n%s", what, w, text)
		}
	}
}

func TestHelpTeaches(t *testing.T) {
	for _, verb := range []string{"run", "plan", "services", "build", "verify", "load", "report"} {
		stdout, _, exit := say(t, mock{}, verb, "--help")
		if exit != cli.Fine || !strings.Contains(stdout, "Examples:\n  prony "+verb) ||
			len(stdout) < 300 {
			t.Errorf("help of %s (exit %d) teaches little:\n%s", verb, exit, stdout)
		}
	}
}

// The help fits one screen: every verb once, in its group, by an imperative phrase.
func TestHelpFitsOneScreen(t *testing.T) {
	help, _, exit := say(t, mock{}, "--help")
	lines := strings.Split(strings.TrimSuffix(help, "\n"), "\n")
	if exit != cli.Fine || len(lines) > 49 { // the last line of the screen is the prompt's
		t.Errorf("exit %d, %d lines:\n%s", exit, len(lines), help)
	}
	for _, line := range lines {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	walk(wholeRoot(t), func(c *cobra.Command) {
		top := c.HasParent() && c.Parent() == c.Root() && c.Name() != "completion"
		if n := strings.Count(help, "\n  "+c.Name()+" "); top && n != 1 {
			t.Errorf("%s is in the help %d times", c.Name(), n)
		}
		if top && c.GroupID == "" {
			t.Errorf("%s is in no group", c.Name())
		}
		if !c.HasParent() || c.Parent().Name() == "truth" || c.Parent().Name() == "completion" {
			return // kinds of servers, and cobra's
		}
		first, _, _ := strings.Cut(c.Short, " ")
		if len(c.Short) > 60 || !imperative.MatchString(first) || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: %q (%d bytes): want an imperative phrase of up to 60", c.CommandPath(),
				c.Short, len(c.Short))
		}
	})
}

// imperative matches an imperative at the beginning of help, and neither Prints nor Printing.
var imperative = regexp.MustCompile(`^[A-Z][a-z]*[a-rt-z],?$`)

// manyTargets are targets of many languages, some in several modes.
const manyTargets = "rust-axum,go-nethttp,java-netty,java-jdk,node-express,python-flask"

// Every `$ prony …` line of the documents does what it shows. Runs happen in a mock world; loads
// and verifications are real, against servers of the test.
func TestCommandsInTheReadme(t *testing.T) {
	shown(t, func(c tidy.Command) bool { return c.File == "README.md" && !dear(c.Args) })
}

// Comparisons of the user's own services start and check them; the collector handles telemetry.
func TestCommandsInTheDocuments(t *testing.T) {
	testsets.Once(t, "all lines of the documents", testsets.Needs{Files: slices.Concat(
		homeSources, []string{"docs", "README.md", "CONTRIBUTING.md", "suites", "services",
			"contract"})})
	onPath(t)
	shown(t, func(tidy.Command) bool { return true })
}

// shown runs lines of the documents, each once.
func shown(t *testing.T, of func(tidy.Command) bool) {
	repo, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	commands, err := tidy.Commands(repo)
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) < 8 {
		t.Errorf("only %d commands in the documents: are they found?", len(commands))
	}
	root := checkout(t)
	old := filepath.Join(root, "results", "RUN")
	if _, stderr, exit := say(t, mock{}, "run", "--root", root, "--out", old, "--targets",
		manyTargets, "--blocks", "3"); exit != cli.Fine {
		t.Fatal(stderr)
	}
	placeTelemetry(t, old)
	placeMetrics(t, old)
	addProfiles(t, old)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("PRONY_ROOT", root)
	t.Setenv("TOKEN", "of the documents")
	t.Chdir(root)
	addr, stop, err := truth.Start(truth.Fixed(0))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	said := map[string]bool{} // by an earlier page
	for _, c := range commands {
		line, project := strings.Join(c.Args, " "), filepath.Base(c.File) == "project.md"
		if said[line] && !project || !of(c) {
			continue
		}
		said[line] = true
		t.Run(line, func(t *testing.T) {
			args := fromRoot(bind(c.Args, addr.String()), repo)
			var stdout, stderr string
			exit := 0
			switch {
			case project && c.Args[0] != "init": // a plan is the same except for the time
				t.Setenv("PRONY_ROOT", "")
				ownFolder(t)
				stdout, stderr, exit = inProject(t, projectOf(t, filepath.Join(repo, c.File)),
					append([]string{"plan"}, args[1:]...)...)
			case filepath.Base(c.File) == "published.md": // whole suites: the mock has only hello
				stdout, stderr, exit = say(t, mock{}, append([]string{"plan"}, args[1:]...)...)
			case c.Args[0] == "versus":
				stdout, stderr, exit = shownVersus(t, args[1:], addr.String())
			case c.Args[0] == "load" || c.Args[0] == "verify":
				stdout, stderr, exit = really(args...)
			case c.Args[0] == "init":
				drafts(t, repo)
				stdout, stderr, exit = really(args...)
			default:
				stdout, stderr, exit = say(t, mock{}, args...)
			}
			// A busy machine may make a load INVALID, and such a short one cannot decide a
			// threshold; this is no error of the document.
			known := exit == cli.Invalid ||
				exit == cli.GateFailed && slices.Contains(c.Args, "--threshold")
			found := c.Args[0] == "audit" && exit == cli.Invalid // its page shows a contradiction
			if exit != cli.Fine && !(c.Args[0] == "load" && known) && !found {
				t.Errorf("%s:%d: exit %d\n%s%s", c.File, c.Line, exit, stdout, stderr)
			}
		})
	}
}

// dear reports whether a line starts services or needs the collector.
func dear(args []string) bool {
	return args[0] == "versus" || args[0] == "query" || slices.Contains(args, "parquet")
}

// shownVersus checks the services of a line on a page, and measures none.
func shownVersus(t *testing.T, args []string, addr string) (stdout, stderr string, exit int) {
	t.Helper()
	ownFolder(t)
	if strings.Contains(strings.Join(args, " "), "app.jar") {
		ownJar(t)
	}
	for i, a := range args {
		if strings.HasPrefix(a, "http://127.0.0.1:") { // the test has two servers
			args[i] = "http://" + addr
		}
		if a == "--protocol" {
			t.Setenv("SPEAKS", args[i+1])
		}
	}
	return versus(t, append(args, "--plan")...)
}

// fromRoot resolves the files that audits and comparisons of the documents read in the repository.
func fromRoot(args []string, repo string) []string {
	for i, a := range args {
		reads := args[0] == "audit" || args[0] == "compare"
		if reads && strings.HasPrefix(a, "internal/") {
			args[i] = filepath.Join(repo, a)
		}
	}
	return args
}

// bind puts the test's server and a short window into a load's command line.
func bind(args []string, addr string) []string {
	out := append([]string{}, args...)
	if args[0] != "load" {
		return out
	}
	for i, a := range out {
		if rest, ok := strings.CutPrefix(a, "http://127.0.0.1:8080"); ok {
			out[i] = "http://" + addr + rest
		}
	}
	return append(out, "--duration", "200ms", "--lead-in", "50ms")
}

func TestErrorsMakeTheirExitCodes(t *testing.T) {
	for err, want := range map[error]int{
		nil: 0, errors.New("x"): 1, cli.Usagef("x"): 2, cli.End(4, "x"): 4,
	} {
		if got := cli.Code(err); got != want {
			t.Errorf("%v exits %d, want %d", err, got, want)
		}
	}
}

// A relative folder for temporary files is refused, because it would be another one for each
// service.
func TestRelativeTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", "relative")
	if _, stderr, exit := say(t, mock{}, "help"); exit != cli.Misused ||
		!strings.Contains(stderr, "TMPDIR: relative is not an absolute path") {
		t.Errorf("exits with %d: %s", exit, stderr)
	}
}
