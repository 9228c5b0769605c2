package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/record"
)

// saved returns a real output of another tool.
func saved(name string) string {
	return filepath.Join("..", "..", "internal", "generator", "testdata", name)
}

func TestImportTellsWhatIsKnown(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	if err := a.importFiles([]string{saved("wrk-plain.txt"), saved("hey.txt")}, false); err != nil {
		t.Fatal(err)
	}
	has(t, "import", out.String(),
		"wrk-plain.txt: wrk, closed, 10 connections for 2.41s\n",
		"6.10k good responses/s (14695 good, 0 failed, 0 unanswered)",
		// It ran without --latency and printed only a mean and a maximum.
		"mean 186 ms  p50 –  p90 –  p99 –  p99.9 –  max 1.03 s  of 14695\n",
		"synthetic", "hey.txt: hey for 175ms", "status 100", "first: status 503",
		"the times of hey have steps of 0.1 ms")
}

// One connection is no plural.
func TestImportOfOneConnection(t *testing.T) {
	var out bytes.Buffer
	printImported(&out, imported{File: "f", Load: &record.Load{Driver: "wrk",
		Model: record.Closed, Connections: 1, WindowNs: 2e9}})
	has(t, "import", out.String(), "f: wrk, closed, 1 connection for 2s\n")
}

func TestImportAsJSON(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	missing := filepath.Join(t.TempDir(), "x")
	err := a.importFiles([]string{saved("k6-export.json"), missing, "foreign_test.go"}, true)
	// Both unreadable files are reported, and the third is printed.
	if err == nil || !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(),
			"import foreign_test.go: the format was not recognized as one of") {
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

// TestImportNamesThePlace checks that a value that cannot be read is an error with its place, that
// a compressed file is named, and that the other files are printed.
func TestImportNamesThePlace(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "timeStamp;elapsed;responseCode;success\n1700000000000;10;200;true\n"
	bad := put("bad.jtl", head+"1700000000010;10ms;200;true\n")
	packed := put("packed.jtl", "\x1f\x8b\x08")
	var out bytes.Buffer
	a := &app{stdout: &out}
	err := a.importFiles([]string{bad, packed, put("good.jtl", head)}, false)
	if err == nil {
		t.Fatal("it is no error")
	}
	has(t, "errors", err.Error(), "import "+bad+" as its log (JTL) as CSV of jmeter: line 3, "+
		`column "elapsed": cannot read "10ms": it is not a whole number`, "compressed by gzip")
	has(t, "import", out.String(), "good.jtl: jmeter for 10ms", "(1 good, 0 failed, 0 unanswered)")
	if strings.Contains(out.String(), "bad.jtl") {
		t.Errorf("it prints %s", &out)
	}
}
