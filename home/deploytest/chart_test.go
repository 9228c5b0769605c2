package deploytest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/distributed"
)

// kube is the chart's Kubernetes version if no cluster provides one.
const kube = "1.34.0"

var chart = filepath.Join(root, "deploy/helm/prony")

// helm runs helm, and skips the test if it is not installed.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("helm"); err != nil {
		t.Skip("no helm here")
	}
	out, err := exec.Command("helm", args...).CombinedOutput()
	return string(out), err
}

// object is a map of a manifest.
type object map[string]any

func (o object) at(keys ...string) any {
	var v any = map[string]any(o)
	for _, key := range keys {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

func (o object) list(keys ...string) (all []object) {
	items, _ := o.at(keys...).([]any)
	for _, item := range items {
		m, _ := item.(map[string]any)
		all = append(all, m)
	}
	return all
}

func (o object) name() string { return fmt.Sprint(o["kind"], " ", o.at("metadata", "name")) }

// rendered renders the chart with values.
func rendered(t *testing.T, args ...string) (text string, all []object) {
	t.Helper()
	text, err := helm(t, append([]string{"template", "x", chart, "--kube-version", kube},
		args...)...)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for part := range strings.SplitSeq(text, "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatalf("%v in %s", err, part)
		}
		if o != nil {
			all = append(all, o)
		}
	}
	return text, all
}

// pod returns the pod in a manifest: its labels and its specification.
func (o object) pod() (labels map[string]any, spec object) {
	for _, path := range [][]string{{}, {"spec", "template"},
		{"spec", "jobTemplate", "spec", "template"}} {
		m, _ := o.at(append(path, "spec")...).(map[string]any)
		if m["containers"] == nil {
			continue
		}
		labels, _ = o.at(append(path, "metadata", "labels")...).(map[string]any)
		return labels, m
	}
	return nil, nil
}

// values returns the files of values to test.
func values(t *testing.T) []string {
	t.Helper()
	testsets.Reads(t, chart)
	files, err := filepath.Glob(filepath.Join(chart, "ci", "*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%d sets of values: %v", len(files), err)
	}
	return files
}

// With any values, pods have no rights, have limits, and accept no callers.
func TestChart(t *testing.T) {
	for _, file := range values(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			if out, err := helm(t, "lint", "--strict", chart, "--values", file); err != nil {
				t.Errorf("helm lint: %v: %s", err, out)
			}
			text, all := rendered(t, "--values", file)
			if strings.Contains(text, "instance: x\n") {
				t.Error("a release that is called n is false, as Helm reads YAML")
			}
			pods := 0
			for _, o := range all {
				kind := fmt.Sprint(o["kind"])
				if !slices.Contains([]string{"ConfigMap", "CronJob", "Deployment", "Job",
					"NetworkPolicy", "PersistentVolumeClaim", "Pod", "Secret", "Service",
					"ServiceAccount"}, kind) {
					t.Errorf("%s: a kind that grants rights, or is not known here", o.name())
				}
				if kind == "ServiceAccount" && o["automountServiceAccountToken"] != false {
					t.Errorf("%s has its token mounted", o.name())
				}
				if kind == "Secret" {
					hidden(t, text, o)
				}
				if labels, spec := o.pod(); spec != nil {
					pods++
					restricted(t, o.name(), spec)
					closed(t, o.name(), labels, all)
				}
			}
			if pods == 0 {
				t.Error("there is no pod")
			}
		})
	}
}

// Each dashboard is a complete ConfigMap that Grafana's sidecar finds, with the data sources in the
// values.
func TestChartDashboards(t *testing.T) {
	testsets.Reads(t, chart)
	_, all := rendered(t, "--values", filepath.Join(chart, "ci/nightly.yaml"))
	files, err := filepath.Glob(filepath.Join(chart, "dashboards/*.json"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d dashboards: %v", len(files), err)
	}
	found := 0
	for _, o := range all {
		if o.at("metadata", "labels", "grafana_dashboard") != "1" {
			continue
		}
		found++
		data, _ := o["data"].(map[string]any)
		for name, got := range data {
			text, err := os.ReadFile(filepath.Join(chart, "dashboards", name))
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(string(text), `"uid": "mimir"`, `"uid": "prometheus"`)
			if got != want || want == string(text) && strings.Contains(want, "mimir") {
				t.Errorf("%s is another text than the file's", o.name())
			}
		}
		if len(data) != 1 || o.at("metadata", "annotations", "grafana_folder") != "Prony" {
			t.Errorf("%s: %v", o.name(), o["metadata"])
		}
	}
	if found != len(files) {
		t.Errorf("%d of %d dashboards", found, len(files))
	}
}

// hidden checks that the content of a Secret is nowhere else.
func hidden(t *testing.T, text string, o object) {
	t.Helper()
	data, _ := o["data"].(map[string]any)
	for key, value := range data {
		plain, err := base64.StdEncoding.DecodeString(fmt.Sprint(value))
		if err != nil || len(plain) < 26 || strings.Contains(text, string(plain)) ||
			strings.Count(text, fmt.Sprint(value)) != 1 {
			t.Errorf("%s: %s is short, no base64, or elsewhere, too", o.name(), key)
		}
	}
}

// restricted checks Kubernetes' standard of that name, and more
// (kubernetes.io/docs/concepts/security/pod-security-standards).
func restricted(t *testing.T, name string, spec object) {
	t.Helper()
	want := func(o object, value any, keys ...string) {
		t.Helper()
		if got := o.at(keys...); !reflect.DeepEqual(got, value) {
			t.Errorf("%s: %s is %v, want %v", name, strings.Join(keys, "."), got, value)
		}
	}
	want(spec, false, "automountServiceAccountToken")
	want(spec, "x-prony", "serviceAccountName")
	want(spec, true, "securityContext", "runAsNonRoot")
	want(spec, "RuntimeDefault", "securityContext", "seccompProfile", "type")
	for _, key := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		want(spec, nil, key)
	}
	for _, v := range spec.list("volumes") {
		for kind := range v {
			if !slices.Contains([]string{"name", "configMap", "emptyDir", "persistentVolumeClaim",
				"secret"}, kind) {
				t.Errorf("%s mounts a %s", name, kind)
			}
		}
	}
	for _, c := range slices.Concat(spec.list("initContainers"), spec.list("containers")) {
		want(c, false, "securityContext", "allowPrivilegeEscalation")
		want(c, true, "securityContext", "readOnlyRootFilesystem")
		want(c, []any{"ALL"}, "securityContext", "capabilities", "drop")
		want(c, nil, "securityContext", "capabilities", "add")
		for _, key := range []string{"cpu", "memory"} {
			limit := c.at("resources", "limits", key)
			if limit == nil {
				t.Errorf("%s has no limit of %s", name, key)
			}
			want(c, limit, "resources", "requests", key)
		}
	}
}

// closed checks that a policy closes a pod in both directions, and that only generators, at the
// lab's port, and the callers in the values, at the page's port, are admitted.
func closed(t *testing.T, name string, labels map[string]any, all []object) {
	t.Helper()
	shut := false
	for _, o := range all {
		selector, _ := o.at("spec", "podSelector", "matchLabels").(map[string]any)
		if o["kind"] != "NetworkPolicy" || !within(selector, labels) {
			continue
		}
		shut = shut || o.at("spec", "podSelector", "matchExpressions") == nil &&
			o.at("spec", "ingress") == nil && o.at("spec", "egress") == nil &&
			reflect.DeepEqual(o.at("spec", "policyTypes"), []any{"Ingress", "Egress"})
		for _, in := range o.list("spec", "ingress") {
			got := fmt.Sprint(labels["app.kubernetes.io/component"], in["from"], in["ports"])
			if !strings.HasPrefix(got, "serve[map[podSelector:map[matchLabels:map[app:proxy") &&
				(!strings.HasPrefix(got, "lab[map[podSelector:map[matchLabels:map[") ||
					!strings.Contains(got, "component:generator") ||
					!strings.Contains(got, "[map[port:7070 protocol:TCP]]")) {
				t.Errorf("%s: who may call: %s", name, got)
			}
		}
	}
	if !shut {
		t.Errorf("%s: no policy closes it", name)
	}
}

func within(some, all map[string]any) bool {
	for key, value := range some {
		if all[key] != value {
			return false
		}
	}
	return true
}

// The two Secrets of a release are one identity: generators can verify the lab, but not impersonate
// it.
func TestChartIdentity(t *testing.T) {
	testsets.Reads(t, chart)
	_, all := rendered(t, "--values", filepath.Join(chart, "ci/generators.yaml"))
	secrets := map[string]map[string]string{}
	for _, o := range all {
		if o["kind"] != "Secret" {
			continue
		}
		data := map[string]string{}
		values, _ := o["data"].(map[string]any)
		for key, value := range values {
			plain, err := base64.StdEncoding.DecodeString(fmt.Sprint(value))
			if err != nil {
				t.Fatal(err)
			}
			data[key] = string(plain)
		}
		secrets[fmt.Sprint(o.at("metadata", "name"))] = data
	}
	own, theirs := secrets["x-prony-lab"], secrets["x-prony-generator"]
	id, err := distributed.ParseIdentity(own["token"], []byte(own["tls.crt"]),
		[]byte(own["tls.key"]))
	if err != nil {
		t.Fatal(err)
	}
	lab, err := distributed.ListenAs(id, "127.0.0.1:0", 1, "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Close() //nolint:errcheck // its test is over
	if lab.Key().String() != theirs["key"] {
		t.Error("the generators' key is not the lab's")
	}
	if keys := slices.Sorted(maps.Keys(theirs)); !slices.Equal(keys, []string{"key"}) {
		t.Errorf("generators have %v", keys)
	}
}

// The values on the page and in the example of ArgoCD are valid for the chart, and without access
// to a cluster no Secret is generated.
func TestChartExamples(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/cluster.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, nightly, found := strings.Cut(string(page), "```yaml\n# nightly.yaml\n")
	nightly, _, ends := strings.Cut(nightly, "```\n")
	var application object
	err = yaml.Unmarshal([]byte(file(t, "argocd/application.yaml")), &application)
	if err != nil || !found || !ends {
		t.Fatalf("no values: %v", err)
	}
	of, err := yaml.Marshal(application.at("spec", "source", "helm", "valuesObject"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cluster.md": nightly, "ArgoCD": string(of)} {
		values := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(values, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		kinds := map[any]int{}
		_, all := rendered(t, "--values", values)
		for _, o := range all {
			kinds[o["kind"]]++
		}
		if kinds["CronJob"] == 0 || kinds["Job"] > 0 || name == "ArgoCD" && kinds["Secret"] > 0 {
			t.Errorf("%s: the chart makes %v", name, kinds)
		}
	}
	if path := application.at("spec", "source", "path"); path != "deploy/helm/prony" {
		t.Errorf("ArgoCD's path is %v", path)
	}
}

// Invalid values are refused before anything is installed.
func TestChartRefuses(t *testing.T) {
	testsets.Reads(t, chart)
	for _, row := range []struct{ set, want string }{
		{"url=", "url: say which service"},
		{"url=http://user:secret@host/", "pattern"},
		{"run=suite", "want the text of a prony.yaml"},
		{"run=suite,suite.project=x,generators=2", "generators: they offer a load"},
		{"url=http://x,gate.enabled=true", "gate: it judges blocks"},
		{"run=none,serve.enabled=true,results.persistent=false", "serve: it shows results"},
		{"run=suite,suite.project=x,gate.enabled=true,results.persistent=false", "last good run"},
		{"url=http://x,results.bucket.place=s3://bb", "name both its place and the Secret"},
		{"url=http://x,results.bucket.place=b,results.bucket.secret=s", "pattern"},
		{"url=http://x,results.bucket.place=s3://bb,results.bucket.secret=s,results.claim=c",
			"choose one of bucket and claim"},
		{"url=http://x,generators=2,identity.labSecret=x", "name both Secrets"},
		{"url=http://x,lab.resources.limits=null", "limits"},
		{"url=http://x,pacing=1", "pacing"},
	} {
		out, err := helm(t, "template", "x", chart, "--kube-version", kube, "--set", row.set)
		if err == nil || !strings.Contains(out, row.want) {
			t.Errorf("%s: %v, %s; want %q", row.set, err, out, row.want)
		}
	}
}
