package main

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// drafts is a folder with the files in the examples of the verb's page.
func drafts(t *testing.T, repo string) {
	t.Helper()
	dir := t.TempDir()
	for name, as := range map[string]string{"shop.openapi.yaml": "openapi.yaml", "shop.har": "",
		"shop.curl": "", "shop.postman.json": "", "access.log": ""} {
		data, err := os.ReadFile(filepath.Join(repo, "internal/suite/importer/testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if as != "" {
			name = as
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// checkInit returns a function that runs the verb and checks the exit code and the output.
func checkInit(t *testing.T) func(want int, wants []string, args ...string) {
	return func(want int, wants []string, args ...string) {
		t.Helper()
		stdout, stderr, exit := really(append([]string{"init"}, args...)...) // resolves names
		if exit != want || strings.Contains(stdout+stderr, "-secret") {
			t.Errorf("%q: exit %d, want %d\n%s%s", args, exit, want, stdout, stderr)
		}
		has(t, "what it says", stdout+stderr, wants...)
	}
}

// The verb prints what it imported and left out and the next step, overwrites nothing, and reports
// a missing service.
func TestInit(t *testing.T) {
	repo := filepath.Join("..", "..")
	repo, err := filepath.Abs(repo)
	if err != nil {
		t.Fatal(err)
	}
	drafts(t, repo)
	check := checkInit(t)
	check(cli.Misused, []string{"name a file of requests"})
	check(cli.Misused, []string{"--url names a running service"}, "--url", "http://a",
		"--command", "b")
	check(cli.Misused, []string{"without a user"}, "--url", "http://ann:s3cret@127.0.0.1")
	check(cli.Misused, []string{"the requests in shop.har are for https://shop.example, which is not " +
		"this machine",
		"add --remote shop.example", "--command './app --port {port}'"}, "--from", "shop.har")
	check(cli.Misused, []string{"write only http://127.0.0.1:1"}, "--from", "shop.har", "--url",
		"http://127.0.0.1:1/x")
	check(cli.Failed, []string{"no such file"}, "--from", "missing")
	if _, err := os.Stat("prony.yaml"); err == nil {
		t.Error("what fails writes a file")
	}
	check(cli.Fine, []string{"prony.yaml: 4 kinds of requests", "read as har: 10 requests found",
		"https://shop.example; requests go to http://127.0.0.1:1 instead", "left out 1: static files",
		"secret   ${PASSWORD}: password of a body", "next: export ACCESS_TOKEN=…", "prony run"},
		"--from", "shop.har", "--url", "http://127.0.0.1:1")
	check(cli.Misused, []string{"prony.yaml already exists"}, "--url", "http://127.0.0.1:1")
	check(cli.Fine, []string{"arrivals log.trace: 87 arrivals in 7s"}, "--from", "access.log",
		"--command",
		"./app", "--out", "log.yaml")
	check(cli.Misused, []string{"log.trace already exists"}, "--from", "access.log", "--command",
		"./app", "--out", "log.yml")
	check(cli.Fine, []string{"o.yaml: 2 kinds",
		"left out 1 request, which would change data of the service"},
		"--from", "openapi.yaml", "--command", "./app", "--out", "o.yaml")
	text, err := os.ReadFile("o.yaml")
	if err != nil {
		t.Fatal(err)
	}
	has(t, "the draft", string(text), "prony init --writes includes them",
		"\n  # - request: 'POST /v2/owners",
		"\n  #   body: '{")
	check(cli.Fine, []string{"w.yaml: 3 kinds"}, "--from", "openapi.yaml", "--command", "./app",
		"--out", "w.yaml", "--writes")
	check(cli.Misused, []string{"--writes is only for OpenAPI"}, "--from", "shop.curl", "--writes",
		"--out", "p.yaml")
	check(cli.Misused, []string{"--writes needs --from"}, "--url", "http://a", "--writes",
		"--out", "p.yaml")
	posts := "openapi: 3.0.0\npaths: {/x: {post: {responses: {'200': {description: x}}}}}\n"
	if err := os.WriteFile("posts.yaml", []byte(posts), 0o600); err != nil {
		t.Fatal(err)
	}
	check(cli.Failed, []string{"pass --writes to include"}, "--from", "posts.yaml", "--command",
		"./app",
		"--out", "p.yaml")
	check(cli.Fine, []string{"6 requests found"}, "--from", "shop.curl", "--out", "curl.yaml")
	check(cli.Fine, []string{"n.yaml: 1 kind", "not of --only or --tag"}, "--from", "openapi.yaml",
		"--only", "/items", "--command", "./app", "--out", "n.yaml")
	check(cli.Misused, []string{"--only needs --from"}, "--url", "http://a", "--only", "/a",
		"--out", "t.yaml")
	check(cli.Misused, []string{"choose paths of har with --only"}, "--from", "shop.har", "--tag",
		"a", "--url", "http://127.0.0.1:1", "--out", "t.yaml")
	check(cli.Misused, []string{"--only is not possible for logs"}, "--from", "access.log",
		"--only", "/a", "--url", "http://127.0.0.1:1", "--out", "t.yaml")
	check(cli.Failed, []string{"read shop.curl as har: it is not JSON"}, "--from", "shop.curl",
		"--as", "har", "--out", "x.yaml")
}

// A document may refer to files of its folder, and to no others.
func TestInitReadsTheFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755),
			os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const path = "get: {responses: {200: {description: ok}}}\n"
	write("api/paths/a.yaml", path)
	write("outside.yaml", path)
	if err := os.Symlink("../outside.yaml", "api/link.yaml"); err != nil {
		t.Fatal(err)
	}
	write("api/openapi.yaml", "openapi: 3.1.0\npaths: {/a: {$ref: paths/a.yaml}, "+
		"/b: {$ref: ../outside.yaml}, /c: {$ref: link.yaml}}\n")
	check := checkInit(t)
	check(cli.Fine, []string{"1 kind of request", "3 requests found",
		"left out 2: a path whose operations are in another file"},
		"--from", "api/openapi.yaml", "--url", "http://127.0.0.1:1")
}

// Another machine must be named, and certificates must be in a file that a run will find.
func TestInitOfOthers(t *testing.T) {
	repo, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	drafts(t, repo)
	check := checkInit(t)
	check(cli.Misused, []string{"(192.0.2.1) is another machine", "add --remote 192.0.2.1"},
		"--url", "https://192.0.2.1", "--remote", "192.0.2.2")
	check(cli.Misused, []string{"-k and --ca need an https URL"}, "--url", "http://127.0.0.1", "-k")
	check(cli.Misused, []string{"-k and --ca need an https URL"}, "--command", "./app", "--ca",
		"a.pem")
	check(cli.Misused, []string{"--ca: ", "no such file"}, "--url", "https://127.0.0.1", "--ca",
		"no")
	check(cli.Misused, []string{"is not in or below the folder of prony.yaml", "copy it there"},
		"--url", "https://127.0.0.1", "--ca", filepath.Join(repo, "LICENSE"))
	check(cli.Fine, []string{"next: export ", "\n      prony run --remote shop.example\n"},
		"--from", "shop.har", "--remote", "shop.example", "--out", "far.yaml")
	text, err := os.ReadFile("far.yaml")
	if err != nil {
		t.Fatal(err)
	}
	has(t, "the draft", string(text), "app: {url: 'https://shop.example'}",
		"# The service is on another machine, so run: prony run --remote shop.example\n")
}

// The file for a service over TLS works at once, with a certificate of a file or any.
func TestInitOfTLS(t *testing.T) {
	testsets.Once(t, "a service over TLS, from init to its numbers", testsets.Needs{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "ok")
	}))
	defer server.Close()
	der := server.Certificate().Raw
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for _, believes := range [][]string{{"-k"}, {"--ca", "a folder/its.pem"}} {
		t.Chdir(t.TempDir())
		if err := errors.Join(os.Mkdir("a folder", 0o755), os.WriteFile("a folder/its.pem", ca,
			0o644)); err != nil {
			t.Fatal(err)
		}
		if _, stderr, exit := really(append([]string{"init", "--url", server.URL + "/items"},
			believes...)...); exit != cli.Fine {
			t.Fatalf("init: exit %d\n%s", exit, stderr)
		}
		text, err := os.ReadFile("prony.yaml")
		if err != nil {
			t.Fatal(err)
		}
		brief := strings.ReplaceAll(string(text), "measure: 5s", "measure: 300ms") +
			"blocks: 1\nwarmup: {min: 0s, max: 300ms, connections: 4}\n"
		_, stderr, exit := inProject(t, brief, "run", "--out", "r")
		if unspoilt(exit) != cli.Fine {
			t.Fatalf("%v: run: exit %d\n%s", believes, exit, stderr)
		}
		_, records, _, err := record.Read("r")
		if err != nil || len(records) == 0 {
			t.Fatalf("%d records, error %v", len(records), err)
		}
		l := records[0].Loads[0]
		if l.Protocol != "HTTP/1.1 over TLS" || l.Done == 0 || l.Errors.Total() != 0 {
			t.Errorf("%v: spoke %q, %d answers, errors %+v", believes, l.Protocol, l.Done, l.Errors)
		}
	}
}

// A secret of the command line is in no record of a load, typed or from the environment, and the
// service receives it.
func TestLoadKeepsNoSecret(t *testing.T) {
	saw := make(chan string, 1000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case saw <- r.Header.Get("Authorization") + r.FormValue("key") + r.Header.Get("Cookie"):
		default:
		}
	}))
	defer s.Close()
	t.Setenv("PRONY_TEST_TOKEN", "s3cret {key} one")
	t.Setenv("PRONY_TEST_KEY", "s3cret-two")
	stdout, stderr, exit := really("load", s.URL+"/?key=${PRONY_TEST_KEY}", "-n", "20", "-c", "1",
		"-H", "Authorization: Bearer ${PRONY_TEST_TOKEN}", "-H", "Cookie: sid=s3cret-three")
	if exit == cli.Failed || exit == cli.Misused {
		t.Fatal(stderr)
	}
	if got, want := <-saw, "Bearer s3cret {key} ones3cret-twosid=s3cret-three"; got != want {
		t.Errorf("the service saw %q, want %q", got, want)
	}
	if strings.Contains(stdout+stderr, "s3cret") || !strings.Contains(stdout, "Cookie: …") ||
		!strings.Contains(stdout, "Bearer ${PRONY_TEST_TOKEN}") {
		t.Errorf("it tells:\n%s%s", stdout, stderr)
	}
}
