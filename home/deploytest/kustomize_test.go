package deploytest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"prony.example/internal/dev/testsets"
)

var update = flag.Bool("update", false, "write what is made of the chart")

var kustomize = filepath.Join(root, "deploy/kustomize")

// The base for users without Helm is the chart rendered with the values beside it.
func TestKustomizeBase(t *testing.T) {
	testsets.Reads(t, chart, kustomize)
	out, err := helm(t, "template", "prony", chart, "--kube-version", kube, "--no-hooks",
		"--values", filepath.Join(kustomize, "values.yaml"))
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := "# Made of deploy/helm/prony by: go -C home test ./deploytest -run Kustomize -update\n"
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "# Source: ") {
			want += line
		}
	}
	base := filepath.Join(kustomize, "base/prony.yaml")
	if *update {
		if err := os.WriteFile(base, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := file(t, "kustomize/base/prony.yaml"); got != want {
		t.Error("the base is not what the chart makes: run with -update")
	}
	if strings.Contains(want, "kind: Secret") {
		t.Error("the base has a secret that everybody can read")
	}
}

// built returns the objects that kubectl builds from an overlay.
func built(t testing.TB, name string) (text string, all []object) {
	t.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("no kubectl here")
	}
	text = run(t, root, "", "kubectl", "kustomize", "deploy/kustomize/"+name)
	for part := range strings.SplitSeq(text, "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatalf("%v in %s", err, part)
		}
		all = append(all, o)
	}
	return text, all
}

// The example's changes apply everywhere, and its addresses are permitted by the policies.
func TestKustomizeOverlay(t *testing.T) {
	testsets.Reads(t, kustomize)
	text, all := built(t, "example")
	kinds := map[any]int{}
	for _, o := range all {
		kinds[o["kind"]]++
		if o.at("metadata", "namespace") != "prony" {
			t.Errorf("%s is in %v", o.name(), o.at("metadata", "namespace"))
		}
	}
	for kind, n := range map[string]int{"CronJob": 1, "ConfigMap": 1, "Deployment": 1,
		"PersistentVolumeClaim": 1, "ServiceAccount": 1, "Service": 1} {
		if kinds[kind] != n {
			t.Errorf("%d of %s, want %d", kinds[kind], kind, n)
		}
	}
	for _, old := range []string{"image: prony/prony", "shop.shop", "/items/1", "0 3 * * *"} {
		if strings.Contains(text, old) {
			t.Errorf("the base's %q is left", old)
		}
	}
	for _, now := range []string{"checkout.shop:8080", "schedule: 30 1 * * *",
		"--remote=checkout.shop", "image: registry.example.com/prony:amd64",
		"--out=/results/$(POD_NAME)"} {
		if !strings.Contains(text, now) {
			t.Errorf("there is no %q", now)
		}
	}
}

// A real API server accepts base and example, without a warning about pods.
func TestKustomizeAdmitted(t *testing.T) {
	needsCluster(t)
	in := namespace(t)
	run(t, "", "", "kubectl", "create", "serviceaccount", "prony", "--namespace", in)
	for _, name := range []string{"base", "example"} {
		text, _ := built(t, name)
		admitted(t, name, in, strings.ReplaceAll(text, "\n  namespace: prony\n",
			"\n  namespace: "+in+"\n"))
	}
}

// argo is the version of ArgoCD whose schema checks the example.
const argo = "github.com/argoproj/argo-cd/v2@v2.14.20"

// A real API server with ArgoCD's schema accepts the example of an Application.
func TestApplicationAdmitted(t *testing.T) {
	needsCluster(t)
	cmd := exec.Command("go", "mod", "download", "-json", argo)
	cmd.Dir = t.TempDir() // outside of any module
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil || module.Dir == "" {
		t.Skipf("ArgoCD's schema cannot be had: %v: %s", err, out)
	}
	const kind = "crd/applications.argoproj.io"
	if err := exec.Command("kubectl", "get", kind).Run(); err == nil {
		t.Skip("ArgoCD is here already: its schema is left alone")
	}
	// The schema is too long for the annotation of a client-side apply.
	schema := filepath.Join(module.Dir, "manifests/crds/application-crd.yaml")
	run(t, "", "", "kubectl", "apply", "--server-side", "--filename", schema)
	t.Cleanup(func() { run(t, "", "", "kubectl", "delete", kind) })
	served := false
	for range 60 { // it has no conditions at first, which kubectl wait reports as an error
		served = exec.Command("kubectl", "get", "applications.argoproj.io").Run() == nil
		if served {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	if !served {
		t.Fatal("the server does not know ArgoCD's kind")
	}
	in := namespace(t)
	text := strings.Replace(file(t, "argocd/application.yaml"), "namespace: argocd",
		"namespace: "+in, 1)
	admitted(t, "ArgoCD", in, text)
	apply := exec.Command("kubectl", "apply", "--dry-run=server", "--validate=strict",
		"--filename=-")
	apply.Stdin = strings.NewReader(strings.Replace(text, "    path: ", "    folder: ", 1))
	if said, err := apply.CombinedOutput(); err == nil ||
		!strings.Contains(string(said), `unknown field "spec.source.folder"`) {
		t.Errorf("the schema takes what it does not know: %v, %s", err, said)
	}
}

// admitted checks that a server accepts objects without a warning.
func admitted(t *testing.T, name, in, text string) {
	t.Helper()
	said := run(t, "", text, "kubectl", "apply", "--dry-run=server", "--validate=strict",
		"--namespace", in, "--filename=-")
	if said == "" {
		t.Error(fmt.Sprint(name, ": nothing was asked"))
	}
	for line := range strings.Lines(said) {
		if !strings.HasSuffix(line, "(server dry run)\n") &&
			!strings.Contains(line, "missing the kubectl.kubernetes.io/last-applied") {
			t.Errorf("%s: %s", name, line)
		}
	}
}
