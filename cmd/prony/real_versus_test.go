package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/suite"
	"prony.example/internal/trial/lab"
	"prony.example/record"
)

// kinds are the kinds of services that versus compares, each with its arguments and the names of
// its services. URL stands for the address of a running service.
var kinds = []struct {
	name, args string
	services   []string
}{
	{"mixed", "-n a ./app --url URL --image prony-test/kinds:1 --compose web --git main",
		[]string{"URL", "prony-test-kinds-1", "web", "main"}},
	{"pods", "-n a ./app --image prony-test/kinds:1 --launcher kubernetes",
		[]string{"prony-test-kinds-1"}},
	{"commands", "-n a -n b ./app ./new", []string{"b"}},
	{"revisions", "-n a -n b --git main --git HEAD", []string{"b"}},
	{"URLs", "-n a -n b --url URL --url URL", []string{"b"}},
	{"images", "-n a -n b --image prony-test/kinds:1 --image prony-test/kinds:1", []string{"b"}},
	{"Compose", "-n a -n b --compose web --compose compose.yaml:web", []string{"b"}},
}

// briefly has the flags of a comparison whose numbers do not matter.
const briefly = " --get / -c 2 --blocks 1 --measure 200ms --warmup 200ms --slices 500ms " +
	"--memory 128MiB --out r"

// kindsFolder enters a folder with a service of each kind, and returns the URL of a running one.
func kindsFolder(t *testing.T) (url string) {
	t.Helper()
	inStack(t)
	file := "FROM scratch\nCOPY static /static\nEXPOSE 8080\nENTRYPOINT [\"/static\"]\n"
	if err := os.WriteFile("Image", []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("docker", "build", "-q", "-f", "Image", "-t", "prony-test/kinds:1", ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", "-f", "prony-test/kinds:1").Run() })
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "hello")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// dockerPods starts pods as containers of the Docker engine, for machines without a cluster.
type dockerPods struct{ hasty }

// Container implements lab.World.
func (w dockerPods) Container(ctx context.Context, name string, to *lab.Launchers) error {
	err := w.hasty.Container(ctx, suite.Launchers[1], to)
	to.By[name] = to.By[suite.Launchers[1]]
	return err
}

// Versus answers for each kind of service, alone and mixed: every service has a record without
// errors and a row against the first one, and no container is left.
func TestVersusOfEveryKind(t *testing.T) {
	testsets.Once(t, "versus with services of all kinds", testsets.Needs{})
	more := testsets.More(t, testsets.Needs{})
	url := kindsFolder(t)
	for i, kind := range kinds {
		if i > 0 && !more {
			break
		}
		t.Run(kind.name, func(t *testing.T) {
			stdout := answers(t, dockerPods{}, kind.args, url, kind.services)
			if kind.name == "pods" {
				has(t, "the report", stdout, "1 block", "in kubernetes",
					"launcher: process against")
			}
		})
	}
}

// answers compares services, and checks the records and the answer.
func answers(t *testing.T, world lab.World, text, url string, services []string) (
	stdout string) {
	t.Helper()
	if err := os.RemoveAll("r"); err != nil {
		t.Fatal(err)
	}
	args := strings.Fields("versus " + strings.ReplaceAll(text, "URL", url) + briefly)
	if strings.Contains(text, "--git") {
		args = append(args, "--build", "go build -o app main.go", "--run", "./app")
	}
	stdout, stderr, exit := reallyIn(world, args...)
	if exit != cli.Fine && exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	_, records, bad, err := record.Read("r")
	if err != nil || len(bad) > 0 || len(records) != len(services)+2 { // with a and a-again
		t.Fatalf("%d records, bad %v, error %v\n%s", len(records), bad, err, stderr)
	}
	for _, r := range records {
		if r.Outcome != record.Measured || len(r.Loads) == 0 || r.Loads[0].Done == 0 ||
			r.Loads[0].Errors.Total() != 0 {
			t.Errorf("%s is %s: %+v, loads %+v", r.Target.Name, r.Outcome, r.Failure, r.Loads)
		}
	}
	for _, name := range append(services, "a-again") {
		name = strings.ReplaceAll(name, "URL", strings.NewReplacer("http://", "", ":", "-").
			Replace(url))
		has(t, "the answer", stdout, "against a\n", "\n"+name+" ")
		if strings.Contains(name, "127.0.0.1") {
			has(t, "the answer", strings.Join(strings.Fields(stdout), " "), "WARNING: a and "+name+
				" were measured under different conditions: limits in force:")
		}
	}
	left, err := exec.Command("docker", "ps", "-aq", "--filter",
		fmt.Sprintf("name=prony-%d-", os.Getpid())).Output()
	if err == nil && len(left) > 0 {
		t.Errorf("containers are left: %s", left)
	}
	return stdout
}

// Flags that do not fit the kinds of services are refused.
func TestVersusRefusesKinds(t *testing.T) {
	ownFolder(t)
	for says, args := range map[string]string{
		"--launcher needs --image: other services":           "./app --launcher kubernetes",
		`--compose: "a:" is not a service of a Compose file`: "--compose a:",
		"--unix needs commands or --git":                     "--image x --unix /x",
	} {
		_, stderr, exit := versus(t, strings.Fields(args+" --get /")...)
		if exit != cli.Misused || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit %d, %s; want %q", args, exit, stderr, says)
		}
	}
}

// Images run as pods, alone and beside a command. Pods cannot be stopped, so blocks are used.
func TestVersusOfPods(t *testing.T) {
	testsets.Long(t, "versus with pods", testsets.Needs{})
	cluster := exec.Command("kubectl", "version", "--request-timeout=5s")
	if out, err := cluster.CombinedOutput(); err != nil {
		t.Skipf("there is no cluster here: %v: %s", err, out)
	}
	url := kindsFolder(t)
	nodeLoads(t)
	const pod = " --image prony-test/kinds:1 --launcher kubernetes"
	answers(t, hasty{}, "-n a -n b --image prony-test/kinds:1"+pod, url, []string{"b"})
	answers(t, hasty{}, "-n a ./app"+pod, url, []string{"prony-test-kinds-1"})
}

// nodeLoads lets Prony copy images from the Docker engine to this node, or skips the test.
func nodeLoads(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("ctr"); err != nil {
		t.Skip("no image can be copied to the node: ", err)
	}
	const script = "#!/bin/sh\ndocker save \"$1\" | ctr images import -\n"
	if err := os.WriteFile("load", []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PRONY_KUBERNETES_LOAD", dir+"/load")
	t.Cleanup(func() {
		_ = exec.Command("ctr", "images", "rm", "docker.io/prony-test/kinds:1").Run()
	})
}
