package deploy

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prony/internal/tests"
)

// loaded is what is loaded in the cluster: the program of a service of the catalog.
const loaded = `
apiVersion: v1
kind: Pod
metadata: {name: service, labels: {app: service}}
spec:
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: service
      image: IMAGE
      imagePullPolicy: Never
      command: [/service]
      env: [{name: HOST, value: 0.0.0.0}]
      readinessProbe: {tcpSocket: {port: 8080}}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
---
apiVersion: v1
kind: Service
metadata: {name: service}
spec: {selector: {app: service}, ports: [{port: 8080}]}
`

// run runs a program for a test.
func run(t testing.TB, dir, input, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

// brought is an image of both programs, on the node that this machine is.
func brought(t testing.TB) string {
	t.Helper()
	dir, image := t.TempDir(), fmt.Sprintf("prony-test-chart:%d", os.Getpid())
	const recipe = "FROM scratch\nCOPY prony service /\nUSER 65532\nENTRYPOINT [\"/prony\"]\n"
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(recipe), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, root, "", "go", "build", "-tags=netgo,osusergo,grpcnotrace", "-o",
		filepath.Join(dir, "prony"), "./cmd/prony")
	run(t, filepath.Join(root, "services/go-nethttp"), "", "go", "build", "-buildvcs=false",
		"-tags=netgo,osusergo", "-o", filepath.Join(dir, "service"), ".")
	run(t, "", "", "docker", "build", "--quiet", "--tag", image, dir)
	t.Cleanup(func() { run(t, "", "", "docker", "rmi", image) })
	saved, err := exec.Command("docker", "save", image).Output()
	if err != nil {
		t.Fatal(err)
	}
	load := exec.Command("ctr", "images", "import", "-")
	load.Stdin = bytes.NewReader(saved)
	if out, err := load.CombinedOutput(); err != nil {
		t.Skipf("no image is brought to the node by ctr: %s", out)
	}
	t.Cleanup(func() { run(t, "", "", "ctr", "images", "rm", "docker.io/library/"+image) })
	return image
}

// namespace is one that admits nothing but what the standard restricted does.
func namespace(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("prony-chart-%d", os.Getpid())
	run(t, "", "", "kubectl", "create", "namespace", name)
	t.Cleanup(func() { run(t, "", "", "kubectl", "delete", "namespace", name) })
	run(t, "", "", "kubectl", "label", "namespace", name,
		"pod-security.kubernetes.io/enforce=restricted",
		"pod-security.kubernetes.io/warn=restricted")
	return name
}

// needsCluster leaves a test out where a program is missing, or no cluster answers.
func needsCluster(t testing.TB) {
	t.Helper()
	tests.Whole(t, "the chart in a cluster")
	for _, name := range []string{"helm", "docker", "ctr"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("no %s here", name)
		}
	}
	const patience = "--request-timeout=5s"
	if out, err := exec.Command("kubectl", "version", patience).CombinedOutput(); err != nil {
		t.Skipf("no cluster is reached by kubectl: %v %s", err, out)
	}
	tests.Once(t, "the chart in a cluster", tests.Needs{
		Files: []string{"cmd", "internal", "deploy/helm", "services/go-nethttp"},
		Facts: []string{tests.Version("kubectl", "version"), tests.Version("helm", "version")}})
}

// A real API server takes all that the chart lays out, and objects to no pod.
func TestChartAdmitted(t *testing.T) {
	needsCluster(t)
	in := namespace(t)
	run(t, "", "", "kubectl", "create", "serviceaccount", "x-prony", "--namespace", in)
	for _, file := range values(t) {
		text, _ := rendered(t, "--values", file, "--namespace", in)
		// What is there is updated: the account, without which no pod is looked at.
		said := run(t, "", text, "kubectl", "apply", "--dry-run=server", "--validate=strict",
			"--namespace", in, "--filename=-")
		for line := range strings.Lines(said) {
			if !strings.HasSuffix(line, "(server dry run)\n") &&
				!strings.Contains(line, "missing the kubectl.kubernetes.io/last-applied") {
				t.Errorf("%s: %s", file, line)
			}
		}
	}
}

// A release's lab and its generators find each other and offer one load; helm test has its own.
func TestChartLoads(t *testing.T) {
	needsCluster(t)
	image, in := brought(t), namespace(t)
	tests.Cores(t)
	run(t, "", strings.ReplaceAll(loaded, "IMAGE", image), "kubectl", "apply", "--namespace", in,
		"--filename=-")
	run(t, "", "", "kubectl", "wait", "--namespace", in, "--for=condition=Ready", "--timeout=60s",
		"pod/service")
	name, tag, _ := strings.Cut(image, ":")
	const little = "PART.resources.requests.cpu=100m,PART.resources.limits.cpu=900m," +
		"PART.resources.requests.memory=128Mi,PART.resources.limits.memory=128Mi"
	args := []string{"install", "x", chart, "--namespace", in, "--values",
		filepath.Join(chart, "ci/generators.yaml"), "--set", "image.repository=" + name,
		"--set-string", "image.tag=" + tag, "--set", "image.pullPolicy=Never"}
	for _, part := range []string{"lab", "generator", "serve"} {
		args = append(args, "--set", strings.ReplaceAll(little, "PART", part))
	}
	run(t, "", "", "helm", args...)
	ended := func(what string) string { // a busy machine makes a load INVALID: exit code 4
		t.Helper()
		run(t, "", "", "kubectl", "wait", "--namespace", in, "--timeout=120s", "--selector",
			"app.kubernetes.io/component="+what, "pod",
			"--for=jsonpath={.status.containerStatuses[0].state.terminated.exitCode}")
		code := run(t, "", "", "kubectl", "get", "--namespace", in, "pod", "--selector",
			"app.kubernetes.io/component="+what, "--output",
			"jsonpath={.items[*].status.containerStatuses[0].state.terminated.exitCode}")
		text := run(t, "", "", "kubectl", "logs", "--namespace", in, "--tail=-1", "--selector",
			"app.kubernetes.io/component="+what)
		if strings.Trim(code, "04 ") != "" {
			t.Errorf("%s ended with %s: %s", what, code, text)
		}
		return text
	}
	said := ended("lab")
	for _, want := range []string{"generators   2, their clocks known", "x-prony-1-generator-0/1:",
		"x-prony-1-generator-1/1:", " 0 failed, 0 unanswered"} {
		if !strings.Contains(said, want) {
			t.Errorf("the lab lacks %q: %s", want, said)
		}
	}
	ended("generator")
	out, err := helm(t, "test", "x", "--namespace", in)
	said = ended("test")
	if err != nil && !strings.Contains(said, "INVALID") || !strings.Contains(said, " 0 failed") {
		t.Errorf("helm test: %v: %s%s", err, out, said)
	}
	// An upgrade keeps who the lab is, and has jobs of its own.
	before := run(t, "", "", "kubectl", "get", "secret", "x-prony-generator", "--namespace", in,
		"--output=jsonpath={.data.key}")
	run(t, "", "", "helm", "upgrade", "x", chart, "--namespace", in, "--reuse-values", "--set",
		"load.rate=100")
	if after := run(t, "", "", "kubectl", "get", "secret", "x-prony-generator", "--namespace", in,
		"--output=jsonpath={.data.key}"); before != after || before == "" {
		t.Error("an upgrade changed the key of generators that may be under way")
	}
	run(t, "", "", "kubectl", "get", "--namespace", in, "job/x-prony-2-lab",
		"job/x-prony-2-generator")
	run(t, "", "", "helm", "uninstall", "x", "--namespace", in)
}
