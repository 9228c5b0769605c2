package kubernetes

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func podOf(t testing.TB, text string) *pod {
	t.Helper()
	p, err := readAs[pod]([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

// status returns a pod with one container in a state.
func status(state, more string) string {
	return `{"status": {"containerStatuses": [{"name": "service", "state": {` + state + `}}]` +
		more + `}}`
}

func TestStuck(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		got := podOf(t, text).stuck()
		if (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	check(`{}`, "")
	check(status(`"waiting": {"reason": "ContainerCreating"}`, ""), "")
	check(status(`"running": {"startedAt": "2026-01-01T00:00:00Z"}`, ""), "")
	check(status(`"terminated": {"exitCode": 3, "reason": "Error"}`, ""), "")
	check(status(`"waiting": {"reason": "ErrImageNeverPull", "message": "image \"a:1\" is not `+
		`present with pull policy of Never"}`, ""), `ErrImageNeverPull: image "a:1" is not `+
		`present with pull policy of Never; the node does not have the image`)
	check(status(`"terminated": {"exitCode": 128, "reason": "StartError", "message": "exec: `+
		`\"./x\": no such file"}`, ""), `StartError: exec: "./x": no such file`)
	// Another container, such as a mesh's, does not matter.
	check(`{"status": {"containerStatuses": [{"name": "proxy", "state": {"waiting": `+
		`{"reason": "ErrImagePull"}}}]}}`, "")
}

func TestEnded(t *testing.T) {
	check := func(text, want string, memory bool) {
		t.Helper()
		how, outOfMemory, ok := podOf(t, text).ended()
		if ok != (want != "") || how != want || outOfMemory != memory {
			t.Errorf("%s: %q, %t, %t, want %q", text, how, outOfMemory, ok, want)
		}
	}
	check(`{"status": {"phase": "Running"}}`, "", false)
	check(status(`"running": {}`, `, "phase": "Running"`), "", false)
	check(status(`"terminated": {"exitCode": 3, "reason": "Error"}`, ""), "exit status 3", false)
	check(status(`"terminated": {"exitCode": 137, "reason": "OOMKilled"}`, ""), "signal: killed",
		true)
	check(`{"status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on `+
		`resource: memory.\n"}}`, "the node reported Evicted: The node was low on resource: "+
		"memory.",
		false)
	check(status(`"terminated": {"exitCode": 137}`, `, "phase": "Failed", "reason": `+
		`"DeadlineExceeded"`), "signal: killed; the node reported DeadlineExceeded", false)
	check(status(`"terminated": {"exitCode": 0}`, `, "conditions": [{"type": "DisruptionTarget",`+
		`"status": "True", "reason": "EvictionByEvictionAPI", "message": "drained"}]`),
		"exit status 0; the cluster reported EvictionByEvictionAPI: drained", false)
	check(`{"status": {"phase": "Failed"}}`, "unknown, because the node did not report the reason",
		false)
}

func TestPending(t *testing.T) {
	check := func(events, want string, without bool) {
		t.Helper()
		got, err := readAs[list[event]]([]byte(`{"items": [` + events + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		if why, hopeless := pending(got.Items); why != want || hopeless != without {
			t.Errorf("%s: %q, %t, want %q", events, why, hopeless, want)
		}
	}
	check("", "", false)
	check(`{"type": "Normal", "reason": "Scheduled"}`, "", false)
	check(`{"type": "Warning", "reason": "FailedScheduling", "message": "0/1 nodes are available: `+
		`1 Insufficient cpu."}`, "FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu.",
		false)
	check(`{"type": "Warning", "reason": "FailedCreate", "message": "Error creating: pods \"a\" `+
		`is forbidden: exceeded quota: q"}`,
		`Error creating: pods "a" is forbidden: exceeded quota: q`, true)
}

// Hints name the fault and what to do. The inputs are kubectl's own texts.
func TestHints(t *testing.T) {
	check := func(words, want string) {
		t.Helper()
		if got := hintOf(words, "bench"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
	check(`Error from server (Forbidden): jobs.batch is forbidden: User "a" cannot create `+
		`resource "jobs" in API group "batch" in the namespace "bench"`,
		"this user may not create jobs in namespace bench: kubectl apply -n bench -f deploy/")
	check(`Error from server (Forbidden): pods "p" is forbidden: User "a" cannot get resource `+
		`"pods/log" in API group "" in the namespace "bench"`, "may not get pods/log in")
	check(`Error creating: pods "a" is forbidden: exceeded quota: q, requested: cpu=1, used: `+
		`cpu=2, limited: cpu=2`, "quota is used up")
	check(`namespaces "bench" not found`, "kubectl create namespace bench")
	check(`unable to create new content in namespace bench because it is being terminated`,
		"is being deleted")
	check("The connection to the server 10.0.0.1:6443 was refused - did you specify the right "+
		"host or port?", "does not respond")
	check("error: You must be logged in to the server (Unauthorized)", "log in")
	check(`error: context "x" does not exist`, "has no configured cluster")
	check("error: current-context must exist in order to minify", "has no configured cluster")
	check("The connection to the server localhost:8080 was refused", "has no configured cluster")
	check(`pods "a" is forbidden: violates PodSecurity "restricted:latest": hostPath volumes`,
		"does not admit the pod")
	check("something new", "")
	for _, why := range []string{"Insufficient cpu", "Insufficient memory", "untolerated taint {a}",
		"didn't match Pod's node affinity/selector", "exceeded quota: q"} {
		if got := hintPending("0/1 nodes are available: 1 " + why); got == hintPending("") {
			t.Errorf("%s: no hint but the last", why)
		}
	}
}

func TestSaid(t *testing.T) {
	for text, want := range map[string]string{
		"one\ntwo\t three": "one two three", "\x1b[31mred\x07": "[31mred",
		"a\u202eb": "a b", "a\xffb": "a?b", "": "",
	} {
		if got := said(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := said(strings.Repeat("ü", maxWords)); len(got) > maxWords+len("…") {
		t.Errorf("%d bytes are said", len(got))
	}
}

// A pod belongs to a job by its owner, which only the cluster sets, and not by labels. A name that
// looks like a flag of kubectl is invalid.
func TestIsOf(t *testing.T) {
	const uid = "08d98ca3-b19e"
	check := func(name, owner, job string, want bool) {
		t.Helper()
		p := podOf(t, `{"metadata": {"name": "`+name+`", "uid": "`+uid+`", "labels": `+
			`{"prony.pod": "p"}, "ownerReferences": [{"uid": "`+owner+`"}]}}`)
		if got := p.isOf(job); got != want {
			t.Errorf("%s of %s for %s: %t", name, owner, job, got)
		}
	}
	check("prony-1-abc", "j", "j", true)
	check("prony-1-abc", "k", "j", false)
	check("prony-1-abc", "", "", false)
	check("--kubeconfig=x", "j", "j", false)
	check("-a", "j", "j", false)
}

func TestContainerID(t *testing.T) {
	for id, want := range map[string]string{
		"containerd://" + strings.Repeat("0a", 32): strings.Repeat("0a", 32),
		"containerd://../../../etc":                "",
		"containerd://" + strings.Repeat("*", 64):  "", "": "",
		"docker://0123456789ab": "0123456789ab",
	} {
		p := podOf(t, `{"status": {"containerStatuses": [{"name": "service", "containerID": "`+
			id+`"}]}}`)
		if got := p.containerID(); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}

// FuzzRead reads any answers of the cluster: messages become one short line, and ids that become
// part of a path are valid.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"type": "MODIFIED", "object": ` + status(`"waiting": {"reason": `+
		`"ErrImagePull", "message": "a\nb"}`, `, "phase": "Failed", "reason": "Evicted"`) + `}`))
	f.Add([]byte(`{"items": [{"type": "Warning", "reason": "FailedCreate", ` +
		`"message": "\u001b["}]}`))
	f.Add([]byte(`{"metadata": {"annotations": {"prony.process": "1-2"}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var words []string
		from := json.NewDecoder(strings.NewReader(string(b)))
		for c, err := readChange(from); err == nil; c, err = readChange(from) {
			how, _, _ := c.Object.ended()
			words = append(words, how, c.Object.stuck(), c.Object.image())
			if id := c.Object.containerID(); strings.ContainsAny(id, "./*") {
				t.Errorf("container %q", id)
			}
		}
		if got, err := readAs[list[event]](b); err == nil {
			why, _ := pending(got.Items)
			words = append(words, why, hintPending(why))
		}
		if j, err := readAs[job](b); err == nil {
			(lab{}).outlived(j)
		}
		for _, w := range words {
			if strings.ContainsFunc(w, unicode.IsControl) || !utf8.ValidString(w) ||
				len(w) > 4*maxWords {
				t.Errorf("%q is passed on", w)
			}
		}
	})
}
