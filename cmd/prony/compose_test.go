package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

const composed = `targets: {web: {compose: {service: web}}}
limits: {cpus: 1, memory: 256M}
warmup: {min: 0s, max: 300ms, connections: 2}
blocks: 1
requests: [{request: GET /}]
loads: [{name: peak, model: closed, connections: 2, measure: 500ms}]
`

// stacked is a Compose file of a service, its dependency, a volume and a port that may already be
// used on the host.
const stacked = `services:
  web: {build: ., ports: ["8080:8080"], depends_on: {db: {condition: service_started}}}
  db: {build: ., volumes: ["data:/data"], container_name: prony-test-db}
volumes: {data: {}}
`

// sharedImage is the name of an image that a Compose file sets.
var sharedImage = fmt.Sprintf("prony-test-shared:%d", os.Getpid())

// inStack enters a folder with the sources of the Compose file, or skips the test.
func inStack(t *testing.T) {
	t.Helper()
	if err := exec.Command("docker", "compose", "ls").Run(); err != nil {
		t.Skip("there is no Docker engine with Compose here: ", err)
	}
	dir := ownFolder(t)
	const source = `package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Println("bye")
		os.Exit(3)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "hello"+os.Getenv("SAYS"))
	})
	panic(http.ListenAndServe(":8080", nil))
}
`
	for name, text := range map[string]string{"main.go": source, "compose.yaml": stacked,
		"Other":      "FROM scratch\nCOPY static /static\nENV SAYS=2\nENTRYPOINT [\"/static\"]\n",
		"Dockerfile": "FROM scratch\nCOPY static /static\nENTRYPOINT [\"/static\"]\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", "static", "main.go")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		_ = exec.Command("docker", "image", "rm", "--force", sharedImage).Run()
		sum := sha256.Sum256([]byte(dir + "\ncompose.yaml"))
		name := "prony-" + hex.EncodeToString(sum[:])[:12]
		for _, service := range []string{"-web", "-db"} {
			// An image that was not built does not exist.
			_ = exec.Command("docker", "image", "rm", "--force", name+service).Run()
		}
	})
}

// stackedRun starts prony run as a separate process.
func stackedRun(t *testing.T, text string) (p *exec.Cmd, said *bytes.Buffer) {
	t.Helper()
	if err := os.WriteFile("prony.yaml", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p, said = exec.Command(os.Args[0], "run"), &bytes.Buffer{}
	p.Env = append(os.Environ(), "PRONY_TEST_MAIN=1")
	p.Stderr = said
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() }) //nolint:errcheck // it may have ended
	return p, said
}

// ofLab returns the containers, networks and volumes that are named after a lab.
func ofLab(t *testing.T, pid int) (names []string) {
	t.Helper()
	for _, list := range []string{"ps --all --format {{.Names}}", "network ls --format {{.Name}}",
		"volume ls --format {{.Name}}"} {
		args := append(strings.Fields(list), "--filter", fmt.Sprintf("name=prony-%d-", pid))
		out, err := exec.Command("docker", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.Fields(string(out))...)
	}
	return names
}

// cleared waits until a lab has left nothing.
func cleared(t *testing.T, pid int) {
	t.Helper()
	testsets.Eventually(t, fmt.Sprint("the end of all of lab ", pid), func() bool {
		return len(ofLab(t, pid)) == 0
	})
}

// A service of a Compose file is measured with its dependencies, in one budget, without a port of
// the host, and leaves nothing.
func TestComposeMeasures(t *testing.T) {
	testsets.Once(t, "a service of a Compose file", testsets.Needs{})
	inStack(t)
	p, said := stackedRun(t, composed)
	if err := p.Wait(); p.ProcessState.ExitCode() != cli.Fine &&
		p.ProcessState.ExitCode() != cli.Invalid {
		t.Fatalf("%v\n%s", err, said)
	}
	runs, err := filepath.Glob(filepath.Join(record.Kept, "run", "*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v, error %v", runs, err)
	}
	r := only(t, runs[0])
	if r.Outcome != record.Measured || len(r.Loads) != 1 || r.Loads[0].Errors.Total() != 0 ||
		!strings.Contains(r.Artifact.Image, "-web id sha256:") ||
		!strings.Contains(strings.Join(wording.Limits(r.Limits.InForce), ","), "memory 268435456") {
		t.Errorf("it is %s: %+v, loads %+v, artifact %+v, limits %+v", r.Outcome, r.Failure,
			r.Loads, r.Artifact, r.Limits)
	}
	if left := ofLab(t, p.Process.Pid); len(left) > 0 {
		t.Errorf("it has left %v", left)
	}
}

// Errors of a Compose file and its start are reported in its words, and leave nothing.
func TestComposeRefuses(t *testing.T) {
	testsets.Once(t, "Compose files that are refused", testsets.Needs{})
	inStack(t)
	check := func(file, text string, wants ...string) {
		t.Helper()
		if err := os.WriteFile("compose.yaml", []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
		p, said := stackedRun(t, text)
		if err := p.Wait(); p.ProcessState.ExitCode() != cli.Failed {
			t.Errorf("%s: %v", file, err)
		}
		has(t, "what is said", said.String(), wants...)
		if left := ofLab(t, p.Process.Pid); len(left) > 0 {
			t.Errorf("%s: it has left %v", file, left)
		}
	}
	check("services: {web: {bild: .}}", composed, "compose.yaml: docker compose: exit status",
		"bild")
	check(stacked, strings.Replace(composed, "service: web", "service: wep", 1),
		`compose.yaml has no service "wep"; did you mean "web"?`)
	check(stacked, strings.Replace(composed, "service: web", "service: web, file: no.yaml", 1),
		"no.yaml", "no such file")
	check(strings.Replace(stacked, `ports: ["8080:8080"], `, "", 1), composed,
		"service web of compose.yaml has 0 ports: set the key port to the port that receives "+
			"requests")
	half := strings.Replace(stacked, "service_started", "service_completed_successfully", 1)
	check(strings.Replace(half, "container_name", "command: [x], container_name", 1), composed,
		"docker compose up of compose.yaml", "exit 3", "its containers wrote:", "bye")
	check(strings.Replace(stacked, "web: {", "web: {command: [x], ", 1), composed, "service web",
		"exit status 3", "bye")
	// Rows of a matrix that build the same image from other files get separate images.
	check(strings.Replace(stacked, "web: {build: .", "web: {build: {context: ., dockerfile: "+
		"'${FILE}'}, image: '"+sharedImage+"'", 1), strings.Replace(composed, "web}}",
		"web}, matrix: {env: {FILE: [Dockerfile, Other]}}}", 1),
		`web-FILE-Dockerfile responds with body "hello", but web-FILE-Other responds with body `+
			`"hello2"`)
	check("services: {web: {image: 'prony-test-none:1', ports: ['1']}}", composed,
		"has no image prony-test-none:1, and Prony does not pull images")
}

// Whatever ends the lab, its Compose services end with it.
func TestComposeIsTakenDown(t *testing.T) {
	testsets.Once(t, "labs that end while a Compose file is up", testsets.Needs{})
	inStack(t)
	long := strings.Replace(composed, "measure: 500ms", "measure: 60s", 1)
	for _, by := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p, said := stackedRun(t, long)
		for end := clock.Mono() + int64(testsets.Patience); len(ofLab(t, p.Process.Pid)) < 5; {
			if time.Sleep(10 * time.Millisecond); clock.Mono() > end {
				t.Fatalf("it did not come up; it says\n%s", said)
			}
		}
		if err := p.Process.Signal(by); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait() // it was ended
		cleared(t, p.Process.Pid)
	}
}

// Without Compose, its targets are left out with a line that names the missing tool.
func TestComposeIsMissing(t *testing.T) {
	ownFolder(t)
	t.Setenv("PATH", t.TempDir())
	_, stderr, exit := inProject(t, composed, "run")
	if exit != cli.Failed {
		t.Errorf("exit %d", exit)
	}
	has(t, "what is said", stderr, "service web is left out: it needs docker compose: neither "+
		"docker compose nor docker-compose of version 2 was found",
		"none of the suite's targets can run here")
}
