package kubernetes

import (
	"fmt"
	"strings"
	"testing"

	"prony.example/internal/launch"
)

// procOf returns a pod of a cluster whose kubectl is a shell script.
func procOf(t *testing.T, script string, port int, o Options) *proc {
	t.Helper()
	return &proc{Common: launch.NewCommon(launch.Spec{Port: port}), uid: "job-1",
		order: order{name: "target"},
		l:     &Launcher{cluster: fakeCluster(t, script), options: o}}
}

// TestServe checks that a pod with a port gets the address of its service, if services are used.
func TestServe(t *testing.T) {
	check := func(ip string, port int, o Options, want, fails string) {
		t.Helper()
		p := procOf(t, `cat >/dev/null; echo '{"spec": {"clusterIP": "`+ip+`"}}'`, port, o)
		err := p.serve(t.Context())
		if fmt.Sprint(p.addr) != want || (err == nil) != (fails == "") ||
			err != nil && !strings.Contains(err.Error(), fails) {
			t.Errorf("%s, port %d, %+v: %v, %v; want %s, %q", ip, port, o, p.addr, err, want, fails)
		}
	}
	const none = "invalid AddrPort"
	check("10.0.0.7", 8080, Options{Service: true}, "10.0.0.7:8080", "")
	check("10.0.0.7", 0, Options{Service: true}, none, "")
	check("10.0.0.7", 8080, Options{}, none, "")
	check("None", 8080, Options{Service: true}, none, `its address is "None"`)
	if err := procOf(t, "echo refused >&2; exit 1", 1, Options{Service: true}).
		serve(t.Context()); err == nil {
		t.Error("a service that the cluster refuses is no error")
	}
}

// TestWarned checks that the last warning about a pod or its job is the reason, that a rejected pod
// is an error, and that an API server without an answer is none.
func TestWarned(t *testing.T) {
	check := func(script, want, fails string) {
		t.Helper()
		p := procOf(t, script, 0, Options{})
		p.pod.Metadata.Name = "target-x7"
		got, err := p.warned(t.Context())
		if got != want || (err == nil) != (fails == "") ||
			err != nil && !strings.Contains(err.Error(), fails) {
			t.Errorf("%s: %q, %v; want %q, %q", script, got, err, want, fails)
		}
	}
	const none, full = `echo '{"items": []}'`, `echo '{"items": [{"reason": "FailedScheduling", ` +
		`"message": "Insufficient cpu"}]}'`
	of := func(job, pod string) string {
		return `case "$*" in *=target-x7\ *) ` + pod + `;; *) ` + job + `;; esac`
	}
	check(none, "", "")
	check(of(none, full), "FailedScheduling: Insufficient cpu", "")
	check(of(full, none), "FailedScheduling: Insufficient cpu", "")
	check(of(`echo '{"items": [{"reason": "FailedCreate", "message": "exceeded quota"}]}'`, none),
		"", "the cluster does not create the pod: exceeded quota")
	check(of("echo the API was refused >&2; exit 1", full), "FailedScheduling: Insufficient cpu",
		"")
	check("echo forbidden >&2; exit 1", "", "forbidden")
	p := procOf(t, `case "$*" in *=\ *) exit 1;; esac; `+none, 0, Options{}) // no pod yet
	if got, err := p.warned(t.Context()); got != "" || err != nil {
		t.Errorf("without a pod: %q, %v", got, err)
	}
}

// TestFollow checks that the changes of the job's own pod are passed on until the stream ends.
func TestFollow(t *testing.T) {
	check := func(script, want, fails string) {
		t.Helper()
		p := procOf(t, script, 0, Options{})
		changes, ended := make(chan change), make(chan error, 1)
		go func() { ended <- p.follow(t.Context(), changes) }()
		var kinds []string
		for {
			select {
			case c := <-changes:
				kinds = append(kinds, c.Type)
				continue
			case err := <-ended:
				if got := strings.Join(kinds, " "); got != want || (err == nil) != (fails == "") ||
					err != nil && !strings.Contains(err.Error(), fails) {
					t.Errorf("%s: %s, %v; want %s, %q", script, got, err, want, fails)
				}
			}
			return
		}
	}
	change := func(job, kind string) string {
		return `echo '{"type": "` + kind + `", "object": {"metadata": {"name": "a", "uid": ` +
			`"12345678-0000", "ownerReferences": [{"uid": "` + job + `"}]}}}';`
	}
	check(change("job-1", "ADDED")+change("job-2", "MODIFIED")+change("job-1", "DELETED"),
		"ADDED DELETED", "")
	check(change("job-1", "ADDED")+`echo '{"type"'`, "ADDED", "read a pod's change")
	check("echo forbidden >&2; exit 1", "", "forbidden")
}
