package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
	"prony.example/internal/generator/truth"
	"prony.example/internal/trial/processes"
)

// The lines for three hosts in docs/compose.md work in a shell, with the environment file that they
// name: only the addresses are this machine's.
func TestThreeHosts(t *testing.T) {
	testsets.Once(t, "three hosts", testsets.Needs{Files: []string{"docs/compose.md",
		"examples/three-hosts.env"}})
	repo, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	at, stop, err := truth.Start(truth.Fixed(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	meet, err := processes.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "examples"), 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(repo, "examples", "three-hosts.env"))
	if err != nil {
		t.Fatal(err)
	}
	env := strings.NewReplacer("172.20.2.115", "127.0.0.1", "172.20.2.138", "127.0.0.1",
		"172.20.2.212", "127.0.0.1", "PORT=8080", "PORT="+itoa(int(at.Port())),
		":7070", ":"+itoa(meet), "BLOCKS=10", "BLOCKS=1", "MEASURE=10s",
		"MEASURE=300ms", "WARMUP=60s", "WARMUP=300ms",
		"/api/gateway/owners/2", "/").Replace(string(text))
	err = os.WriteFile(filepath.Join(dir, "examples", "three-hosts.env"), []byte(env), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	lines := threeHosts(t, repo)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	executable(t, dir, "prony", "#!/bin/sh\nPRONY_TEST_MAIN=1 exec "+self+" \"$@\"\n")
	shell := func(script string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		return cmd
	}
	// A busy machine makes trials INVALID, which is no error of the page.
	out, err := shell(lines[0]).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	has(t, "the comparison", string(out), "agent against baseline", "throughput", "p99")

	// The tester makes the key; both generators wait for it, as if it were copied to them.
	var said bytes.Buffer
	tester := shell(lines[1])
	tester.Stdout, tester.Stderr = &said, &said
	if err := tester.Start(); err != nil {
		t.Fatal(err)
	}
	key := "while ! test -s key; do sleep 0.1; done\n"
	together := strings.ReplaceAll(lines[2], "< key\n", "< key &\n") + "wait\n"
	generators, failed := shell(key + together).CombinedOutput()
	if err := tester.Wait(); failed != nil || !strings.Contains(said.String(), "generators") {
		t.Fatalf("%v, %v\n%s\n%s", err, failed, said.String(), generators)
	}
}

// threeHosts returns the page's shell blocks about three hosts.
func threeHosts(t *testing.T, repo string) (blocks []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repo, "docs", "compose.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "### On three hosts\n")
	for _, block := range strings.Split(section, "```sh\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		blocks = append(blocks, block)
	}
	if len(blocks) < 3 {
		t.Fatalf("%d blocks of shell", len(blocks))
	}
	return blocks
}
