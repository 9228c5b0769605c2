package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial/lab"
)

func TestCount(t *testing.T) {
	var lines, told []string
	for range 2*step + 1 {
		lines = append(lines, "example/package")
	}
	lines = append(lines, "go: downloading a v1", "go: downloading b v1", "# example/x",
		"x.go:3:1: syntax error")
	rest := count(strings.NewReader(strings.Join(lines, "\n")), 300, func(line string) {
		told = append(told, line)
	})
	want := []string{"build prony: 100 of at most 300 packages",
		"build prony: 200 of at most 300 packages",
		"build prony: fetch the modules that it is made of"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if want := "# example/x\nx.go:3:1: syntax error\n"; rest != want {
		t.Errorf("the errors are %q, want %q", rest, want)
	}
}

// What the suite of make bench names is in the catalog, in its order, each once and bare.
func TestWhatTheSuiteNamesIsBuilt(t *testing.T) {
	targets, err := wanted("../../../" + canonical)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := service.Catalog("../../..")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range order(catalog, targets) {
		names = append(names, s.Label())
	}
	if len(targets) == 0 || !slices.Equal(names, targets) {
		t.Errorf("it builds %q, want %q", names, targets)
	}
	if names := order(catalog, []string{"go-*", "go-gin"}); len(names) != 3 {
		t.Errorf("a glob names %d services, want Go's 3, each once", len(names))
	}
}

// How long it takes is said by make, before there is anything to say it.
func TestMakeSaysHowLong(t *testing.T) {
	text, err := os.ReadFile("../../../" + canonical)
	if err != nil {
		t.Fatal(err)
	}
	of, err := suite.Read(canonical, text)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := service.Catalog("../../..")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := of.Plan(lab.Catalog(catalog).Targets())
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	const said = 3
	least, most := plan.Estimate()
	line := fmt.Sprintf("Compare the services of %s: %d minutes, ", canonical, said)
	if !strings.Contains(string(makefile), line) || least > said*time.Minute ||
		most < said*time.Minute {
		t.Errorf("it takes %v to %v; does the Makefile say %q?", least, most, line)
	}
}

// The status of numbers that are INVALID is no failure of make's; others are.
func TestStatus(t *testing.T) {
	for status, fails := range map[string]bool{"0": false, "4": false, "1": true, "2": true} {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "#!/bin/sh\necho \"$@\"\nexit " + status + "\n"
		if err := os.WriteFile(filepath.Join(root, program), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := run(t.Context(), root, []string{"--blocks", "1"}, &out, &out)
		if (err != nil) != fails || out.String() != "run --blocks 1\n" {
			t.Errorf("status %s: %v, said %q", status, err, &out)
		}
	}
}

// A line of any length is no end of what the compiler says.
func TestLongLine(t *testing.T) {
	const cause = "./a.go:1: it is wrong"
	said := strings.NewReader(strings.Repeat("x:", 1<<20) + "\n" + cause + "\n")
	if rest := count(said, 1, func(string) {}); !strings.HasSuffix(rest, "\n"+cause+"\n") {
		t.Errorf("of %d bytes the cause is lost", len(rest))
	}
}
