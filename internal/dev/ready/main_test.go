package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/service"
)

// write writes a file below a folder.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
		os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// Builds begin in the order of the suite's targets.
func TestNeeded(t *testing.T) {
	var names []string
	for _, s := range needed([]*service.Service{{Name: "a"}, {Name: "b"}, {Name: "c"},
		{Name: "c", Other: "native"}}, []string{"c", "a"}) {
		names = append(names, s.Name+s.Other)
	}
	if want := []string{"c", "a"}; !slices.Equal(names, want) {
		t.Errorf("services %q, want %q", names, want)
	}
}

// The services of the suite are built while prony is compiled, and no others.
func TestReady(t *testing.T) {
	testsets.Live(t)
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, "suite.yaml", "name: s\ntargets: [c-b, c-c]\n")
	for _, name := range []string{"c-a", "c-b", "c-c"} {
		step := "touch " + dir + "/" + name + "; touch out"
		if name == "c-c" {
			step = "false"
		}
		write(t, dir, "services/"+name+"/service.yaml", "name: "+name+"\ncontracts: [hello]\n"+
			"version: \"1\"\nlanguage: C\nframework: none\nabout: It does nothing.\n"+
			"build:\n  steps:\n    - [sh, -c, '"+step+"']\n  artifact: out\n"+
			"targets: [{name: x, runtime: native, mode: virtual}]\n"+
			"run: {command: [./out], health: /, ready: /}\n")
	}
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	err := makeReady(t.Context(), "suite.yaml", func(context.Context, io.Writer) error {
		testsets.Eventually(t, "the service is built during the compilation",
			func() bool { return exists("c-b") })
		return nil
	}, t.Output())
	if err != nil {
		t.Error(err)
	}
	if exists("c-a") {
		t.Error("a service is built that is not in the suite")
	}
	broken := errors.New("it does not compile")
	if err := makeReady(t.Context(), "suite.yaml", func(context.Context, io.Writer) error {
		return broken
	}, t.Output()); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}
