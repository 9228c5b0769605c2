package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

var dockerfile = `# FROM nothing:1
FROM golang:1.26 AS build
RUN echo FROM a:1
FROM --platform=linux/amd64 debian:12@sha256:` + old + ` as Other
COPY --chown=1 --from=maven:3 /m /m
COPY --from=build /a /a
COPY --from=0 /b /b
FROM other
FROM scratch
FROM ${BASE}
`

var old = strings.Repeat("0", 64)

// registry is a docker whose registry has the names of a list, each with a digest of its own.
func registry(t *testing.T, known string) {
	t.Helper()
	bin := t.TempDir()
	program := "#!/bin/sh\nfor name; do :; done\necho \"$name\" >>" + bin + "/asked\n" +
		"case $name in " + known + `) printf '{"digest":"sha256:%064x"}' ${#name} ;;` + "\n" +
		"*) echo \"$name: not found\" >&2; exit 1 ;; esac\n"
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
}

// Every base gets the current digest of its tag, and nothing else changes; if the registry lacks
// one, all files stay unchanged.
func TestPin(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("services/a", 0o755); err != nil {
		t.Fatal(err)
	}
	const name = "services/a/Dockerfile"
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pin := func() (string, string, error) {
		t.Helper()
		var out bytes.Buffer
		err := run(t.Context(), nil, &out)
		text, failed := os.ReadFile(name)
		if failed != nil {
			t.Fatal(failed)
		}
		return string(text), out.String(), err
	}
	put(dockerfile)
	registry(t, "golang:1.26|debian:12")
	if text, _, err := pin(); err == nil || text != dockerfile ||
		!strings.Contains(err.Error(), name+": ask for maven:3: exit status 1: maven:3: not fo") {
		t.Errorf("error %v\n%s", err, text)
	}
	registry(t, "golang:1.26|debian:12|maven:3")
	at := func(digit string) string { return "@sha256:" + old[1:] + digit }
	want := strings.NewReplacer("golang:1.26", "golang:1.26"+at("b"),
		"debian:12@sha256:"+old, "debian:12"+at("9"), "maven:3", "maven:3"+at("7")).
		Replace(dockerfile)
	if text, said, err := pin(); err != nil || text != want || said != name+"\n" {
		t.Errorf("error %v, said %q\n%s\nwant\n%s", err, said, text, want)
	}
	if text, said, err := pin(); err != nil || text != want || said != "" {
		t.Errorf("again: error %v, said %q\n%s", err, said, text)
	}
}

// Docker's own buildx queries a registry, here one with a single manifest, and the pin is its
// digest.
func TestRealRegistry(t *testing.T) {
	testsets.Once(t, "pins of a real registry's answers", testsets.Needs{})
	if exec.Command("docker", "buildx", "version").Run() != nil {
		t.Skip("needs docker buildx")
	}
	const (
		// The sum of an empty object of JSON.
		config   = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
		kind     = "application/vnd.oci.image.manifest.v1+json"
		manifest = `{"schemaVersion":2,"mediaType":"` + kind + `","config":{"mediaType":` +
			`"application/vnd.oci.image.config.v1+json","size":2,"digest":"` + config +
			`"},"layers":[]}`
	)
	sum := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(manifest)))
	mux := http.NewServeMux()
	mux.HandleFunc("/v2/", func(w http.ResponseWriter, r *http.Request) {
		switch path.Base(r.URL.Path) {
		case "1.0", sum:
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Docker-Content-Digest", sum)
			w.Header().Set("Content-Length", fmt.Sprint(len(manifest)))
			_, _ = w.Write([]byte(manifest))
		case config:
			_, _ = io.WriteString(w, "{}")
		case "v2":
		default:
			http.NotFound(w, r)
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	host := "localhost:" + server.URL[strings.LastIndex(server.URL, ":")+1:]
	name := filepath.Join(t.TempDir(), "Dockerfile")
	pin := func(tag string) (string, error) {
		t.Helper()
		from := "FROM " + host + "/base:" + tag
		if err := os.WriteFile(name, []byte(from+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		err := run(t.Context(), []string{name}, io.Discard)
		text, failed := os.ReadFile(name)
		if failed != nil {
			t.Fatal(failed)
		}
		return strings.TrimPrefix(string(text), from), err
	}
	if got, err := pin("1.0"); err != nil || got != "@"+sum+"\n" {
		t.Errorf("%q, error %v; want %s", got, err, sum)
	}
	if got, err := pin("2.0"); err == nil || got != "\n" {
		t.Errorf("of a tag that is not there it is %q, error %v", got, err)
	}
}
