package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// ownImages builds images of the user's own from one service: told listens at $PORT, fixed at the
// port that it exposes, two exposes one more, and empty has no program.
func ownImages(t *testing.T) {
	t.Helper()
	dir := ownFolder(t)
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	do := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	build := func(name, file string) {
		t.Helper()
		if err := os.WriteFile("Dockerfile", []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
		tag := "prony-test/" + name + ":1"
		do("docker", "build", "-q", "-t", tag, ".")
		t.Cleanup(func() { _ = exec.Command("docker", "rmi", "-f", tag).Run() })
	}
	for name, at := range map[string]string{"told": `":"+os.Getenv("PORT")`,
		"fixed": `":8080"+os.Getenv("NOTHING")`} {
		text := strings.ReplaceAll(string(source), `"127.0.0.1:"+os.Getenv("PORT")`, at)
		if err := os.WriteFile("main.go", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		do("go", "build", "-o", filepath.Join(dir, name+".bin"), ".")
		build(name, "FROM scratch\nCOPY "+name+".bin /app\nENTRYPOINT [\"/app\"]\n")
	}
	build("fixed", "FROM scratch\nCOPY fixed.bin /app\nEXPOSE 8080\nENTRYPOINT [\"/app\"]\n")
	build("empty", "FROM scratch\nCOPY go.mod /\nENTRYPOINT [\"/app\"]\n")
	build("two", "FROM prony-test/fixed:1\nEXPOSE 9090\n")
}

// Images of the user's own are measured, each at its port, and errors of an image are reported
// before any measurement; no container stays.
func TestRealOwnImages(t *testing.T) {
	engine(t, testsets.Once)
	ownImages(t)
	refuses := func(says string, args ...string) {
		t.Helper()
		stdout, stderr, exit := versus(t, append(args, "--get", "/", "--startup", "5s")...)
		if exit != cli.Failed || !strings.Contains(stderr, says) || stdout != "" {
			t.Errorf("%q: exit %d\n%s%swant %q", args, exit, stdout, stderr, says)
		}
	}
	refuses("find the image of prony-test-none-1: the Docker engine has no image "+
		"prony-test/none:1, and Prony does not pull images", "--image", "prony-test/none:1")
	refuses(`exec: "/app": stat /app: no such file`, "--image", "prony-test/empty:1")
	refuses("exposes 8080/tcp, 9090/tcp: set the key port", "--image", "prony-test/two:1")
	refuses("at the port in $PORT", "--image", "prony-test/fixed:1", "--port", "81")

	twoImages(t)

	stdout, stderr, exit := inProject(t, `targets:
  told: {image: 'prony-test/told:1'}
  fixed: {image: 'prony-test/fixed:1'}
  two: {image: 'prony-test/two:1', port: 8080}
baseline: told
blocks: 1
slices: 500ms
limits: {cpus: 1, memory: 256M}
warmup: {min: 0s, max: 300ms, connections: 4}
requests: [{request: GET /}]
loads: [{name: peak, model: closed, connections: 4, measure: 300ms}]
`, "run", "--out", "r")
	if exit != cli.Fine && exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	has(t, "the report", stdout, "told in docker", "fixed in docker", "two in docker")
	_, records, bad, err := record.Read("r")
	if err != nil || len(bad) > 0 || len(records) != 3 {
		t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
	}
	for _, r := range records {
		if r.Outcome != record.Measured || r.Target.Launcher != "docker" ||
			len(r.Artifact.SHA256) != 64 || r.Loads[0].Errors.Total() != 0 {
			t.Errorf("%s: %s by %s, artifact %+v, loads %+v, failure %+v", r.Target.Name,
				r.Outcome, r.Target.Launcher, r.Artifact, r.Loads, r.Failure)
		}
		if x := r.SideBySide; os.Getuid() == 0 && (x == nil || x.Freeze != record.FreezeCgroup) {
			t.Errorf("%s: it was stopped otherwise than by its control group: %+v", r.Trial, x)
		}
	}
	left, err := exec.Command("docker", "ps", "-aq", "--filter",
		fmt.Sprintf("name=prony-%d-", os.Getpid())).Output()
	if err != nil || len(left) > 0 {
		t.Errorf("containers are left: %s, error %v", left, err)
	}
}

// twoImages compares two images, whose rows are marked as containers, with an answer.
func twoImages(t *testing.T) {
	t.Helper()
	stdout, stderr, exit := versus(t, "--image", "prony-test/told:1", "--image",
		"prony-test/fixed:1", "-n", "a", "-n", "b", "--get", "/", "-c", "4", "--blocks", "2",
		"--measure", "300ms", "--slices", "500ms", "--warmup", "300ms", "--cpus", "1",
		"--memory", "256MiB", "--out", "v")
	if exit != cli.Fine && exit != cli.Invalid {
		t.Errorf("two images: exit %d\n%s%s", exit, stdout, stderr)
	}
	has(t, "the answer", stdout, "divided by that of a in docker", "against a\n", "\nb  ",
		"\na-again  ",
		"peak CPU per request")
	if strings.Contains(stderr, "no such row") {
		t.Error(stderr)
	}
}
