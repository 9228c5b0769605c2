package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
	"prony.example/record"
)

// leak is a service that needs more memory than its heap has before it is ready.
var leak = map[string]string{
	"services/java-leak/service.yaml": `name: java-leak
language: Java
framework: none
version: "25"
about: It runs out of memory before it is ready.
contracts: [hello]
needs:
  - {tool: java, version: "25"}
build:
  steps:
    - ["{java}", -version]
  artifact: Leak.java
run:
  command: ["{java}", "{jvm}", Leak.java]
  health: /
  ready: /
targets:
  - {name: only, runtime: jvm, mode: platform}
`,
	"services/java-leak/Leak.java": `import java.util.ArrayList;

class Leak {
  public static void main(String[] args) {
    var kept = new ArrayList<byte[]>();
    while (true) {
      kept.add(new byte[1 << 16]);
    }
  }
}
`,
	"suites/leak.yaml": `name: leak
question: What does a JVM leave that runs out of memory?
contract: hello
targets: [java-leak]
blocks: 1
limits: {cpus: 1, memory: 512MiB}
scenarios:
  - name: hello
    requests: [{request: GET /}]
loads:
  - {name: peak, model: closed, measure: 1s}
`,
}

// TestRealHeapDump checks that the heap of a JVM that runs out of memory is in the run's folder,
// and that record and failure name it.
func TestRealHeapDump(t *testing.T) {
	testsets.Once(t, "heap dump", testsets.Needs{Facts: []string{
		testsets.Version("java", "-version")}})
	if javas, err := filepath.Glob("/usr/lib/jvm/*-25-*/bin/javac"); os.Getenv("JAVA_HOME") == "" &&
		(err != nil || len(javas) == 0) {
		t.Skip("needs a JDK 25: set JAVA_HOME")
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	root := t.TempDir()
	repo, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil { // services run as other users
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(repo, "agents.yaml"),
		filepath.Join(root, "agents.yaml")); err != nil {
		t.Fatal(err)
	}
	for name, text := range leak {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(root, "r")
	stdout, stderr, exit := really("run", "suites/leak.yaml", "--root", root, "--out", dir)
	_, records, bad, err := record.Read(dir)
	if exit != cli.Invalid || err != nil || len(bad) > 0 || len(records) != 1 {
		t.Fatalf("exit %d, %d records, bad %v, error %v\n%s%s", exit, len(records), bad, err,
			stdout, stderr)
	}
	keepsSchemas(t, dir)
	r := records[0]
	if len(r.Dumps) != 1 || r.Failure == nil || !strings.HasSuffix(r.Failure.Error,
		"the JVM left a dump: "+filepath.Join(dir, r.Dumps[0].File)) {
		t.Fatalf("dumps %+v, failure %+v\n%s%s", r.Dumps, r.Failure, stdout, stderr)
	}
	for _, arg := range r.Provenance.ServiceArgs {
		if strings.Contains(arg, "HeapDump") {
			t.Errorf("the folder of one trial is in the command %q", r.Provenance.ServiceArgs)
		}
	}
	if head := headOf(t, filepath.Join(dir, r.Dumps[0].File)); head != "JAVA PROFILE 1.0.2" {
		t.Errorf("%s begins with %q", r.Dumps[0].File, head)
	}
}

// headOf returns the name of the format at the beginning of a compressed dump.
func headOf(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, len("JAVA PROFILE 1.0.2"))
	if _, err := io.ReadFull(z, head); err != nil {
		t.Fatal(err)
	}
	return string(head)
}
