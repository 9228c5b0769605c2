package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// null is a server that responds at once, over HTTP/1.1 and HTTP/2.
func null(t *testing.T) string {
	t.Helper()
	url, _ := counted(t)
	return url
}

// counted is such a server that counts its requests.
func counted(t *testing.T) (url string, asked *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked = new(atomic.Int64)
	s := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			fmt.Fprint(w, "ok")
		})}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	go s.Serve(l)                   //nolint:errcheck // until it is closed
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // closed after its test
	return "http://" + l.Addr().String() + "/", asked
}

// signalled returns the output of a load in a process of its own that gets signals in its window.
func signalled(t *testing.T, args []string, signals ...syscall.Signal) (
	exit int, said struct{ Verdict record.Verdict }, stderr string) {
	t.Helper()
	url, asked := counted(t)
	cmd := exec.Command(os.Args[0], append([]string{"load", "--json", url}, args...)...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "PRONY_TEST_MAIN=1"), &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for asked.Load() < 100 {
		time.Sleep(10 * time.Millisecond)
	}
	for i, sig := range signals { // the first after the lead-in of half a second
		time.Sleep([]time.Duration{1500 * time.Millisecond, 800 * time.Millisecond}[i])
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Wait() //nolint:errcheck // the exit code is checked
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		t.Fatalf("%v: %s%s", err, &out, &errs)
	}
	return cmd.ProcessState.ExitCode(), said, errs.String()
}

// A load that was stopped with Ctrl-Z and continued is INVALID, with every engine and model.
func TestStoppedLoad(t *testing.T) {
	testsets.Once(t, "loads that are stopped", testsets.Needs{})
	for _, how := range [][]string{{"--engine", "epoll"}, {"--http2"}, {"--rate", "500"}} {
		args := append([]string{"-d", "4s", "-c", "8"}, how...)
		exit, said, stderr := signalled(t, args, syscall.SIGSTOP, syscall.SIGCONT)
		stood := slices.ContainsFunc(said.Verdict.Findings, func(f record.Finding) bool {
			return f.Rule == "stalled" && f.Grade == record.Invalid
		})
		if exit != cli.Invalid || !stood {
			t.Errorf("%v: exit %d, %+v\n%s", how, exit, said.Verdict, stderr)
		}
	}
}

// A threshold that held until the user ended the load does not count as met; a saved load is
// INVALID.
func TestCutLoad(t *testing.T) {
	testsets.Once(t, "loads that are cut short", testsets.Needs{})
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"-d", "30s", "-c", "8", "--threshold", "errors<1%", "--save=" + dir}
	exit, said, stderr := signalled(t, args, syscall.SIGTERM)
	if exit != cli.Invalid || said.Verdict.Findings[0].Rule != "whole" {
		t.Errorf("exit %d, %+v\n%s", exit, said.Verdict, stderr)
	}
	has(t, "stderr", stderr, "threshold unknown  errors<1%", "of a load that was cut short")
	if v := only(t, dir).Verdict; v.Grade != record.Invalid || v.Findings[0].Rule != "whole" {
		t.Errorf("saved as %+v", v)
	}
}
