package main

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
)

// A warm-up is recorded and reported, and is excluded from results.
func TestLoadWarmsUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	_, stderr, exit := really("load", null(t), "-n", "100", "-c", "2", "--view", "none",
		"--warmup", "500ms", "--save="+dir)
	if exit == cli.Misused || exit == cli.Failed || !strings.Contains(stderr, "warmed up for ") {
		t.Fatalf("exit %d: %s", exit, stderr)
	}
	rec := only(t, dir)
	if w := rec.Warmup; w.Requests == 0 || w.DurationNs < 300e6 || rec.Loads[0].Answered != 100 {
		t.Errorf("warm-up %+v, answered %d", w, rec.Loads[0].Answered)
	}
	for _, wrong := range []string{"x", "0s", "-1s"} {
		if _, stderr, exit := really("load", null(t), "--warmup", wrong); exit != cli.Misused ||
			!strings.Contains(stderr, "must be steady, or a time") {
			t.Errorf("%s: exit %d: %s", wrong, exit, stderr)
		}
	}
}

// A service is trusted if a named authority has signed its certificate, and not otherwise.
func TestLoadTrusts(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "ok")
	}))
	defer s.Close()
	known := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}
	if err := os.WriteFile(known, pem.EncodeToMemory(&block), 0o644); err != nil {
		t.Fatal(err)
	}
	check := func(exit int, says string, args ...string) {
		t.Helper()
		_, stderr, got := really(slices.Concat([]string{"load", "-n", "10", "-c", "1",
			"--view", "none"}, args)...)
		if unspoilt(got) != exit || !strings.Contains(stderr, says) {
			t.Errorf("%q: exit %d, want %d: %s", args, got, exit, stderr)
		}
	}
	check(cli.Failed, "trust its authority with --ca FILE", s.URL)
	check(cli.Failed, "holds none in PEM", s.URL, "--ca", "loadwarm_test.go")
	check(cli.Misused, "--ca: open", s.URL, "--ca", known+"x")
	check(cli.Misused, "http has no certificates", null(t), "--ca", known)
	check(cli.Fine, "", s.URL, "--ca", known)
	check(cli.Fine, "", s.URL, "-k")
}
