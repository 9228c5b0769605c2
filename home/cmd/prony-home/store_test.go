package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
)

// A repeated pull gets a run soon after its push, also after the bucket was unavailable, and ends
// without an error.
func TestPullEvery(t *testing.T) {
	testsets.Long(t, "a real server of S3's protocol", testsets.Needs{})
	env, kept := testsets.S3(t)
	for key, value := range env {
		t.Setenv(key, value)
	}
	bench, from, to := filepath.Join(kept, "bench"), t.TempDir(), t.TempDir()
	if err := os.Mkdir(bench, 0o755); err != nil {
		t.Fatal(err)
	}
	push := func(run string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(from, run), 0o755); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile(filepath.Join(from, run, "run.json"), []byte("{}"), 0o644)
		if err != nil {
			t.Fatal(err)
		}
		out, errs, exit := say(t, "store", "push", filepath.Join(from, run), "s3://bench/x")
		if exit != cli.Fine || out != "push "+run+": 1 files, 0 were there\n" {
			t.Fatalf("exit %d: %s%s", exit, out, errs)
		}
	}
	type end struct {
		errs string
		exit int
	}
	pulling := func() (stop func(), ended chan end) {
		ctx, stop := context.WithCancel(t.Context())
		ended = make(chan end, 1)
		go func() {
			var out, errs bytes.Buffer
			exit := cli.Code(run(ctx, []string{"store", "pull", "--every=50ms", "s3://bench/x",
				to}, strings.NewReader(""), &out, &errs))
			ended <- end{errs.String(), exit}
		}()
		return stop, ended
	}
	push("a")
	stop, ended := pulling()
	comes(t, to, "a")
	if err := os.Rename(bench, bench+"-away"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if err := os.Rename(bench+"-away", bench); err != nil {
		t.Fatal(err)
	}
	push("b")
	comes(t, to, "b")
	stop()
	if e := <-ended; e.exit != cli.Fine || !strings.Contains(e.errs, "create the bucket") {
		t.Errorf("told to end, it exits %d: %s", e.exit, e.errs)
	}
	if err := os.Rename(bench, bench+"-gone"); err != nil {
		t.Fatal(err)
	}
	stop, ended = pulling()
	defer stop()
	if e := <-ended; e.exit != cli.Failed || !strings.Contains(e.errs, "create the bucket") {
		t.Errorf("without a bucket from the beginning it exits %d: %s", e.exit, e.errs)
	}
}

// comes waits for a run.
func comes(t *testing.T, to, run string) {
	t.Helper()
	for range 200 {
		if _, err := os.Stat(filepath.Join(to, run, "run.json")); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not come", run)
}
