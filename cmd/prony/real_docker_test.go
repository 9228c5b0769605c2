package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
	"prony.example/internal/launch/docker"
	"prony.example/internal/service"
	"prony.example/record"
)

// engine skips a test without a Docker engine, and gives each test its own lab. The result is
// remembered for the services that the test starts.
func engine(t *testing.T, remember func(testing.TB, string, testsets.Needs), services ...string) {
	t.Helper()
	testsets.Whole(t, "services in containers")
	l, _, err := docker.New(t.Context(), docker.Options{})
	if err != nil {
		t.Skipf("needs a Docker engine: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if !buildKit() {
		t.Skip("needs BuildKit: docker buildx was not found")
	}
	remember(t, "services in containers", needs(t,
		testsets.Version("docker", "version")+testsets.Version("docker", "buildx", "version"),
		services...))
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
}

// buildKit reports whether docker build has BuildKit: from version 23 on, it is a plugin.
func buildKit() bool {
	if exec.Command("docker", "buildx", "version").Run() == nil {
		return true
	}
	version, err := exec.Command("docker", "version", "--format", "{{.Client.Version}}").Output()
	major, _, _ := strings.Cut(string(version), ".")
	n, badly := strconv.Atoi(major)
	return err == nil && badly == nil && n < 23
}

// needs returns the dependencies of a run of services beside the program: their sources, the
// suites, and the tools that build and run them.
func needs(t *testing.T, fact string, services ...string) testsets.Needs {
	t.Helper()
	root, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := service.Catalog(root)
	if err != nil {
		t.Fatal(err)
	}
	tools := service.FindTools(t.Context())
	n := testsets.Needs{Files: []string{"suites"}}
	for _, s := range catalog { // each build of a service is an entry
		if slices.Contains(services, s.Name) {
			fact += strings.Join(tools.Missing(s, s.Targets...), "; ")
		}
	}
	for _, name := range services {
		n.Files = append(n.Files, "services/"+name)
	}
	n.Facts = []string{fact, fmt.Sprint(tools.Versions())}
	return n
}

// An image of each language keeps the same contracts as its process: same responses, same log
// lines, ready and stopped in time, without privileges and writable files.
func TestRealImages(t *testing.T) {
	testsets.Whole(t, "services in containers")
	root := checkout(t)
	for _, name := range []string{"go-gin", "node-express", "python-flask", "rust-axum",
		"java-jdk"} {
		t.Run(name, func(t *testing.T) {
			if name == "go-gin" {
				engine(t, testsets.Once, name)
			} else {
				engine(t, testsets.Long, name)
			}
			out, stderr, exit := really("verify", "--root", root, "--launcher", "docker", name)
			if exit != cli.Fine || !strings.Contains(out, name) {
				t.Errorf("exit %d\n%s%s", exit, out, stderr)
			}
		})
	}
}

// The same target as a process and as containers: complete records, a container's with its image
// and its limits, and nothing of it remains in the engine.
func TestRealContainers(t *testing.T) {
	engine(t, testsets.Once, "go-gin")
	root := checkout(t)
	dir := filepath.Join(root, "r")
	out, stderr, exit := really("run", "--root", root, "--out", dir, "--targets", "go-gin",
		"--blocks", "1", "--measure", "500ms", "--slices", "500ms", "--warmup", "1s",
		"--launcher", "process,docker,docker-host")
	if exit != cli.Fine && exit != cli.Invalid { // the machine may be busy
		t.Fatalf("exit %d\n%s%s", exit, out, stderr)
	}
	has(t, "the table", out, "go-gin in docker-host")
	compiler := compilerOf(t, filepath.Join(root, "services/go-gin/Dockerfile"))
	_, records, bad, err := record.Read(dir)
	if err != nil || len(bad) > 0 || len(records) != 3 {
		t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
	}
	for _, r := range records {
		if r.Outcome != record.Measured {
			t.Errorf("%s: %+v", r.Trial, r.Failure)
			continue
		}
		contained := r.Target.Launcher != ""
		a := r.Artifact
		if contained != strings.HasPrefix(a.Image, "prony/go-gin:") ||
			contained && (len(a.SHA256) != 64 || a.ImageBytes < 1<<20) {
			t.Errorf("%s: artifact %+v", r.Trial, a)
		}
		// The record lists only the image's tools, not this machine's.
		if tools := r.Provenance.Tools; contained && (len(tools) != 1 ||
			!strings.Contains(compiler, " go"+tools["go"]+" ")) {
			t.Errorf("%s: tools %v, the image's is %s", r.Trial, tools, compiler)
		}
		limits := strings.Join(wording.Limits(r.Limits.InForce), ", ")
		if len(r.Limits.Missing) > 0 || !strings.Contains(limits, "cpuset") ||
			!strings.Contains(limits, "memory") {
			t.Errorf("%s: in force %s, missing %v", r.Trial, limits, r.Limits.Missing)
		}
		for _, l := range r.Loads {
			u := l.Service
			if u.CPUNs <= 0 || u.RSSMaxBytes < 1<<20 || u.NetworkBytesPerRequest < 100 {
				t.Errorf("%s, load %s: usage %+v", r.Trial, l.Name, u)
			}
		}
	}
	left, err := exec.Command("docker", "ps", "--all", "--quiet", "--filter",
		fmt.Sprintf("name=prony-%d-", os.Getpid())).CombinedOutput()
	if err != nil || len(left) > 0 {
		t.Errorf("left in the engine: %s, error %v", left, err)
	}
}

// compilerOf returns the version of the compiler in a Dockerfile's first image.
func compilerOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	image := strings.Fields(string(text))[1]
	said, err := exec.Command("docker", "run", "--rm", "--network", "none", "--entrypoint", "go",
		image, "version").Output()
	if err != nil {
		t.Fatalf("ask %s: %v", image, err)
	}
	return string(said)
}

// The kernel ends a container with too little memory, and the record says so.
func TestRealOutOfMemory(t *testing.T) {
	engine(t, testsets.Long, "java-jdk")
	root := checkout(t)
	suite := filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(suite, []byte(`name: small
contract: hello
targets: [java-jdk/virtual]
blocks: 1
launchers: [docker]
limits: {cpus: 1, memory: 90MiB}
scenarios:
  - name: read
    keys: [1, 9]
    requests: [{request: "GET /hello/{mode}?key={key}"}]
loads:
  - {name: peak, model: closed, connections: 8, measure: 500ms}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "r")
	out, stderr, exit := really("run", suite, "--root", root, "--out", dir)
	if exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, out, stderr)
	}
	_, records, _, err := record.Read(dir)
	if err != nil || len(records) != 1 || records[0].Failure == nil {
		t.Fatalf("%d records, error %v\n%s", len(records), err, out)
	}
	has(t, "the failure", records[0].Failure.Error, "out of memory (limit 90")
}
