package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/generator"
	"prony.example/record"
)

// saved is a real output of another tool.
func saved(name string) string {
	return filepath.Join("..", "..", "internal", "driver", "testdata", name)
}

func TestImportTellsWhatIsKnown(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	if err := a.importFiles([]string{saved("wrk-plain.txt"), saved("hey.txt")}, false); err != nil {
		t.Fatal(err)
	}
	has(t, "import", out.String(),
		"wrk-plain.txt: wrk, closed, 10 connections for 2.41s\n",
		"6.10k good answers/s (14695 good, 0 failed, 0 unanswered)",
		// It was run without --latency: a mean and the largest are all that it said.
		"mean 186 ms  p50 –  p90 –  p99 –  p99.9 –  max 1.03 s  of 14695\n",
		"synthetic", "hey.txt: hey for 175ms", "status 100", "first: status 503",
		"its times are in steps of 0.1 ms", "were both of the same service:",
		"throughput: wrk 6098/s, hey 10876/s")
}

func TestImportAsJSON(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	missing := filepath.Join(t.TempDir(), "x")
	err := a.importFiles([]string{saved("k6-export.json"), missing, "foreign_test.go"}, true)
	// Both that cannot be read are told, and the third is still there.
	if err == nil || !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "import foreign_test.go: it looks like none of") {
		t.Errorf("error %v", err)
	}
	var all []imported
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0].Load.Censored != 448 || len(all[0].Notes) == 0 {
		t.Errorf("it is %+v", all)
	}
}

// A verb of another tool runs what its command line came to, and says where we differ.
func TestUsualVerbs(t *testing.T) {
	var got *generator.Call
	say := func(line string) (stderr string, err error) {
		var out, errs bytes.Buffer
		a := &app{stdout: &out, stderr: &errs}
		root := &cobra.Command{Use: "prony", SilenceErrors: true, SilenceUsage: true}
		for _, tool := range generator.Usuals() {
			root.AddCommand(a.usualCmd(tool, func(_ context.Context, c *generator.Call) error {
				got = c
				return nil
			}))
		}
		root.SetArgs(strings.Fields(line))
		root.SetOut(&out)
		root.SetErr(&errs)
		err = root.ExecuteContext(context.Background())
		return errs.String() + out.String(), err
	}
	stderr, err := say("wrk2 -t1 -c7 -d3s -R50 --latency http://127.0.0.1:1/x")
	if err != nil || got.Spec.Model != record.Open || got.Spec.Connections != 7 ||
		got.URL != "http://127.0.0.1:1/x" || len(got.Spec.Cores) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	has(t, "stderr", stderr, "prony: wrk2 drops its first 10 s")
	if _, err := say("wrk -t2 -c7 http://127.0.0.1:1/x"); err != nil || len(got.Spec.Cores) == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := say("hey -x y http://127.0.0.1:1/x"); cli.Code(err) != cli.Misused {
		t.Errorf("error %v, want one of usage", err)
	}
	help, err := say("hey --help")
	if err != nil {
		t.Error(err)
	}
	has(t, "help", help, "-disable-keepalive", "so that scripts need no rewriting")
}
