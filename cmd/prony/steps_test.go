package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
)

// endless is a root whose only service builds forever, in a step and its child process. Their ids
// are in the named file.
func endless(t *testing.T) (root, pids string) {
	t.Helper()
	root = t.TempDir()
	pids = filepath.Join(t.TempDir(), "pids")
	const manifest = `name: sh-none
language: Shell
framework: none
version: "1"
about: It is never built.
contracts: [hello]
build:
  steps:
    - [sh, -c, "sleep 1000 & echo $$ $! > PIDS.new; mv PIDS.new PIDS; wait"]
  artifact: out
run:
  command: ["{dir}/out"]
  health: /healthz
  ready: /readyz
targets:
  - {name: sh-none, runtime: native, mode: virtual}
`
	dir := filepath.Join(root, "services", "sh-none")
	for _, d := range []string{dir, filepath.Join(root, "suites")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.ReplaceAll(manifest, "PIDS", pids)
	if err := os.WriteFile(filepath.Join(dir, "service.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return root, pids
}

// A build step ends with its killed lab, including child processes; while it runs, the journal
// contains it.
func TestStepsEndWithTheLab(t *testing.T) {
	testsets.Once(t, "builds whose lab ends", testsets.Needs{})
	for _, verb := range []string{"build", "verify"} {
		t.Run(verb, func(t *testing.T) {
			root, file := endless(t)
			runtime := t.TempDir()
			p := exec.Command(os.Args[0], verb, "sh-none", "--root", root)
			p.Env = append(os.Environ(), "PRONY_TEST_MAIN=1", "XDG_RUNTIME_DIR="+runtime)
			var errs bytes.Buffer
			p.Stderr = &errs
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.Process.Kill() }) //nolint:errcheck // it may have ended
			pids := awaitPIDs(t, file, &errs)
			if verb == "verify" {
				awaitNoted(t, filepath.Join(runtime, "prony", "lab.json"), pids[0])
			}
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			p.Wait() //nolint:errcheck // it was ended
			for _, pid := range pids {
				gone(t, pid)
			}
		})
	}
}

// awaitPIDs waits for the ids of a step and its child.
func awaitPIDs(t *testing.T, file string, errs *bytes.Buffer) (pids []int) {
	t.Helper()
	for end := clock.Mono() + int64(testsets.Patience); clock.Mono() < end; {
		b, err := os.ReadFile(file)
		if err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		for _, word := range strings.Fields(string(b)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) }) //nolint:errcheck // likewise
			pids = append(pids, pid)
		}
		return pids
	}
	t.Fatalf("no step began\n%s", errs)
	return nil
}

// awaitNoted waits until a journal contains a step.
func awaitNoted(t *testing.T, journal string, pid int) {
	t.Helper()
	for end := clock.Mono() + int64(testsets.Patience); clock.Mono() < end; {
		var note struct {
			Processes map[string]struct {
				PID int `json:"pid"`
			} `json:"processes"`
		}
		b, err := os.ReadFile(journal)
		if err == nil && json.Unmarshal(b, &note) == nil &&
			note.Processes["step-"+strconv.Itoa(pid)].PID == pid {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("the journal has no step of process %d", pid)
}
