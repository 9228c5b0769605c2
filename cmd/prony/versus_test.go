package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
	"prony.example/internal/launch/process"
	"prony.example/record"
)

// standIn is a small service of a user: this test binary responds with the text in its variable, at
// the given port. {now} in it changes each time; SPIN is the CPU time of a response.
func standIn(text string) {
	spin, _ := time.ParseDuration(os.Getenv("SPIN")) // 0 if not set
	addr := net.JoinHostPort(cmp.Or(os.Getenv("AT"), "127.0.0.1"), os.Getenv("PORT"))
	if protocol := os.Getenv("SPEAKS"); protocol != "" {
		spoken(protocol, addr)
	}
	if port := os.Getenv("ALSO"); port != "" {
		serveAlso(port)
	}
	if text == "{echo}" {
		echo(addr)
	}
	if asks := os.Getenv("ASKS"); asks != "" {
		asking(asks, addr)
	}
	err := http.ListenAndServe(addr, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for began := time.Now(); time.Since(began) < spin; {
		}
		if status, err := strconv.Atoi(os.Getenv("STATUS")); err == nil {
			w.Header().Set("Location", "/login")
			w.WriteHeader(status)
		}
		fmt.Fprint(w, strings.ReplaceAll(text, "{now}", fmt.Sprint(time.Now().UnixNano())))
	}))
	fmt.Println(err)
	os.Exit(1)
}

// spoken responds in another protocol, or at the Unix socket in SOCKET.
func spoken(protocol, addr string) {
	network := "tcp"
	if path := os.Getenv("SOCKET"); path != "" {
		network, addr = "unix", path+os.Getenv("PORT")
	}
	l, err := truth.Listen(protocol, network, addr)
	if err == nil {
		err = truth.Speak(context.Background(), protocol, l, truth.Fixed(0), nil)
	}
	fmt.Println(err)
	os.Exit(1)
}

// ownFolder is a user's folder with a service ./app, whose response is in SAYS, and a repository
// with the same as a program to build.
func ownFolder(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const source = `package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	panic(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
`
	app := "#!/bin/sh\nPRONY_TEST_SERVE=${SAYS:-hello} exec " + self + "\n"
	for name, text := range map[string]string{"app": app, "new": app, "old": app,
		"main.go": source, "go.mod": "module app\n\ngo 1.24\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"init -q -b main", "add main.go go.mod",
		"-c user.name=a -c user.email=a@b commit -q -m one", "checkout -q -b change",
		"-c user.name=a -c user.email=a@b commit -q --allow-empty -m two"} {
		cmd := exec.Command("git", strings.Fields(line)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", line, err, out)
		}
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	// Builds in the folder use the standard packages that were compiled for services.
	t.Setenv("GOFLAGS", "-trimpath -tags=netgo,osusergo")
	t.Chdir(dir)
	return dir
}

// ownJar puts a Java service into the working directory, or skips the test.
func ownJar(t *testing.T) {
	t.Helper()
	const source = `import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

public class App {
  public static void main(String[] args) throws Exception {
    var s = HttpServer.create(
        new InetSocketAddress("127.0.0.1", Integer.parseInt(System.getenv("PORT"))), 0);
    s.createContext("/", c -> {
      c.sendResponseHeaders(200, 5);
      c.getResponseBody().write("hello".getBytes());
      c.close();
    });
    s.start();
  }
}
`
	if err := os.WriteFile("App.java", []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"javac App.java", "jar cfe app.jar App App.class"} {
		words := strings.Fields(line)
		if _, err := exec.LookPath(words[0]); err != nil {
			t.Skip(err)
		}
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
}

// versus runs the verb for real.
func versus(t *testing.T, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	return really(append([]string{"versus"}, args...)...)
}

// Errors of services are found before any measurement, reported with a fix, and leave nothing.
func TestVersusRefuses(t *testing.T) {
	testsets.Whole(t, "whole comparisons")
	dir := ownFolder(t)
	check := func(exit int, says string, args ...string) {
		t.Helper()
		stdout, stderr, got := versus(t, args...)
		if got != exit || !strings.Contains(stderr, says) || stdout != "" {
			t.Errorf("%q: exit %d, want %d; it says\n%s%swant %q", args, got, exit, stdout, stderr,
				says)
		}
		if slices.Contains(args, "--url") && strings.Contains(stderr, "$PORT") {
			t.Errorf("%q: what runs already is told about its port: %s", args, stderr)
		}
	}
	check(2, "no service is named: pass the command", "--get", "/")
	check(2, "no request is named", "./app")
	check(2, "add --slo", "./app", "--get", "/", "--by",
		"capacity")
	check(2, `"x" is not a request: a path begins with /`, "./app", "--get", "x")
	check(2, "program ./none was not found", "./none", "--get", "/")
	check(2, "without closing quote", "./app 'x", "--get", "/")
	check(2, "2 names for 1 services", "./app", "--get", "/", "-n", "a", "-n", "b")
	check(2, "--git needs --build with the command that builds a revision", "--git", "main",
		"--get", "/")
	check(2, "name the revisions", "./app", "--build", "x", "--get", "/")
	built := []string{"--build", "x", "--run", "./app", "--get", "/"}
	check(2, `--git "": the value is empty, perhaps because a variable of your script is not set; `+
		"give a revision", append(built, "--git", "", "--git", "HEAD")...)
	check(2, `--git "": the value is empty`, append(built, "--git", "HEAD", "--git", " ")...)
	check(2, `--git "-x": a revision cannot begin with -`, append(built, "--git", "-x")...)
	check(2, `--url "": the value is empty`, "./app", "--url", "", "--get", "/")
	check(2, `--image "": the value is empty`, "./app", "--image", "", "--get", "/")
	check(2, `--build "": the value is empty`, "./app", "--build", "", "--get", "/")
	check(2, `--run "": the value is empty`, "./app", "--run=", "--get", "/")
	check(2, `--get "": the value is empty`, "./app", "--get", "")
	check(2, `"": the command of a service is empty`, "./app", "", "--get", "/")
	check(2, "--git nothing: ", "--git", "nothing", "--build", "x", "--run", "./app", "--get", "/")
	check(2, "--url ftp://127.0.0.1: the URL must have a form such as http://127.0.0.1:8080/path",
		"--url",
		"ftp://127.0.0.1", "--get", "/")
	check(2, "uses TLS and ./app does not", "./app", "--url", "https://127.0.0.1:1",
		"--get", "/")
	check(2, "the protocol h2c has no TLS", "--protocol", "h2c", "--url", "https://127.0.0.1:1",
		"--get", "/")
	check(2, "--remote needs --url", "./app", "--remote", "x", "--get", "/")
	check(2, "the URL must be only http://HOST:PORT", "--url", "http://127.0.0.1:8/x", "--get", "/")
	check(2, "is another machine, and a load may harm it; if you are allowed to load it, add "+
		"--remote 192.0.2.1", "--url", "http://192.0.2.1:80", "--get", "/")
	check(1, "connection refused; start the service first", "--url", "http://127.0.0.1:1", "--get",
		"/")
	check(1, "start echo-bye-exit-3: ", "echo bye; exit 3", "--get", "/")
	check(1, "output of the service:\n  bye", "echo bye; exit 3", "--get", "/")
	check(1, "the service exited before it was ready", "false", "--get", "/")
	check(1, "sleep-60, waiting up to 4s: wait until GET / on 127.0.0.1:", "sleep 60", "--get", "/",
		"--startup", "4s")
	check(1, "must listen on 127.0.0.1 at the port in $PORT", "PORT=1 ./app", "--get", "/",
		"--startup", "2s")
	check(1, `app responds with body "hello", but SAYS-bye-app responds with body "bye"`, "./app",
		"SAYS=bye ./app", "--get", "/")
	check(1, "exit status 7", "--git", "main", "--build", "echo broken; exit 7", "--run", "./app",
		"--get", "/")
	if entries, err := os.ReadDir(filepath.Join(dir, ".prony", "versus")); err == nil {
		t.Errorf("it left %v", entries)
	}
	if out, err := exec.Command("git", "status", "--porcelain", ".prony").Output(); err != nil ||
		len(out) > 0 {
		t.Errorf("git sees %q, error %v", out, err)
	}
}

// A plan starts and checks the services, and prints what would run.
func TestVersusPlans(t *testing.T) {
	testsets.Once(t, "plans of services of a user", testsets.Needs{})
	ownFolder(t)
	check := func(wants []string, args ...string) {
		t.Helper()
		stdout, stderr, exit := versus(t, append(args, "--plan", "--blocks", "2")...)
		if exit != cli.Fine {
			t.Fatalf("%q: exit %d\n%s", args, exit, stderr)
		}
		has(t, "the plan", stderr+stdout, wants...)
	}
	check([]string{"GET / is checked against status 200 and every byte of the body",
		"versus\nplan ", "6 trials in 2 starts", "app-again"}, "./app", "SAYS=hello ./app", "--get",
		"/")
	check([]string{"2 trials in 2 blocks"}, "./app", "--aa=false", "--get", "/")
	check([]string{"checked against 1 field with constant values; these parts vary: t", "POST /x"},
		`SAYS='{"a":1,"t":"{now}"}' ./app`, "--request", "POST /x", "--body", "y")
	if _, err := exec.LookPath("python3"); err == nil {
		check([]string{"listens on all addresses of this machine"},
			"python3 -m http.server {port}", "--get", "/app")
	}
	check([]string{"checked against the status alone"}, "./app", "SAYS=bye ./app", "--get", "/",
		"--ignore-body")
	addr, stop, err := truth.Start(truth.Fixed(0))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	check([]string{"GET / is checked against", " running "}, "--url", "http://"+addr.String(), "-n",
		"running", "--get", "/")
	check([]string{" app ", " x "}, "./app", "./app", "--get", "/", "-n", "x")
}

// turning counts how often the machine is taken.
type turning struct {
	hasty
	turns *int
}

// Enter implements lab.World.
func (w turning) Enter() (*process.Journal, []string, error) {
	*w.turns++
	return w.World.Enter()
}

// A real comparison of a service with itself under another name, in one turn of the machine.
func TestVersusMeasures(t *testing.T) {
	testsets.Once(t, "versus measures services of somebody", testsets.Needs{})
	dir := ownFolder(t)
	turns := 0
	stdout, stderr, exit := reallyIn(turning{turns: &turns}, "versus",
		"--git", "main", "--git", "main", "-n", "a", "-n", "b", "--build", "go build -o app .",
		"--run", "./app $PORT", "--get", "/", "--blocks", "1", "--measure", "300ms", "--warmup",
		"300ms", "--slices", "500ms", "--out", "r", "--memory", "512MiB")
	if turns != 1 {
		t.Errorf("it took the machine %d times: others may measure between its steps", turns)
	}
	// The machine may be busy, as the verdict then says; the run itself must work.
	if exit != cli.Fine && exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	has(t, "the report", stdout, "versus · 3 targets × 1 start", "a-again", "against a\n",
		"reproduce  prony versus --git main", "--build 'go build -o app .'")
	_, records, bad, err := record.Read(filepath.Join(dir, "r"))
	if err != nil || len(bad) > 0 || len(records) != 3 {
		t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
	}
	for _, r := range records {
		if r.Outcome != record.Measured || len(r.Artifact.SHA256) != 64 ||
			len(r.Provenance.Commit) != 40 || r.Loads[0].Errors.Total() != 0 {
			t.Errorf("%s: %s, artifact %q, commit %q, errors %+v", r.Target.Name, r.Outcome,
				r.Artifact.SHA256, r.Provenance.Commit, r.Loads[0].Errors)
		}
	}
}

// A service is compared in its protocol: checked, verified, warmed up, measured, with the
// generator's own cost in that protocol beside it.
func TestVersusSpeaks(t *testing.T) {
	testsets.Once(t, "services that speak something else than HTTP/1.1", testsets.Needs{})
	dir := ownFolder(t)
	for protocol, says := range map[string]string{
		"https": "HTTP/1.1 over TLS", "h2": "HTTP/2 over TLS", "h2c": "HTTP/2 without TLS",
		"h3":   "HTTP/3",
		"grpc": "gRPC without TLS", "grpcs": "gRPC over TLS", "ws": "WebSocket",
		"wss": "WebSocket over TLS", "http": "HTTP/1.1 over a Unix socket",
	} {
		t.Run(protocol, func(t *testing.T) {
			line := "SPEAKS=" + protocol + " ./app"
			args := []string{"--protocol", protocol, "--request", "POST /p.S/M", "--body", "x",
				"-c", "4", "--aa=false", "--blocks", "1", "--measure", "300ms", "--warmup",
				"300ms", "--memory", "512MiB", "--out", "r-" + protocol}
			if protocol == "http" {
				sockets, err := os.MkdirTemp("", "prony-test-")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(sockets) })
				if err := os.Chmod(sockets, 0o777); err != nil { // the service is another user
					t.Fatal(err)
				}
				line = "SOCKET=" + sockets + "/s " + line
				args = append(args, "--unix", sockets+"/s{port}")
			} else if strings.HasSuffix(protocol, "s") && protocol != "ws" ||
				protocol == "h2" || protocol == "h3" {
				args = append(args, "-k")
			}
			stdout, stderr, exit := versus(t, append(args, line)...)
			if exit != cli.Fine && exit != cli.Invalid {
				t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
			}
			_, records, bad, err := record.Read(filepath.Join(dir, "r-"+protocol))
			if err != nil || len(bad) > 0 || len(records) != 1 {
				t.Fatalf("%d records, bad %v, error %v\n%s", len(records), bad, err, stderr)
			}
			r := records[0]
			if r.Outcome != record.Measured || len(r.Loads) == 0 {
				t.Fatalf("%s: %+v", r.Outcome, r.Failure)
			}
			l := r.Loads[0]
			if l.Protocol != says || l.Errors.Total() != 0 || l.Done == 0 ||
				l.CeilingPerS <= 0 || r.Start.ListenNs <= 0 || r.Start.ListenNs > r.Start.ReadyNs {
				t.Errorf("spoke %q (want %q), %d answers, errors %+v, ceiling %.0f/s, start %+v",
					l.Protocol, says, l.Done, l.Errors, l.CeilingPerS, r.Start)
			}
			for _, f := range r.Verdict.Findings {
				if f.Rule == "little" {
					t.Errorf("%s: %s", f.Load, wording.Finding(f).Observed)
				}
			}
		})
	}
}

// A response that changes after the service was checked is an error in every number.
func TestVersusHoldsAnswers(t *testing.T) {
	testsets.Once(t, "answers that change after a service was asked", testsets.Needs{})
	dir := ownFolder(t)
	// Values whose text is not the one that a JSON library would write are compared as they are.
	usual := `SAYS='{"a":null,"b":0.0,"c":10.50,"d":1e3,"t":{now}}' ./app`
	if _, stderr, exit := versus(t, usual, "--get", "/", "--aa=false", "--blocks", "1",
		"--measure", "300ms", "--warmup", "300ms", "--out", "usual"); strings.Contains(stderr,
		"check failed") || !strings.Contains(stderr, "4 fields with constant values") {
		t.Errorf("exit %d\n%s", exit, stderr)
	}
	// It is right three times per start: as often as it is checked before.
	lie := `SAYS="$(cat said; echo bye > said)" exec ./app`
	if err := os.WriteFile("said", []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, stderr, exit := versus(t, lie, "--get", "/", "--aa=false", "--blocks", "1", "--measure",
		"300ms", "--warmup", "300ms", "--out", "r")
	if exit != cli.Invalid {
		t.Errorf("exit %d\n%s", exit, stderr)
	}
	_, records, _, err := record.Read(filepath.Join(dir, "r"))
	if err != nil || len(records) != 1 ||
		records[0].Verdict.Grade != record.Invalid {
		t.Errorf("records %+v, error %v", records, err)
	}
}
