package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/schema"
	"prony.example/internal/dev/tidy"
	"prony.example/internal/generator/truth"
	"prony.example/record"
)

// documents are the schemas of the documents in examples/documents.
var documents = map[string]string{"audit.json": "audit", "capacity.json": "capacity",
	"compare.json": "compare", "gate.json": "gate", "load.json": "load",
	"progress.ndjson": "progress", "report.json": "report", "run.json": "run",
	"trend.json": "trend", "trials.ndjson": "record"}

// An example of each document fits its schema, reveals nothing of its machine and is named on a
// page of docs/formats. With -update they are made again: by runs in a mock world, and by loads
// against truth servers.
func TestExampleDocuments(t *testing.T) {
	repo, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(repo, "examples", "documents")
	if *update {
		makeExamples(t, repo, dir)
	}
	pages, err := filepath.Glob(filepath.Join(repo, "docs", "formats", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var docs []byte
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, text...)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(documents) {
		t.Fatalf("%d examples, want %d; error %v", len(entries), len(documents), err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for file, of := range documents {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(docs, []byte("examples/documents/"+file)) {
			t.Errorf("no page of docs/formats names %s", file)
		}
		for _, not := range []string{"/tmp/", "/home/", "/root", "/work", "/usr/", repo, name} {
			if bytes.Contains(data, []byte(not)) {
				t.Errorf("%s tells of a machine: %s", file, not)
			}
		}
		if filepath.Ext(file) == ".json" {
			schema.Valid(t, of, data)
			continue
		}
		for line := range bytes.Lines(data) {
			schema.Valid(t, of, line)
		}
	}
}

// makeExamples writes all examples.
func makeExamples(t *testing.T, repo, dir string) {
	t.Helper()
	root := checkout(t)
	t.Setenv("PRONY_ROOT", root)
	t.Chdir(root)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	save := func(file, text string, exit int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if exit != cli.Fine && exit != cli.GateFailed && exit != cli.Invalid {
			t.Errorf("%s: exit %d", file, exit)
		}
	}
	mocked := func(file string, args ...string) {
		t.Helper()
		stdout, stderr, exit := say(t, mock{}, args...)
		if stderr != "" {
			t.Log(stderr)
		}
		save(file, stdout, exit)
	}
	for day, factor := range []float64{1, 1.002, 0.998, 1, 0.9, 0.901, 0.899, 0.902} {
		exampleRun(t, filepath.Join("results", "day-"+string(rune('1'+day))), day, factor)
	}
	first := filepath.Join("results", "day-1")
	for _, file := range []string{record.RunFile, record.TrialsFile, record.ProgressFile} {
		data, err := os.ReadFile(filepath.Join(first, file))
		if err != nil {
			t.Fatal(err)
		}
		save(file, string(data), cli.Fine)
	}
	mocked("report.json", "report", first, "--format", "json")
	mocked("compare.json", "compare", first, "--targets", "go-nethttp,rust-axum", "--metric",
		"throughput,p99", "--format", "json")
	mocked("gate.json", "gate", first+":go-nethttp", first+":rust-axum", "--format", "json")
	mocked("trend.json", "trend", "results", "--metric", "throughput", "--format", "json")
	t.Chdir(filepath.Join(repo, "internal", "report", "audit", "testdata"))
	mocked("audit.json", "audit", "java-http.json", "--json")
	makeLoadExamples(t, save)
	t.Chdir(filepath.Join(repo, "cmd", "prony"))
}

// exampleRun is a run of two targets on a day, by a machine that does not exist.
func exampleRun(t *testing.T, dir string, day int, factor float64) {
	t.Helper()
	if _, stderr, exit := say(t, mock{}, "run", "--out", dir, "--targets", "go-nethttp,rust-axum",
		"--interleave", "blocks", "--blocks", "2"); exit != cli.Fine {
		t.Fatal(stderr)
	}
	edit(t, dir, func(r *record.Record) {
		throughputOf("rust-axum", factor)(r)
		r.Time = time.Date(2026, 11, 1+day, 12, 0, 0, 0, time.UTC)
		p := &r.Provenance
		p.CPUModel, p.Kernel, p.Cores, p.MemoryBytes = "Example CPU", "6.12.0", 2, 8<<30
	})
}

// makeLoadExamples writes examples of real loads: on a server that responds after a millisecond,
// and on a queue that serves one request after another, a millisecond each.
func makeLoadExamples(t *testing.T, save func(file, text string, exit int)) {
	t.Helper()
	addr, stop, err := truth.Start(truth.Fixed(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	stdout, stderr, exit := really("load", "http://"+addr.String()+"/", "--rate", "200",
		"--duration", "2s", "--json")
	t.Log(stderr)
	save("load.json", plainAddress(stdout, addr.String()), exit)
	queue := queueServer(t, "md1", "1ms")
	stdout, stderr, exit = really("capacity", queue, "--concurrency", "1,2", "--slo", "p90<50ms",
		"--window", "500ms", "--budget", "100s", "--json")
	t.Log(stderr)
	at, err := url.Parse(queue)
	if err != nil {
		t.Fatal(err)
	}
	save("capacity.json", plainAddress(stdout, at.Host), exit)
}

// plainAddress replaces the server's port by that of the docs, and indents the document.
func plainAddress(text, addr string) string {
	text = strings.ReplaceAll(text, addr, "127.0.0.1:8080")
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return text
	}
	return out.String()
}

// queueServer starts this program as a truth server of a kind until the test ends, and returns its
// URL.
func queueServer(t *testing.T, kind, service string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "truth", kind, "--service", service)
	cmd.Env = append(os.Environ(), "PRONY_TEST_MAIN=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return truthURL.FindString(line)
}

var truthURL = regexp.MustCompile(`http://[0-9.]+:[0-9]+`)
