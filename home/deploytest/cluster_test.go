package deploytest

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/dev/testsets"
)

// loaded is the service under load in the cluster: a program of the catalog.
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

// brought builds an image of both programs, a service and other files, and copies it to the node,
// which is this machine.
func brought(t testing.TB, more ...string) string {
	t.Helper()
	dir, image := t.TempDir(), fmt.Sprintf("prony-test-chart:%d", os.Getpid())
	const recipe = "FROM scratch\nCOPY . /\nUSER 65532\nENTRYPOINT [\"/prony\"]\n"
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(recipe), 0o600); err != nil {
		t.Fatal(err)
	}
	for module, program := range map[string]string{".": "./cmd/prony", "home": "./cmd/prony-home"} {
		run(t, filepath.Join(root, module), "", "env", append([]string{buildflags.Lavish, "go"},
			buildflags.Build("-o", dir, program)...)...)
	}
	for _, program := range more {
		run(t, "", "", "cp", program, dir)
	}
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

// namespace makes a namespace that admits only pods of the standard restricted.
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

// needsCluster skips a test if a program is missing, or no cluster answers.
func needsCluster(t testing.TB) {
	t.Helper()
	testsets.Whole(t, "the chart in a cluster")
	reachesCluster(t)
	testsets.Once(t, "the chart in a cluster", chartNeeds())
}

func reachesCluster(t testing.TB) {
	t.Helper()
	for _, name := range []string{"helm", "docker", "ctr"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("no %s here", name)
		}
	}
	const patience = "--request-timeout=5s"
	if out, err := exec.Command("kubectl", "version", patience).CombinedOutput(); err != nil {
		t.Skipf("no cluster is reached by kubectl: %v %s", err, out)
	}
}

// chartNeeds is what tests of the chart in a cluster depend on.
func chartNeeds() testsets.Needs {
	return testsets.Needs{
		Files: []string{
			"cmd",
			"home",
			"internal",
			"load",
			"record",
			"stats",
			"deploy/argocd",
			"deploy/helm",
			"deploy/kustomize",
			"services/go-nethttp",
		},
		Facts: []string{
			testsets.Version("kubectl", "version"),
			testsets.Version("helm", "version"),
		}}
}

// A real API server accepts all objects of the chart, without a warning about pods.
func TestChartAdmitted(t *testing.T) {
	needsCluster(t)
	in := namespace(t)
	run(t, "", "", "kubectl", "create", "serviceaccount", "x-prony", "--namespace", in)
	for _, file := range values(t) {
		text, _ := rendered(t, "--values", file, "--namespace", in)
		// Existing objects are updated; without the account no pod is checked.
		admitted(t, file, in, text)
	}
}

// starts creates objects, in which IMAGE stands for an image, and waits for their pods.
func starts(t testing.TB, in, image, objects string) {
	t.Helper()
	run(t, "", strings.ReplaceAll(objects, "IMAGE", image), "kubectl", "apply", "--namespace", in,
		"--filename=-")
	run(t, "", "", "kubectl", "wait", "--namespace", in, "--for=condition=Ready", "--timeout=60s",
		"--all", "pod")
}

// installs makes a release x of the chart, with an image and small requests.
func installs(t testing.TB, in, image string, more ...string) {
	t.Helper()
	name, tag, _ := strings.Cut(image, ":")
	const little = "PART.resources.requests.cpu=100m,PART.resources.limits.cpu=900m," +
		"PART.resources.requests.memory=128Mi,PART.resources.limits.memory=128Mi"
	args := []string{"install", "x", chart, "--namespace", in, "--set", "image.repository=" + name,
		"--set-string", "image.tag=" + tag, "--set", "image.pullPolicy=Never"}
	for _, part := range []string{"lab", "generator", "serve"} {
		args = append(args, "--set", strings.ReplaceAll(little, "PART", part))
	}
	run(t, "", "", "helm", append(args, more...)...)
}

// ended waits for the pods of a selector, and returns how they ended with all their output. A busy
// machine makes a load INVALID: exit code 4.
func ended(t testing.TB, in, selector string) (code, said string) {
	t.Helper()
	run(t, "", "", "kubectl", "wait", "--namespace", in, "--timeout=120s", "--selector", selector,
		"pod", "--for=jsonpath={.status.containerStatuses[0].state.terminated.exitCode}")
	code = run(t, "", "", "kubectl", "get", "--namespace", in, "pod", "--selector", selector,
		"--output", "jsonpath={.items[*].status.containerStatuses[0].state.terminated.exitCode}")
	said = run(t, "", "", "kubectl", "logs", "--namespace", in, "--tail=-1", "--all-containers",
		"--selector", selector)
	if strings.Trim(code, "04 ") != "" {
		t.Errorf("%s ended with %s: %s", selector, code, said)
	}
	return code, said
}

const part = "app.kubernetes.io/component="

// A release's lab and its generators connect and make one load. helm test has a load of its own.
func TestChartLoads(t *testing.T) {
	needsCluster(t)
	image, in := brought(t), namespace(t)
	testsets.Measured(t)
	starts(t, in, image, loaded)
	installs(t, in, image, "--values", filepath.Join(chart, "ci/generators.yaml"))
	_, said := ended(t, in, part+"lab")
	for _, want := range []string{"generators   2, clock differences known",
		"x-prony-1-generator-0/1:",
		"x-prony-1-generator-1/1:", " 0 failed, 0 unanswered"} {
		if !strings.Contains(said, want) {
			t.Errorf("the lab lacks %q: %s", want, said)
		}
	}
	ended(t, in, part+"generator")
	out, err := helm(t, "test", "x", "--namespace", in)
	_, said = ended(t, in, part+"test")
	if err != nil && !strings.Contains(said, "INVALID") || !strings.Contains(said, " 0 failed") {
		t.Errorf("helm test: %v: %s%s", err, out, said)
	}
	// An upgrade keeps the lab's identity, and makes new jobs.
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

// server is an S3 server in the cluster, with a volume as its bucket.
const server = `
---
apiVersion: v1
kind: Pod
metadata: {name: bucket, labels: {app: bucket}}
spec:
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  volumes: [{name: data, emptyDir: {}}, {name: bench, emptyDir: {}}, {name: about, emptyDir: {}}]
  containers:
    - name: bucket
      image: IMAGE
      imagePullPolicy: Never
      command: [/versitygw, --port, ':7070', posix, --sidecar, /about, /data]
      env:
        - name: ROOT_ACCESS_KEY_ID
          valueFrom: {secretKeyRef: {name: bucket, key: AWS_ACCESS_KEY_ID}}
        - name: ROOT_SECRET_ACCESS_KEY
          valueFrom: {secretKeyRef: {name: bucket, key: AWS_SECRET_ACCESS_KEY}}
      volumeMounts: # a folder of what is served is a bucket; beside them it keeps locks
        - {name: data, mountPath: /data}
        - {name: bench, mountPath: /data/bench}
        - {name: about, mountPath: /about}
      readinessProbe: {tcpSocket: {port: 7070}}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
---
apiVersion: v1
kind: Service
metadata: {name: bucket}
spec: {selector: {app: bucket}, ports: [{port: 7070}]}
`

const inBucket = `
run: suite
suite:
  hosts: [service]
  project: |
    targets: {shop: {url: 'http://service:8080/'}}
    blocks: 2
    warmup: {min: 200ms, max: 300ms, connections: 2}
    requests: [{request: GET /hello}]
    loads: [{name: peak, model: closed, connections: 2, measure: 300ms}]
gate: {enabled: true, maxRegression: 99%, inconclusive: pass}
results: {bucket: {place: 's3://bench/nightly', endpoint: 'http://bucket:7070', secret: bucket}}
serve: {enabled: true}
networkPolicy: {bucket: [{to: [{podSelector: {matchLabels: {app: bucket}}}]}]}
`

// A pod measures, another one judges, and a third one shows the result, all through a bucket.
func TestChartKeepsInBucket(t *testing.T) {
	needsCluster(t)
	image, in := brought(t, testsets.Tool(t, testsets.Versity)), namespace(t)
	testsets.Measured(t)
	secret := rand.Text()
	run(t, "", "", "kubectl", "create", "secret", "generic", "bucket", "--namespace", in,
		"--from-literal=AWS_ACCESS_KEY_ID=prony", "--from-literal=AWS_SECRET_ACCESS_KEY="+secret)
	starts(t, in, image, loaded+server)
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, []byte(inBucket), 0o600); err != nil {
		t.Fatal(err)
	}
	installs(t, in, image, "--values", values)
	good, name := "no good run yet", ""
	for _, revision := range []string{"1", "2"} {
		selector := "prony/run=x-prony-" + revision + "," + part + "lab"
		code, said := ended(t, in, selector)
		name = run(t, "", "", "kubectl", "get", "--namespace", in, "pod", "--selector", selector,
			"--output=jsonpath={.items[0].metadata.name}")
		if strings.Count(said, "push "+name+": ") != 1 || !strings.Contains(said, good) ||
			strings.Contains(said, secret) {
			t.Errorf("the lab pushed no %s, or does not say %q: %s", name, good, said)
		}
		if code == "0" {
			good = "pull " + name + ": "
		}
		if revision == "1" {
			run(t, "", "", "helm", "upgrade", "x", chart, "--namespace", in, "--reuse-values")
		}
	}
	said := ""
	for range 100 { // the page pulls every minute
		said = run(t, "", "", "kubectl", "logs", "--namespace", in, "deployment/x-prony-serve",
			"--container=pull")
		if strings.Contains(said, "pull "+name+": ") {
			break
		}
		time.Sleep(time.Second)
	}
	if !strings.Contains(said, "pull "+name+": ") {
		t.Errorf("the page has no %s: %s", name, said)
	}
	run(t, "", "", "helm", "uninstall", "x", "--namespace", in)
}
