package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"prony/internal/cli"
	"prony/internal/lab/machine"
	"prony/internal/launch/docker"
	"prony/internal/result"
	"prony/internal/tests"
	"prony/internal/tidy"
	"prony/internal/truth"
)

func TestMain(m *testing.M) {
	docker.Guard()
	// This binary is prony itself where a test starts it as such, or a run its null server.
	if os.Getenv("PRONY_TEST_MAIN") != "" || len(os.Args) > 1 && os.Args[1] == "null" {
		main()
	}
	os.Exit(m.Run())
}

// checkout is a root folder with this repository's catalog and suites, but results of its own.
func checkout(t *testing.T) string {
	t.Helper()
	root, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"services", "suites", "agents", "agents.yaml", "deploy",
		".prony"} {
		if err := os.MkdirAll(filepath.Join(root, ".prony"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if name != ".prony" { // the links are gone when go test looks at what was read by them
			tests.Reads(t, filepath.Join(root, name))
		}
	}
	return dir
}

// say runs the program in a mock world, in no time.
func say(t *testing.T, m mock, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out, errs bytes.Buffer
		exit = cli.Code(run(context.Background(), m, args, &out, &errs))
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

func TestRunWithNoArgumentsIsTheCanonicalComparison(t *testing.T) {
	root := checkout(t)
	stdout, stderr, exit := say(t, mock{lacks: "java-netty"}, "run", "--root", root)
	if exit != cli.Fine {
		t.Errorf("exit %d:\n%s", exit, stderr)
	}
	has(t, "report", stdout, "canonical", "rust-axum", "java-jdk/virtual", "VALID 18 trials",
		"java-netty", "skipped: needs unobtainium >= 1: not found", "services/java-netty/README.md",
		"reproduce  prony run suites/canonical.yaml --seed 42 --blocks 3", "report.html")
	has(t, "progress", stderr, "18 trials in 3 blocks", "18/18 b3-18-", "VALID")
	dirs, err := filepath.Glob(filepath.Join(root, "results", "*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("results are %v", dirs)
	}
	head, records, bad, err := result.Read(dirs[0])
	if err != nil || len(bad) > 0 || len(records) != 18 || len(head.Trials) != 18 {
		t.Errorf("%d records of %d, bad %v, error %v", len(records), len(head.Trials), bad, err)
	}
	for _, f := range []string{"txt", "md", "csv", "json", "html"} {
		info, err := os.Stat(filepath.Join(dirs[0], "report."+f))
		if err != nil || info.Size() == 0 {
			t.Errorf("report.%s: %v", f, err)
		}
	}
	doc, err := os.ReadFile(filepath.Join(dirs[0], "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	has(t, "report.json", string(doc), `"endpoint": "GET /hello/{mode}?key={key}"`)
	again, _, exit := say(t, mock{}, "report", dirs[0])
	if exit != cli.Fine || again != stdout {
		t.Errorf("the report made again differs (exit %d):\n%s", exit, again)
	}
}

// The program alone does the main job in a checkout, and says what it is for elsewhere.
func TestBare(t *testing.T) {
	t.Chdir(checkout(t))
	stdout, stderr, exit := say(t, mock{})
	if exit != cli.Fine {
		t.Errorf("exit %d:\n%s", exit, stderr)
	}
	has(t, "report", stdout, "canonical", "rust-axum", "VALID 21 trials")
	t.Chdir(t.TempDir())
	stdout, _, exit = say(t, mock{})
	if exit != cli.Fine {
		t.Errorf("exit %d outside of a checkout", exit)
	}
	has(t, "help", stdout, "Usage:", "Available Commands:", "-x, --show")
}

func TestABrokenServiceDoesNotStopTheOthers(t *testing.T) {
	stdout, stderr, exit := say(t, mock{broken: "node-express"}, "run", "--root", checkout(t),
		"--targets", "node-express,go-nethttp", "--blocks", "2")
	if exit != cli.Invalid {
		t.Errorf("exit %d, want %d", exit, cli.Invalid)
	}
	has(t, "progress", stderr, "build node-express: step 1: exit status 1", "4/4")
	has(t, "report", stdout, "go-nethttp", "node-express", "VALID 2 trials")
}

func TestATargetAskedForByNameIsSkippedAloud(t *testing.T) {
	root := checkout(t)
	stdout, _, exit := say(t, mock{lacks: "rust-axum"}, "run", "--root", root, "--blocks", "2",
		"--targets", "rust-axum,go-nethttp")
	if exit != cli.Fine {
		t.Errorf("exit %d, want fine", exit)
	}
	has(t, "report", stdout, "rust-axum", "skipped: needs unobtainium >= 1: not found")
	_, stderr, exit := say(t, mock{lacks: "rust-axum"}, "run", "--root", root, "--targets",
		"rust-axum")
	if exit != cli.Failed {
		t.Errorf("exit %d with nothing left to run, want an error", exit)
	}
	has(t, "stderr", stderr, "none of its targets can run here", "unobtainium")
}

func TestMistakesGetASentenceAndACode(t *testing.T) {
	root := checkout(t)
	broken := filepath.Join(t.TempDir(), "s.yaml")
	text := "name: x\ncontract: hello\nconections: 3\n"
	if err := os.WriteFile(broken, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	check := func(exit int, words string, args ...string) {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			_, stderr, got := say(t, mock{}, append(args, "--root", root)...)
			if got != exit || !strings.Contains(stderr, words) {
				t.Errorf("exit %d, want %d; stderr %q, want %q", got, exit, stderr, words)
			}
		})
	}
	check(cli.Misused, `no verb "rnu"; did you mean "run"?`, "rnu")
	check(cli.Misused, "unknown flag: --blokcs; see prony run --help", "run", "--blokcs", "3")
	check(cli.Misused, "got 2 arguments", "run", "a", "b")
	check(cli.Failed, "no such file or directory; suites live in", "run", "no-such.yaml")
	check(cli.Failed, `s.yaml:3: unknown key "conections"`, "run", broken)
	check(cli.Misused, `did you mean "go-nethttp"?`, "run", "--targets", "go-nethtp")
	check(cli.Misused, "blocks", "run", "--blocks", "-1")
	check(cli.Failed, "it has no run.json", "report", root)
	check(cli.Misused, "want a URL such as", "load", "127.0.0.1:80")
	check(cli.Misused, "want a range such as", "load", "http://127.0.0.1:1/", "--keys", "5")
	check(cli.Misused, "core 4096 is not one of", "load", "http://127.0.0.1:1/", "--cores", "4096")
	check(cli.Misused, `no service "go-nethtp"; did you mean "go-nethttp"?`, "verify", "go-nethtp")
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

func TestReportIntoAFile(t *testing.T) {
	root := checkout(t)
	dir := filepath.Join(root, "r")
	_, stderr, exit := say(t, mock{}, "run", "--root", root, "--blocks", "1", "--out", dir)
	if exit != cli.Fine {
		t.Fatal(stderr)
	}
	readme := filepath.Join(root, "README.md")
	text := "before\n<!-- prony:begin canonical -->\nold\n<!-- prony:end canonical -->\nafter\n"
	if err := os.WriteFile(readme, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, stderr, exit := say(t, mock{}, "report", dir, "--update", readme); exit != 0 {
		t.Fatal(stderr)
	}
	got, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	has(t, "README", string(got), "before\n", "| rust-axum", "\nafter\n")
	if strings.Contains(string(got), "\nold\n") {
		t.Error("the old section is still there")
	}
	_, stderr, exit = say(t, mock{}, "report", dir, "--update", readme, "--section", "other")
	if exit != cli.Failed || !strings.Contains(stderr, "other") {
		t.Errorf("exit %d, %q", exit, stderr)
	}
	for format, mark := range map[string]string{
		"markdown": "| tier", "csv": "target,", "json": `"version": 1`, "html": "<!doctype html>",
	} {
		stdout, _, exit := say(t, mock{}, "report", dir, "--format", format)
		if exit != cli.Fine || !strings.Contains(strings.ToLower(stdout), mark) {
			t.Errorf("format %s (exit %d) begins %.80q", format, exit, stdout)
		}
	}
}

// Every `$ prony …` line of the documents does what it shows. Runs happen in a mock world; what
// loads or verifies does so for real, against servers of the test's own.
func TestCommandsInTheDocuments(t *testing.T) {
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
	if _, stderr, exit := say(t, mock{}, "run", "--root", root, "--out", old); exit != cli.Fine {
		t.Fatal(stderr)
	}
	placeTelemetry(t, old)
	placeMetrics(t, old)
	addProfiles(t, old)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("PRONY_ROOT", root)
	t.Chdir(root)
	srv, err := truth.Serve(truth.Hello("ok"))
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for _, c := range commands {
		t.Run(strings.Join(c.Args, " "), func(t *testing.T) {
			args := fromRoot(bind(c.Args, srv.Addr.String()), repo)
			var stdout, stderr bytes.Buffer
			exit := 0
			if c.Args[0] == "load" || c.Args[0] == "verify" {
				exit = cli.Code(run(context.Background(), machine.World{}, args, &stdout, &stderr))
			} else {
				out, errs, got := say(t, mock{}, args...)
				stdout.WriteString(out)
				stderr.WriteString(errs)
				exit = got
			}
			// A busy machine may make a load INVALID, and so short a one cannot decide about a
			// threshold, which is no fault of the document's.
			known := exit == cli.Invalid ||
				exit == cli.GateFailed && slices.Contains(c.Args, "--threshold")
			// An audit that finds a contradiction is what its page shows.
			found := c.Args[0] == "audit" && exit == cli.Invalid
			if exit != cli.Fine && !(c.Args[0] == "load" && known) && !found {
				t.Errorf("%s:%d: exit %d\n%s%s", c.File, c.Line, exit, &stdout, &stderr)
			}
		})
	}
}

// fromRoot finds the files that an audit of the documents reads, which lie in the repository.
func fromRoot(args []string, repo string) []string {
	for i, a := range args {
		if args[0] == "audit" && strings.HasPrefix(a, "internal/") {
			args[i] = filepath.Join(repo, a)
		}
	}
	return args
}

// bind puts the test's server and a short window into a command that loads.
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
	return append(out, "--duration", "200ms", "--lead", "50ms")
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
