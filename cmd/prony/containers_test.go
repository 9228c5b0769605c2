package main

import (
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
)

// Containers are compared with processes of the same target. Without an engine they are skipped
// with a line, and if only containers were requested, the run returns the reason.
func TestRunInContainers(t *testing.T) {
	root := checkout(t)
	run := func(m mock, launchers string) (out, err string, exit int) {
		t.Helper()
		return say(t, m, "run", "--root", root, "--out", filepath.Join(t.TempDir(), "r"),
			"--targets", "go-nethttp", "--quick", "--launcher", launchers)
	}
	out, _, _ := run(mock{}, "process,docker")
	has(t, "the table", out, "go-nethttp in docker")
	has(t, "the table", out, "vs process")
	has(t, "the note", out, "the value of a target in a container or pod divided by its value "+
		"as a plain")
	out, stderr, exit := run(mock{dockerless: true}, "process,docker")
	if exit != cli.Fine {
		t.Errorf("without an engine exit %d: %s", exit, stderr)
	}
	has(t, "the table", out, "launcher docker")
	has(t, "the table", out, "no engine answers")
	_, stderr, exit = run(mock{dockerless: true}, "docker")
	if exit != cli.Failed {
		t.Errorf("with nothing left exit %d", exit)
	}
	has(t, "the error", stderr,
		"none of the suite's launchers works here; launcher docker: no engine")
	_, stderr, exit = run(mock{}, "podman")
	if exit != cli.Misused {
		t.Errorf("an unknown launcher exits %d", exit)
	}
	has(t, "the error", stderr, "there are process, docker, docker-host, kubernetes, kube")
	// Targets that the tools here cannot build can still run from their images.
	out, stderr, _ = run(mock{lacks: "go-nethttp"}, "docker")
	has(t, "the table", out+stderr, "go-nethttp in docker")
	out, _, exit = run(mock{broken: "go-nethttp"}, "docker")
	if exit != cli.Invalid {
		t.Errorf("an image that cannot be built: exit %d", exit)
	}
	has(t, "the table", out, "build (build the image of")
}

func TestStack(t *testing.T) {
	root := checkout(t)
	out, _, exit := say(t, mock{}, "stack", "status", "--root", root)
	if exit != cli.Fine {
		t.Errorf("status exits %d", exit)
	}
	has(t, "the status", out, "alloy    running healthy  127.0.0.1:4318")
	has(t, "the status", out, "mimir    running")
	out, _, exit = say(t, mock{}, "stack", "up", "--root", root)
	if exit != cli.Fine {
		t.Errorf("up exits %d", exit)
	}
	has(t, "up", out, "Grafana is at http://10.0.0.5:3000") // BIND may differ from 127.0.0.1
	_, stderr, exit := say(t, mock{dockerless: true}, "stack", "up", "--root", root)
	if exit != cli.Failed {
		t.Errorf("without Docker up exits %d", exit)
	}
	has(t, "the error", stderr, "the stack needs Docker")
	_, stderr, exit = say(t, mock{dockerless: true}, "run", "--root", root, "--telemetry=lgtm",
		"--out", filepath.Join(t.TempDir(), "r"))
	if exit != cli.Failed {
		t.Errorf("without a stack run exits %d", exit)
	}
	has(t, "the error", stderr, "start the stack with prony stack up")
}

// Status lists only services of the profile OBS, and says why a part does not run well.
func TestParts(t *testing.T) {
	check := func(inspected, text string, exit int, want ...string) {
		t.Helper()
		parts, err := readParts([]byte(text), []string{"loki", "alloy"})
		if err != nil {
			t.Fatal(err)
		}
		var out writer
		a := &app{world: mock{inspected: inspected}, stdout: &out}
		if err := a.printParts(t.Context(), parts); cli.Code(err) != exit {
			t.Errorf("%s: exit code %d, %v", text, cli.Code(err), err)
		}
		has(t, text, string(out), want...)
		if strings.Contains(string(out), "rain-fire") {
			t.Errorf("%s: lists a service that is no part: %s", text, out)
		}
	}
	const runs = `{"Service":"alloy","State":"running"}
{"Service":"rain-fire","State":"exited"}
`
	check("", runs+`{"Service":"loki","State":"running","Health":"starting"}`, cli.Fine,
		"loki   running starting")
	check("", runs+`{"Service":"loki","Name":"x-loki-1","State":"exited","ExitCode":1}`, cli.Failed,
		"loki   exited", "loki: exited with exit code 1; docker logs x-loki-1 ends with:\n"+
			"  bad key\n  the end\n", "1 of 2 parts do not run or are unhealthy")
	check("", runs+`{"Service":"loki","State":"exited","ExitCode":137}`, cli.Failed,
		"exit code 137, killed, for example because it exceeded its memory limit")
	check("port is in use", runs+`{"Service":"loki","State":"created"}`, cli.Failed,
		"loki: created with exit code 0: port is in use")
	check("ok\nnot ready: ring\n", runs+`{"Service":"loki","State":"running","Health":"unhealthy"}`,
		cli.Failed, "running unhealthy", "loki: the last health check printed: not ready: ring\n")
	check("", runs, cli.Failed, "loki   absent", "loki: has no container; start it with prony "+
		"stack up")
	check("", `{"Service":"rain-fire","State":"exited"}`, cli.Failed,
		"start the stack with prony stack up")
	if _, err := readParts([]byte("no JSON"), nil); err == nil {
		t.Error("text that is not JSON was read")
	}
}

// Grafana's address is that of its published port; it has none if it does not run.
func TestGrafanaOf(t *testing.T) {
	check := func(state, published, want string) {
		t.Helper()
		parts, err := readParts([]byte(`{"Service":"loki","State":"running"}
			{"Service":"grafana","State":"`+state+`","Publishers":[`+published+`]}`),
			[]string{"grafana", "loki"})
		if got := grafanaOf(parts); err != nil || got != want {
			t.Errorf("%s, %s: %q, %v, want %q", state, published, got, err, want)
		}
	}
	const at = `{"URL":"127.0.0.1","PublishedPort":3000}`
	check("running", at, "http://127.0.0.1:3000")
	check("exited", at, "")
	check("running", "", "http://127.0.0.1:3000") // on the host's network
	check("running", `{"URL":"","PublishedPort":0},{"URL":"10.0.0.7","PublishedPort":3001}`,
		"http://10.0.0.7:3001")
	check("running", `{"URL":"0.0.0.0","PublishedPort":3000}`, "http://127.0.0.1:3000")
	check("running", `{"URL":"::1","PublishedPort":3000}`, "http://[::1]:3000")
	check("running", `{"URL":"x/../y","PublishedPort":3000}`, "http://127.0.0.1:3000")
}

type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}
