package main

import (
	"os"
	"path/filepath"
	"testing"

	"prony.example/internal/base/cli"
)

// The verb writes, so it gets a checkout without links to this one: a catalog of one service.
func TestNewService(t *testing.T) {
	root := t.TempDir()
	const pattern = "services/go-gin"
	if err := os.CopyFS(filepath.Join(root, pattern),
		os.DirFS(filepath.Join(checkout(t), pattern))); err != nil {
		t.Fatal(err)
	}
	check := func(want int, wants []string, args ...string) {
		t.Helper()
		stdout, stderr, exit := say(t, mock{}, append([]string{"new", "service"}, args...)...)
		if exit != want {
			t.Errorf("%q: exit %d, want %d", args, exit, want)
		}
		has(t, "what it says", stdout+stderr, wants...)
	}
	at := []string{"--root", root}
	check(cli.Misused, []string{`no template for language "cobol"; the languages are go, rust, ` +
		`java, node, python`},
		append(at, "cobol-web")...)
	check(cli.Misused, []string{"expected prony new service"}, at...)
	check(cli.Failed, []string{"create java-x from java-jdk"}, append(at, "java-x")...)
	check(cli.Fine, []string{"services/go-x: ", "copied from go-gin", "prony verify go-x"},
		append(at, "go-x")...)
	check(cli.Fine, []string{"copied from go-x"}, append(at, "go-y", "--like", "go-x")...)
	check(cli.Misused, []string{"services/go-x exists", "never overwrites"},
		append(at, "go-x")...)
	listed, _, _ := say(t, mock{}, "services", "--root", root)
	has(t, "the catalog", listed, "go-gin ", "go-x ", "go-y ")
}
