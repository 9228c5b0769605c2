package kubernetes

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"prony.example/internal/launch"
)

var update = flag.Bool("update", false, "bless what is written now")

// checkGolden compares a manifest with the stored one.
func checkGolden(t *testing.T, name string, o object) {
	t.Helper()
	got, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(got)+"\n" != string(want) {
		t.Errorf("%s is %s, error %v; look at the difference, and bless it with -update", name,
			got, err)
	}
}

func TestManifests(t *testing.T) {
	o := order{name: "prony-0011-7", lifetime: 2 * time.Hour,
		nodes: map[string]string{"kubernetes.io/hostname": "a"},
		lab:   lab{ID: "0011", Process: "12-345", Boot: "b00", Namespace: "pid:[4026531836]"}}
	s := launch.Spec{Image: "prony/go-nethttp:1a2b", Args: []string{"serve", "/run/logs/gc.log"},
		Env: []string{"HOST=0.0.0.0", "COST=$(HOST)", "EMPTY="}, CPUs: 1, MemoryBytes: 1 << 30,
		Cores: []int{1}, Port: 8080, Mounts: []launch.Mount{{Path: "/run/logs", Write: true},
			{Path: "/unknown/to/it"}, {Path: "/run/dumps", Destination: "/dumps", Write: true}}}
	checkGolden(t, "whole", jobOf(s, o))
	o.nodes = nil
	checkGolden(t, "half", jobOf(launch.Spec{Image: "localhost/app:2", CPUs: 0.5}, o))
	checkGolden(t, "service", serviceOf(o, "08d98ca3-b19e", 8080))
	o.node = "a"
	checkGolden(t, "reader", readerOf("prony/prony:amd64", o))
	checkGolden(t, "review", reviewOf("bench", []right{rights[0], rights[9], noding}))
}

func TestQuantity(t *testing.T) {
	for cpus, want := range map[float64]string{1: "1", 2: "2", 0.5: "500m", 1.25: "1250m",
		0.29: "290m", 3.9999999: "4"} {
		if got := quantity(cpus); got != want {
			t.Errorf("%g: %s, want %s", cpus, got, want)
		}
	}
}

// A name without a registry would be pulled from a public one.
func TestPullOf(t *testing.T) {
	for image, want := range map[string]string{"app": "Never", "prony/go-nethttp:1": "Never",
		"library/app:1.2": "Never", "ghcr.io/a/b:1": "IfNotPresent",
		"localhost/a": "IfNotPresent", "reg:5000/a": "IfNotPresent", "a.b:1": "Never"} {
		if got := pullOf(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

func TestOutlived(t *testing.T) {
	self, err := thisLab()
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, change func(*lab), want bool) {
		t.Helper()
		l := self
		change(&l)
		var j job
		j.Metadata.Annotations = map[string]string{noteProcess: l.Process, noteBoot: l.Boot,
			noteNamespace: l.Namespace}
		if got := self.outlived(j); got != want {
			t.Errorf("%s: %t, want %t", what, got, want)
		}
	}
	check("this one", func(*lab) {}, false)
	check("one with the same number, before", func(l *lab) { l.Process += "0" }, true)
	check("one that has ended", func(l *lab) { l.Process = "4194305-7" }, true)
	check("one of another machine", func(l *lab) { l.Process, l.Boot = "4194305-7", "x" }, false)
	check("one of another container", func(l *lab) {
		l.Process, l.Namespace = "4194305-7", "pid:[1]"
	}, false)
	check("nobody's", func(l *lab) { l.Process = "x-y" }, false)
	check("a group's", func(l *lab) { l.Process = "-1-7" }, false)
	other, err := thisLab()
	if err != nil || other.ID == self.ID {
		t.Errorf("two labs of a process are both %s, error %v", self.ID, err)
	}
}

// The manifest grants exactly the rights that a lab needs.
func TestGrants(t *testing.T) {
	b, err := os.ReadFile("../../../deploy/kubernetes/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for text := range strings.SplitSeq(string(b), "\n---\n") {
		var role struct {
			Rules []struct{ APIGroups, Resources, Verbs []string }
		}
		var whole any
		if err := yaml.Unmarshal([]byte(text), &whole); err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(whole) // its keys are case-sensitive
		if err == nil {
			err = json.Unmarshal(asJSON, &role)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				got = append(got, verb+" "+rule.APIGroups[0]+"/"+rule.Resources[0])
			}
		}
	}
	// The right to get a single node is for naming a node that does not respond.
	want := []string{"get /nodes"}
	for _, r := range slices.Concat(rights, servicing, attaching, []right{noding}) {
		verb, resource, _ := strings.Cut(r.words(), " ")
		want = append(want, verb+" "+r.group+"/"+resource)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("granted is %q, want %q", got, want)
	}
}

// The page has each command with which the manifest says that it is used: without a binding, a role
// grants nothing.
func TestGrantingCommands(t *testing.T) {
	manifest, err1 := os.ReadFile("../../../" + grants)
	page, err2 := os.ReadFile("../../../docs/kubernetes.md")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	commands := 0
	for line := range strings.Lines(string(manifest)) {
		if command, is := strings.CutPrefix(strings.TrimSpace(line), "#   "); is {
			commands++
			if !strings.Contains(string(page), "\n  "+command+"\n") {
				t.Errorf("docs/kubernetes.md lacks %s", command)
			}
		}
	}
	if commands != 4 {
		t.Errorf("%s has %d commands, want 4", grants, commands)
	}
}

// A missing right to list nodes has a hint: a user may name the node instead.
func TestLacking(t *testing.T) {
	const hint = "PRONY_KUBERNETES_NODES"
	if got := lacking([]string{"create jobs"}, "bench"); strings.Contains(got, hint) ||
		!strings.Contains(got, "may not create jobs in namespace bench; kubectl apply") {
		t.Error(got)
	}
	if got := lacking([]string{noding.words()}, "bench"); !strings.Contains(got, hint) {
		t.Error(got)
	}
}

func TestOptionsOf(t *testing.T) {
	check := func(name, value, want string) {
		t.Helper()
		_, err := OptionsOf(func(n string) string {
			if n == name {
				return value
			}
			return ""
		})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s=%s: %v, want %q", name, value, err, want)
		}
	}
	check("", "", "")
	check("PRONY_KUBERNETES_LIFETIME", "90m", "")
	check("PRONY_KUBERNETES_LIFETIME", "90", "set a time of at least 1m0s")
	check("PRONY_KUBERNETES_LIFETIME", "1s", "set a time of at least 1m0s")
	check("PRONY_KUBERNETES_NODES", "disk=fast,zone=", "")
	check("PRONY_KUBERNETES_READER", "pod", "")
	check("PRONY_KUBERNETES_READER", "node",
		`the value is "node"; set it to pod, or leave it empty`)
	check("PRONY_KUBERNETES_NODES", "fast", "of the form NAME=VALUE")
}
