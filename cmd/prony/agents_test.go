package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/trial/lab"
)

// agentsApp returns the program in a folder with these agents.
func agentsApp(t *testing.T, text string) (a *app, out *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "agents.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out = &bytes.Buffer{}
	return &app{world: mock{}, stdout: out, stderr: &bytes.Buffer{}, rootFlag: dir}, out
}

const twoAgents = `agents:
  - {name: again, about: Nothing., runtimes: [jvm, node]}
  - name: own
    about: A jar.
    runtimes: [jvm]
    fetch: {path: "${PRONY_TEST_JAR}"}
    env: {JAVA_TOOL_OPTIONS: "-javaagent:{agent}"}
    levels:
      - {name: low, about: Little.}
      - {name: told, about: Much., env: {TO: "${PRONY_TEST_TO}"}}
`

func TestAgentsAreListed(t *testing.T) {
	t.Setenv("PRONY_TEST_JAR", "")
	t.Setenv("PRONY_TEST_TO", "")
	a, out := agentsApp(t, twoAgents)
	if err := a.listAgents(t.Context()); err != nil {
		t.Fatal(err)
	}
	const missing = "" +
		"AGENT     RUNTIMES  VERSION  HERE                           " +
		"                                  ABOUT\n" +
		"again     jvm,node  -        nothing to fetch               " +
		"                                  Nothing.\n" +
		"own/low   jvm       -        needs the environment variable " +
		"PRONY_TEST_JAR, which is not set  Little.\n" +
		"own/told  jvm       -        needs the environment variable " +
		"PRONY_TEST_TO, which is not set   Much.\n"
	if out.String() != missing {
		t.Errorf("got\n%swant\n%s", out, missing)
	}
	jar := filepath.Join(t.TempDir(), "own.jar")
	if err := os.WriteFile(jar, []byte("a jar"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PRONY_TEST_JAR", jar)
	out.Reset()
	if err := a.listAgents(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(t, "the list", out.String(), "own/low   jvm       -        fetched ")
}

func TestAgentsAreFetched(t *testing.T) {
	t.Setenv("PRONY_TEST_JAR", "")
	a, out := agentsApp(t, twoAgents)
	if err := a.fetchAgents(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	const want = "again            nothing to fetch\nskipped own: needs the environment " +
		"variable PRONY_TEST_JAR, which is not set\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
	// A named agent that is missing is an error.
	const named = "fetch agent own: the agent cannot be fetched on this machine: needs the " +
		"environment variable PRONY_TEST_JAR, which is not set"
	if err := a.fetchAgents(t.Context(), []string{"own"}); err == nil || err.Error() != named {
		t.Errorf("got %v, want %s", err, named)
	}
	const unknown = `agent "owm" does not exist; did you mean "own"?`
	err := a.fetchAgents(t.Context(), []string{"owm"})
	if err == nil || err.Error() != unknown || cli.Code(err) != cli.Misused {
		t.Errorf("got %v, code %d, want %s as usage", err, cli.Code(err), unknown)
	}
}

func TestTheCheckoutsAgentsAreRead(t *testing.T) {
	root, _ := fairnessPage(t)
	catalog, err := (&lab.Lab{Root: root}).Agents()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := catalog.Find("otel-java/sampled-10"); err != nil {
		t.Error(err)
	}
}
