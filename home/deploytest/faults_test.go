package deploytest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

// kept is a volume of this machine, which is the node, and a claim for it.
const kept = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: CLAIM}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: ''
  claimRef: {namespace: CLAIM, name: kept}
  hostPath: {path: FOLDER, type: Directory}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: kept}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ''
  volumeName: CLAIM
  resources: {requests: {storage: 1Gi}}
`

// failed waits until the lab's job of the release x fails, and returns the exit code of its pod,
// which is empty if its container never ran, and what kubectl logs prints.
func failed(t testing.TB, in string) (code, said string) {
	t.Helper()
	const job = "job/x-prony-1-lab"
	run(t, "", "", "kubectl", "wait", "--namespace", in, "--timeout=240s", "--for=condition=failed",
		job)
	code = run(t, "", "", "kubectl", "get", "pods", "--namespace", in, "--selector",
		"prony/run=x-prony-1,"+part+"lab", "--output",
		"jsonpath={.items[*].status.containerStatuses[0].state.terminated.exitCode}")
	// It fails if the container never ran, and then says why.
	out, _ := exec.Command("kubectl", "logs", "--namespace", in, "--tail=-1", job).CombinedOutput()
	return code, string(out)
}

// uninstalls removes the release x with all its pods.
func uninstalls(t testing.TB, in string) {
	t.Helper()
	run(t, "", "", "helm", "uninstall", "x", "--namespace", in, "--wait")
	run(t, "", "", "kubectl", "wait", "--namespace", in, "--for=delete", "--timeout=60s", "pod",
		"--selector", "app.kubernetes.io/instance=x")
}

// Whatever keeps a job from measuring, it ends within minutes with a documented exit code, and
// kubectl logs says why.
func TestChartFaults(t *testing.T) {
	testsets.Whole(t, "the chart in a cluster")
	reachesCluster(t)
	testsets.Long(t, "jobs of the chart that cannot measure", chartNeeds())
	image, in := brought(t), namespace(t)
	starts(t, in, image, loaded)
	const suite = "run: suite\ngate: {enabled: true}\nresults: {claim: kept}\nsuite:\n" +
		"  hosts: [service]\n  project: |\n    targets: {shop: {url: 'http://service:9/'}}\n" +
		"    requests: [{request: GET /hello}]\n"
	values := t.TempDir() + "/values.yaml"
	if err := os.WriteFile(values, []byte(suite), 0o600); err != nil {
		t.Fatal(err)
	}
	claimed(t, in)
	for _, row := range []struct{ name, set, code, want string }{
		{"nobody listens", "url=http://service:9/,results.persistent=false", "1",
			"no connection to "},
		{"no such service", "url=http://nobody:8080/,results.persistent=false", "2",
			"resolve nobody: "},
		{"a suite whose service does not answer", "", "1", "prony: start shop: "},
		{"no image", "url=http://service:8080/,results.persistent=false,image.repository=none," +
			"deadlineSeconds=20", "", `container "lab" in pod`},
	} {
		t.Run(row.name, func(t *testing.T) {
			more := []string{"--set", row.set}
			if row.set == "" {
				more = []string{"--values", values}
			}
			installs(t, in, image, more...)
			defer uninstalls(t, in)
			code, said := failed(t, in)
			if row.code == "" && code == "137" { // some clusters end a container that never ran
				code = ""
			}
			if code != row.code || !strings.Contains(said, row.want) {
				t.Errorf("exit code %q, want %q; logs: %s", code, row.code, said)
			}
		})
	}
	t.Run("no default StorageClass", func(t *testing.T) {
		unbound(t, in, image)
	})
}

// claimed makes the claim kept.
func claimed(t testing.TB, in string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil { // a pod has another user
		t.Fatal(err)
	}
	objects := strings.NewReplacer("CLAIM", in, "FOLDER", dir).Replace(kept)
	run(t, "", objects, "kubectl", "apply", "--namespace", in, "--filename=-")
	t.Cleanup(func() { // without waiting for the claim, which ends with its namespace
		run(t, "", "", "kubectl", "delete", "persistentvolume", in, "--wait=false")
	})
}

// unbound checks a job whose volume nobody provides.
func unbound(t *testing.T, in, image string) {
	classes := run(t, "", "", "kubectl", "get", "storageclass", "--output",
		"jsonpath={.items[*].metadata.annotations}")
	if strings.Contains(classes, `is-default-class":"true`) {
		t.Skip("the cluster has a default StorageClass")
	}
	installs(t, in, image, "--set", "url=http://service:8080/,deadlineSeconds=1")
	defer uninstalls(t, in)
	defer run(t, "", "", "kubectl", "delete", "pvc", "x-prony", "--namespace", in, "--wait=false")
	if notes, err := helm(t, "get", "notes", "x", "--namespace", in); err != nil ||
		!strings.Contains(notes, "the pod stays Pending: set results.storageClass") {
		t.Errorf("the notes, %v: %s", err, notes)
	}
	said := ""
	for range 60 {
		if said = run(t, "", "", "kubectl", "describe", "pods", "--namespace", in, "--selector",
			part+"lab"); strings.Contains(said, "unbound immediate PersistentVolumeClaims") {
			break
		}
		run(t, "", "", "sleep", "1")
	}
	if !strings.Contains(said, "unbound immediate PersistentVolumeClaims") {
		t.Errorf("nothing says why the pod waits: %s", said)
	}
	failed(t, in)
	reason := run(t, "", "", "kubectl", "get", "--namespace", in, "job/x-prony-1-lab", "--output",
		"jsonpath={.status.conditions[*].reason}")
	if !strings.Contains(reason, "DeadlineExceeded") {
		t.Errorf("the job failed with %s", reason)
	}
}

// A lost generator makes the load INVALID, which keeps what was measured, and the others end well.
func TestChartLosesGenerator(t *testing.T) {
	testsets.Whole(t, "the chart in a cluster")
	reachesCluster(t)
	testsets.Long(t, "a release whose generator is lost", chartNeeds())
	image, in := brought(t), namespace(t)
	testsets.Measured(t)
	starts(t, in, image, loaded)
	installs(t, in, image, "--set", "url=http://service:8080/hello,generators=3,load.rate=60,"+
		"load.duration=60s,load.connections=6,results.persistent=false")
	const job = "job/x-prony-1-lab"
	run(t, "", "", "kubectl", "wait", "--namespace", in, "--for=condition=Ready", "--timeout=120s",
		"pod", "--selector", part+"generator")
	for range 60 { // until some windows were reported
		if strings.Count(run(t, "", "", "kubectl", "logs", "--namespace", in, job), "\n") > 4 {
			break
		}
		run(t, "", "", "sleep", "1")
	}
	run(t, "", "", "kubectl", "delete", "pod", "--namespace", in, "--selector",
		part+"generator,batch.kubernetes.io/job-completion-index=1")
	code, said := failed(t, in)
	if code != "4" || !strings.Contains(said, "INVALID") ||
		!strings.Contains(said, "generator 1 (") || !strings.Contains(said, " answered") {
		t.Errorf("the lab ended with %s: %s", code, said)
	}
	const others = part + "generator"
	run(t, "", "", "kubectl", "wait", "--namespace", in, "--timeout=60s", "pod", "--selector",
		others, "--for=jsonpath={.status.phase}=Succeeded")
	codes := run(t, "", "", "kubectl", "get", "pods", "--namespace", in, "--selector", others,
		"--output", "jsonpath={.items[*].status.containerStatuses[0].state.terminated.exitCode}")
	if codes != "0 0" {
		t.Errorf("the other generators ended with %s", codes)
	}
	uninstalls(t, in)
}
